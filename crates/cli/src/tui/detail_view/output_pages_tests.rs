use std::time::{Duration, Instant};

use super::*;

fn numbered(lines: usize) -> String {
    (0..lines).map(|number| format!("line {number}\n")).collect()
}

#[test]
fn a_hundred_thousand_lines_are_read_in_pages_from_a_file_without_a_name() {
    let folder = std::env::temp_dir().join(format!("longhaul-pages-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let started = Instant::now();
    let mut writer = OutputPagesWriter::new(Some(&folder));
    numbered(100_000)
        .as_bytes()
        .chunks(7_919)
        .for_each(|chunk| writer.push(std::str::from_utf8(chunk).unwrap()));
    let mut pages = writer.finish();

    assert_eq!(pages.line_count(), 100_000);
    for number in [0, 255, 256, 50_000, 99_999] {
        assert_eq!(pages.line(number), format!("line {number}"));
    }
    assert_eq!(pages.line(100_000), "");
    assert!(matches!(pages.source, PageSource::File(_)));
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
    assert!(started.elapsed() < Duration::from_secs(10));
    std::fs::remove_dir(&folder).unwrap();
}

#[test]
fn without_a_folder_the_beginning_is_kept() {
    let mut writer = OutputPagesWriter::new(Some(Path::new("/nowhere")));
    for _ in 0..20 {
        writer.push(&numbered(100_000));
    }
    let mut pages = writer.finish();

    assert!(pages.line_count() > 500_000, "{}", pages.line_count());
    assert!(pages.bytes < (MAX_BYTES_WITHOUT_FILE + MAX_LINE_BYTES) as u64);
    assert_eq!(pages.line(1), "line 1");
}

#[test]
fn a_very_long_line_is_continued_in_the_next() {
    let mut pages = OutputPages::of_text(&format!("a\n{}\nb", "語".repeat(3_000)));

    assert_eq!(pages.line_count(), 5);
    assert_eq!(pages.line(0), "a");
    assert_eq!(pages.line(4), "b");
    assert_eq!(pages.line(1).len(), 4_095);
    assert_eq!(OutputPages::of_text("").line_count(), 0);
    assert_eq!(OutputPages::of_text("\n\n").line_count(), 2);
}
