use std::collections::BTreeSet;

use longhaul_journal::{Journal, MatchMode, SearchHit, SearchQuery, is_unspaced, stems};
use longhaul_protocol::{SessionId, StreamName};

use super::Places;
use crate::Result;

/// A query has at most so many terms; the rest of a long one says little more.
const MOST_TERMS: usize = 24;

/// Words that every question has. They are left out, unless there are no others.
const FUNCTION_WORDS: &str = "
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

/// What a question asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Query {
    pub(super) terms: Vec<Term>,
}

/// One of the words that it asks for, or several that stand one after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Term {
    /// As it was written.
    pub(super) word: String,
    /// As it stands anywhere.
    pub(super) stems: Vec<String>,
}

impl Query {
    pub(super) fn of(question: &str) -> Self {
        let function_words: BTreeSet<&str> = FUNCTION_WORDS.split_whitespace().collect();
        let telling = terms(question, |word| function_words.contains(word));
        let mut terms = if telling.is_empty() { terms(question, |_| false) } else { telling };
        let mut seen = BTreeSet::new();
        terms.retain(|term| seen.insert(term.stems.clone()));
        terms.truncate(MOST_TERMS);
        Self { terms }
    }

    /// The records of one stream of each session that may fit, the best first.
    pub(super) async fn hits(
        &self,
        journal: &dyn Journal,
        places: &Places,
        stream: fn(SessionId) -> StreamName,
        limit: usize,
    ) -> Result<Vec<SearchHit>> {
        // A search that names no stream looks in all of them.
        if places.sessions.is_empty() {
            return Ok(Vec::new());
        }
        let streams = places.sessions.iter().map(|(session, _)| stream(*session)).collect();
        let words = self.for_journal();
        Ok(journal.search(&SearchQuery { words, matching: MatchMode::Around, streams, limit }).await?)
    }

    /// As the journal takes it.
    pub(super) fn for_journal(&self) -> String {
        self.terms.iter().map(|term| term.word.as_str()).collect::<Vec<_>>().join(" ")
    }
}

impl Term {
    fn of(word: &str) -> Self {
        Self { word: word.to_owned(), stems: stems(word) }
    }
}

fn terms(question: &str, is_left_out: impl Fn(&str) -> bool) -> Vec<Term> {
    let mut terms = Vec::new();
    let between = |character: char| character.is_whitespace() || character.is_control();
    for part in question.split(between) {
        let lower = part.to_lowercase();
        let words: Vec<&str> = runs(&lower).into_iter().filter(|word| !is_left_out(word)).collect();
        // A name such as `osprey-41` is rarer as a whole.
        if words.len() > 1 && !lower.chars().any(is_unspaced) {
            terms.push(Term::of(&words.join("-")));
        }
        for word in words {
            if word.chars().all(is_unspaced) {
                terms.extend(in_pairs(word));
            } else {
                terms.push(Term::of(word));
            }
        }
    }
    terms
}

/// Runs of letters, and of characters of scripts without spaces.
fn runs(text: &str) -> Vec<&str> {
    #[derive(PartialEq, Clone, Copy)]
    enum Kind {
        Spaced,
        Unspaced,
        Between,
    }
    let kind = |character: char| match character {
        unspaced if is_unspaced(unspaced) => Kind::Unspaced,
        '\u{0300}'..='\u{036f}' => Kind::Spaced,
        letter if letter.is_alphanumeric() => Kind::Spaced,
        _ => Kind::Between,
    };
    let mut runs = Vec::new();
    let (mut from, mut current) = (0, Kind::Between);
    for (place, character) in text.char_indices() {
        let next = kind(character);
        if next != current {
            if current != Kind::Between {
                runs.push(&text[from..place]);
            }
            (from, current) = (place, next);
        }
    }
    if current != Kind::Between {
        runs.push(&text[from..]);
    }
    runs.retain(|run| run.chars().any(char::is_alphanumeric));
    runs
}

/// A row of characters of a script without spaces, two by two: nobody knows where its words end. What has only the characters that
/// inflect Japanese words says nothing.
fn in_pairs(row: &str) -> Vec<Term> {
    let characters: Vec<char> = row.chars().collect();
    let inflects = |character: &char| matches!(character, '\u{3040}'..='\u{309f}');
    let pair = |pair: &[char]| Term::of(&pair.iter().collect::<String>());
    match &characters[..] {
        [_] => vec![Term::of(row)],
        _ => characters.windows(2).filter(|pair| !pair.iter().all(inflects)).map(pair).collect(),
    }
}

#[cfg(test)]
#[path = "query_tests.rs"]
mod tests;
