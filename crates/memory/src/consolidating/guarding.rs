//! What of a model's edits is taken. Each is judged by itself, and what is refused is said.
//!
//! - An edit that would lose more than a quarter of a page's items without naming them, or a line that a person wrote, is refused.
//! - A line that rests on nothing that the model was shown is taken out.
//! - A line that comes rather from what nobody trusted said than from what people and the model said is marked as such. The core page is
//!   about the person: nothing new stands there but quotations of what the user said. A line that tells of one is replaced by it, since a
//!   paraphrase can turn a rule around. A heading says something too: new ones there are out of a fixed list.

use std::collections::BTreeSet;

use longhaul_context::{ContentWords, estimate_text};
use longhaul_protocol::{ExtractedItem, ItemSource, PageChange, Speaker};

use super::reading::Edit;
use crate::book::{CORE_PAGE, PageSet};
use crate::page::{self, Line, MOST_PAGES, items, tidy, title_from, too_large};
use crate::text::brief;
use crate::{Error, RedactFn};

/// An old item stands for itself in a new one, or is named, if so much of its words do.
const ENOUGH: f64 = 0.6;
/// One in so many items may go unnamed.
const UNNAMED_SHARE: usize = 4;
/// A line rests on what has so much of its words.
const RESTS_ON: f64 = 0.5;
/// A line with so many words that only untrusted items have, and such a part of all of its words, comes from those.
const FOREIGN_WORDS: usize = 2;
const FOREIGN_SHARE: usize = 3;
/// The machine writes no more than so many tokens on the core page, with which every context begins: the model is told a little less.
const LARGEST_CORE: u64 = 2_000;
/// A heading with so many words says something, and so does a name.
const TALKING_HEADING: usize = 3;
/// The headings that a model may put on the core page. They say nothing about what stands below them: "Rules" would make a rule of it.
const CORE_HEADINGS: [&str; 10] = [
    "Core",
    "User",
    "About the user",
    "Work",
    "Project",
    "Projects",
    "People",
    "Tools",
    "General",
    "Remembered on request",
];
/// So much of what a model says about an edit is kept.
const LONGEST_REASON: usize = 500;
const MOST_DROPPED: usize = 200;

/// What edits are judged by.
pub(super) struct Guard<'a> {
    book: &'a PageSet,
    items: &'a [(ItemSource, ExtractedItem)],
    shown: &'a BTreeSet<String>,
    redact: &'a RedactFn,
    /// What was said by people and by the model, and what was said by nobody that is trusted: items, and lines of the pages.
    trusted: Vec<ContentWords>,
    untrusted: Vec<ContentWords>,
    all_trusted: ContentWords,
    /// All of that together, and what people said of it.
    all: ContentWords,
    by_people: ContentWords,
    /// What may stand on the core page: what the user said, word for word, and the lines that are there.
    quotations: Vec<Quotation>,
}

/// A line that may stand on the core page.
struct Quotation {
    line: String,
    words: ContentWords,
    /// The item that it is from; none, if it stands there already.
    source: Option<ItemSource>,
}

/// What is taken.
#[derive(Debug, Default)]
pub(super) struct Judged {
    pub(super) changes: Vec<PageChange>,
    pub(super) refused: Vec<String>,
}

impl<'a> Guard<'a> {
    pub(super) fn new(
        book: &'a PageSet,
        items: &'a [(ItemSource, ExtractedItem)],
        shown: &'a BTreeSet<String>,
        redact: &'a RedactFn,
    ) -> Self {
        let (mut trusted, mut untrusted) = (Vec::new(), Vec::new());
        let mut by_people = ContentWords::default();
        for (_, item) in items {
            let side = if item.speaker == Speaker::Untrusted { &mut untrusted } else { &mut trusted };
            side.push(ContentWords::of(&item.text));
            if item.speaker == Speaker::User {
                by_people.extend(&ContentWords::of(&item.text));
            }
        }
        for name in shown {
            for line in book.text(name).into_iter().flat_map(page::items) {
                let side = if line.is_untrusted { &mut untrusted } else { &mut trusted };
                side.push(ContentWords::of(line.says));
                if name == CORE_PAGE && !line.is_untrusted {
                    by_people.extend(&ContentWords::of(line.says));
                }
            }
            book.by_people(name).for_each(|says| by_people.extend(&ContentWords::of(says)));
        }
        let quotations = quotations(book, items);
        quotations.iter().for_each(|quotation| by_people.extend(&quotation.words));
        let mut all_trusted = ContentWords::default();
        trusted.iter().for_each(|words| all_trusted.extend(words));
        let mut all = all_trusted.clone();
        untrusted.iter().for_each(|words| all.extend(words));
        Self { book, items, shown, redact, trusted, untrusted, all_trusted, all, by_people, quotations }
    }

