//! What is said in two hundred turns, and what of it must never be lost.

use serde_json::{Value, json};

/// How many turns there are.
pub(super) const TURNS: usize = 200;
/// The first request, which is pinned.
pub(super) const FIRST_REQUEST: &str =
    "Help me to move the harbour office to the new software by the end of May, a gate at a time.";
/// The directive that is withdrawn, and the words that withdraw it.
pub(super) const WITHDRAWN: &str = "Never touch the folder vendor/ without asking me.";
pub(super) const WITHDRAWS: &str = "You may touch vendor/ again.";
/// The task that runs from the second turn on.
pub(super) const TASK: &str = "watch the tide gauge";

const BEGINS_THE_TASK: usize = 2;
const PLANS: [usize; 2] = [4, 131];
const WITHDRAWAL: usize = 120;
/// The first and the last of what must not be lost, and how far they are apart, in fifths of a turn.
const FIRST_THING: usize = 6;
const FIFTHS_APART: usize = 24;

/// What is pinned, said or done once, and asked for much later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Fact,
    Directive,
    Change,
}

/// One of them.
#[derive(Debug, Clone)]
pub(super) struct Thing {
    pub(super) kind: Kind,
    /// What the user says.
    pub(super) said: String,
    /// Some of its words.
    pub(super) query: &'static str,
    /// What a record must hold to be the right one.
    pub(super) proof: &'static str,
}

const FACTS: [(&str, &str, &str); 16] = [
    ("The staging database is on host lark-17, port 6432.", "staging database port", "lark-17"),
    ("The customs broker is called Ingrid Aasen, and she answers before nine.", "customs broker", "Ingrid"),
    ("Gate four opens to the left because its motor was mounted upside down.", "gate motor mounted", "left"),
    ("The invoices of 2019 are in the blue cabinet, second drawer.", "invoices cabinet drawer", "2019"),
    ("The old software rounds tonnage down, the new one to the nearest.", "rounds tonnage", "nearest"),
    ("The licence for the radar expires on the 3rd of March.", "radar licence", "3rd of March"),
    ("Our largest berth takes ships of 212 metres.", "largest berth metres", "212"),
    ("The night shift calls the pumps Castor and Pollux.", "night shift pumps", "Castor"),
    ("Backups go to the tape robot in the cellar of the fish market.", "backups tape robot", "fish market"),
    ("The harbour master is on leave from the 12th to the 19th.", "harbour master leave", "12th"),
    ("Radio channel 14 is for tugs only.", "radio channel tugs", "14"),
    ("The tariff table has a typing error in row 88.", "tariff typing error", "row 88"),
    ("The mail server drops attachments over nine megabytes.", "mail attachments", "nine megabytes"),
    ("The crane at quay C is rented from Holm and Sons.", "crane quay rented", "Holm"),
    ("The password of the weather service is rotated every Thursday.", "weather service rotated", "Thursday"),
    ("The pilot boat needs forty minutes to the outer buoy.", "pilot boat buoy", "forty minutes"),
];

const DIRECTIVES: [(&str, &str, &str); 12] = [
    (WITHDRAWN, "touch folder vendor", "without asking"),
    ("Always write dates as year, month, day.", "write dates year", "month"),
    ("Never restart the radar process while a ship is moving.", "restart radar process", "moving"),
    ("Always answer in British spelling.", "answer spelling", "British"),
    ("Never delete a row of the berth table; mark it as closed.", "delete berth row", "closed"),
    ("Always run the tonnage check before you call something done.", "tonnage check", "before"),
    ("Never write to the share called archive-2.", "write share archive", "archive-2"),
    ("Always name the gate first and the day second.", "name gate day second", "first"),
    ("Never use more than two columns in a report to the council.", "columns report council", "two"),
    ("Always keep the tide times in UTC.", "tide times", "UTC"),
    ("Never send mail to the shipping agents yourself.", "mail shipping agents", "yourself"),
    ("Always leave the file tariffs.csv sorted by its second column.", "tariffs sorted column", "second"),
];

/// Eight files are written; four of them are changed again, long after.
const WRITES: [(&str, &str, &str); 8] = [
    ("gates/north.toml", "motor = \"siemens-9\"\n", "siemens-9"),
    ("gates/south.toml", "motor = \"abb-3\"\n", "abb-3"),
    ("berths.csv", "berth;metres\nA;212\n", "212"),
    ("tide/formula.txt", "height = mean + swing\n", "swing"),
    ("reports/council.md", "Nothing yet for the council.\n", "council"),
    ("radar/limits.toml", "sweep = 24\n", "sweep"),
    ("pumps/order.txt", "Castor before Pollux\n", "Castor"),
    ("tugs/rota.md", "Monday Wilma\n", "Wilma"),
];
const EDITS: [(usize, &str, &str); 4] = [
    (0, "siemens-9", "siemens-11"),
    (1, "abb-3", "abb-7"),
    (2, "A;212", "A;215"),
    (3, "mean + swing", "mean + swing - silt"),
];

