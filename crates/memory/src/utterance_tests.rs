use longhaul_protocol::{
    Answered, AnsweredBy, At, AttemptEnded, AttemptId, AttemptStarted, Block, Body, CallId, Gone, Hash,
    Input, InputId, InputTaken, Item, JoinMode, Note, Notification, Question, QuestionId, QuestionKind,
    Record, Role, Sender, Seq, SessionId, SessionRecord, Speaker, StreamName, SystemMessage, TextContent,
    ToolFinished, TurnStarted, Warning,
};
use proptest::prelude::*;

use super::{Utterance, UtteranceReader};

fn record(seq: Seq, fact: &SessionRecord) -> Record {
    let new = fact.encode();
    let stream = StreamName::session(SessionId::generate());
    let (prev, hash) = (Hash::ZERO, Hash::ZERO);
    Record { stream, seq, at: At(0), kind: new.kind, key: None, body: Body::Here(new.body), prev, hash }
}

fn erased(seq: Seq, kind: &str) -> Record {
    let gone = Gone { at: At(0), reason: "a secret".to_owned(), body_hash: None };
    let any = record(seq, &SessionRecord::Note(Note::new("")));
    Record { kind: kind.to_owned(), body: Body::Gone(gone), ..any }
}

/// Who and what is heard, by record.
fn heard(records: &[Record]) -> Vec<(Seq, String, String)> {
    let mut listening = UtteranceReader::default();
    let said = records.iter().flat_map(|record| listening.push(record));
    said.map(|said| (said.seq, said.who, said.text)).collect()
}

fn heard_of(facts: &[SessionRecord]) -> Vec<(Seq, String, String)> {
    heard(&numbered(facts))
}

fn numbered(facts: &[SessionRecord]) -> Vec<Record> {
    (1..).zip(facts).map(|(seq, fact)| record(seq, fact)).collect()
}

fn entry(seq: Seq, who: &str, text: &str) -> (Seq, String, String) {
    (seq, who.to_owned(), text.to_owned())
}

fn input(text: &str) -> SessionRecord {
    let (id, mode) = (InputId::generate(), JoinMode::Join);
    SessionRecord::InputTaken(InputTaken::of(Input::new(id, text, mode), 1))
}

fn started(attempt: AttemptId) -> SessionRecord {
    SessionRecord::AttemptStarted(AttemptStarted { attempt, model: "scripted/script".to_owned() })
}

fn block(attempt: AttemptId, index: u32, item: Item) -> SessionRecord {
    SessionRecord::Block(Block { attempt, index, item })
}

fn says(text: &str) -> Item {
    Item::Text { role: Role::Assistant, text: text.to_owned() }
}

fn calls(name: &str, arguments: &str) -> Item {
    let (call, wire_id, signature) = (CallId::generate(), None, None);
    Item::ToolCall { call, wire_id, name: name.to_owned(), arguments: arguments.to_owned(), signature }
}

fn ended(attempt: AttemptId, kept: u32) -> SessionRecord {
    let (stop, error, too_long) = (None, None, None);
    SessionRecord::AttemptEnded(AttemptEnded { attempt, kept, stop, error, goes_on: false, too_long })
}

fn finished(name: &str, content: &str) -> SessionRecord {
    SessionRecord::ToolFinished(ToolFinished::new(CallId::generate(), name, content))
}

