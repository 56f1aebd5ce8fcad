use longhaul_journal::Head;

use super::*;

fn session(key: &str, id: &str) -> SessionEntry {
    SessionEntry {
        key: key.to_owned(),
        id: id.parse().unwrap(),
        trashed: false,
        pinned: false,
        head: Head::EMPTY,
        last_at: None,
        epoch_from: None,
        inbox_head: 0,
    }
}

fn some() -> Vec<SessionEntry> {
    vec![
        session("cli:garden-1a2b3c4d", "01JDFJM0000000000000AAAAA1"),
        session("cli:garden-1a2b3c4d-2", "01JDFJM0000000000000BBBBB2"),
        session("cli:kitchen-5e6f7a8b", "01JDFJM0000000000000CCCCC3"),
    ]
}

/// S3.
#[test]
fn a_session_is_meant_by_the_beginning_of_its_key_or_a_part_of_its_id() {
    let sessions = some();

    assert_eq!(match_name(&sessions, "cli:k"), NameMatch::One(2));
    assert_eq!(match_name(&sessions, "bbbbb2"), NameMatch::One(1));
    assert_eq!(match_name(&sessions, "01JDFJM0000000000000AAAAA1"), NameMatch::One(0));
    assert_eq!(
        match_name(&sessions, "cli:gar"),
        NameMatch::Several(vec!["cli:garden-1a2b3c4d", "cli:garden-1a2b3c4d-2"])
    );
    assert_eq!(match_name(&sessions, "01JDFJM").clone_len(), 3);
    assert_eq!(
        match_name(&sessions, "cli:kichten-5e6f7a8b"),
        NameMatch::Nothing(vec!["cli:kitchen-5e6f7a8b"])
    );
    assert_eq!(match_name(&sessions, "zzz"), NameMatch::Nothing(vec![]));
}

/// S5.
#[test]
fn what_is_in_the_trash_is_not_meant_where_something_else_fits() {
    let mut sessions = some();
    sessions[0].trashed = true;

    assert_eq!(match_name(&sessions, "cli:gar"), NameMatch::One(1));
}

impl NameMatch<'_> {
    fn clone_len(&self) -> usize {
        match self {
            Self::Several(keys) | Self::Nothing(keys) => keys.len(),
            Self::One(_) => 1,
        }
    }
}
