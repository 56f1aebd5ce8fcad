use proptest::prelude::*;

use super::*;

fn text(path: &[u8]) -> String {
    let path = PathBuf::from(OsString::from_vec(path.to_vec()));
    serde_json::to_string(&JsonPath(path)).unwrap()
}

#[test]
fn a_path_is_written_as_it_is_unless_json_can_not_hold_it() {
    assert_eq!(text("/home/me/ä".as_bytes()), r#""/home/me/ä""#);
    assert_eq!(text(b"/\xff"), r#""bytes:2fff""#);
    assert_eq!(text(b"bytes:"), r#""bytes:62797465733a""#);
}

#[test]
fn what_is_no_path_is_an_error() {
    for text in [r#""bytes:2""#, r#""bytes:zz""#, r#""bytes:é1""#, r#""bytes:+1""#] {
        assert!(serde_json::from_str::<JsonPath>(text).is_err(), "{text}");
    }
}

proptest! {
    #[test]
    fn every_path_is_read_as_it_was(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
        let path = JsonPath(PathBuf::from(OsString::from_vec(bytes)));

        let again: JsonPath = serde_json::from_str(&serde_json::to_string(&path).unwrap()).unwrap();

        prop_assert_eq!(again, path);
    }
}
