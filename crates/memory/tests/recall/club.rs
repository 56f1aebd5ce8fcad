//! A second set of conversations, of other material than the first: eight members of a club who talk with the agent over
//! four months, each in a session of their own. What they say differs by the person, the day, or what was said before.

use longhaul_journal::rebuild::ChainLink;
use longhaul_journal::{Journal, name_session};
use longhaul_memory::{PageSet, RecallScope};
use longhaul_protocol::{
    At, AttemptEnded, AttemptId, Block, Body, Hash, Input, InputId, InputTaken, Item, JoinMode, Outcome,
    Record, Role, Seq, SessionId, SessionRecord, StreamName, TurnEnded, TurnStarted,
};

const MEMBERS: [&str; 8] = ["vera", "anton", "lucia", "pavel", "noor", "emil", "greta", "tariq"];
const TOPICS: [&str; 24] = [
    "beehive",
    "greenhouse",
    "choir evening",
    "garden fence",
    "compost heap",
    "seed exchange",
    "bicycle tour",
    "wine cellar",
    "chess evening",
    "book circle",
    "pottery course",
    "summer party",
    "club newsletter",
    "tool shed",
    "apple harvest",
    "bread oven",
    "bird count",
    "flea market",
    "sauna cabin",
    "toy library",
    "night hike",
    "soup kitchen",
    "photo wall",
    "boat trip",
];
const DAYS: i64 = 120;
const DAY_MS: i64 = 24 * 60 * 60 * 1_000;
/// Turns of a member in which nothing is told that is asked for.
const IDLE_TURNS: usize = 160;
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// What sets the evidence apart from the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Person,
    Day,
    RelativeDay,
    AskedWhen,
    Corrected,
    Paraphrased,
    Answered,
}

impl Kind {
    pub(crate) const ALL: [Self; 7] = [
        Self::Person,
        Self::Day,
        Self::RelativeDay,
        Self::AskedWhen,
        Self::Corrected,
        Self::Paraphrased,
        Self::Answered,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Person => "by one of several people, whom the question names",
            Self::Day => "on one of several days, which the question names",
            Self::RelativeDay => "of a day that the record calls yesterday",
            Self::AskedWhen => "as a time, and the question asks when",
            Self::Corrected => "and corrected later",
            Self::Paraphrased => "in other words",
            Self::Answered => "in an answer that repeats no word of what it answers",
        }
    }
}

/// A question and the record that answers it.
pub(crate) struct Asked {
    pub(crate) kind: Kind,
    pub(crate) topic: usize,
    pub(crate) question: String,
    pub(crate) session: SessionId,
    pub(crate) seq: Seq,
}

impl Asked {
    /// Whether the question belongs to the half that nobody looks at while the search is tuned.
    pub(crate) fn is_held_out(&self) -> bool {
        self.topic % 2 == 1
    }
}

pub(crate) struct Club {
    pub(crate) asked: Vec<Asked>,
    pub(crate) places: RecallScope,
    pub(crate) texts: Vec<(SessionId, Seq, String)>,
}

/// Something that a member says on a day, with the answer of the agent.
struct Said {
    member: usize,
    /// Days before today.
    ago: i64,
    user: String,
    agent: String,
    /// The question to which this is the evidence: its kind, its text, and whether the agent's answer is meant.
    asked: Option<(Kind, String, bool)>,
    topic: usize,
}

/// A day as a person writes it.
fn written(today: At, ago: i64) -> String {
    let text = At(today.0 - ago * DAY_MS).to_string();
    let (month, day): (usize, u32) = (text[5..7].parse().unwrap(), text[8..10].parse().unwrap());
    format!("{day} {}", MONTHS[month - 1])
}

