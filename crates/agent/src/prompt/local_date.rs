//! The date in the user's time zone.
//!
//! The zone is read from one file: the list of all zones, which a library would read, takes longer than the rest of the
//! start.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use longhaul_protocol::At;
use longhaul_tools::{LastLink, read_small_file};

const LOCAL_ZONE: &str = "/etc/localtime";
const ZONE_FOLDER: &str = "/usr/share/zoneinfo";
const MAX_ZONE_BYTES: u64 = 64 << 10;

/// A date, and the zone in which it is that date.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LocalDate {
    /// `2026-11-17`
    pub(super) date: String,
    /// `Europe/Berlin (UTC+01:00)`, or `UTC`
    pub(super) zone: String,
}

/// The date at a moment, in the zone that `TZ` names, otherwise in the system's.
pub(super) fn local_date(at: At, variable: Option<&str>) -> LocalDate {
    let (name, zone) = match variable {
        Some(variable) => named_zone(variable.trim_start_matches(':')),
        None => system_zone(),
    }
    .unwrap_or_else(|| ("UTC".to_owned(), TimeZone::UTC));
    let moment = Timestamp::from_millisecond(at.0).unwrap_or_default().to_zoned(zone);
    let seconds = moment.offset().seconds();
    let (sign, minutes) = (if seconds < 0 { '-' } else { '+' }, seconds.abs() / 60);
    let offset = format!("UTC{sign}{:02}:{:02}", minutes / 60, minutes % 60);
    let is_utc = seconds == 0 && matches!(name.as_str(), "" | "UTC" | "Etc/UTC");
    let zone = match (is_utc, name.is_empty()) {
        (true, _) => "UTC".to_owned(),
        (false, true) => offset,
        (false, false) => format!("{name} ({offset})"),
    };
    LocalDate { date: moment.date().to_string(), zone }
}

/// The zone of the system. Its name is that of the file to which the system's link leads, if it is one.
fn system_zone() -> Option<(String, TimeZone)> {
    let target = std::fs::read_link(LOCAL_ZONE).unwrap_or_default();
    let name = target.to_str().and_then(|target| target.split_once("zoneinfo/")).map_or("", |(_, name)| name);
    Some((name.to_owned(), read_zone(name, Path::new(LOCAL_ZONE))?))
}

/// The zone with this name, or the one that a POSIX rule such as `CET-1CEST,M3.5.0,M10.5.0` describes.
fn named_zone(name: &str) -> Option<(String, TimeZone)> {
    let is_name = !name.starts_with('/') && !name.split('/').any(|part| part == "..");
    let path: PathBuf = Path::new(ZONE_FOLDER).join(name);
    let zone = if is_name && !name.is_empty() { read_zone(name, &path) } else { None };
    zone.map(|zone| (name.to_owned(), zone)).or_else(|| Some((String::new(), TimeZone::posix(name).ok()?)))
}

fn read_zone(name: &str, path: &Path) -> Option<TimeZone> {
    let file = read_small_file(path, LastLink::Follow, MAX_ZONE_BYTES).ok()??;
    TimeZone::tzif(name, &file.bytes).ok()
}

#[cfg(test)]
#[path = "local_date_tests.rs"]
mod tests;
