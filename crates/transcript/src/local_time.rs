//! Moments in the user's time zone. `TZ` is honoured; JSON has UTC and does not come from here.

use std::sync::LazyLock;

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use longhaul_protocol::At;

/// The system's time zone; `None` if it can't be found.
static SYSTEM_ZONE: LazyLock<Option<TimeZone>> =
    LazyLock::new(|| TimeZone::try_system().ok().filter(|zone| !zone.is_unknown()));

/// A moment in local time: `2026-01-31 12:00`. Without a known time zone it is in UTC and says so.
pub fn format_moment(at: At) -> String {
    moment_in(at, SYSTEM_ZONE.as_ref())
}

/// A moment in local time to the second, for a list of what happened in a session.
pub(crate) fn format_exact_moment(at: At) -> String {
    format_in(at, SYSTEM_ZONE.as_ref(), "%Y-%m-%d %H:%M:%S")
}

/// A moment in local time, without the date if that is today's: `12:00`.
pub fn format_recent_moment(at: At, now: At) -> String {
    recent_moment_in(at, now, SYSTEM_ZONE.as_ref())
}

/// The local date: `2026-01-31`.
pub fn format_date(at: At) -> String {
    in_zone(at, SYSTEM_ZONE.as_ref()).map_or_else(|| at.to_string(), |moment| moment.date().to_string())
}

/// A period in local time with the name of the zone: `2026-01-31 12:00 to 2026-01-31 12:30 CET`.
pub fn format_period(from: At, to: At) -> String {
    period_in(from, to, SYSTEM_ZONE.as_ref())
}

/// The name of the local time zone at a moment: `CET`. `None` if moments say themselves that they are in UTC.
pub fn zone_name(at: At) -> Option<String> {
    name_of(SYSTEM_ZONE.as_ref(), at)
}

fn in_zone(at: At, zone: Option<&TimeZone>) -> Option<Zoned> {
    let moment = Timestamp::from_millisecond(at.0).ok()?;
    Some(moment.to_zoned(zone.cloned().unwrap_or(TimeZone::UTC)))
}

fn moment_in(at: At, zone: Option<&TimeZone>) -> String {
    format_in(at, zone, "%Y-%m-%d %H:%M")
}

fn format_in(at: At, zone: Option<&TimeZone>, format: &str) -> String {
    let mark = if zone.is_some() { "" } else { " UTC" };
    // A damaged file may have a time outside the calendar.
    in_zone(at, zone).map_or_else(|| at.to_string(), |moment| format!("{}{mark}", moment.strftime(format)))
}

fn recent_moment_in(at: At, now: At, zone: Option<&TimeZone>) -> String {
    match in_zone(at, zone).zip(in_zone(now, zone)) {
        Some((moment, now)) if zone.is_some() && moment.date() == now.date() => {
            moment.strftime("%H:%M").to_string()
        }
        _ => moment_in(at, zone),
    }
}

fn period_in(from: At, to: At, zone: Option<&TimeZone>) -> String {
    let name = name_of(zone, to).map(|name| format!(" {name}"));
    format!("{} to {}{}", moment_in(from, zone), moment_in(to, zone), name.unwrap_or_default())
}

fn name_of(zone: Option<&TimeZone>, at: At) -> Option<String> {
    Some(in_zone(at, Some(zone?))?.strftime("%Z").to_string())
}

#[cfg(test)]
#[path = "local_time_tests.rs"]
mod tests;
