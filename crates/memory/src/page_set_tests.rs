use longhaul_protocol::{Body, Hash, NewRecord};

use super::*;

/// A record of a scope, as the journal would have it.
fn record(seq: Seq, new: NewRecord) -> Record {
    Record {
        stream: StreamName::memory("agent-x").unwrap(),
        seq,
        at: At(0),
        kind: new.kind,
        key: None,
        body: Body::Here(new.body),
        prev: Hash::ZERO,
        hash: Hash::ZERO,
    }
}

fn fold(changes: &[(ChangedBy, &str, Option<&str>)]) -> PageSet {
    let mut book = PageSet::default();
    for (index, (by, page, text)) in changes.iter().enumerate() {
        let change = PageChange {
            page: (*page).to_owned(),
            text: text.map(str::to_owned),
            reason: String::new(),
            sources: vec![],
            dropped: vec![],
        };
        let changed = PagesChanged {
            by: *by,
            reason: String::new(),
            extracts: vec![],
            pages: vec![change],
            undoes: None,
            refused: vec![],
            usage: vec![],
        };
        let record = record(index as Seq + 1, MemoryRecord::PagesChanged(changed).encode());
        book.apply(&record, &decode_changes(&record).unwrap());
    }
    book
}

#[test]
fn lines_that_a_person_added_are_that_persons_as_long_as_they_stand_there() {
    let book = fold(&[
        (ChangedBy::Consolidation, "core", Some("- by the machine\n")),
        (ChangedBy::Person, "core", Some("- by the machine\n- by a person\n- too\n")),
        (ChangedBy::Consolidation, "core", Some("- again by the machine\n- by a person\n")),
        (ChangedBy::Note, "notes", Some("- noted by the model\n")),
    ]);

    assert_eq!(book.lines_by_people("core").collect::<Vec<_>>(), ["by a person"]);
    assert_eq!(book.lines_by_people("notes").count(), 0);
}

#[test]
fn a_page_that_was_removed_and_comes_back_has_all_its_versions() {
    let book = fold(&[
        (ChangedBy::Consolidation, "a", Some("- one\n")),
        (ChangedBy::Person, "a", None),
        (ChangedBy::Undo, "a", Some("- one\n")),
    ]);

    assert_eq!(book.pages["a"].versions.iter().map(|version| version.seq).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!((book.newest_change("a"), book.consolidations), (Some(3), 1));
    assert!(book.has_had("a", Hash::of("- one\n")) && !book.has_had("a", Hash::of("")));
}

#[test]
fn a_name_that_is_none_is_passed_over() {
    let book =
        fold(&[(ChangedBy::Consolidation, "../../etc", Some("- x\n")), (ChangedBy::Person, "b", Some(" "))]);

    assert!(book.pages.is_empty());
    assert_eq!(book.head, 2);
}
