use longhaul_journal::{Append, Home, SqliteJournal};
use longhaul_protocol::{
    AttemptEnded, AttemptId, AttemptStarted, Block as ItemRecord, Input, InputId, InputTaken, Item, JoinMode,
    Note, Outcome, Role, SessionRecord, TurnEnded, TurnStarted,
};

use super::*;

fn turn(number: u64, answer: &str) -> Vec<SessionRecord> {
    let (id, attempt, text) = (InputId::generate(), AttemptId::generate(), format!("question {number}"));
    let item = Item::Text { role: Role::Assistant, text: answer.to_owned() };
    let ended = AttemptEnded { attempt, kept: 1, stop: None, error: None, goes_on: false, too_long: None };
    vec![
        SessionRecord::InputTaken(InputTaken::of(Input::new(id, text, JoinMode::Join), number)),
        SessionRecord::TurnStarted(TurnStarted::new(number)),
        SessionRecord::AttemptStarted(AttemptStarted { attempt, model: "a/b".into() }),
        SessionRecord::Block(ItemRecord { attempt, index: 0, item }),
        SessionRecord::AttemptEnded(ended),
        end(number),
    ]
}

fn end(turn: u64) -> SessionRecord {
    let (outcome, text) = (Outcome::Completed, String::new());
    SessionRecord::TurnEnded(TurnEnded {
        turn,
        outcome,
        limit: None,
        text,
        error: None,
        code: None,
        inbox_through: None,
    })
}

async fn past_of(facts: Vec<SessionRecord>) -> PastTurns {
    let folder = tempfile::tempdir().unwrap();
    let journal = SqliteJournal::open(&Home::create(folder.path()).unwrap()).await.unwrap();
    let id = SessionId::generate();
    let stream = StreamName::session(id);
    let head = facts.len() as Seq;
    for facts in facts.chunks(2_000) {
        let append =
            facts.iter().fold(Append::to(&stream), |append, fact| append.record(fact.clone().encode()));
        journal.append(append).await.unwrap();
    }
    let past = PastTurns::load(&journal, id, head).await.unwrap();
    journal.close().await;
    past
}

fn words(past: &PastTurns) -> Vec<&str> {
    let words = past.blocks.iter().filter_map(|block| match &block.content {
        BlockContent::Input { text, .. } | BlockContent::Message { text, .. } => Some(text.as_str()),
        _ => None,
    });
    words.collect()
}

/// S2
#[tokio::test]
async fn the_last_turns_of_ten_thousand_are_found_with_their_numbers() {
    let past = past_of((1..=10_000).flat_map(|number| turn(number, "An answer.")).collect()).await;

    assert_eq!((past.turns_before, past.is_cut), (9_997, false));
    assert_eq!(past.heading().unwrap(), "… 9,997 turns before");
    assert_eq!(words(&past)[..2], ["question 9998", "An answer."]);
    assert_eq!(past.short_text(), "… 9,997 turns before\n> question 10000\nAn answer.");
}

#[tokio::test]
async fn a_session_with_few_turns_is_shown_whole_and_a_new_one_not_at_all() {
    let two = past_of([turn(1, "One."), turn(2, "Two.")].concat()).await;
    let open = past_of(turn(1, "").into_iter().take(3).collect()).await;

    assert_eq!(words(&two), ["question 1", "One.", "question 2", "Two."]);
    assert_eq!(two.heading(), None);
    assert!(open.is_empty() && past_of(vec![]).await.is_empty());
}

/// The open turn is shown by what comes after.
#[tokio::test]
async fn what_came_after_the_last_end_of_a_turn_is_left_out() {
    let open = turn(2, "not yet").into_iter().take(4);

    let past = past_of(turn(1, "One.").into_iter().chain(open).collect()).await;

    assert_eq!(words(&past), ["question 1", "One."]);
}

#[tokio::test]
async fn a_long_answer_leaves_no_room_for_earlier_ones_and_a_long_turn_has_no_beginning() {
    let long = "word ".repeat(2_000);
    let answers = past_of([turn(1, "One."), turn(2, &long), turn(3, "Three.")].concat()).await;
    let note = || SessionRecord::Note(Note::new("something"));
    let notes = std::iter::repeat_with(note).take(3_000);
    let mut facts = [turn(1, "One."), turn(2, "")].concat();
    facts.pop();
    let turns = past_of(facts.into_iter().chain(notes).chain([end(2)]).collect()).await;

    assert_eq!((answers.turns_before, words(&answers).len()), (1, 4));
    assert!(turns.is_cut && turns.blocks.len() < 1_200, "{}", turns.blocks.len());
}

/// An input that a turn leaves to the next one is shown there.
#[tokio::test]
async fn an_input_that_waited_for_its_turn_is_shown_in_it() {
    let mut facts = [turn(1, "One."), turn(2, "Two.")].concat();
    let waiting = facts.remove(6);
    facts.insert(3, waiting);

    let past = past_of(facts).await;

    assert_eq!(words(&past), ["question 1", "One.", "question 2", "Two."]);
}

#[tokio::test]
async fn a_session_rests_if_it_ends_with_a_turn_after_which_no_input_waited() {
    let rests = |through| {
        let mut facts = turn(1, "One.");
        if let Some(SessionRecord::TurnEnded(ended)) = facts.last_mut() {
            ended.inbox_through = through;
        }
        facts
    };
    let note = SessionRecord::Note(Note::new("something"));

    let (resting, waiting) = (past_of(rests(Some(7))).await, past_of(rests(None)).await);
    let after = past_of(rests(Some(7)).into_iter().chain([note]).collect()).await;

    assert_eq!((resting.rests_through, resting.last_turn), (Some(7), 1));
    assert_eq!((waiting.rests_through, after.rests_through), (None, None));
}
