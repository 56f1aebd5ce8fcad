//! Sessions with thousands of records, of which few are about what is asked later.

use longhaul_journal::{Append, Journal};
use longhaul_memory::{Page, PageSet, PageVersion, RecallScope};
use longhaul_protocol::{
    At, AttemptEnded, AttemptId, AttemptStarted, Block, CallId, ChangedBy, ExtractRecord, Extracted,
    ExtractedItem, ExtractedKind, Input, InputId, InputTaken, Item, JoinMode, NewRecord, Outcome, Role, Seq,
    SessionId, SessionRecord, Speaker, StepStarted, StreamName, ToolFinished, TurnEnded, TurnStarted,
};

use crate::facts::{ATTRIBUTES, Fact, SUBJECTS, Told, facts};

pub(crate) const SESSIONS: usize = 12;
/// Turns of a session in which nothing is told that is asked for.
const IDLE_TURNS: usize = 130;
/// Of so many facts one was extracted, and of so many one stands in a page.
const EXTRACTED: usize = 3;
const IN_A_PAGE: usize = 12;

/// Where the proof of a fact stands.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Evidence {
    pub(crate) session: SessionId,
    pub(crate) seq: Seq,
    /// What was said before it was corrected.
    pub(crate) outdated: Option<(SessionId, Seq)>,
}

/// Everything that was said, with the proofs in the order of the facts.
pub(crate) struct World {
    pub(crate) facts: Vec<Fact>,
    pub(crate) evidence: Vec<Evidence>,
    pub(crate) places: RecallScope,
    pub(crate) records: Seq,
    pub(crate) items: usize,
    /// Everything that a person could search, the oldest first.
    pub(crate) texts: Vec<(SessionId, Seq, String)>,
}

/// One session while it is made up.
struct Session {
    id: SessionId,
    /// What is not appended yet.
    records: Vec<NewRecord>,
    head: Seq,
    texts: Vec<(SessionId, Seq, String)>,
    turns: u64,
}

impl Session {
    fn new(number: usize) -> Self {
        let id = SessionId::from_bits(1_000 + number as u128);
        Self { id, records: vec![], head: 0, texts: vec![], turns: 0 }
    }

    fn add(&mut self, record: &SessionRecord) -> Seq {
        self.records.push(record.encode());
        self.head += 1;
        self.head
    }

    async fn append(&mut self, journal: &dyn Journal) {
        let to = Append::to(&StreamName::session(self.id));
        let append = self.records.drain(..).fold(to, Append::record);
        journal.append(append).await.expect("an append");
        // What comes next is newer, also on a fast machine.
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }

    fn said(&mut self, record: &SessionRecord, text: &str) -> Seq {
        let seq = self.add(record);
        self.texts.push((self.id, seq, text.to_owned()));
        seq
    }

