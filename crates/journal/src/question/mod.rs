//! What a question says: its words, and the hints that it gives about the records that answer it.

pub(crate) mod dates;

use std::collections::BTreeSet;

use longhaul_protocol::{At, WordRun, word_runs};

use self::dates::{DateSpan, Tense, TimeMention, day_of};
use crate::scoring::RecordFlags;
use crate::stems::{question_stems, stems};

/// More words add little.
const MAX_STEMS: usize = 64;

/// Stop words of five languages. They are left out unless the question has no other words.
const STOP_WORDS: &str = "
    a about again all also am an and any are as at be been before being but by can could did do does doing done for from get got had
    has have having he her here hers him his how i if in into is it its just know let like may me might mine more most must my no not
    now of off on once one only or other our ours out over own please remember said say says shall she should so some such tell than
    that the their them then there these they thing things this those to told too under until up us use used uses using very want was we were what when
    where which while who whom whose why will with would you your yours t s don didn doesn isn wasn ve ll re d m
    aber als am an auf aus bei bin bist da das dass dem den der des die dir doch du ein eine einem einen einer eines er es fuer für
    hab habe haben hat hatte ich ihr im in ist ja kann mein mich mir mit nach nicht noch nur oder sein sich sie sind so um und uns
    unser von vor war waren warum was wem wen wer wie wieder wir wird wo wurde zu zum zur über
    au aux avec ce ces cette comment dans de des du elle en est et etait était il ils je la le les leur ma mais me mes mon ne nos
    notre nous on ou où par pas pour pourquoi quand que quel quelle qui sa se ses son sont sur ta te tes ton tu un une vos votre vous
    al como con cual cuál cuando del donde dónde el ella en era es esta está este esto fue ha la las lo los mas me mi muy no nos para
    pero por porque que qué quien se si sin sobre su sus te tu un una y ya
    che chi com como con da dal de della di do dos e em era foi gli ha il io lo ma mi na nel no non o os ou para per più quale quando
    são sono sua também tem uma umas
";

/// The words that ask for a time.
const ASKING_WHEN: [&str; 6] = ["when", "wann", "quand", "cuando", "cuándo", "quando"];

/// A question, in the form of the search index.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Question {
    /// The stems of its words, each once, without stop words.
    pub(crate) stems: Vec<String>,
    pub(crate) asks_when: bool,
    /// The side of the conversation that it names, as in "What did you recommend?".
    pub(crate) speaker: Option<RecordFlags>,
    /// The day or month that it names.
    pub(crate) date: Option<DateSpan>,
    /// The stems of all its words, in which the name of a speaker may stand.
    words: BTreeSet<String>,
}

impl Question {
    /// Reads a question that is asked at this moment.
    pub(crate) fn parse(text: &str, asked_at: At) -> Self {
        let stop_words: BTreeSet<&str> = STOP_WORDS.split_whitespace().collect();
        let lower = text.to_lowercase();
        let words: Vec<WordRun<'_>> = word_runs(&lower).collect();
        let is_stop_word =
            |run: &&WordRun<'_>| matches!(run, WordRun::Spaced(word) if stop_words.contains(word));
        let telling: Vec<String> =
            words.iter().filter(|run| !is_stop_word(run)).flat_map(question_stems).collect();
        let mut stems =
            if telling.is_empty() { words.iter().flat_map(question_stems).collect() } else { telling };
        let mut seen = BTreeSet::new();
        stems.retain(|stem| seen.insert(stem.clone()));
        stems.truncate(MAX_STEMS);
        Self {
            stems,
            asks_when: asks_when(&words),
            speaker: named_speaker(&words),
            date: TimeMention::find(text, day_of(asked_at), Tense::Past).date,
            words: words.iter().flat_map(question_stems).collect(),
        }
    }

    /// The words to look for in a text: as they were written, and without their endings.
    pub(crate) fn excerpt_words(&self, text: &str) -> BTreeSet<String> {
        let lower = text.to_lowercase();
        let telling =
            word_runs(&lower).filter(|run| question_stems(run).iter().any(|stem| self.stems.contains(stem)));
        let words = telling.map(|(WordRun::Spaced(word) | WordRun::Unspaced(word))| word.to_owned());
        words.chain(self.stems.iter().filter(|stem| stem.len() >= 3).cloned()).collect()
    }

    /// Whether the question has all words of a name.
    pub(crate) fn names(&self, name: &str) -> bool {
        let stems = stems(name);
        !stems.is_empty() && stems.iter().all(|stem| self.words.contains(stem))
    }
}

/// "What did I say" names the user, "what did you say" the assistant.
fn named_speaker(words: &[WordRun<'_>]) -> Option<RecordFlags> {
    let words: Vec<&str> =
        words.iter().map(|(WordRun::Spaced(word) | WordRun::Unspaced(word))| *word).collect();
    let names = |speaker: &str, pronoun: &str| {
        words.windows(2).any(|pair| match pair {
            ["the", word] => *word == speaker,
            ["did" | "have" | "had", word] => *word == pronoun,
            _ => false,
        })
    };
    match (names("user", "i"), names("assistant", "you")) {
        (true, false) => Some(RecordFlags::USER),
        (false, true) => Some(RecordFlags::ASSISTANT),
        _ => None,
    }
}

fn asks_when(words: &[WordRun<'_>]) -> bool {
    let words: Vec<&str> =
        words.iter().map(|(WordRun::Spaced(word) | WordRun::Unspaced(word))| *word).collect();
    let asks_which = |pair: &[&str]| {
        matches!(
            pair,
            ["which" | "what", "day" | "date" | "month" | "year" | "week" | "time"] | ["how", "long"]
        )
    };
    words.first().is_some_and(|first| ASKING_WHEN.contains(first))
        || words.contains(&"when")
            && words.first().is_some_and(|first| matches!(*first, "since" | "and" | "until"))
        || words.windows(2).any(asks_which)
}

/// Whether a text only asks: each of its sentences ends with a question mark.
pub(crate) fn only_asks(text: &str) -> bool {
    let is_question_mark = |letter: char| matches!(letter, '?' | '？' | '؟');
    let is_end = |letter: char| is_question_mark(letter) || matches!(letter, '.' | '!' | '。' | '！');
    let mut ends = text.char_indices().filter(|(place, letter)| {
        // A full stop inside a number or a name ends no sentence.
        let then = text[place + letter.len_utf8()..].chars().next();
        is_end(*letter) && then.is_none_or(|then| !then.is_alphanumeric())
    });
    let trimmed = text.trim_end().trim_end_matches(['"', '\'', ')', '”', '»']);
    trimmed.ends_with(is_question_mark) && ends.all(|(_, letter)| is_question_mark(letter))
}

#[cfg(test)]
#[path = "question_tests.rs"]
mod tests;
