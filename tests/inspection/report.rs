//! A session as people read it: a page in the terminal, or one file for a browser.

use longhaul_journal::{Append, Blob, Journal, name_session, put};
use longhaul_protocol::{
    AttemptEnded, AttemptId, AttemptStarted, BlobRef, Block, CallId, CompactDone, CompactStart, CompactedBy,
    Effect, EpochReason, EpochStarted, InboxRecord, Input, InputId, InputTaken, Item, JoinMode, ModelChanged,
    Order, OrderId, OrderKind, Outcome, Question, QuestionId, QuestionKind, Role, SessionCreated,
    SessionRecord, StepStarted, StreamName, SystemMessage, TextContent, ToolStarted, TurnEnded, TurnStarted,
    Usage,
};
use serde_json::json;

use crate::desk::Desk;

const HOSTILE: &str = "<script>alert(1)</script> ]]> \"q\" 'q' & \u{202e}evil";

fn input(text: &str) -> SessionRecord {
    let (id, text) = (InputId::generate(), text.to_owned());
    SessionRecord::InputTaken(InputTaken::of(Input::new(id, text, JoinMode::Join), 1))
}

/// One turn of a conversation: a failed attempt now and then, a call, an answer, what it cost.
fn turn(number: u64) -> Vec<SessionRecord> {
    let (broken, attempt) = (AttemptId::generate(), AttemptId::generate());
    let model = "anthropic/claude-x".to_owned();
    let started = |attempt| SessionRecord::AttemptStarted(AttemptStarted { attempt, model: model.clone() });
    let ended = |attempt, kept, error: Option<&str>| {
        let (stop, error) = (None, error.map(str::to_owned));
        SessionRecord::AttemptEnded(AttemptEnded {
            attempt,
            kept,
            stop,
            error,
            goes_on: false,
            too_long: None,
        })
    };
    let arguments = json!({"command": format!("make part-{number}")}).to_string();
    let (call, name, effect) = (CallId::generate(), "exec".to_owned(), Effect::Command);
    let item = Item::Text { role: Role::Assistant, text: format!("Answer {number}: done. {HOSTILE}") };
    let usage = Usage {
        input: Some(9_000 + number % 7 * 22_000),
        output: Some(420),
        cached: Some(5_000),
        cost: Some(0.031),
        window: Some(200_000),
        ..Usage::of(attempt)
    };
    let mut facts = vec![
        input(&format!("Request {number} {HOSTILE}")),
        SessionRecord::TurnStarted(TurnStarted::new(number)),
    ];
    facts.push(SessionRecord::StepStarted(StepStarted::new(1)));
    if number.is_multiple_of(5) {
        facts.extend([started(broken), ended(broken, 0, Some("the stream broke"))]);
    }
    facts.extend([
        started(attempt),
        SessionRecord::Block(Block { attempt, index: 0, item }),
        ended(attempt, 1, None),
        SessionRecord::Usage(usage),
        SessionRecord::ToolStarted(ToolStarted {
            call,
            name,
            arguments,
            effect,
            write: None,
            writes: vec![],
            kept_in: None,
            remote_task: None,
            child: None,
            changes_nothing: false,
        }),
        SessionRecord::TurnEnded(TurnEnded {
            turn: number,
            outcome: Outcome::Completed,
            limit: None,
            text: String::new(),
            error: None,
            code: None,
            inbox_through: None,
        }),
    ]);
    facts
}

/// What stands between two turns, now and then.
fn between(number: u64) -> Vec<SessionRecord> {
    let blob = || BlobRef::to(b"x", "text/plain");
    let (by, before, after) = (CompactedBy::Model, 141_000, 9_000);
    let text = "[Compacted context summary]\nIt goes well.".to_owned();
    vec![
        SessionRecord::CompactStart(CompactStart { reason: "idle".into(), focus: None }),
        SessionRecord::EpochStarted(EpochStarted::new(number + 1, EpochReason::Compacted, blob(), blob())),
        SessionRecord::SystemMessage(SystemMessage { content: vec![TextContent { text }] }),
        SessionRecord::CompactDone(CompactDone { epoch: number + 1, by, before, after, from: 1, through: 2 }),
    ]
}

