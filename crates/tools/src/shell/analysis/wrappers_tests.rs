use super::*;
use crate::shell::analysis::launchers::LAUNCHERS;

/// P4: an entry that can't be read would let its program hide a command.
#[test]
fn every_entry_of_the_tables_can_be_read() {
    for (table, programs) in [(PASSING_WRAPPERS, 15), (LAUNCHERS, 10)] {
        let entries = table.trim().trim_end_matches(';').split(';');
        let names: Vec<&str> =
            entries.clone().flat_map(|entry| entry.split('|').next().unwrap().split_whitespace()).collect();

        assert!(entries.clone().all(|entry| entry.split('|').count() == 4), "{table}");
        assert!(names.iter().all(|name| find_wrapper(table, name).is_some()), "{names:?}");
        assert_eq!(names.len(), programs, "{names:?}");
    }
}
