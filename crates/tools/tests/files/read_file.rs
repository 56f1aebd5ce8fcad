//! read_file.

use std::fs::{self, File};
use std::io::{Seek, SeekFrom, Write};

use longhaul_protocol::{FileSeen, Hash};
use longhaul_tools::OutputLimit;
use serde_json::json;

use crate::workplace::{Workplace, call, content, error};

#[tokio::test]
async fn a_file_is_read_as_it_is_and_its_hash_is_noted() {
    let place = Workplace::new();
    let text = "Grüße\n\n日本 🦀 without an end";
    let path = place.put("a.txt", text);

    let finished = place.read("a.txt").await;

    let seen = FileSeen { path: path.to_str().unwrap().to_owned(), hash: Hash::of(text) };
    assert_eq!(finished.seen, Some(seen));
    assert_eq!(content(finished), text);
}

#[tokio::test]
async fn a_long_file_is_read_in_parts_that_fit_together() {
    let place = Workplace::new();
    let text: String = (1..=5_000).map(|line| format!("line {line}\n")).collect();
    place.put("long.txt", &text);

    let mut offset = 1;
    let mut read = String::new();
    loop {
        let part = content(place.call("read_file", json!({ "path": "long.txt", "offset": offset })).await);
        assert!(
            part.len() <= OutputLimit::default().bytes
                && part.lines().count() <= OutputLimit::default().lines
        );
        let (lines, note) = part.rsplit_once('\n').unwrap();
        read += lines;
        read += "\n";
        let Some(next) = note.split("go on with offset ").nth(1) else { break };
        offset = next.trim_end_matches(']').parse().unwrap();
    }

    assert_eq!(read, text);
}

#[tokio::test]
async fn offset_and_limit_choose_lines_and_the_note_says_which() {
    let place = Workplace::new();
    place.put("a.txt", "1\n2\n3\n4\n5");

    let part =
        |offset, limit| place.call("read_file", json!({ "path": "a.txt", "offset": offset, "limit": limit }));

    assert_eq!(content(part(2, 2).await), "2\n3\n[lines 2–3 of 5; go on with offset 4]");
    assert_eq!(content(part(4, 9).await), "4\n5\n[lines 4–5 of 5]");
    assert_eq!(error(part(6, 1).await), "a.txt has 5 lines; line 6 is past its end");
}

#[tokio::test]
async fn an_empty_file_a_folder_and_a_missing_file_are_told_apart() {
    let place = Workplace::new();
    place.put("sub/empty.txt", "");

    assert_eq!(content(place.read("sub/empty.txt").await), "[sub/empty.txt is empty]");
    assert_eq!(error(place.read("sub").await), "sub is a folder, not a file; list_files shows what is in it");
    assert_eq!(error(place.read("missing.txt").await), "missing.txt does not exist");
    assert_eq!(error(place.read("sub/empty.txt/x").await), "sub/empty.txt is not a folder");
    assert!(error(place.read("").await).contains("can't be a path"));
    assert!(error(place.read("a\0b").await).contains("can't be a path"));
}

#[tokio::test]
async fn binary_files_are_named_and_not_shown() {
    let place = Workplace::new();
    place.put("program", b"\x7fELF\x02\x01\x01\x00\x00");
    place.put("noise", [0x91_u8, 0xe3, 0xfa, 0x01].repeat(100));
    place.put("wide.txt", b"\xff\xfeh\x00i\x00");

    assert!(error(place.read("program").await).contains("is binary, a program or library (ELF), 9 bytes"));
    assert!(error(place.read("noise").await).contains("is binary, of an unknown type, 400 bytes"));
    assert!(error(place.read("wide.txt").await).contains("text in UTF-16"));
}

#[tokio::test]
async fn a_text_in_an_older_encoding_is_shown_with_a_note() {
    let place = Workplace::new();
    place.put("old.txt", b"Gr\xfc\xdfe aus K\xf6ln\r\n");

    assert_eq!(
        content(place.read("old.txt").await),
        "Gr��e aus K�ln\r\n[not all of it is UTF-8; what is not is shown as �]\n[its lines end with \\r\\n]"
    );
}

#[tokio::test]
async fn pictures_are_looked_at_up_to_a_size() {
    let place = Workplace::new();
    let picture = [b"\x89PNG\r\n\x1a\n".as_slice(), &[7; 20_000]].concat();
    place.put("picture.dat", &picture);
    place.put("large.png", [b"\x89PNG\r\n\x1a\n".as_slice(), &vec![7; 6 << 20]].concat());

    let finished = place.read("picture.dat").await;

    assert_eq!(finished.images.len(), 1);
    assert_eq!(finished.images[0].media, "image/png");
    assert_eq!(finished.images[0].bytes, picture);
    assert_eq!(content(finished), "picture.dat: a picture (image/png), 20008 bytes");
    assert!(error(place.read("large.png").await).contains("Make a smaller copy"));
}

#[tokio::test]
async fn a_file_of_a_gigabyte_is_refused_with_its_size_and_another_way() {
    let place = Workplace::new();
    File::create(place.path("huge")).unwrap().set_len(1 << 30).unwrap();

    let said = error(place.read("huge").await);

    assert!(
        said.contains("1073741824 bytes") && said.contains("67108864") && said.contains("search_text"),
        "{said}"
    );
}

#[tokio::test]
async fn a_line_of_50_megabytes_is_cut_and_what_follows_is_still_read() {
    let place = Workplace::new();
    let mut file = File::create(place.path("line.txt")).unwrap();
    for _ in 0..50 {
        file.write_all("é".repeat(1 << 19).as_bytes()).unwrap();
    }
    file.write_all(b"\nthe end\n").unwrap();

    let text = content(place.read("line.txt").await);

    assert!(text.len() <= OutputLimit::default().bytes, "{}", text.len());
    assert!(text.ends_with("é … [cut: a line of 52428800 bytes]\nthe end\n"), "{}", &text[text.len() - 80..]);
}

/// C8: what is read fits the cap with its note, so it is not truncated again.
#[tokio::test]
async fn a_small_cap_makes_small_parts() {
    let place = Workplace::new();
    place.put("a.txt", "0123456789\n".repeat(1_000));
    let mut call = call(&json!({ "path": "a.txt" }));
    call.output_limit = OutputLimit { lines: 2_000, bytes: 1_000 };

    let text = content(place.make("read_file", &call).await);

    assert!(text.len() <= 1_000, "{}", text.len());
    assert!(text.ends_with("of 1000; go on with offset 68]"), "{text}");
}

#[tokio::test]
async fn a_sparse_file_under_the_limit_is_binary() {
    let place = Workplace::new();
    let mut file = File::create(place.path("sparse")).unwrap();
    file.seek(SeekFrom::Start(60 << 20)).unwrap();
    file.write_all(b"end").unwrap();

    assert!(error(place.read("sparse").await).contains("is binary"));
}

#[tokio::test]
async fn a_file_that_may_not_be_read_says_so() {
    use std::os::unix::fs::PermissionsExt;
    let place = Workplace::new();
    let path = place.put("closed.txt", "x");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    if File::open(&path).is_ok() {
        eprintln!("skipped: this process may read everything");
        return;
    }

    assert!(error(place.read("closed.txt").await).contains("can't open closed.txt: Permission denied"));
}