/// A desk with a session of so many turns.
fn with_turns(turns: u64) -> Desk {
    let desk = Desk::new(&json!([]));
    desk.with_journal(|journal| async move {
        let id = name_session(&*journal, "cli:long").await.unwrap();
        let stream = StreamName::session(id);
        let blob = || BlobRef::to(b"x", "text/plain");
        let (key, version) = ("cli:long".to_owned(), "0.1.0".to_owned());
        let mut facts = vec![
            SessionRecord::SessionCreated(SessionCreated {
                id,
                key,
                work_dir: None,
                origin: None,
                parent: None,
                version,
            }),
            SessionRecord::EpochStarted(EpochStarted::new(1, EpochReason::Created, blob(), blob())),
        ];
        for number in 1..=turns {
            facts.extend(turn(number));
            if number.is_multiple_of(7) {
                facts.extend(between(number / 7));
            }
        }
        let changed = ModelChanged {
            from: "anthropic/claude-x".into(),
            to: "b/c".into(),
            reason: "quota".into(),
            chosen: false,
        };
        let question = Question::new(QuestionId::generate(), QuestionKind::Approval, "May it push?");
        facts.extend([input("one more"), SessionRecord::TurnStarted(TurnStarted::new(turns + 1))]);
        facts.extend([SessionRecord::ModelChanged(changed), SessionRecord::Question(question)]);
        for part in facts.chunks(100) {
            let append = part.iter().fold(Append::to(&stream), |append, fact| append.record(fact.encode()));
            journal.append(append.blob(Blob::new(b"x"))).await.unwrap();
        }
    });
    desk
}

/// T3: what waits is shown with that mark, whether it is still in the inbox or the session has taken it; what was taken back is not.
#[test]
fn an_input_that_waits_is_marked() {
    let desk = Desk::new(&json!(["One."]));
    assert_eq!(desk.run(&["run", "-s", "a", "go"]).0, 0);
    desk.with_journal(|journal| async move {
        let id = journal.session("a").await.unwrap().unwrap().id;
        let in_inbox = |text: &str| InboxRecord::Input(Input::new(InputId::generate(), text, JoinMode::Join));
        let taken_back = in_inbox("never mind");
        let InboxRecord::Input(Input { id: unwanted, .. }) = &taken_back else { unreachable!() };
        let order = Order { id: OrderId::generate(), kind: OrderKind::Withdraw { input: *unwanted } };
        for record in [in_inbox("still in the inbox"), taken_back, InboxRecord::Order(order)] {
            put(&*journal, id, record.encode()).await.unwrap();
        }
        let taken = Append::to(&StreamName::session(id)).record(input("taken, not read").encode());
        journal.append(taken).await.unwrap();
    });

    let (_, page, _) = desk.run(&["sessions", "show", "a"]);
    let (_, html, _) = desk.run(&["sessions", "show", "a", "--html", "-"]);

    let mark = "waiting: the model has not got it yet";
    for text in ["taken, not read", "still in the inbox"] {
        assert!(page.contains(&format!("> {text}\n  [{mark}]\n")), "{page}");
    }
    assert_eq!((page.matches(mark).count(), html.matches(mark).count()), (2, 2), "{page}");
    assert!(!page.contains("never mind"), "{page}");
}

#[test]
fn a_session_is_shown_as_a_conversation() {
    let desk = with_turns(8);

    let (code, page, _) = desk.run(&["sessions", "show", "cli:long"]);

    assert_eq!(code, 0, "{page}");
    for words in [
        "\n── turn 1 · 20",
        "> Request 3 <script>",
        "Answer 3: done.",
        "  · exec  make part-3",
        "  ✗ no answer: the stream broke",
        "141,000 → 9,000 tokens, by a summary",
        "  │ [Compacted context summary]",
        "completed after ",
        "1 step, 75,000 tokens in (5,000 cached), 420 out, $0.0310",
        "model: switched from anthropic/claude-x to b/c: quota",
        "question: May it push?",
        "turn 9 is unfinished",
        "── total ──\n9 turns, 8 steps, 8 tool calls, 1 compaction\n",
        "$0.2480",
    ] {
        assert!(page.contains(words), "{words}: {page}");
    }
    assert_eq!(page.matches("model: anthropic/claude-x").count(), 1, "it is said when it changes");
    assert!(!page.contains('\u{202e}') && !page.contains("left out"), "{page}");
}

