use std::time::Duration;

use longhaul_protocol::At;

use super::{check_clock, check_clock_is_set, check_permissions};

const NOW: Duration = Duration::from_secs(1_800_000_000);

/// S8
#[test]
fn a_clock_that_is_behind_what_was_recorded_is_found() {
    let (two_days, a_moment) = (At(1_800_172_800_000), At(1_800_000_020_000));

    let finding = check_clock(two_days, NOW).unwrap();

    assert!(finding.found.contains("48 h 0 min ahead of the system clock"), "{}", finding.found);
    assert!(finding.to_do.unwrap().contains("set the clock"));
    assert!(check_clock(a_moment, NOW).is_none() && check_clock(At(0), NOW).is_none());
}

/// S8
#[test]
fn a_clock_that_nobody_has_set_is_found() {
    assert!(check_clock_is_set(Duration::from_secs(3_600)).unwrap().to_do.is_some());
    assert!(check_clock_is_set(NOW).is_none());
}

/// S8: what is to be done is done to nothing else.
#[test]
fn paths_in_what_is_to_be_done_are_quoted() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("my home");
    std::fs::create_dir(&home).unwrap();
    std::fs::set_permissions(&home, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();

    let found = check_permissions(&home);

    assert_eq!(found.to_do.unwrap(), format!("chmod go= '{}'", home.display()));
}