    /// Judges all edits of an answer.
    pub(super) fn judge(&self, edits: &[Edit]) -> Judged {
        let mut judged = Judged::default();
        let mut seen = BTreeSet::new();
        let mut pages = self.book.pages.len();
        for edit in edits {
            let verdict = if seen.insert(&edit.page) {
                self.judge_edit(edit, pages, &mut judged.refused)
            } else {
                Err("it was written twice".to_owned())
            };
            match verdict {
                Ok(Some(change)) => {
                    pages += usize::from(self.book.text(&edit.page).is_none());
                    judged.changes.push(change);
                }
                Ok(None) => {}
                Err(reason) => judged.refused.push(self.said(&edit.page, &reason)),
            }
        }
        judged
    }

    /// One reason, for people.
    fn said(&self, page: &str, reason: &str) -> String {
        let name: String = page.chars().take(80).collect();
        brief(&(self.redact)(&format!("{name}: {reason}")), LONGEST_REASON)
    }

    /// The change that an edit makes; nothing, if it makes none. The error says why it is refused.
    fn judge_edit(
        &self,
        edit: &Edit,
        pages: usize,
        taken_out: &mut Vec<String>,
    ) -> Result<Option<PageChange>, String> {
        if let Err(Error::BadName { reason, .. }) = page::check_page_name(&edit.page) {
            return Err(format!("no page can be called so: {reason}"));
        }
        let before = self.book.text(&edit.page);
        if before.is_some() && !self.shown.contains(&edit.page) {
            return Err("there is such a page, which the model was not shown".to_owned());
        }
        let mut sources = Vec::new();
        for number in &edit.items {
            let item = number.checked_sub(1).and_then(|index| self.items.get(index));
            sources.push(item.ok_or_else(|| format!("there is no item {number}"))?.0);
        }
        if let Some(reason) = too_large(&edit.text) {
            return Err(reason);
        }
        let dropped: Vec<String> =
            edit.dropped.iter().take(MOST_DROPPED).map(|line| self.brief(line)).collect();
        let text = tidy(&(self.redact)(&edit.text));
        let text = text.map(|text| self.with_marks(edit, &text, &mut sources, taken_out));
        let text = match text {
            Some(text) if items(&text).next().is_some() => Some(text),
            // Nothing that says anything is left of it.
            Some(_) if before.is_none() => return Ok(None),
            Some(_) => return Err("nothing would be left of it".to_owned()),
            None if before.is_none() => return Err("there is no such page to remove".to_owned()),
            None => None,
        };
        if text.as_deref() == before {
            return Ok(None);
        }
        if before.is_none() && pages >= MOST_PAGES {
            return Err(format!("there are {MOST_PAGES} pages already"));
        }
        self.check_losses(
            &edit.page,
            before.unwrap_or_default(),
            text.as_deref().unwrap_or_default(),
            &dropped,
        )?;
        if let Some(reason) = text.as_deref().and_then(|text| self.unfit(&edit.page, before, text)) {
            return Err(reason);
        }
        sources.sort_unstable();
        sources.dedup();
        let reason = self.brief(&edit.reason);
        Ok(Some(PageChange { page: edit.page.clone(), text, reason, sources, dropped }))
    }

