//! What an end has left: records, leases, processes.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use longhaul_journal::Journal;
use longhaul_protocol::{Record, StreamName};
use longhaul_testkit::{broken_rules, records_of};

use crate::desk::Desk;

/// The records of the only session there is.
pub(crate) fn records(desk: &Desk) -> Vec<Record> {
    desk.with_journal(|journal| async move {
        match journal.sessions(None, 2).await.unwrap().as_slice() {
            [] => vec![],
            [session] => records_of(&*journal, session.id).await,
            several => panic!("{several:?}"),
        }
    })
}

/// The same, which break no rule, in a journal that is whole and that nobody holds anything of.
pub(crate) fn sound_records(desk: &Desk) -> Vec<Record> {
    let records = records(desk);
    assert_eq!(broken_rules(&records), Vec::<String>::new());
    desk.with_journal(|journal| async move {
        let report = journal.verify().await.unwrap();
        assert!(report.damage.is_empty(), "{:?}", report.damage);
        for stream in journal.streams().await.unwrap().into_iter().chain([StreamName::host()]) {
            assert_eq!(journal.holder(&stream).await.unwrap(), None, "{stream:?} is held");
        }
    });
    records
}

/// A process that has to do with a desk.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Left {
    Keeper,
    Command,
    Program(String),
}

/// The processes that work in the folder of a desk, or were told of it.
pub(crate) fn processes(desk: &Desk) -> Vec<Left> {
    let folder = desk.path("").canonicalize().unwrap();
    let home = format!("LONGHAUL_HOME={}", desk.path("home").display());
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let process = entry.path();
        let read = |name: &str| std::fs::read(process.join(name)).unwrap_or_default();
        let is_within = |link: &Path| std::fs::read_link(link).is_ok_and(|at| at.starts_with(&folder));
        let is_told = read("environ").split(|byte| *byte == 0).any(|variable| variable == home.as_bytes());
        let is_ended =
            read("stat").rsplit(|byte| *byte == b')').next().is_some_and(|rest| rest.starts_with(b" Z"));
        if is_ended || !(is_told || is_within(&process.join("cwd"))) {
            continue;
        }
        let line = String::from_utf8_lossy(&read("cmdline")).replace('\0', " ");
        let program = std::fs::read_link(process.join("exe")).unwrap_or_default();
        let is_ours = program.as_os_str().as_bytes().ends_with(b"/longhaul");
        found.push(match is_ours {
            true if line.contains("keeper-process") => Left::Keeper,
            true => Left::Program(line),
            false => Left::Command,
        });
    }
    found
}
