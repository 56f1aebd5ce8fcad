use proptest::prelude::*;

use super::*;

fn frames(framing: Framing, pieces: &[&[u8]]) -> Result<Vec<(String, String)>, Fault> {
    let (mut frames, mut found) = (Frames::new(framing), Vec::new());
    for piece in pieces {
        frames.push(piece);
        while let Some(frame) = frames.next()? {
            found.push((frame.event.to_owned(), frame.data.to_owned()));
        }
    }
    Ok(found)
}

fn events(text: &str) -> Vec<(String, String)> {
    frames(Framing::Events, &[text.as_bytes()]).unwrap()
}

fn named(event: &str, data: &str) -> (String, String) {
    (event.to_owned(), data.to_owned())
}

#[test]
fn a_frame_counts_only_with_its_blank_line() {
    assert_eq!(events("data: a"), []);
    assert_eq!(events("data: a\n"), []);
    assert_eq!(events("data: a\n\n"), [named("", "a")]);
    assert_eq!(events("data: a\n\ndata: b\n"), [named("", "a")]);
}

#[test]
fn every_line_end_of_the_standard_is_one() {
    for end in ["\n", "\r\n", "\r"] {
        let text = format!("event: e{end}data: a{end}data: b{end}{end}data: c{end}{end}");
        assert_eq!(events(&text), [named("e", "a\nb"), named("", "c")], "{end:?}");
    }
}

#[test]
fn a_line_end_that_is_cut_in_two_is_still_one() {
    let pieces: [&[u8]; 4] = [b"data: a\r", b"\ndata: b\r", b"\n\r", b"\ndata: c\r\n\r\n"];

    let found = frames(Framing::Events, &pieces).unwrap();

    assert_eq!(found, [named("", "a\nb"), named("", "c")]);
}

#[test]
fn fields_are_read_as_the_standard_says() {
    let text =
        "\u{feff}: a comment\nretry: 5\nid: 1\ndata:no space\ndata:  two spaces\nunknown: x\nevent:e\n\n";

    assert_eq!(events(text), [named("e", "no space\n two spaces")]);
    assert_eq!(events("data\n\ndata: \n\n"), [named("", ""), named("", "")], "empty data are data");
    assert_eq!(
        events("event: e\n\ndata: a\n\n"),
        [named("", "a")],
        "a name alone is no frame, and is forgotten"
    );
    assert_eq!(events("event: a\nevent: b\ndata: x\n\n"), [named("b", "x")]);
    assert_eq!(events(": only\n\n: comments\n\n\n\n"), []);
    assert_eq!(
        events("data: \u{feff}\n\n"),
        [named("", "\u{feff}")],
        "only the very first character is a mark"
    );
}

#[test]
fn lines_are_frames_of_their_own() {
    let text = b"{\"a\":1}\n\r\n\n  \n{\"b\":2}\r\n{\"c\"";

    let found = frames(Framing::Lines, &[text]).unwrap();

    assert_eq!(found, [named("", "{\"a\":1}"), named("", "{\"b\":2}")]);
}

/// M8
#[test]
fn bytes_that_are_no_text_are_a_fault() {
    for framing in [Framing::Events, Framing::Lines] {
        let found = frames(framing, &[b"data: a\xff\n\n"]);

        assert!(matches!(found, Err(Fault::Unreadable(_))), "{found:?}");
    }
}

#[test]
fn a_frame_that_never_ends_is_a_fault_before_it_fills_the_memory() {
    for line in ["x", "data: x\n"] {
        let piece = line.repeat(1 << 16);
        let mut frames = Frames::new(Framing::Events);

        let pieces = (0..1000).take_while(|_| {
            frames.push(piece.as_bytes());
            frames.next().is_ok()
        });

        let bytes = pieces.count() * piece.len();
        assert!(bytes < 8 * MAX_FRAME_BYTES, "{bytes}");
    }
}

#[test]
fn a_large_frame_is_looked_at_once_however_it_is_cut() {
    let mut frames = Frames::new(Framing::Events);
    let text = format!("data: {}\n\n", "x".repeat(1 << 20));

    let mut found = 0;
    for byte in text.as_bytes() {
        frames.push(std::slice::from_ref(byte));
        let before = frames.searched;
        found += usize::from(frames.next().unwrap().is_some());
        assert!(frames.searched >= before || frames.taken == frames.searched, "it begins again at {before}");
    }

    assert_eq!(found, 1);
}

proptest! {
    #[test]
    fn it_makes_no_difference_where_the_bytes_are_cut(
        text in "(data: ?|event: |: |[a-zé:]|\r\n|\n|\r){0,60}",
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let bytes = text.as_bytes();
        let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let pieces: Vec<_> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
        let single: Vec<_> = bytes.chunks(1).collect();

        for framing in [Framing::Events, Framing::Lines] {
            let whole = frames(framing, &[bytes]);
            prop_assert_eq!(&frames(framing, &pieces), &whole);
            prop_assert_eq!(&frames(framing, &single), &whole);
        }
    }
}
