use proptest::prelude::*;

use super::*;

fn excerpt(range: LineRange, pieces: &[&[u8]]) -> (String, Option<u64>, u64) {
    let mut excerpt = LineCollector::new(range);
    pieces.iter().for_each(|piece| excerpt.feed(piece));
    let taken = excerpt.finish();
    (String::from_utf8(taken.text).unwrap(), taken.last, taken.total)
}

const ALL: LineRange = LineRange { first: 1, lines: 100, max_bytes: 1_000, max_line_bytes: 500 };

#[test]
fn lines_are_taken_as_they_are() {
    assert_eq!(excerpt(ALL, &[b"a\r\nb", b"b\n\nc"]), ("a\r\nbb\n\nc".into(), Some(4), 4));
    assert_eq!(excerpt(ALL, &[b"a\n"]), ("a\n".into(), Some(1), 1));
    assert_eq!(excerpt(ALL, &[]), (String::new(), None, 0));
}

#[test]
fn only_the_lines_that_were_asked_for_are_taken_and_all_are_counted() {
    let range = LineRange { first: 2, lines: 2, ..ALL };

    assert_eq!(excerpt(range, &[b"1\n2\n3\n4\n5"]), ("2\n3\n".into(), Some(3), 5));
}

#[test]
fn a_line_that_does_not_fit_any_more_is_left_for_the_next_read() {
    let range = LineRange { max_bytes: 6, ..ALL };

    assert_eq!(excerpt(range, &[b"abc\ndef\ng\n"]), ("abc\n".into(), Some(1), 3));
}

#[test]
fn a_long_line_is_cut_between_characters() {
    let range = LineRange { max_line_bytes: 4, ..ALL };

    assert_eq!(
        excerpt(range, &["abcéf\nx".as_bytes()]),
        ("abc … [cut: a line of 6 bytes]\nx".into(), Some(2), 2)
    );
}

proptest! {
    #[test]
    fn how_the_bytes_come_makes_no_difference(text in "[a-cé\n]{0,40}", at in 0usize..40, first in 1u64..6) {
        let bytes = text.as_bytes();
        let at = at.min(bytes.len());
        let range = LineRange { first, lines: 3, max_bytes: 20, max_line_bytes: 5 };

        prop_assert_eq!(excerpt(range, &[bytes]), excerpt(range, &[&bytes[..at], &bytes[at..]]));
    }
}