    /// Why a page can't be as it is to be from now on, whatever it was, if it can't.
    fn unfit(&self, name: &str, before: Option<&str>, text: &str) -> Option<String> {
        if name == CORE_PAGE
            && estimate_text(text) > LARGEST_CORE.max(estimate_text(before.unwrap_or_default()))
        {
            return Some(format!("the core page would have more than {LARGEST_CORE} tokens"));
        }
        let words = ContentWords::of(&name.replace(['-', '_'], " "));
        let says_something = words.len() >= TALKING_HEADING;
        // Names stand in every context. Where all else on the page is marked, so is the name there.
        if before.is_none() && !page::is_untrusted(text) && says_something && self.is_foreign(&words) {
            return Some("nobody trusted said what its name says".to_owned());
        }
        too_large(text)
    }

    /// Words of a model, in short.
    fn brief(&self, text: &str) -> String {
        brief(&(self.redact)(text), LONGEST_REASON)
    }

    /// Whether a page keeps enough of what it was.
    fn check_losses(&self, name: &str, before: &str, after: &str, dropped: &[String]) -> Result<(), String> {
        let now: BTreeSet<(bool, &str)> = items(after).map(|line| (line.is_untrusted, line.says)).collect();
        let by_people: BTreeSet<&str> = self.book.by_people(name).collect();
        let stands = |line: &Line<'_>| {
            let redacted = (self.redact)(line.says);
            now.contains(&(line.is_untrusted, line.says))
                || now.contains(&(line.is_untrusted, redacted.trim()))
        };
        let mut theirs = items(before).filter(|line| by_people.contains(line.says));
        if let Some(Line { says, .. }) = theirs.find(|line| !stands(line)) {
            return Err(format!("it leaves out what a person wrote: {says}"));
        }
        let lost = unnamed_losses(before, after, dropped);
        let all = items(before).count();
        if lost.len() * UNNAMED_SHARE > all {
            let example = lost.first().copied().unwrap_or_default();
            return Err(format!(
                "it leaves out {} of {all} items without naming them: {example}",
                lost.len()
            ));
        }
        Ok(())
    }

    /// A page whose first line is a title, with each new line judged by where it comes from.
    fn with_marks(
        &self,
        edit: &Edit,
        text: &str,
        sources: &mut Vec<ItemSource>,
        taken_out: &mut Vec<String>,
    ) -> String {
        let before = self.book.text(&edit.page).unwrap_or_default();
        let is_core = edit.page == CORE_PAGE;
        let known: BTreeSet<_> = before.lines().map(|line| key_of(&Line::of(line))).collect();
        let mut lines = Vec::new();
        for line in text.lines() {
            let taken = Line::of(line);
            let is_known = taken.says.is_empty() || known.contains(&key_of(&taken));
            let words = ContentWords::of(taken.says);
            let says_little = words.is_empty() || (taken.is_heading() && words.len() < TALKING_HEADING);
            let is_foreign = taken.is_untrusted || (!says_little && self.is_foreign(&words));
            let reason = if is_known {
                None
            } else if is_core && taken.is_heading() && !is_core_heading(&taken) {
                Some("the core page has headings of its own")
            } else if says_little && !is_foreign {
                None
            } else if words.share_in(&self.all) < RESTS_ON {
                Some("it rests on nothing that there is")
            } else if is_core && (is_foreign || words.share_in(&self.by_people) < RESTS_ON) {
                Some("nobody trusted said it")
            } else {
                None
            };
            let needs_quotation = is_core && !is_known && !taken.is_heading();
            let quotation = self.matching_quotation(&words).filter(|_| needs_quotation && reason.is_none());
            let reason = match needs_quotation && quotation.is_none() {
                true => reason.or(Some("the user did not say it")),
                false => reason,
            };
            match (reason, quotation) {
                (None, Some(quotation)) => {
                    sources.extend(quotation.source);
                    // A line that was there before is taken over where the text has it.
                    let was_there = known.contains(&key_of(&Line::of(&quotation.line)));
                    let stands = was_there && text.lines().any(|line| line == quotation.line);
                    if !stands && !lines.contains(&quotation.line) {
                        lines.push(quotation.line.clone());
                    }
                }
                (Some(reason), _) => {
                    let reason = format!("a line was taken out, since {reason}: {}", taken.says);
                    taken_out.push(self.said(&edit.page, &reason));
                }
                (None, None) if is_known || !is_foreign => lines.push(line.to_owned()),
                (None, None) => lines.push(taken.as_untrusted()),
            }
        }
        let text = lines.join("\n") + "\n";
        if text.lines().next().is_some_and(|line| Line::of(line).is_heading()) {
            return text;
        }
        format!("# {}\n{text}", title_from(&edit.page))
    }

    /// The quotation that a line of the core page tells of.
    fn matching_quotation(&self, words: &ContentWords) -> Option<&Quotation> {
        let shares = self.quotations.iter().map(|quotation| (words.share_in(&quotation.words), quotation));
        let told = shares.filter(|(share, _)| *share >= RESTS_ON);
        told.max_by(|(one, _), (other, _)| one.total_cmp(other)).map(|(_, quotation)| quotation)
    }

    /// Whether a new line comes from what nobody trusted said.
    fn is_foreign(&self, words: &ContentWords) -> bool {
        let best =
            |sides: &[ContentWords]| sides.iter().map(|side| words.share_in(side)).fold(0.0_f64, f64::max);
        let (trusted, untrusted) = (best(&self.trusted), best(&self.untrusted));
        let only_foreign =
            |side: &ContentWords| words.common(side).filter(|word| !self.all_trusted.contains(word)).count();
        let foreign = self.untrusted.iter().map(only_foreign).max().unwrap_or_default();
        untrusted > trusted || (foreign >= FOREIGN_WORDS && foreign * FOREIGN_SHARE >= words.len())
    }
}

