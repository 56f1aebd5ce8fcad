use proptest::prelude::*;

use super::*;

fn call() -> CallId {
    CallId::from_bits(7)
}

fn numbered(count: usize) -> String {
    (1..=count).map(|number| format!("line {number}\n")).collect()
}

/// C8
#[test]
fn what_fits_stays_as_it_is() {
    let text = numbered(10);

    assert_eq!(truncate_output(&text, OutputLimit { lines: 10, bytes: text.len() }, call()), None);
    assert_eq!(truncate_output("", OutputLimit { lines: 0, bytes: 0 }, call()), None);
}

/// C8
#[test]
fn too_many_lines_keep_the_first_and_the_last() {
    let shown = truncate_output(&numbered(100), OutputLimit { lines: 5, bytes: 1 << 20 }, call()).unwrap();

    let expected = "line 1\nline 2\n\
        [… 96 lines (761 bytes) are missing here; read_file with the path \"output:00000000000000000000000007\" reads the whole …]\n\
        line 99\nline 100\n";
    assert_eq!(shown, expected);
}

/// C8
#[test]
fn too_many_bytes_are_cut_at_ends_of_lines() {
    let shown = truncate_output(&numbered(1000), OutputLimit { lines: 2000, bytes: 400 }, call()).unwrap();

    assert!(shown.starts_with("line 1\nline 2\n") && shown.ends_with("line 999\nline 1000\n"), "{shown}");
    assert!(shown.lines().all(|line| line.starts_with("line ") || line.starts_with("[… ")), "{shown}");
}

/// C8, K13
#[test]
fn one_endless_line_is_cut_between_characters() {
    let shown =
        truncate_output(&"日本".repeat(10_000), OutputLimit { lines: 2000, bytes: 1000 }, call()).unwrap();

    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(lines.len(), 3);
    assert!(lines[0].len() > 300 && lines[2].len() > 300, "{shown}");
    assert!(shown.len() <= 1000);
}

proptest! {
    /// C8: whatever the text and the cap are.
    #[test]
    fn what_is_shown_stays_within_the_cap(text in "([a-zé日 ]{0,30}\n?){0,60}", lines in 1_usize..50, bytes in 0_usize..2000) {
        let limit = OutputLimit { lines, bytes };

        match truncate_output(&text, limit, call()) {
            None => prop_assert!(text.len() <= bytes && text.lines().count() <= lines),
            Some(shown) => {
                prop_assert!(shown.len() <= bytes, "{} bytes", shown.len());
                prop_assert!(shown.lines().count() <= lines, "{} lines", shown.lines().count());
            }
        }
    }

    /// C8: head, what is missing and tail are the whole.
    #[test]
    fn nothing_is_lost_but_what_the_marker_counts(text in "([a-zé日 ]{0,30}\n){20,60}", lines in 3_usize..20) {
        let shown = truncate_output(&text, OutputLimit { lines, bytes: 1 << 20 }, call()).unwrap();

        let (head, rest) = shown.split_once("[… ").unwrap();
        let (marker, tail) = rest.split_once("…]\n").unwrap();
        prop_assert!(text.starts_with(head) && text.ends_with(tail));
        let missing = text.len() - head.len() - tail.len();
        let expected = format!("({missing} bytes)");
        prop_assert!(marker.contains(&expected), "{}", marker);
    }
}
