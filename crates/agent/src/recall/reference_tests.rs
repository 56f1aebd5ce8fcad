use super::*;

fn records(key: Option<&str>, from: Seq, to: Option<Seq>) -> Reference {
    Reference::Records { key: key.map(str::to_owned), from, to }
}

#[test]
fn a_reference_says_by_itself_what_it_names() {
    let table = [
        ("#12", records(None, 12, None)),
        (" [#12] ", records(None, 12, None)),
        ("#12-20", records(None, 12, Some(20))),
        ("cli:web-1a2b3c4d#7", records(Some("cli:web-1a2b3c4d"), 7, None)),
        ("http:a#b#7-9", records(Some("http:a#b"), 7, Some(9))),
        ("core", Reference::Page("core".to_owned())),
        ("#0", Reference::Page("#0".to_owned())),
        ("#1-", Reference::Page("#1-".to_owned())),
        ("a#x", Reference::Page("a#x".to_owned())),
        ("", Reference::Page(String::new())),
    ];

    for (text, expected) in table {
        assert_eq!(Reference::parse(text), expected, "{text:?}");
    }
}