/// What a line is known by. A heading is no item: what one of them says does not allow the other.
fn key_of<'l>(line: &Line<'l>) -> (bool, bool, &'l str) {
    (line.is_heading(), line.is_untrusted, line.says)
}

fn is_core_heading(line: &Line<'_>) -> bool {
    let says = line.says.trim_end_matches(':');
    !line.is_untrusted && CORE_HEADINGS.iter().any(|heading| heading.eq_ignore_ascii_case(says))
}

/// What may stand on the core page: its own lines, and what the user said in whole sentences.
fn quotations(book: &PageSet, items: &[(ItemSource, ExtractedItem)]) -> Vec<Quotation> {
    let there = book.text(CORE_PAGE).unwrap_or_default().lines();
    let there =
        there.map(|line| (line, Line::of(line))).filter(|(_, line)| line.is_item() && !line.is_untrusted);
    let there = there.map(|(line, taken)| Quotation {
        line: line.to_owned(),
        words: ContentWords::of(taken.says),
        source: None,
    });
    let said = items.iter().filter(|(_, item)| item.speaker == Speaker::User);
    let said = said.filter_map(|(source, item)| {
        let quote = item.quote.as_ref()?;
        Some(Quotation {
            line: format!("- \"{quote}\""),
            words: ContentWords::of(quote),
            source: Some(*source),
        })
    });
    there.chain(said).collect()
}

/// The items of a page that are neither in its new text nor named as left out. An item stands in the new text as it was, or with most of its
/// words in one new line; a line that was there before stands only for itself.
pub(super) fn unnamed_losses<'a>(before: &'a str, after: &str, dropped: &[String]) -> Vec<&'a str> {
    let old: BTreeSet<&str> = items(before).map(|line| line.says).collect();
    let now: BTreeSet<&str> = items(after).map(|line| line.says).collect();
    let stand_in = now.iter().filter(|says| !old.contains(*says)).map(|says| ContentWords::of(says));
    let stand_in: Vec<ContentWords> =
        stand_in.chain(dropped.iter().map(|line| ContentWords::of(line))).collect();
    let is_named = |says: &str| dropped.iter().any(|line| Line::of(line).says == says);
    let is_lost = |says: &&str| {
        let words = ContentWords::of(says);
        !now.contains(says)
            && !is_named(says)
            && !stand_in.iter().any(|other| words.share_in(other) >= ENOUGH)
    };
    items(before).map(|line| line.says).filter(is_lost).collect()
}

#[cfg(test)]
#[path = "guarding_tests.rs"]
mod tests;
