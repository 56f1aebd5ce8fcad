//! Whether the home is there and private, its journal opens, and the clock agrees with it.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use longhaul_journal::{Error, Home, Journal, SqliteJournal};
use longhaul_protocol::{At, PrintablePath};

use super::{Finding, size};
use crate::args::GlobalArgs;
use crate::event_text::duration;
use crate::output::{count, shortened};
use crate::suggested_command::quoted;

/// So far the newest record may be ahead of the clock: machines that share a home differ a little.
const MAX_CLOCK_SKEW_MS: i64 = 60_000;
/// Before this was written no clock was right: 2025-01-01.
const EARLIEST_PLAUSIBLE_TIME: Duration = Duration::from_secs(1_735_689_600);
/// What is in the trash for longer is forgotten rather than kept.
const TRASH_WARNING_AGE: Duration = Duration::from_secs(14 * 24 * 3_600);

/// Looks without changing anything. Reading all of the journal is for `verify`.
pub(super) async fn look(globals: &GlobalArgs, folder: &Path) -> Vec<Finding> {
    let shown = folder.printable();
    let mut findings = match globals.existing_home() {
        Ok(Some(home)) => {
            let mut findings = vec![private(home.folder())];
            findings.extend(users(home.folder()));
            findings.extend(forgotten(&home));
            findings.extend(opened(&home).await);
            findings
        }
        Ok(None) => {
            vec![Finding::fine("journal", format!("{shown} has none yet; the first session makes it"))]
        }
        Err(error) => {
            let to_do = "name another folder with --home, or make this one yours";
            vec![Finding::wrong("journal", format!("{error:#}"), to_do)]
        }
    };
    findings.extend(years_behind(since_1970()));
    findings
}

/// A clock that nobody has set.
fn years_behind(now: Duration) -> Option<Finding> {
    let found =
        "this machine's clock is years behind: records would get wrong times, and servers refuse to talk";
    (now < EARLIEST_PLAUSIBLE_TIME).then(|| Finding::wrong("clock", found, "set the clock"))
}

/// J8: nobody else may look into the home. What is in a folder that only its owner can open is out of reach.
fn private(folder: &Path) -> Finding {
    let shown = folder.printable();
    let metadata = match folder.metadata() {
        Ok(metadata) => metadata,
        Err(error) => return Finding::wrong("home", format!("{shown}: {error}"), "make it readable for you"),
    };
    let owner = rustix::process::geteuid().as_raw();
    if metadata.uid() != owner {
        let found = format!("{shown} belongs to another user (id {})", metadata.uid());
        return Finding::wrong(
            "home",
            found,
            format!("sudo chown -R {owner} {}, or name another with --home", quoted_path(folder)),
        );
    }
    let open: Vec<PathBuf> = std::iter::once(folder.to_owned())
        .chain(["journal.db", "journal.db-wal", "history", "trust.toml"].map(|name| folder.join(name)))
        .filter(|path| path.metadata().is_ok_and(|metadata| metadata.mode() & 0o077 != 0))
        .collect();
    match open.first() {
        None => Finding::fine("home", format!("{shown} is private to you")),
        Some(first) => {
            let paths: Vec<String> = open.iter().map(|path| quoted_path(path)).collect();
            let found = format!("others on this machine may look into {}", first.printable());
            Finding::wrong("home", found, format!("chmod go= {}", paths.join(" ")))
        }
    }
}

/// Who else works in the home: each has a socket there that it can be rung on.
fn users(folder: &Path) -> Vec<Finding> {
    let entries = std::fs::read_dir(folder.join("run")).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut pids: Vec<u32> = names
        .filter_map(|name| name.strip_suffix(".sock")?.parse().ok())
        .filter(|pid| *pid != std::process::id())
        .collect();
    pids.sort_unstable();
    let at_work = pids.into_iter().filter_map(|pid| Some(format!("process {pid} ({})", what_runs(pid)?)));
    let at_work: Vec<String> = at_work.collect();
    if at_work.is_empty() {
        return vec![];
    }
    vec![Finding::fine("home", format!("in use by {}", at_work.join(", ")))]
}

/// The program of a process and its first word, if it is one of ours. The number of one that was killed may be another's by now.
fn what_runs(pid: u32) -> Option<String> {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let line = String::from_utf8_lossy(&line).into_owned();
    let mut words = line.split('\0').filter(|word| !word.is_empty());
    let program = Path::new(words.next()?).file_name()?.to_str()?;
    let first = words.find(|word| !word.starts_with('-')).unwrap_or_default();
    program.contains("longhaul").then(|| shortened(format!("{program} {first}").trim(), 40))
}

/// Journals that a restore has replaced long ago, and that nobody came back for.
fn forgotten(home: &Home) -> Option<Finding> {
    let age = |path: &PathBuf| path.metadata().ok()?.modified().ok()?.elapsed().ok();
    let mut old = home.replaced_journals();
    old.retain(|path| age(path).is_some_and(|age| age > TRASH_WARNING_AGE));
    let bytes = old.iter().filter_map(|path| Some(path.metadata().ok()?.len())).sum();
    let first = quoted_path(old.first()?);
    let many = count(old.len() as u64, "journal");
    let found = format!("{many} that a restore has replaced over two weeks ago, {} in all", size(bytes));
    let rest = if old.len() > 1 { " and the others beside it" } else { "" };
    Some(Finding::wrong("trash", found, format!("if all is well since: rm {first}{rest}")))
}

/// How many sessions there are, and whether the newest record is in the past.
async fn opened(home: &Home) -> Vec<Finding> {
    match sessions(home).await {
        Ok((sessions, newest)) => {
            let opens =
                format!("{} opens, with {}", home.journal_file().printable(), count(sessions, "session"));
            std::iter::once(Finding::fine("journal", opens))
                .chain(newest.and_then(|newest| ahead(newest, since_1970())))
                .collect()
        }
        Err(error) => {
            let to_do = match &error {
                Error::Newer { .. } => "use the newer longhaul that has written it",
                Error::Foreign { .. } => "move that file away, or name another folder with --home",
                Error::InUse { .. } => "wait until that process is done, then try again",
                _ => {
                    "longhaul verify says what is damaged, and with --salvage FILE gets out what can be read"
                }
            };
            vec![Finding::wrong("journal", error, to_do)]
        }
    }
}

async fn sessions(home: &Home) -> Result<(u64, Option<At>), Error> {
    let journal = SqliteJournal::open(home).await?;
    let (mut many, mut newest, mut after) = (0, None, None::<String>);
    loop {
        let page = journal.sessions(after.as_deref(), 1_000).await?;
        let Some(last) = page.last() else { break };
        after = Some(last.key.clone());
        many += page.len() as u64;
        newest = newest.max(page.iter().filter_map(|entry| entry.last_at).max());
    }
    journal.close().await;
    Ok((many, newest))
}

/// A clock that stands before what has been recorded.
fn ahead(newest: At, now: Duration) -> Option<Finding> {
    let now = i64::try_from(now.as_millis()).unwrap_or(i64::MAX);
    let ahead = newest.0.saturating_sub(now);
    let by = duration(u64::try_from(ahead).ok()?);
    (ahead > MAX_CLOCK_SKEW_MS).then(|| {
        let found = format!("the newest record is from {newest}, {by} ahead of this machine's clock");
        Finding::wrong("clock", found, "set the clock; what is idle or expired is told by it")
    })
}

/// A path as a shell takes it for one: what is to be done here must not be done to something else.
fn quoted_path(path: &Path) -> String {
    quoted(&path.printable().to_string())
}

fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

#[cfg(test)]
#[path = "journal_tests.rs"]
mod tests;
