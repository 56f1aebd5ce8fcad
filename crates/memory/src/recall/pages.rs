use longhaul_protocol::{ChangedBy, Speaker};

use super::scoring::Weighed;
use super::words::Candidate;
use super::{RecallHit, RecallPlace, RecallScope};

/// The name of a page and the headings above a line count so much, compared with the same words in the line.
const WEIGHT_OF_HEADINGS: f64 = 0.5;
/// So many lines of a page are shown.
const LINES: usize = 3;
const LONGEST_LINE: usize = 240;

/// The pages that have one of the words, each as good as its best line.
pub(super) fn candidates(places: &RecallScope, weighed: &Weighed) -> Vec<Candidate> {
    let pages = places.book.pages.iter();
    pages
        .filter_map(|(name, page)| {
            let mut lines = fitting_lines(name, &page.text, weighed);
            lines.sort_by(|one, other| other.score.total_cmp(&one.score));
            let score = lines.first()?.score;
            lines.truncate(LINES);
            lines.sort_by_key(|line| line.number);
            let last = page.versions.last()?;
            // A page that the machine made holds the words of many; they are marked where that matters.
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
            };
            Some(Candidate { found, score, used: page.versions.len() })
        })
        .collect()
}

struct Line<'a> {
    number: usize,
    text: &'a str,
    score: f64,
}

fn fitting_lines<'a>(name: &str, text: &'a str, weighed: &Weighed) -> Vec<Line<'a>> {
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
        let score = weighed.score(line, &above, WEIGHT_OF_HEADINGS);
        if score > 0.0 {
            lines.push(Line { number, text: line, score });
        }
    }
    lines
}

fn shown(line: &str) -> String {
    line.trim().chars().take(LONGEST_LINE).collect()
}
