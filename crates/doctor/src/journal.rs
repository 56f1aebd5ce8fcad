//! Checks the home: is it private, does its journal open, and does the clock agree with it?

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use longhaul_agent::config::{NodeSettings, Sources};
use longhaul_agent::{DatabaseCheck, JournalPlace};
use longhaul_journal::{Error, Home, Journal, SqliteJournal, all_sessions};
use longhaul_protocol::{At, PrintablePath};
use longhaul_transcript::{format_count, format_duration, format_moment, shell_quoted, truncate};

use super::{Finding, nodes, size};

/// How far the newest record may be ahead of the clock: machines that share a home differ a little.
const MAX_CLOCK_SKEW_MS: i64 = 60_000;
/// 2025-01-01. A clock before that was never set.
const EARLIEST_PLAUSIBLE_TIME: Duration = Duration::from_secs(1_735_689_600);
/// The age from which on a replaced journal is reported.
const TRASH_WARNING_AGE: Duration = Duration::from_secs(14 * 24 * 3_600);

/// Checks the journal that the user's config names: the file in the home, or a database.
pub(super) async fn check_configured(folder: &Path, sources: &Sources) -> Vec<Finding> {
    match JournalPlace::of_home(folder, sources) {
        Ok(place) if !place.is_file() => check_database(folder, &place).await,
        // A config that can't be read has a finding of its own.
        _ => check(folder, None, &NodeSettings::default()).await,
    }
}

/// Opens the database, counts its sessions, and says how wakes reach this machine (N3).
async fn check_database(folder: &Path, place: &JournalPlace) -> Vec<Finding> {
    let opened = match Home::create(folder) {
        Ok(home) => place.check(&home).await,
        Err(error) => Err(error.into()),
    };
    match opened {
        Ok(DatabaseCheck { address, sessions, delivers_wakes, clock_ahead_ms, nodes }) => {
            let wakes = if delivers_wakes {
                "the database tells this machine what other machines wake".to_owned()
            } else {
                "the database, or a pooler in front of it, delivers no notifications: work of other machines is found by looking each second"
                    .to_owned()
            };
            let mut findings = vec![
                Finding::fine("journal", format!("{address} with {}", format_count(sessions, "session"))),
                Finding::fine("wakes", wakes),
            ];
            findings.extend(nodes::check_clock(clock_ahead_ms));
            findings.extend(nodes::check(&nodes, &place.node_settings()).await);
            findings
        }
        Err(error) => {
            vec![Finding::wrong("journal", error, "fix that, or remove journal.url from the config")]
        }
    }
}

/// Checks without changing anything. Reading the whole journal is for `verify`. `open` is the journal of a home that this
/// process has open, with the settings of its node.
pub(super) async fn check(
    folder: &Path,
    open: Option<Arc<dyn Journal>>,
    node: &NodeSettings,
) -> Vec<Finding> {
    if let Some(cluster) = open.as_ref().and_then(|journal| journal.cluster()) {
        return match cluster.nodes().await {
            Ok(nodes) => nodes::check(&nodes, node).await,
            Err(error) => vec![Finding::wrong("journal", error, "check the database, or wait for it")],
        };
    }
    let shown = folder.printable();
    let mut findings = match existing_home(folder) {
        Ok(Some(home)) => {
            let mut findings = vec![check_permissions(home.folder())];
            findings.extend(other_processes(home.folder()));
            findings.extend(check_replaced_journals(&home));
            findings.extend(check_journal(&home, open).await);
            findings
        }
        Ok(None) => {
            vec![Finding::fine("journal", format!("none in {shown} yet; the first session creates it"))]
        }
        Err(error) => {
            let to_do = "use another folder with --home, or fix the permissions of this one";
            vec![Finding::wrong("journal", error, to_do)]
        }
    };
    findings.extend(check_clock_is_set(since_1970()));
    findings
}

/// The home, if it has a journal.
fn existing_home(folder: &Path) -> Result<Option<Home>, String> {
    let in_words = |error: std::io::Error| format!("can't access {}: {error}", folder.printable());
    if !folder.try_exists().map_err(in_words)? {
        return Ok(None);
    }
    let home = Home::existing(folder).map_err(|error| error.to_string())?;
    let has_journal = home.has_journal().map_err(|error| error.to_string())?;
    Ok(has_journal.then_some(home))
}

fn check_clock_is_set(now: Duration) -> Option<Finding> {
    let found = "the system clock is years behind: sessions get wrong dates, and servers refuse connections";
    (now < EARLIEST_PLAUSIBLE_TIME).then(|| Finding::wrong("clock", found, "set the clock"))
}