#[test]
fn of_a_long_session_the_last_turns_are_shown_and_how_to_see_all() {
    let desk = with_turns(60);

    let (_, page, _) = desk.run(&["sessions", "show", "cli:long"]);
    let (_, all, _) = desk.run(&["sessions", "show", "cli:long", "--all"]);
    let (_, records, _) = desk.run(&["sessions", "show", "cli:long", "--records"]);
    let (_, limited, _) = desk.run(&["sessions", "show", "cli:long", "--limit", "2"]);

    assert!(page.contains("41 earlier turns not shown; use --all to show all"), "{page}");
    assert!(
        page.contains("turn 42 ·") && !page.contains("turn 41 ·") && page.contains("61 turns, "),
        "{page}"
    );
    assert!(
        page.contains("> Request 42 "),
        "what was said before the first turn that is shown is shown, too"
    );
    assert!(all.contains("turn 1 ·") && all.contains("turn 61 ·") && !all.contains("left out"), "{all}");
    assert!(records.contains("epoch_started") && !records.contains("──"), "{records}");
    assert!(limited.contains(" more; continue with --from "), "{limited}");
}

#[test]
fn a_page_for_the_browser_is_one_file_with_charts_and_their_numbers() {
    let desk = with_turns(30);
    let file = desk.path("session.html").to_str().unwrap().to_owned();
    std::fs::write(&file, "what was there before").unwrap();

    let (code, out, errors) = desk.run(&["sessions", "show", "cli:long", "--html", &file]);
    let (_, piped, _) = desk.run(&["sessions", "show", "cli:long", "--html"]);
    let page = std::fs::read_to_string(&file).unwrap();

    assert_eq!((code, out.as_str()), (0, format!("Wrote {file}\n").as_str()), "{errors}");
    assert!(page == piped, "the same, wherever it goes");
    for words in [
        "<svg viewBox=",
        "role=\"img\" aria-labelledby=\"context-title context-words\"",
        "<title id=\"context-title\">Tokens in the context</title>",
        "141,420 tokens of a window of 200,000; 4 compactions.</desc>",
        "<title id=\"cost-title\">Cost so far</title>",
        "to $0.9300 in the end",
        "<title>compaction by a summary: 141,000 → 9,000 tokens</title>",
        "<td>75,420</td><td>200,000</td><td>$0.0930</td>",
        "<section id=\"turn-30\">",
        "&lt;script&gt;alert(1)&lt;/script&gt; ]]&gt;",
    ] {
        assert!(page.contains(words), "{words}: {page}");
    }
    for forbidden in ["<script", "\u{202e}", "http://", "https://", "src="] {
        assert!(!page.contains(forbidden), "{forbidden}");
    }
    assert!(page.ends_with("</main>\n</body>\n</html>\n"));
    assert_eq!(page.matches("<tr>").count(), 31, "a row for every step and the head");
}

#[test]
fn a_page_is_not_written_into_the_home_nor_over_a_folder() {
    let desk = with_turns(1);
    let (home, folder) = (desk.path("home/x.html"), desk.path("work"));

    let into_home = desk.run(&["sessions", "show", "cli:long", "--html", home.to_str().unwrap()]);
    let over_folder = desk.run(&["sessions", "show", "cli:long", "--html", folder.to_str().unwrap()]);
    let nobody = desk.run(&["sessions", "show", "cli:nobody", "--html", desk.path("x").to_str().unwrap()]);

    assert_eq!((into_home.0, into_home.2.contains("is in the longhaul home")), (2, true), "{}", into_home.2);
    assert_eq!((over_folder.0, over_folder.2.contains("is a folder")), (2, true), "{}", over_folder.2);
    assert_eq!((nobody.0, desk.path("x").exists()), (2, false), "{}", nobody.2);
}
