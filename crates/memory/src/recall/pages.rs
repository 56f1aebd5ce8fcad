use longhaul_protocol::{ChangedBy, Speaker};

use super::lexical::RecallCandidate;
use super::score::{TextMatch, TextScorer};
use super::{RecallHit, RecallPlace, RecallScope};

/// The weight of a word in the page name or heading, relative to the line.
const HEADING_WEIGHT: f64 = 0.5;
const MAX_SHOWN_LINES: usize = 3;
const MAX_LINE_CHARS: usize = 240;

/// The pages with matching lines. The score of a page is that of its best line.
pub(super) fn candidates(places: &RecallScope, scorer: &TextScorer) -> Vec<RecallCandidate> {
    let pages = places.book.pages.iter();
    pages
        .filter_map(|(name, page)| {
            let mut lines = scored_lines(name, &page.text, scorer);
            lines.sort_by(|one, other| other.found.score.total_cmp(&one.found.score));
            let best = lines.first()?.found;
            lines.truncate(MAX_SHOWN_LINES);
            lines.sort_by_key(|line| line.number);
            let last = page.versions.last()?;
            // A consolidated page mixes speakers. Its untrusted lines are marked.
            let speaker = match last.by {
                ChangedBy::Person => Speaker::User,
                ChangedBy::Consolidation | ChangedBy::Note | ChangedBy::Undo => Speaker::Assistant,
            };
            let excerpt: Vec<String> = lines.iter().map(|line| shown(line.text)).collect();
            let found = RecallHit {
                place: RecallPlace::Page(name.clone()),
                speaker,
                at: last.at,
                excerpt: excerpt.join("\n"),
                sources: vec![],
                request: None,
            };
            Some(RecallCandidate { citations: page.versions.len(), ..RecallCandidate::new(found, best) })
        })
        .collect()
}

struct ScoredLine<'a> {
    number: usize,
    text: &'a str,
    found: TextMatch,
}

fn scored_lines<'a>(name: &str, text: &'a str, scorer: &TextScorer) -> Vec<ScoredLine<'a>> {
    let mut heading = "";
    let mut lines = Vec::new();
    for (number, line) in text.lines().enumerate() {
        if line.starts_with('#') {
            heading = line;
        }
        if line.trim().is_empty() {
            continue;
        }
        let above = if line.starts_with('#') { name.to_owned() } else { format!("{name} {heading}") };
        if let Some(found) = scorer.score(line, &above, HEADING_WEIGHT) {
            lines.push(ScoredLine { number, text: line, found });
        }
    }
    lines
}

fn shown(line: &str) -> String {
    line.trim().chars().take(MAX_LINE_CHARS).collect()
}