/// The paths of all files that are changed, and what is in them in the end.
pub(super) fn files() -> Vec<(&'static str, String)> {
    let edited = |index: usize, content: &str| match EDITS.iter().find(|(edited, ..)| *edited == index) {
        Some((_, old, new)) => content.replace(old, new),
        None => content.to_owned(),
    };
    WRITES.iter().enumerate().map(|(index, (path, content, _))| (*path, edited(index, content))).collect()
}

/// The directives that hold in the end.
pub(super) fn directives() -> impl Iterator<Item = &'static str> {
    DIRECTIVES.iter().map(|(words, ..)| *words).filter(|words| *words != WITHDRAWN)
}

/// The forty, in the order in which they come.
pub(super) fn things() -> Vec<Thing> {
    use Kind::{Change, Directive, Fact};
    let order = [Fact, Directive, Change, Fact, Change, Directive, Fact, Directive, Change, Fact];
    let (mut facts, mut directives) = (FACTS.iter(), DIRECTIVES.iter());
    let mut changes = changes().into_iter();
    let all = order.iter().cycle().take(FACTS.len() + DIRECTIVES.len() + WRITES.len() + EDITS.len());
    all.map(|kind| {
        let words = match kind {
            Fact => facts.next(),
            Directive => directives.next(),
            Change => return changes.next().expect("there are as many as the order has"),
        };
        let (said, query, proof) = *words.expect("there are as many as the order has");
        Thing { kind: *kind, said: said.to_owned(), query, proof }
    })
    .collect()
}

fn changes() -> Vec<Thing> {
    let written = WRITES.iter().map(|(path, content, proof)| {
        let query = path.split('.').next().unwrap_or(path);
        Thing { kind: Kind::Change, said: format!("Write {path}: {content}"), query, proof }
    });
    let edited = EDITS.iter().map(|(index, old, new)| {
        let said = format!("In {} put {new} for {old}", WRITES[*index].0);
        Thing { kind: Kind::Change, said, query: old, proof: new }
    });
    written.chain(edited).collect()
}

/// The turn in which one of them comes.
fn turn_of(index: usize) -> usize {
    FIRST_THING + index * FIFTHS_APART / 5
}

/// What the user says in a turn. Everything that is small talk has words of what must be found among it.
pub(super) fn said_in(turn: usize, things: &[Thing]) -> String {
    if let Some(thing) = (0..things.len()).find(|index| turn_of(*index) == turn) {
        return things[thing].said.clone();
    }
    match turn {
        1 => FIRST_REQUEST.to_owned(),
        BEGINS_THE_TASK => "Begin to watch the gauge.".to_owned(),
        WITHDRAWAL => WITHDRAWS.to_owned(),
        TURNS => "Recall it all.".to_owned(),
        turn if PLANS.contains(&turn) => "Renew the plan.".to_owned(),
        turn if turn % 3 == 0 => format!("Look at log {}.", turn % 4),
        _ => small_talk(turn),
    }
}

const SUBJECTS: [&str; 12] = [
    "the database of the harbour",
    "a host in the cellar",
    "the gate and its motor",
    "the folder with the invoices",
    "the radar on the second mast",
    "a report to the broker",
    "the tide table",
    "the mail of the agents",
    "the pumps of the night",
    "the crane and the quay",
    "the tugs and their radio",
    "the berth where the pilot boat is",
];

fn small_talk(turn: usize) -> String {
    let (one, other) = (SUBJECTS[turn % 12], SUBJECTS[(turn * 5 + 3) % 12]);
    format!(
        "Somebody asked about {one} again, and about {other} too, day {turn} of this. I told them that we look at it when the rest \
         is done; what would you say to them, in a sentence or two, if they come back tomorrow and want to know how far it is?"
    )
}

/// What the model says at length about nothing in particular.
pub(super) fn prattle(number: usize) -> String {
    let sentence = |index: usize| {
        let subject = SUBJECTS[(number * 7 + index) % 12];
        format!("As to {subject}, nothing speaks against it, and day {number} is as good as any.")
    };
    (0..24).map(sentence).collect::<Vec<_>>().join(" ")
}

/// One of four files to look at: a few thousand bytes.
pub(super) fn log(number: usize) -> String {
    (0..90)
        .map(|line| format!("{line:03} gate {number} moved, motor warm, tide {}\n", line * 7 % 31))
        .collect()
}

/// The todo list, as it stands from a turn on.
pub(super) fn plan(is_first: bool) -> Value {
    let done = if is_first { "pending" } else { "done" };
    json!([
        {"text": "list the gates with their motors", "status": "done"},
        {"text": "move the berth table to the new form", "status": done},
        {"text": "teach the night shift, both groups", "status": if is_first { "pending" } else { "in_progress" }},
        {"text": "switch the old software off", "status": "pending"},
    ])
}
