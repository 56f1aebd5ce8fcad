//! Screens as people see them: through a terminal that is emulated.

use std::time::{Duration, Instant};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use longhaul_memory::MemoryCalls;
use longhaul_protocol::{
    At, AttemptId, CallId, Effect, InputId, Outcome, PermissionMode, QuestionId, Role, TaskId,
};
use longhaul_testkit::TerminalScreen;
use longhaul_transcript::{SessionCost, Verbosity};

use super::super::input::{CompletionSources, History, ServerMenu};
use super::super::picker::PickerItem;
use super::super::sgr::Colours;
use super::super::viewport::Viewport;
use super::*;
use crate::tui::chat::slash::COMMANDS;
use crate::tui::chat::slash::skills::SkillCommands;

/// A view, the bytes that it makes, and a terminal that shows them.
struct Seen {
    view: View,
    viewport: Viewport<Vec<u8>>,
    terminal: TerminalScreen,
    now: Instant,
}

impl Seen {
    fn new(size: (u16, u16)) -> Self {
        Self::in_folder(size, std::env::temp_dir())
    }

    fn in_folder(size: (u16, u16), folder: std::path::PathBuf) -> Self {
        let sources = CompletionSources {
            commands: &COMMANDS,
            skills: SkillCommands::default(),
            servers: ServerMenu::default(),
            work_dir: folder,
        };
        let typing = InputField::new(History::none(), sources);
        let mut view = View::new(size, Transcript::new(size.0, Verbosity::Normal), typing);
        let mut cost = SessionCost::default();
        cost.add_price(Some(0.0213));
        let now = Instant::now();
        let facts = StatusFacts {
            model: "anthropic/claude-sonnet-4-5".to_owned(),
            window: Some(200_000),
            used: Some(34_000),
            cost,
            saved: SaveState::All,
            memory: MemoryCalls::default(),
            mode: None,
        };
        view.update(ScreenUpdate::StatusFacts(facts), now);
        let viewport = Viewport::new(Vec::new(), size, Colours::Shown);
        let terminal = TerminalScreen::new(size);
        Self { view, viewport, terminal, now }
    }

    fn update(&mut self, update: ScreenUpdate) {
        self.view.update(update, self.now);
    }

    fn see(&mut self, kind: EventKind) -> &mut Self {
        let event = Event { seq: None, at: At(0), session: "s".to_owned(), turn: Some(1), kind };
        self.view.show_event(&Watched::Event(event), self.now);
        self
    }

    fn later(&mut self, seconds: u64) -> &mut Self {
        self.now += Duration::from_secs(seconds);
        self
    }

    fn types(&mut self, text: &str) -> Vec<ViewRequest> {
        let keys = text.chars().map(|character| match character {
            '\n' => KeyEvent::new(KeyCode::Enter, KeyModifiers::NONE),
            character => KeyEvent::new(KeyCode::Char(character), KeyModifiers::NONE),
        });
        keys.map(|key| self.view.press(key)).filter(|wanted| *wanted != ViewRequest::Nothing).collect()
    }

    fn control(&mut self, character: char) -> ViewRequest {
        self.view.press(KeyEvent::new(KeyCode::Char(character), KeyModifiers::CONTROL))
    }

    fn resize(&mut self, size: (u16, u16)) {
        self.screen();
        self.terminal.resize(size);
        self.viewport.resize(size).unwrap();
        self.view.resize(size);
    }

    /// The screen as it is now.
    fn screen(&mut self) -> String {
        let frame = self.view.frame(self.now);
        self.viewport.show(&frame).unwrap();
        let bytes = std::mem::take(self.viewport.written());
        self.terminal.show(&bytes);
        self.terminal.rows().join("\n")
    }
}

fn delta(text: &str) -> EventKind {
    EventKind::TextDelta { text: text.to_owned() }
}

fn message(text: &str) -> EventKind {
    EventKind::Message { role: Role::Assistant, content: text.to_owned() }
}