/// J8: no other user may read the home.
fn check_permissions(folder: &Path) -> Finding {
    let shown = folder.printable();
    let metadata = match folder.metadata() {
        Ok(metadata) => metadata,
        Err(error) => return Finding::wrong("home", format!("{shown}: {error}"), "fix its permissions"),
    };
    let owner = rustix::process::geteuid().as_raw();
    if metadata.uid() != owner {
        let found = format!("{shown} is owned by another user (uid {})", metadata.uid());
        return Finding::wrong(
            "home",
            found,
            format!("run `sudo chown -R {owner} {}`, or use another folder with --home", quoted_path(folder)),
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
            let found = format!("other users can read {}", first.printable());
            Finding::wrong("home", found, format!("chmod go= {}", paths.join(" ")))
        }
    }
}

/// The processes that use the home: each has a socket in its folder `run`.
fn other_processes(folder: &Path) -> Vec<Finding> {
    let entries = std::fs::read_dir(folder.join("run")).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut pids: Vec<u32> = names
        .filter_map(|name| name.strip_suffix(".sock")?.parse().ok())
        .filter(|pid| *pid != std::process::id())
        .collect();
    pids.sort_unstable();
    let at_work = pids.into_iter().filter_map(|pid| Some(format!("process {pid} ({})", program_of(pid)?)));
    let at_work: Vec<String> = at_work.collect();
    if at_work.is_empty() {
        return vec![];
    }
    vec![Finding::fine("home", format!("in use by {}", at_work.join(", ")))]
}

/// The program and subcommand of a process, if it is longhaul. The pid of a killed process may be reused.
fn program_of(pid: u32) -> Option<String> {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let line = String::from_utf8_lossy(&line).into_owned();
    let mut words = line.split('\0').filter(|word| !word.is_empty());
    let program = Path::new(words.next()?).file_name()?.to_str()?;
    let first = words.find(|word| !word.starts_with('-')).unwrap_or_default();
    program.contains("longhaul").then(|| truncate(format!("{program} {first}").trim(), 40))
}

/// Reports journals that a restore replaced long ago.
fn check_replaced_journals(home: &Home) -> Option<Finding> {
    let age = |path: &PathBuf| path.metadata().ok()?.modified().ok()?.elapsed().ok();
    let mut old = home.replaced_journals();
    old.retain(|path| age(path).is_some_and(|age| age > TRASH_WARNING_AGE));
    let bytes = old.iter().filter_map(|path| Some(path.metadata().ok()?.len())).sum();
    let first = quoted_path(old.first()?);
    let many = format_count(old.len() as u64, "journal");
    let found = format!("{many} replaced by a restore over two weeks ago, {} in total", size(bytes));
    let rest = if old.len() > 1 { " and the others next to it" } else { "" };
    Some(Finding::wrong("trash", found, format!("if you no longer need them: rm {first}{rest}")))
}

/// Opens the journal, counts its sessions, and compares its newest record with the clock.
async fn check_journal(home: &Home, open: Option<Arc<dyn Journal>>) -> Vec<Finding> {
    let counted = match open {
        Some(journal) => count_sessions(&*journal).await,
        None => match SqliteJournal::open(home).await {
            Ok(journal) => {
                let counted = count_sessions(&journal).await;
                journal.close().await;
                counted
            }
            Err(error) => Err(error),
        },
    };
    match counted {
        Ok((sessions, newest)) => {
            let opens =
                format!("{} with {}", home.journal_file().printable(), format_count(sessions, "session"));
            std::iter::once(Finding::fine("journal", opens))
                .chain(newest.and_then(|newest| check_clock(newest, since_1970())))
                .collect()
        }
        Err(error) => {
            let to_do = match &error {
                Error::Newer { .. } => "update longhaul",
                Error::Foreign { .. } => "move the file away, or use another folder with --home",
                Error::InUse { .. } => "wait for that process to end, then try again",
                _ => {
                    "run `longhaul verify` to see the damage, and `longhaul verify --salvage FILE` to copy what can be read"
                }
            };
            vec![Finding::wrong("journal", error, to_do)]
        }
    }
}

/// The number of sessions, and the time of the newest record.
async fn count_sessions(journal: &dyn Journal) -> Result<(u64, Option<At>), Error> {
    let sessions = all_sessions(journal).collect().await?;
    let newest = sessions.iter().filter_map(|entry| entry.last_at).max();
    Ok((sessions.len() as u64, newest))
}

/// Reports a clock that is behind the newest record.
fn check_clock(newest: At, now: Duration) -> Option<Finding> {
    let now = i64::try_from(now.as_millis()).unwrap_or(i64::MAX);
    let ahead = newest.0.saturating_sub(now);
    let by = format_duration(u64::try_from(ahead).ok()?);
    (ahead > MAX_CLOCK_SKEW_MS).then(|| {
        let found =
            format!("the newest session is from {}, {by} ahead of the system clock", format_moment(newest));
        Finding::wrong("clock", found, "set the clock: idle time and expiry depend on it")
    })
}

/// A path in quotes, for a command that the user copies.
fn quoted_path(path: &Path) -> String {
    shell_quoted(&path.printable().to_string())
}

fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

#[cfg(test)]
#[path = "journal_tests.rs"]
mod tests;