fn conversation(today: At) -> Vec<Said> {
    let mut all = Vec::new();
    for (topic, name) in TOPICS.iter().enumerate() {
        let member = |step: usize| (topic * 3 + step) % MEMBERS.len();
        let day = |step: i64| 5 + (i64::try_from(topic).unwrap() * 17 + step * 29) % (DAYS - 10);
        let mut say =
            |member: usize, ago: i64, user: String, agent: &str, asked: Option<(Kind, String, bool)>| {
                all.push(Said { member, ago, user, agent: agent.to_owned(), asked, topic });
            };
        let wishes = ["more benches", "a longer rope", "fewer rules", "louder music"];
        for step in 0..3 {
            let wish = wishes[(topic + step) % 4];
            let question = format!("What does {} want for the {name}?", MEMBERS[member(step)]);
            let asked = (step == topic % 3).then_some((Kind::Person, question, false));
            say(
                member(step),
                day(1),
                format!("For the {name} I would like {wish}."),
                "I will pass it on.",
                asked,
            );
        }
        for step in 0..4 {
            let ago = day(2) / 4 + 28 * step;
            let question = format!("How many guests were counted at the {name} on {}?", written(today, ago));
            let asked = (step == i64::try_from(topic % 4).unwrap()).then_some((Kind::Day, question, false));
            let count = 10 + topic * 5 + usize::try_from(step).unwrap() * 3;
            say(member(3), ago, format!("We counted {count} guests at the {name}."), "Noted down.", asked);
        }
        for step in 0..3 {
            let ago = day(3) / 3 + 36 * step;
            let question = format!("What was mended at the {name} on {}?", written(today, ago + 1));
            let asked =
                (step == i64::try_from(topic % 3).unwrap()).then_some((Kind::RelativeDay, question, false));
            let part = ["the roof", "a hinge", "the lamp"][(topic + usize::try_from(step).unwrap()) % 3];
            say(member(4), ago, format!("Yesterday we mended {part} at the {name}."), "Well done.", asked);
        }
        let hour = 8 + topic % 10;
        let weekday = ["Monday", "Thursday", "Saturday"][topic % 3];
        let question = format!("When does the {name} begin?");
        say(member(5), day(4), format!("The {name} begins with a speech, as always."), "I like that.", None);
        say(
            member(6),
            day(5),
            format!("The {name} begins every {weekday} at {hour}:15."),
            "Good to know.",
            Some((Kind::AskedWhen, question, false)),
        );
        say(member(7), day(6), format!("How the {name} begins is up to the hosts."), "So be it.", None);

        let (old, new) = (20 + topic, 31 + topic * 2);
        let ago = day(7);
        say(member(1), ago + 4, format!("The fee for the {name} is {old} crowns."), "Noted down.", None);
        let question = format!("What is the fee for the {name}?");
        say(
            member(2),
            ago,
            format!("I was wrong about the {name}: the fee is {new} crowns now."),
            "Changed.",
            Some((Kind::Corrected, question, false)),
        );

        let question = format!("Who is responsible for the {name}?");
        let chief = ["Olga", "Hamid", "Berit", "Jorge"][topic % 4];
        say(
            member(3),
            day(8),
            format!("{chief} looks after the {name} from now on."),
            "I see.",
            Some((Kind::Paraphrased, question, false)),
        );

        let question = format!("Which colour was chosen for the {name} posters?");
        let colour = ["turquoise", "ochre", "crimson", "silver"][topic % 4];
        say(
            member(4),
            day(9),
            format!("Which colour shall the {name} posters have?"),
            &format!("I would go for {colour}."),
            Some((Kind::Answered, question, true)),
        );
    }
    all.extend(small_talk());
    all
}

/// What members say about several topics, or about none. No question is about it.
fn small_talk() -> Vec<Said> {
    let mut all = Vec::new();
    for number in 0..MEMBERS.len() * IDLE_TURNS {
        let (one, other) = (TOPICS[number * 7 % TOPICS.len()], TOPICS[(number * 5 + 11) % TOPICS.len()]);
        let (user, agent) = match number % 6 {
            0 => (format!("I am looking forward to the {one}."), "That is nice to hear.".to_owned()),
            1 => (
                "Please sum up what is open.".to_owned(),
                format!(
                    "The {one} needs helpers, and the {other} a plan. Nothing else is urgent, and the guests are content."
                ),
            ),
            2 => (
                format!("Has the {one} been talked about with the others?"),
                "Not that I remember.".to_owned(),
            ),
            3 => (
                format!("The posters of the {one} hang beside those of the {other}."),
                "They look fine there.".to_owned(),
            ),
            4 => {
                (format!("The guests liked the {one} better than the {other}."), "I can imagine.".to_owned())
            }
            _ => ("Thank you!".to_owned(), "You are welcome.".to_owned()),
        };
        let ago = 1 + i64::try_from(number * 13).unwrap() % DAYS;
        all.push(Said { member: number % MEMBERS.len(), ago, user, agent, asked: None, topic: 0 });
    }
    all
}