    /// A turn: what is asked, what a tool shows, what is answered. Returns their places.
    fn turn(&mut self, asked: &str, shown: Option<&str>, answered: &str) -> [Seq; 3] {
        self.turns += 1;
        let (attempt, call) = (AttemptId::generate(), CallId::generate());
        let (id, text) = (InputId::generate(), asked.to_owned());
        let (inbox_through, mode) = (self.turns, JoinMode::Join);
        let input = InputTaken::of(Input::new(id, text, mode), inbox_through);
        let asked = self.said(&SessionRecord::InputTaken(input), asked);
        self.add(&SessionRecord::TurnStarted(TurnStarted::new(self.turns)));
        let mut shown_at = 0;
        if let Some(shown) = shown {
            let name = "read_file".to_owned();
            let arguments = r#"{"path":"settings.toml"}"#.to_owned();
            let wanted = Item::ToolCall { call, wire_id: None, name, arguments, signature: None };
            self.answer(AttemptId::generate(), 1, wanted, r#"read_file {"path":"settings.toml"}"#);
            shown_at =
                self.said(&SessionRecord::ToolFinished(ToolFinished::new(call, "read_file", shown)), shown);
        }
        let text = Item::Text { role: Role::Assistant, text: answered.to_owned() };
        let answered = self.answer(attempt, 2, text, answered);
        let (turn, outcome, text) = (self.turns, Outcome::Completed, String::new());
        let (limit, error, code, inbox_through) = (None, None, None, None);
        let ended = TurnEnded { turn, outcome, limit, text, error, code, inbox_through };
        self.add(&SessionRecord::TurnEnded(ended));
        [asked, shown_at, answered]
    }

    fn answer(&mut self, attempt: AttemptId, step: u64, item: Item, text: &str) -> Seq {
        self.add(&SessionRecord::StepStarted(StepStarted::new(step)));
        self.add(&SessionRecord::AttemptStarted(AttemptStarted { attempt, model: "made/up".to_owned() }));
        let seq = self.said(&SessionRecord::Block(Block { attempt, index: 0, item }), text);
        let (stop, error, goes_on, too_long) = (Some("stop".to_owned()), None, false, None);
        let ended = AttemptEnded { attempt, kept: 1, stop, error, goes_on, too_long };
        self.add(&SessionRecord::AttemptEnded(ended));
        seq
    }

    fn tell(&mut self, fact: &Fact) -> Evidence {
        let evidence = |session: &Self, seq| Evidence { session: session.id, seq, outdated: None };
        match fact.told {
            Told::Plainly | Told::InOtherForms | Told::InOtherWords => {
                let [asked, ..] = self.turn(&fact.statement(), None, "Noted.");
                evidence(self, asked)
            }
            Told::AsAnAnswer => {
                let [.., answered] = self.turn(&fact.asked(), None, &fact.answer());
                self.turn("Good, so be it.", None, "Done.");
                evidence(self, answered)
            }
            Told::ByATool => {
                let [_, shown, _] =
                    self.turn("Look into the settings, please.", Some(&fact.file()), "I have seen it.");
                evidence(self, shown)
            }
            Told::AndCorrected => {
                let [asked, ..] = self.turn(&fact.correction(), None, "I go by that from now on.");
                evidence(self, asked)
            }
        }
    }

    /// Talk that has the same words and tells nothing.
    fn idle(&mut self, number: usize) {
        let subject = SUBJECTS[number * 7 % SUBJECTS.len()];
        let other = SUBJECTS[(number * 11 + 3) % SUBJECTS.len()];
        let attribute = &ATTRIBUTES[number * 3 % ATTRIBUTES.len()];
        let name = attribute.name;
        let long = format!(
            "I went through the {subject} and the {other}. Both are in good order, as far as one can tell from outside: the tests \
             pass, the logs are quiet, and nobody has complained since Friday. If you like, I can look at the {name} next, or at the \
             servers, the rooms and the plans of the project, one after the other."
        );
        match number % 8 {
            0 => self.turn(&format!("How is the {subject} doing today?"), None, "It runs as usual."),
            1 => self.turn(
                &format!("Has anybody looked at the {name} of the {other}?"),
                None,
                "Not that I know.",
            ),
            2 => self.turn("Go on.", None, &long),
            3 => self.turn(
                "Run the tests again.",
                Some("ok: 214 passed, 0 failed, 3 ignored\n"),
                "All of them pass.",
            ),
            4 => self.turn(
                &format!("The {subject} was slow this morning."),
                None,
                "I see no reason in the logs.",
            ),
            5 => self.turn(
                &format!("We should talk about every {name} some day."),
                None,
                "Gladly, whenever you want.",
            ),
            6 => self.turn(&format!("Write a line about the {other} for the newsletter."), None, &long),
            _ => self.turn("Thank you, that will do.", None, "You are welcome."),
        };
    }
}

/// Makes everything up and appends it. Sessions go on side by side, and what was corrected was said before in another of them.
pub(crate) async fn make(journal: &dyn Journal) -> World {
    let facts = facts();
    let mut sessions: Vec<Session> = (0..SESSIONS).map(Session::new).collect();
    let mut outdated: Vec<Option<(SessionId, Seq)>> = Vec::new();
    for fact in &facts {
        let old = (fact.told == Told::AndCorrected).then(|| {
            let session = &mut sessions[fact.number * 5 % SESSIONS];
            (0..3).for_each(|turn| session.idle(fact.number * 17 + turn * 3));
            let [seq, ..] = session.turn(&fact.old_statement(), None, "Noted.");
            (session.id, seq)
        });
        outdated.push(old);
    }
    for session in &mut sessions {
        session.append(journal).await;
    }
    let each = facts.len().div_ceil(SESSIONS);
    let mut evidence: Vec<Evidence> = Vec::new();
    for (fact, outdated) in facts.iter().zip(outdated) {
        // What belongs to one subject is spread over the sessions.
        let number = fact.number;
        let index = (number * 5 + number / SESSIONS) % SESSIONS;
        let session = &mut sessions[index];
        (0..IDLE_TURNS / each).for_each(|turn| session.idle(number * 13 + turn * 5 + index));
        evidence.push(Evidence { outdated, ..session.tell(fact) });
    }
    for session in &mut sessions {
        session.append(journal).await;
    }
    let items = extract(journal, &facts, &evidence).await;
    let records = sessions.iter().map(|session| session.head).sum();
    let texts = sessions.iter_mut().flat_map(|session| session.texts.drain(..)).collect();
    let keys = sessions.iter().enumerate().map(|(number, session)| (session.id, format!("cli:{number}")));
    let places = RecallScope {
        book: book(journal, &facts).await,
        sessions: keys.collect(),
        present: None,
        asked_at: None,
    };
    World { facts, evidence, places, records, items, texts }
}

/// Extracts of a part of the facts, each among others that tell nothing.
async fn extract(journal: &dyn Journal, facts: &[Fact], evidence: &[Evidence]) -> usize {
    let mut count = 0;
    for number in 0..SESSIONS {
        let session = SessionId::from_bits(1_000 + number as u128);
        let of_session = facts
            .iter()
            .zip(evidence)
            .filter(|(fact, evidence)| evidence.session == session && fact.number % EXTRACTED == 0);
        let item = |text: String, seq: Seq, speaker| ExtractedItem {
            kind: ExtractedKind::Fact,
            text,
            sources: vec![seq],
            speaker,
            quote: None,
        };
        let mut items: Vec<ExtractedItem> = Vec::new();
        for (fact, evidence) in of_session {
            let speaker = match fact.told {
                Told::ByATool => Speaker::Untrusted,
                Told::AsAnAnswer => Speaker::Assistant,
                _ => Speaker::User,
            };
            items.push(item(fact.statement(), evidence.seq, speaker));
            let talk = format!("The {} was talked about.", SUBJECTS[(fact.number + 9) % SUBJECTS.len()]);
            items.push(item(talk, 1, Speaker::Assistant));
        }
        count += items.len();
        let (scope, refused, usage) = (String::new(), vec![], vec![]);
        let extracted = Extracted { scope, from: 1, through: 1_000, items, refused, usage };
        let record = ExtractRecord::Extracted(extracted).encode();
        journal.append(Append::to(&StreamName::extract(session)).record(record)).await.expect("an append");
    }
    count
}

/// Pages with a few of the facts, and with more about the same subjects.
async fn book(journal: &dyn Journal, facts: &[Fact]) -> PageSet {
    let mut book = PageSet::load(journal, "project-harbour").await.expect("a book");
    for (number, page) in ["services", "places"].into_iter().enumerate() {
        let mut text = String::new();
        for subject in SUBJECTS.iter().skip(number).step_by(2) {
            text.push_str(&format!("## {subject}\n- It has been with us for years.\n"));
            let noted = facts.iter().filter(|fact| fact.subject == *subject && is_in_a_page(fact));
            noted.for_each(|fact| text.push_str(&format!("- {}: {}\n", fact.attribute.name, fact.value())));
        }
        let version = PageVersion { seq: 1, at: At(0), by: ChangedBy::Consolidation, sources: 1 };
        book.pages.insert(page.to_owned(), Page { text, versions: vec![version] });
    }
    book
}

pub(crate) fn is_in_a_page(fact: &Fact) -> bool {
    fact.number % IN_A_PAGE == 1
}