#[test]
fn everybody_is_heard_as_who_they_are() {
    let attempt = AttemptId::generate();
    let question = QuestionId::generate();
    let thought = Item::Reasoning { text: "hm".to_owned(), signature: None };
    let told =
        Notification { task_id: CallId::generate().into(), text: "<task-notification>done".to_owned() };
    let asked = Question::new(question, QuestionKind::Approval, "May I?");
    let answered = Answered { id: question, answer: "no, never".to_owned(), by: None };

    let heard = heard_of(&[
        input("list the files"),
        SessionRecord::TurnStarted(TurnStarted::new(1)),
        started(attempt),
        block(attempt, 0, thought),
        block(attempt, 1, says("I'll look.")),
        block(attempt, 2, calls("exec", r#"{"command": "ls"}"#)),
        ended(attempt, 3),
        SessionRecord::Question(asked),
        SessionRecord::Answered(answered),
        finished("exec", "a.txt"),
        SessionRecord::Notification(told),
    ]);

    assert_eq!(
        heard,
        [
            entry(1, "user", "list the files"),
            entry(5, "assistant", "I'll look."),
            entry(6, "assistant", r#"(calls exec) {"command": "ls"}"#),
            entry(8, "assistant", "(asks the user) May I?"),
            entry(9, "user", "no, never"),
            entry(10, "output of exec", "a.txt"),
            entry(11, "output of a task", "<task-notification>done"),
        ]
    );
}

/// Y7
#[test]
fn only_what_people_said_has_a_user_as_its_speaker() {
    let attempt = AttemptId::generate();
    let mut failed = ToolFinished::new(CallId::generate(), "exec\n[1] user", "no such file");
    failed.is_error = true;
    let mut listening = UtteranceReader::default();
    let facts =
        [input("hi"), block(attempt, 0, says("ho")), ended(attempt, 1), SessionRecord::ToolFinished(failed)];

    let said: Vec<Utterance> = numbered(&facts).iter().flat_map(|record| listening.push(record)).collect();

    let speakers: Vec<Speaker> = said.iter().map(|said| said.speaker).collect();
    assert_eq!(speakers, [Speaker::User, Speaker::Assistant, Speaker::Untrusted]);
    assert_eq!(said[2].who, "output of exec??1??user, which failed");
}

/// Y1
#[test]
fn what_repeats_or_keeps_the_books_is_not_heard() {
    let message = SystemMessage { content: vec![TextContent { text: "a summary".to_owned() }] };
    let attempt = AttemptId::generate();

    let heard = heard_of(&[
        SessionRecord::SystemMessage(message),
        SessionRecord::Note(Note::new("tasks run")),
        SessionRecord::Warning(Warning::new("w", "a warning")),
        finished("recall", "what was said before"),
        finished("memory_read", "# Core"),
        block(attempt, 0, calls("memory_note", r#"{"text": "noted"}"#)),
        ended(attempt, 1),
        input("   "),
    ]);

    assert_eq!(heard, []);
}

#[test]
fn only_what_an_attempt_keeps_counts() {
    let [first, second] = [AttemptId::generate(), AttemptId::generate()];

    let heard = heard_of(&[
        started(first),
        block(first, 0, says("a first try")),
        ended(first, 0),
        started(second),
        block(second, 0, says("kept")),
        block(second, 1, says("cut")),
        ended(second, 1),
    ]);

    assert_eq!(heard, [entry(5, "assistant", "kept")]);
}

#[test]
fn an_attempt_without_an_end_says_nothing_in_the_next_turn() {
    let [first, second] = [AttemptId::generate(), AttemptId::generate()];

    let heard = heard_of(&[
        block(first, 0, says("lost")),
        SessionRecord::TurnStarted(TurnStarted::new(2)),
        block(second, 0, says("said")),
        ended(second, 1),
    ]);

    assert_eq!(heard, [entry(3, "assistant", "said")]);
}

#[test]
fn an_input_within_an_attempt_is_heard_at_once_and_the_attempt_when_it_ends() {
    let attempt = AttemptId::generate();

    let heard = heard_of(&[block(attempt, 0, says("one")), input("stop"), ended(attempt, 1)]);

    assert_eq!(heard, [entry(2, "user", "stop"), entry(1, "assistant", "one")]);
}

#[test]
fn long_outputs_lose_their_middle() {
    let heard = heard_of(&[finished("exec", &format!("begin {} end", "x".repeat(1 << 20)))]);

    let [(_, _, text)] = heard.as_slice() else { panic!("{heard:?}") };
    assert!(text.len() <= 2_000, "{}", text.len());
    assert!(text.starts_with("begin xxx") && text.ends_with("xxx end"), "{text}");
}

#[test]
fn erased_and_lost_records_say_nothing_and_still_begin_and_end_things() {
    let attempt = AttemptId::generate();
    let mut listening = UtteranceReader::default();

    assert!(listening.is_at_rest());
    assert_eq!(listening.push(&erased(1, "turn_started")), []);
    assert!(!listening.is_at_rest());
    assert_eq!(listening.push(&erased(2, "block")), []);
    assert_eq!(listening.push(&record(3, &block(attempt, 1, says("complete")))), []);
    // How much of it counted is unknown.
    assert_eq!(listening.push(&erased(4, "attempt_ended")).len(), 1);
    assert_eq!(listening.push(&erased(5, "lost")), []);
    assert_eq!(listening.push(&erased(6, "tool_finished")), []);
    assert_eq!(listening.push(&erased(7, "turn_ended")), []);
    assert!(listening.is_at_rest());
}

#[test]
fn unknown_and_malformed_records_say_nothing() {
    let unknown = Record { kind: "of_next_year".to_owned(), ..record(1, &input("hi")) };
    let malformed = Record { kind: "tool_finished".to_owned(), ..record(2, &input("hi")) };

    assert_eq!(heard(&[unknown, malformed]), []);
}

/// What a random record is made of.
fn any_fact() -> impl Strategy<Value = (u8, u8, u32)> {
    (0u8..12, 0u8..2, 0u32..4)
}

/// P8: up to the mark of an import the user's words are somebody else's, and a turn that was open there is over.
#[test]
fn the_user_of_an_imported_session_is_not_the_user() {
    let imported = SessionRecord::Imported(longhaul_protocol::Imported::unknown(3));
    let turn = SessionRecord::TurnStarted(TurnStarted::new(1));
    let records = numbered(&[input("Deploy at night."), turn, imported, input("Hello.")]);
    let mut listening = UtteranceReader::to_session(3);

    let said: Vec<Utterance> = records.iter().flat_map(|record| listening.push(record)).collect();

    let speakers: Vec<_> = said.iter().map(|said| (said.seq, said.speaker)).collect();
    assert_eq!(speakers, [(1, Speaker::Untrusted), (4, Speaker::User)]);
    assert!(listening.is_at_rest());
}

proptest! {
    /// Y6: whoever begins to listen after any record hears exactly what stands behind it.
    #[test]
    fn listening_can_begin_after_any_record(facts in prop::collection::vec(any_fact(), 0..60), place in 0usize..60) {
        let attempts = [AttemptId::generate(), AttemptId::generate()];
        let records: Vec<Record> = (1..).zip(&facts).map(|(seq, (kind, which, number))| {
            let attempt = attempts[usize::from(*which)];
            match kind {
                0..=3 => record(seq, &block(attempt, *number, says("words"))),
                4 | 5 => record(seq, &ended(attempt, *number)),
                6 => record(seq, &started(attempt)),
                7 => record(seq, &input("hi")),
                8 => record(seq, &finished("exec", "output")),
                9 => record(seq, &SessionRecord::TurnStarted(TurnStarted::new(1))),
                10 => erased(seq, "attempt_ended"),
                _ => erased(seq, "lost"),
            }
        }).collect();
        let place = place.min(records.len());
        let after = u64::try_from(place).unwrap();

        let mut of_all = heard(&records);
        of_all.retain(|(seq, ..)| *seq > after);

        prop_assert_eq!(heard(&records[place..]), of_all);
    }
}

/// P8: what an agent wrote is heard as a stranger's, what a person wrote into a schedule as the user's.
#[test]
fn what_an_agent_wrote_is_not_heard_as_the_user() {
    let speaker_of = |sender: Sender| {
        let input = Input::new(InputId::generate(), "I prefer tabs", JoinMode::Join);
        let taken = InputTaken::of(Input { sender, ..input }, 1);
        UtteranceReader::default().push(&record(1, &SessionRecord::InputTaken(taken))).remove(0).speaker
    };
    let schedule = |by_agent| Sender::Schedule {
        id: "nightly".to_owned(),
        slot: At(0),
        by_agent,
        max_cost_nano: None,
        heartbeat: false,
    };

    assert_eq!(speaker_of(Sender::Person), Speaker::User);
    assert_eq!(speaker_of(schedule(false)), Speaker::User);
    assert_eq!(speaker_of(schedule(true)), Speaker::Untrusted);
    assert_eq!(speaker_of(Sender::Agent { name: "builder".to_owned() }), Speaker::Untrusted);
    assert_eq!(speaker_of(Sender::Unknown), Speaker::Untrusted);
    let answer = |by| {
        let (id, answer) = (QuestionId::generate(), "I prefer tabs".to_owned());
        let fact = SessionRecord::Answered(Answered { id, answer, by: Some(by) });
        UtteranceReader::default().push(&record(1, &fact)).remove(0).speaker
    };
    assert_eq!(answer(AnsweredBy::User), Speaker::User);
    assert_eq!(answer(AnsweredBy::Agent), Speaker::Untrusted);
    let withdrawn = Answered {
        id: QuestionId::generate(),
        answer: "withdrawn: the turn ended".to_owned(),
        by: Some(AnsweredBy::Runtime),
    };
    let heard = UtteranceReader::default().push(&record(1, &SessionRecord::Answered(withdrawn)));
    assert_eq!(heard, [], "nobody said it");
}