fn call(id: CallId, name: &str, arguments: &str) -> EventKind {
    let (name, arguments) = (name.to_owned(), arguments.to_owned());
    EventKind::ToolStarted { call_id: id, name, arguments, effect: Effect::Read }
}

fn ended(id: CallId, name: &str, content: &str) -> EventKind {
    let (name, content) = (name.to_owned(), content.to_owned());
    EventKind::ToolFinished {
        call_id: id,
        name,
        is_error: false,
        content,
        diff: None,
        lines: None,
        report: Box::default(),
    }
}

const ANSWER: &str = "The parser is in `src/parse.rs`. Two things are wrong:\n\n1. It **never** checks the end.\n2. Numbers may overflow.\n\n```rust\nfn parse(text: &str) -> Option<u64> {\n    text.parse().ok() // no error\n}\n```\n";

fn with_a_turn(size: (u16, u16)) -> Seen {
    let mut seen = Seen::new(size);
    seen.types("what is wrong with the parser?\n");
    seen.see(EventKind::TurnStarted { cause: None })
        .see(EventKind::ReasoningDelta { text: "Let me look.".to_owned() })
        .later(4);
    let id = CallId::generate();
    seen.see(call(id, "read_file", r#"{"path":"src/parse.rs"}"#)).later(1);
    seen.see(ended(id, "read_file", "1\tfn parse() {}\n2\t\n"));
    seen.see(delta(ANSWER)).see(message(ANSWER));
    seen
}

fn end(outcome: Outcome) -> EventKind {
    EventKind::TurnEnded { outcome, limit: None, text: String::new(), error: None, code: None }
}

#[test]
fn an_answer_with_a_thought_and_a_call_on_a_wide_terminal() {
    let mut seen = with_a_turn((100, 30));
    seen.see(end(Outcome::Completed));

    insta::assert_snapshot!(seen.screen());
}

#[test]
fn the_same_on_a_narrow_terminal() {
    let mut seen = with_a_turn((24, 40));
    seen.see(end(Outcome::Completed));

    insta::assert_snapshot!(seen.screen());
}

#[test]
fn a_terminal_that_changes_its_size_keeps_one_prompt() {
    let mut seen = with_a_turn((80, 24));
    seen.see(end(Outcome::Completed)).screen();
    seen.types("half a sentence");

    seen.resize((40, 16));

    let screen = seen.screen();
    assert_eq!(screen.matches("> half a sentence").count(), 1, "{screen}");
    insta::assert_snapshot!(screen);
}

#[test]
fn a_long_answer_on_its_way_leaves_the_prompt_in_sight() {
    let mut seen = Seen::new((60, 12));
    seen.see(EventKind::TurnStarted { cause: None });
    let lines: String = (1..=40).map(|number| format!("- point {number} of many\n")).collect();

    seen.see(delta(&lines)).see(delta("and a last sentence that has no end yet")).later(2);

    insta::assert_snapshot!(seen.screen());
}

#[test]
fn a_wait_counts_down() {
    let mut seen = Seen::new((80, 12));
    seen.see(EventKind::TurnStarted { cause: None });
    let (class, reason) = ("throttled".to_owned(), "too many requests".to_owned());
    seen.see(EventKind::RetryWait { class, attempt: 2, of: 4, delay_ms: 45_000, reason }).later(3);

    let screen = seen.screen();
    assert!(screen.contains("retrying in 42 s"), "{screen}");
    insta::assert_snapshot!(screen);
}

#[test]
fn a_context_that_becomes_smaller_says_so() {
    let mut seen = Seen::new((80, 10));
    seen.see(EventKind::TurnStarted { cause: None })
        .see(EventKind::CompactStart { reason: "within_turn".to_owned() })
        .later(2);

    insta::assert_snapshot!(seen.screen());
}

#[test]
fn tasks_stand_in_a_row_each_with_what_they_printed_last() {
    let mut seen = Seen::new((80, 12));
    let id = |last: char| format!("task_01j0000000000000000000000{last}").parse::<TaskId>().unwrap();
    let pill = |last, what: &str, printed: &str| TaskPill {
        id: id(last),
        what: what.to_owned(),
        last: printed.to_owned(),
    };

    seen.update(ScreenUpdate::Pills(vec![
        pill('a', "build everything", "Compiling longhaul-agent v0.1.0"),
        pill('b', "npm run dev", "ready in 312 ms"),
        pill('c', "tail the log", ""),
        pill('d', "one more", "x"),
    ]));

    insta::assert_snapshot!(seen.screen());
}

fn question(text: &str) -> EventKind {
    EventKind::Question {
        id: QuestionId::generate(),
        kind: None,
        text: text.to_owned(),
        choices: ["yes", "always", "project", "no"].map(str::to_owned).to_vec(),
        call_id: None,
        diff: None,
    }
}

fn asked_id(question: &EventKind) -> QuestionId {
    OpenQuestion::of_event(question).unwrap().id
}

/// P4: what is typed is a no with that reason, whatever its first letter.
#[test]
fn a_letter_answers_only_while_nothing_is_typed() {
    let mut seen = Seen::new((70, 14));
    seen.see(EventKind::TurnStarted { cause: None });
    seen.types("n");
    seen.see(question("May it?"));

    let typed = seen.types("ay\n");

    assert_eq!(typed.last(), Some(&ViewRequest::Line(LineEvent::Line("nay".to_owned()))));
}

#[test]
fn shift_tab_changes_the_mode_and_the_status_line_shows_it() {
    let mut seen = Seen::new((90, 14));

    let pressed = seen.view.press(KeyEvent::new(KeyCode::BackTab, KeyModifiers::SHIFT));
    seen.see(EventKind::ModeChanged { from: PermissionMode::Auto, to: PermissionMode::Plan });
    let screen = seen.screen();

    assert_eq!(pressed, ViewRequest::Line(LineEvent::Line("/mode next".to_owned())));
    assert!(screen.contains("sonnet-4-5 · plan · 17%"), "{screen}");
    assert!(screen.contains("mode: plan instead of auto"), "{screen}");
}

#[test]
fn a_question_is_seen_whole_and_answered_by_a_letter() {
    let mut seen = Seen::new((70, 14));
    seen.see(EventKind::TurnStarted { cause: None });
    let text = "May exec run?\n  git push --force origin main".to_owned();
    let asked = question(&text);
    let id = asked_id(&asked);
    seen.see(asked);

    let screen = seen.screen();
    let typed = seen.types("y");
    let early = seen.view.take_due_answer(Instant::now());
    let due = seen.view.take_due_answer(Instant::now() + Duration::from_secs(1));

    assert_eq!((typed.len(), early), (0, None));
    assert_eq!(due, Some(LineEvent::Line(format!("/answer {id} yes"))));
    assert_eq!(seen.view.typed_text(), "");
    insta::assert_snapshot!(screen);
}

#[test]
fn what_is_entered_while_a_turn_runs_waits_in_sight_until_it_is_taken() {
    let mut seen = Seen::new((70, 12));
    seen.see(EventKind::TurnStarted { cause: None });
    seen.types("and the tests, too\n");

    let waiting = seen.screen();
    seen.see(EventKind::InputTaken { id: InputId::generate() });
    let before_the_step = seen.screen();
    seen.see(EventKind::StepStarted);
    let taken = seen.screen();

    assert!(waiting.contains("+ and the tests, too  (sent; joins"), "{waiting}");
    assert!(before_the_step.contains("+ and the tests, too"), "{before_the_step}");
    assert!(taken.contains("> and the tests, too") && !taken.contains("joins the turn"), "{taken}");
}

/// T3: with a draft, Up goes through the history, which shows that an input was sent.
#[test]
fn an_input_that_waits_is_marked_as_sent_where_the_history_shows_it() {
    let mut seen = Seen::new((70, 12));
    seen.types("an earlier one\n");
    seen.see(EventKind::TurnStarted { cause: None });
    seen.types("and the tests, too\n");
    let up = KeyEvent::new(KeyCode::Up, KeyModifiers::NONE);

    seen.types("x");
    seen.view.press(up);
    let waits = seen.screen();
    seen.view.press(up);
    let earlier = seen.screen();

    assert!(waits.contains("> and the tests, too\nThis was sent already"), "{waits}");
    assert!(earlier.contains("\n> an earlier one") && !earlier.contains("sent already"), "{earlier}");
}

#[test]
fn a_call_opens_over_the_whole_terminal_and_closes_again() {
    let mut seen = with_a_turn((60, 20));
    seen.see(end(Outcome::Completed)).screen();

    seen.control('o');
    assert!(seen.view.shows_details());
    let list = frame_text(&seen.view.frame(seen.now));
    seen.types("k");
    seen.view.press(KeyEvent::new(KeyCode::Enter, KeyModifiers::NONE));
    let opened = frame_text(&seen.view.frame(seen.now));
    seen.control('o');

    assert!(list.contains("read_file") && list.contains("thought for 4 s"), "{list}");
    assert!(opened.contains("Let me look."), "{opened}");
    assert!(!seen.view.shows_details());
}

fn frame_text(frame: &Frame) -> String {
    frame.rows.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// A terminal may have any size at any time.
#[test]
fn no_size_is_too_small() {
    for size in [(1, 1), (2, 2), (3, 1), (1, 40), (7, 3), (500, 2)] {
        let mut seen = with_a_turn(size);
        seen.types("some words that are longer than that");
        seen.see(question("May it?"));

        let frame = seen.view.frame(seen.now);

        assert!(frame.rows.len() <= usize::from(size.1), "{size:?}: {}", frame.rows.len());
        let widest = frame.rows.iter().chain(&frame.above).map(Line::width).max().unwrap_or(0);
        assert!(widest <= usize::from(size.0).max(2), "{size:?}: {widest}");
    }
}

/// S1
#[test]
fn keys_end_a_turn_and_the_conversation() {
    let mut seen = Seen::new((80, 10));
    seen.update(ScreenUpdate::Activity(Activity::Turn));

    let pressed = [
        seen.view.press(KeyEvent::new(KeyCode::Esc, KeyModifiers::NONE)),
        seen.control('c'),
        seen.control('d'),
    ];

    assert_eq!(pressed, [LineEvent::Escape, LineEvent::Interrupt, LineEvent::End].map(ViewRequest::Line));
}

/// A folder with these files.
fn folder(files: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for file in files {
        let path = folder.path().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "").unwrap();
    }
    folder
}

#[test]
fn files_are_listed_below_what_is_typed_the_best_match_first() {
    let folder = folder(&["src/tui/view.rs", "src/tui/view_tests.rs", "docs/overview.md", "target/view"]);
    std::fs::write(folder.path().join(".gitignore"), "target\n").unwrap();
    let mut seen = Seen::in_folder((60, 10), folder.path().to_owned());

    seen.types("look at @view");
    // The view is animated as long as the folder is walked.
    while seen.view.is_animated() {
        seen.screen();
    }

    insta::assert_snapshot!(seen.screen());
}

#[test]
fn a_search_in_the_history_shows_what_it_found_and_its_keys() {
    let mut seen = Seen::new((60, 10));
    seen.types("cargo test --workspace\n");
    seen.see(EventKind::TurnEnded {
        outcome: Outcome::Completed,
        limit: None,
        text: String::new(),
        error: None,
        code: None,
    });
    seen.types("half");

    seen.control('r');
    seen.types("test");

    insta::assert_snapshot!(seen.screen());
}

/// S1
#[test]
fn at_the_prompt_only_a_second_ctrl_c_leaves() {
    let mut seen = Seen::new((80, 10));

    assert_eq!(seen.control('c'), ViewRequest::Nothing);
    assert!(seen.screen().contains("Ctrl-C again to leave"), "{}", seen.screen());
    seen.types("x");
    assert_eq!(seen.control('c'), ViewRequest::Nothing, "it clears what is typed");
    assert_eq!(seen.control('c'), ViewRequest::Nothing, "another key was between them");
    assert_eq!(seen.control('c'), ViewRequest::Line(LineEvent::Interrupt));
    assert_eq!(seen.control('d'), ViewRequest::Line(LineEvent::End));

    seen.update(ScreenUpdate::Leaving);
    assert_eq!(seen.control('c'), ViewRequest::Line(LineEvent::Interrupt), "it is already on its way out");
}

#[test]
fn at_the_prompt_a_second_esc_goes_back_to_an_earlier_message() {
    let mut seen = Seen::new((80, 10));
    let esc = KeyEvent::new(KeyCode::Esc, KeyModifiers::NONE);

    assert_eq!(seen.view.press(esc), ViewRequest::Line(LineEvent::Escape));
    assert!(seen.screen().contains("Esc again to go back to an earlier message"), "{}", seen.screen());
    assert_eq!(seen.view.press(esc), ViewRequest::Line(LineEvent::GoBack));
    seen.update(ScreenUpdate::Input("what I said".to_owned()));

    assert!(seen.screen().contains("> what I said"), "{}", seen.screen());
}

/// A half typed text is not lost to one from elsewhere.
#[test]
fn a_text_that_is_put_into_the_field_leaves_the_typed_one_in_the_history() {
    let mut seen = Seen::new((80, 10));
    seen.types("half");

    seen.update(ScreenUpdate::Input("whole".to_owned()));
    seen.view.press(KeyEvent::new(KeyCode::Up, KeyModifiers::NONE));

    assert!(seen.screen().contains("> half"), "{}", seen.screen());
}

#[test]
fn the_last_row_names_the_model_that_is_asked_and_never_the_window_of_another() {
    let mut seen = Seen::new((80, 10));
    let model = |name: &str, window| ScreenUpdate::Model { name: name.to_owned(), window };
    let changed = |from: &str, to: &str| EventKind::ModelChanged {
        from: from.to_owned(),
        to: to.to_owned(),
        reason: String::new(),
    };
    seen.update(model("big/one", Some(68_000)));
    assert!(seen.screen().contains("big/one · 50% of 68k"), "{}", seen.screen());

    seen.see(changed("big/one", "small/one"));
    assert!(seen.screen().contains("small/one · 34k tokens"), "{}", seen.screen());
    seen.see(changed("small/one", "big/one"));
    assert!(seen.screen().contains("big/one · 50% of 68k"), "{}", seen.screen());
}

/// S1: whoever waits for a choice is told that nobody will make it.
#[test]
fn a_terminal_that_is_lost_chooses_nothing() {
    let mut seen = Seen::new((80, 10));
    let (answer, mut chosen) = oneshot::channel();
    let choice = PickerItem { key: "a".to_owned(), line: "a".to_owned(), detail: String::new() };
    seen.update(ScreenUpdate::Pick { title: "Which?".to_owned(), choices: vec![choice], answer });

    seen.view.close_picker();

    assert_eq!(chosen.try_recv(), Err(oneshot::error::TryRecvError::Closed));
}

/// T12: what was asked before the process began is answered like what is asked now.
#[test]
fn an_answer_to_a_question_of_before_joins_no_turn() {
    let mut seen = Seen::new((80, 10));
    let question = OpenQuestion::of_event(&question("May it?")).unwrap();
    seen.update(ScreenUpdate::Questions(vec![question]));
    seen.update(ScreenUpdate::Activity(Activity::Turn));

    let before = frame_text(&seen.view.frame(seen.now));
    seen.types("y\n");
    let after = frame_text(&seen.view.frame(seen.now));

    assert!(before.contains("y yes  a always this session"), "{before}");
    assert!(!after.contains("joins the turn"), "{after}");
}

#[test]
fn what_goes_on_in_a_session_that_was_left_does_not_move_any_more() {
    let mut seen = Seen::new((80, 10));
    seen.see(EventKind::TurnStarted { cause: None })
        .see(EventKind::CompactStart { reason: "asked for".to_owned() });

    seen.update(ScreenUpdate::SessionChanged);

    assert!(!seen.view.is_animated());
    let frame = frame_text(&seen.view.frame(seen.now));
    assert!(!frame.contains("waiting for the model") && !frame.contains("making the context"), "{frame}");
}

/// M9, T12: words of a process that died are marked when the model is asked again, however many attempts that takes.
#[test]
fn what_an_abandoned_attempt_had_said_is_marked_as_broken_off() {
    let mut seen = Seen::new((80, 20));
    let discarded = || EventKind::AttemptDiscarded { attempt: AttemptId::generate(), kept_blocks: 0 };
    seen.see(EventKind::TurnStarted { cause: None }).see(delta("Once upon a time"));

    let (code, text) = ("abandoned".to_owned(), "turn 1 is open".to_owned());
    seen.see(EventKind::Warning { code, text });
    let abandoned = seen.screen();
    seen.see(discarded()).see(EventKind::StepStarted).see(discarded()).see(delta("It went on."));
    let resumed = seen.screen();

    let mark = "[the answer was cut off; retrying]";
    assert!(abandoned.contains("Once upon a time") && !abandoned.contains(mark), "{abandoned}");
    assert!(resumed.find("Once upon a time") < resumed.find(mark), "{resumed}");
    assert!(resumed.find(mark) < resumed.find("It went on."), "{resumed}");
}

/// What runs is ended by the key that says so, whatever is half typed.
#[test]
fn esc_ends_a_turn_also_with_something_typed() {
    let mut seen = Seen::new((80, 10));
    seen.see(EventKind::TurnStarted { cause: None });
    seen.types("/sta");

    let pressed = seen.view.press(KeyEvent::new(KeyCode::Esc, KeyModifiers::NONE));

    assert_eq!(pressed, ViewRequest::Line(LineEvent::Escape));
    assert!(seen.screen().contains("> /sta"));
}

#[test]
fn what_is_said_or_told_in_the_middle_of_a_code_block_leaves_it_one() {
    let mut seen = Seen::new((60, 24));
    seen.see(EventKind::TurnStarted { cause: None }).see(delta("Look:\n\n```python\n# one\nfirst = 1\n"));
    seen.types("and the tests\n");
    seen.see(EventKind::InputTaken { id: InputId::generate() });
    seen.update(ScreenUpdate::Note("something else happened".to_owned()));

    let during = seen.screen();
    seen.see(delta("# two\nsecond = 2\n```\n\nDone.\n"));
    seen.see(message("Look:\n\n```python\n# one\nfirst = 1\n# two\nsecond = 2\n```\n\nDone.\n"));
    seen.see(EventKind::StepStarted);

    assert!(during.contains("+ and the tests"), "{during}");
    insta::assert_snapshot!(seen.screen());
}

#[test]
fn a_long_paste_is_not_seen_whole() {
    let mut seen = Seen::new((60, 40));
    let pasted: String = (0..1_000).map(|number| format!("line {number}\n")).collect();
    seen.view.paste(&pasted);

    let typed = seen.types("\n");
    let screen = seen.screen();

    assert_eq!(typed, [ViewRequest::Line(LineEvent::Line(pasted.trim_end().to_owned()))]);
    assert!(screen.contains("line 15") && !screen.contains("line 17"), "{screen}");
    assert!(screen.contains("… 984 more lines"), "{screen}");
}

#[path = "view_output_tests.rs"]
mod output;

#[path = "view_choice_tests.rs"]
mod choice;
