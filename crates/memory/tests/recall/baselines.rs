//! What is compared with: looking for the words of a question as they are.

use longhaul_journal::{Journal, MatchMode, SearchQuery};
use longhaul_protocol::{Seq, SessionId, StreamName};

use crate::conversation::World;

/// How many of the words a text must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Having {
    All,
    Any,
}

/// The words of a question that say something. Without this help a substring search for all words would find nothing.
fn telling(question: &str) -> Vec<String> {
    let asking = ["which", "what", "does", "when", "where", "about", "large", "prefer"];
    let words = question.split(|letter: char| !letter.is_alphanumeric()).map(str::to_lowercase);
    words.filter(|word| word.len() > 3 && !asking.contains(&word.as_str())).collect()
}

/// Texts that have these words somewhere, the newest first.
pub(crate) fn substrings(world: &World, question: &str, having: Having) -> Vec<(SessionId, Seq)> {
    let words = telling(question);
    let fits = |text: &str| {
        let lower = text.to_lowercase();
        match having {
            Having::All => words.iter().all(|word| lower.contains(word)),
            Having::Any => words.iter().any(|word| lower.contains(word)),
        }
    };
    // All sessions are of the same day; where one goes on after another, that one is newer.
    let newest = world.texts.iter().rev().filter(|(.., text)| fits(text));
    newest.map(|(session, seq, _)| (*session, *seq)).take(10).collect()
}

/// The journal's own ranking, record by record, with the question as it is.
pub(crate) async fn single_records(
    journal: &dyn Journal,
    world: &World,
    question: &str,
) -> Vec<(SessionId, Seq)> {
    let streams = world.places.sessions.iter().map(|(session, _)| StreamName::session(*session)).collect();
    let search = SearchQuery { words: question.to_owned(), matching: MatchMode::Any, streams, limit: 10 };
    let hits = journal.search(&search).await.expect("a search");
    hits.iter().filter_map(|hit| Some((hit.stream.session_id()?, hit.seq))).collect()
}