/// Makes everything up and adds it, with the times at which it was said.
pub(crate) async fn make(journal: &dyn Journal, today: At) -> Club {
    let mut said = conversation(today);
    said.sort_by_key(|said| (said.member, std::cmp::Reverse(said.ago)));
    let (mut asked, mut texts, mut sessions) = (Vec::new(), Vec::new(), Vec::new());
    for (member, name) in MEMBERS.iter().enumerate() {
        let key = format!("http:{name}");
        let session = name_session(journal, &key).await.unwrap();
        let mut history = History { stream: StreamName::session(session), records: vec![] };
        for (turn, said) in said.iter().filter(|said| said.member == member).enumerate() {
            let at = At(today.0 - said.ago * DAY_MS + i64::try_from(turn).unwrap() * 1_000);
            let [user, agent] = history.turn(at, turn as u64 + 1, said);
            texts.push((session, user, said.user.clone()));
            texts.push((session, agent, said.agent.clone()));
            if let Some((kind, question, is_agent)) = said.asked.clone() {
                let seq = if is_agent { agent } else { user };
                asked.push(Asked { kind, topic: said.topic, question, session, seq });
            }
        }
        let lease = journal.acquire_lease(&history.stream).await.unwrap();
        journal.adopt(&lease, history.records, vec![]).await.unwrap();
        journal.release_lease(&lease).await.unwrap();
        sessions.push((session, key));
    }
    let book = PageSet::load(journal, "club").await.unwrap();
    Club { asked, texts, places: RecallScope { book, sessions, present: None, asked_at: Some(today) } }
}

/// Records that were written at other times than now.
struct History {
    stream: StreamName,
    records: Vec<Record>,
}

impl History {
    fn turn(&mut self, at: At, turn: u64, said: &Said) -> [Seq; 2] {
        let (id, mode) = (InputId::generate(), JoinMode::Join);
        let input = InputTaken::of(Input::new(id, said.user.clone(), mode), turn);
        let user = self.add(at, &SessionRecord::InputTaken(input));
        self.add(at, &SessionRecord::TurnStarted(TurnStarted::new(turn)));
        let attempt = AttemptId::generate();
        let item = Item::Text { role: Role::Assistant, text: said.agent.clone() };
        let agent = self.add(at, &SessionRecord::Block(Block { attempt, index: 0, item }));
        let (stop, error, goes_on, too_long) = (None, None, false, None);
        let ended = AttemptEnded { attempt, kept: 1, stop, error, goes_on, too_long };
        self.add(at, &SessionRecord::AttemptEnded(ended));
        let (outcome, text) = (Outcome::Completed, String::new());
        let (limit, error, code, inbox_through) = (None, None, None, None);
        let ended = TurnEnded { turn, outcome, limit, text, error, code, inbox_through };
        self.add(at, &SessionRecord::TurnEnded(ended));
        [user, agent]
    }

    fn add(&mut self, at: At, record: &SessionRecord) -> Seq {
        let new = record.encode();
        let (stream, seq) = (self.stream.clone(), self.records.len() as u64 + 1);
        let prev = self.records.last().map_or(Hash::ZERO, |last| last.hash);
        let body_hash = Hash::of(new.body.get());
        let hash = ChainLink { stream: &stream, seq, at, kind: &new.kind, key: None, prev, body_hash }.hash();
        self.records.push(Record {
            stream,
            seq,
            at,
            kind: new.kind,
            key: None,
            body: Body::Here(new.body),
            prev,
            hash,
        });
        seq
    }
}
