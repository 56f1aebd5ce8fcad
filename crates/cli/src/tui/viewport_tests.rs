use longhaul_testkit::TerminalScreen;
use ratatui::style::Stylize;

use super::*;

fn frame(above: &[&str], rows: &[&str]) -> Frame {
    let lines = |texts: &[&str]| texts.iter().map(|text| Line::from((*text).to_owned())).collect::<Vec<_>>();
    let last = u16::try_from(rows.len() - 1).unwrap();
    Frame { above: lines(above), rows: lines(rows), cursor: (2, last) }
}

struct Seen {
    terminal: TerminalScreen,
    viewport: Viewport<Vec<u8>>,
}

impl Seen {
    fn new(width: u16, height: u16) -> Self {
        let terminal = TerminalScreen::new((width, height));
        Self { terminal, viewport: Viewport::new(Vec::new(), (width, height), Colours::Shown) }
    }

    fn show(&mut self, frame: &Frame) {
        self.viewport.show(frame).unwrap();
        self.read();
    }

    fn read(&mut self) {
        let bytes = std::mem::take(&mut self.viewport.out);
        self.terminal.show(&bytes);
    }
}

#[test]
fn what_is_above_stays_and_the_viewport_stands_below_it() {
    let mut seen_by = Seen::new(20, 6);

    seen_by.show(&frame(&[], &["> "]));
    seen_by.show(&frame(&["one", "two"], &["working", "> "]));
    seen_by.show(&frame(&["three"], &["> "]));

    assert_eq!(seen_by.terminal.rows(), ["one", "two", "three", ">"]);
    assert_eq!(seen_by.terminal.cursor(), (2, 3));
}

#[test]
fn more_than_fits_scrolls_into_what_the_terminal_keeps() {
    let mut seen_by = Seen::new(20, 4);
    let said: Vec<String> = (1..=10).map(|number| format!("line {number}")).collect();
    let said: Vec<&str> = said.iter().map(String::as_str).collect();

    seen_by.show(&frame(&[], &["working", "> "]));
    seen_by.show(&frame(&said, &["working", "> "]));

    assert_eq!(seen_by.terminal.rows(), ["line 9", "line 10", "working", ">"]);
    assert_eq!(seen_by.terminal.all()[..2], ["line 1", "line 2"]);
}

#[test]
fn only_what_changed_is_written() {
    let mut viewport = Viewport::new(Vec::new(), (20, 4), Colours::Shown);
    viewport.show(&frame(&[], &["a long row of words", "> x"])).unwrap();
    viewport.out.clear();

    viewport.show(&frame(&[], &["a long row of words", "> xy"])).unwrap();

    let written = String::from_utf8(viewport.out).unwrap();
    assert!(written.contains('y') && !written.contains("long"), "{written:?}");
}

#[test]
fn a_narrower_terminal_leaves_nothing_of_the_old_viewport_behind() {
    let mut seen_by = Seen::new(20, 6);
    seen_by.show(&frame(&["said"], &["twelve chars", "> "]));

    // The emulator cuts rows instead of breaking them, as some terminals do: what stood there takes fewer rows then.
    seen_by.terminal.resize((15, 6));
    seen_by.viewport.resize((15, 6)).unwrap();
    seen_by.show(&frame(&[], &["twelve chars", "> "]));

    assert_eq!(seen_by.terminal.rows(), ["said", "twelve chars", ">"]);
}

#[test]
fn wide_characters_and_styles_stand_where_they_belong() {
    let mut seen_by = Seen::new(10, 3);
    let wide = Frame { rows: vec![Line::from("日本".bold()), Line::from("> ")], ..Frame::default() };

    seen_by.show(&wide);
    let other = Frame { rows: vec![Line::from("日x".bold()), Line::from("> ")], ..Frame::default() };
    seen_by.show(&other);

    assert_eq!(seen_by.terminal.rows(), ["日x", ">"]);
    assert!(seen_by.terminal.cell(0, 0).unwrap().bold());
}

#[test]
fn a_terminal_that_has_no_size_gets_the_usual_one() {
    assert_eq!(plausible_size((0, 0)), (80, 24));
    assert_eq!(plausible_size((1, 65_535)), (1, 400));
}
