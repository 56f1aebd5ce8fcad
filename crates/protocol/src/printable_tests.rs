use super::*;

#[test]
fn an_ordinary_name_is_shown_as_it_is() {
    assert_eq!(Path::new("café/日本 \\n.txt").printable().to_string(), "café/日本 \\n.txt");
}

#[test]
fn a_name_that_could_mislead_is_escaped() {
    assert_eq!(printable(b"a\nb\x1b[31m").to_string(), "a\\nb\\u{1b}[31m");
    assert_eq!(printable(b"caf\xe9\\n").to_string(), "caf\\xe9\\\\n");
    assert_eq!(printable("a\u{202e}b\u{2066}c".as_bytes()).to_string(), "a\\u{202e}b\\u{2066}c");
}
