use std::collections::BTreeSet;

use longhaul_journal::{Journal, MatchMode, SearchHit, SearchQuery, stems};
use longhaul_protocol::{SessionId, StreamName, WordRun, is_unspaced, word_runs};

use super::RecallScope;
use crate::Result;

/// More terms add little.
const MAX_TERMS: usize = 24;

/// Stop words of five languages. They are left out unless the question has no other words.
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

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RecallQuery {
    pub(super) terms: Vec<QueryTerm>,
}

/// A word of the question, or several in a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct QueryTerm {
    pub(super) word: String,
    /// The words in the form of the search index.
    pub(super) stems: Vec<String>,
}

impl RecallQuery {
    pub(super) fn of(question: &str) -> Self {
        let function_words: BTreeSet<&str> = FUNCTION_WORDS.split_whitespace().collect();
        let telling = terms(question, |word| function_words.contains(word));
        let mut terms = if telling.is_empty() { terms(question, |_| false) } else { telling };
        let mut seen = BTreeSet::new();
        terms.retain(|term| seen.insert(term.stems.clone()));
        terms.truncate(MAX_TERMS);
        Self { terms }
    }

    /// Searches one stream of each session, the best hits first.
    pub(super) async fn hits(
        &self,
        journal: &dyn Journal,
        places: &RecallScope,
        stream: fn(SessionId) -> StreamName,
        limit: usize,
    ) -> Result<Vec<SearchHit>> {
        // A search without streams would search all of them.
        if places.sessions.is_empty() {
            return Ok(Vec::new());
        }
        let streams = places.sessions.iter().map(|(session, _)| stream(*session)).collect();
        let words = self.for_journal();
        Ok(journal.search(&SearchQuery { words, matching: MatchMode::Around, streams, limit }).await?)
    }

    pub(super) fn for_journal(&self) -> String {
        self.terms.iter().map(|term| term.word.as_str()).collect::<Vec<_>>().join(" ")
    }
}

impl QueryTerm {
    fn of(word: &str) -> Self {
        Self { word: word.to_owned(), stems: stems(word) }
    }
}

fn terms(question: &str, is_left_out: impl Fn(&str) -> bool) -> Vec<QueryTerm> {
    let mut terms = Vec::new();
    let between = |character: char| character.is_whitespace() || character.is_control();
    for part in question.split(between) {
        let lower = part.to_lowercase();
        let says_something = |run: &WordRun<'_>| {
            let (WordRun::Spaced(word) | WordRun::Unspaced(word)) = run;
            word.contains(char::is_alphanumeric) && !is_left_out(word)
        };
        let runs: Vec<WordRun<'_>> = word_runs(&lower).filter(says_something).collect();
        // A name such as `osprey-41` is rarer as a whole.
        if runs.len() > 1 && !lower.contains(is_unspaced) {
            let words = runs.iter().map(|(WordRun::Spaced(word) | WordRun::Unspaced(word))| *word);
            terms.push(QueryTerm::of(&words.collect::<Vec<_>>().join("-")));
        }
        for run in runs {
            match run {
                WordRun::Spaced(word) => terms.push(QueryTerm::of(word)),
                WordRun::Unspaced(row) => terms.extend(character_pairs(row)),
            }
        }
    }
    terms
}

/// Splits a run of a script without spaces into overlapping pairs, because the ends of its words are unknown. Pairs
/// of hiragana are left out, because they only inflect words.
fn character_pairs(row: &str) -> Vec<QueryTerm> {
    let characters: Vec<char> = row.chars().collect();
    let inflects = |character: &char| matches!(character, '\u{3040}'..='\u{309f}');
    let pair = |pair: &[char]| QueryTerm::of(&pair.iter().collect::<String>());
    match &characters[..] {
        [_] => vec![QueryTerm::of(row)],
        _ => characters.windows(2).filter(|pair| !pair.iter().all(inflects)).map(pair).collect(),
    }
}

#[cfg(test)]
#[path = "query_tests.rs"]
mod tests;
