//! Validates a model's edits. Each edit is validated on its own, and every refusal has a reason.
//!
//! - An edit is refused if it loses more than a quarter of a page's items without naming them, or a line that a
//!   person wrote.
//! - A line is removed if nothing in the prompt supports it.
//! - A line is marked as untrusted if its words come from untrusted items rather than from the user and the model.
//!   The core page is about the user, so only quotations of the user are added there. A line that paraphrases a
//!   quotation is replaced by it, because a paraphrase can reverse the meaning of a rule. A heading is a claim too,
//!   so new headings on the core page come from a fixed list.

use std::collections::BTreeSet;

use longhaul_context::{ContentWords, estimate_text};
use longhaul_protocol::{ExtractedItem, ItemSource, PageChange, Speaker};

use super::parse::PageEditRequest;
use crate::page::{self, MAX_PAGES, PageLine, normalise_page, page_items, size_error, title_from_name};
use crate::page_set::{CORE_PAGE, PageSet};
use crate::text::truncate_line;
use crate::{Error, RedactFn};

/// An old item survives in a new line, or is named as dropped, if that line contains this share of its words.
const STANDS_IN_SHARE: f64 = 0.6;
/// At most the number of items divided by this may be lost without being named.
const UNNAMED_DIVISOR: usize = 4;
/// A text supports a line if it contains this share of the line's words.
const SUPPORT_SHARE: f64 = 0.5;
/// A line comes from untrusted items if at least this many of its words occur only there, and at least the number of
/// its words divided by the other constant.
const MIN_UNTRUSTED_WORDS: usize = 2;
const UNTRUSTED_DIVISOR: usize = 3;
/// The most tokens that a model may write on the core page, which every context begins with. The prompt asks for a
/// little less.
const MAX_CORE_TOKENS: u64 = 2_000;
/// A heading or page name with this many words makes a claim.
const MIN_CLAIM_WORDS: usize = 3;
/// Headings that a model may add to the core page. They make no claim: a heading "Rules" would make the lines below
/// it rules.
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
const MAX_REASON_BYTES: usize = 500;
const MAX_DROPPED: usize = 200;

pub(super) struct EditValidator<'a> {
    page_set: &'a PageSet,
    items: &'a [(ItemSource, ExtractedItem)],
    shown: &'a BTreeSet<String>,
    redact: &'a RedactFn,
    /// The words of each trusted item and page line, and of each untrusted one.
    trusted: Vec<ContentWords>,
    untrusted: Vec<ContentWords>,
    all_trusted: ContentWords,
    /// All of these words, and those of the user.
    all: ContentWords,
    by_people: ContentWords,
    /// Lines that may be on the core page: quotations of the user, and its own lines.
    quotations: Vec<Quotation>,
}

struct Quotation {
    line: String,
    words: ContentWords,
    /// The item that the quotation is from. `None` for a line that the page already has.
    source: Option<ItemSource>,
}

#[derive(Debug, Default)]
pub(super) struct ValidatedEdits {
    pub(super) changes: Vec<PageChange>,
    pub(super) refused: Vec<String>,
}

impl<'a> EditValidator<'a> {
    pub(super) fn new(
        page_set: &'a PageSet,
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
            for line in page_set.page_text(name).into_iter().flat_map(page_items) {
                let side = if line.is_untrusted { &mut untrusted } else { &mut trusted };
                side.push(ContentWords::of(line.words));
                if name == CORE_PAGE && !line.is_untrusted {
                    by_people.extend(&ContentWords::of(line.words));
                }
            }
            page_set.lines_by_people(name).for_each(|says| by_people.extend(&ContentWords::of(says)));
        }
        let quotations = quotations(page_set, items);
        quotations.iter().for_each(|quotation| by_people.extend(&quotation.words));
        let mut all_trusted = ContentWords::default();
        trusted.iter().for_each(|words| all_trusted.extend(words));
        let mut all = all_trusted.clone();
        untrusted.iter().for_each(|words| all.extend(words));
        Self { page_set, items, shown, redact, trusted, untrusted, all_trusted, all, by_people, quotations }
    }

    pub(super) fn validate(&self, edits: &[PageEditRequest]) -> ValidatedEdits {
        let mut validated = ValidatedEdits::default();
        let mut seen = BTreeSet::new();
        let mut pages = self.page_set.pages.len();
        for edit in edits {
            let verdict = if seen.insert(&edit.page) {
                self.validate_edit(edit, pages, &mut validated.refused)
            } else {
                Err("it was written twice".to_owned())
            };
            match verdict {
                Ok(Some(change)) => {
                    pages += usize::from(self.page_set.page_text(&edit.page).is_none());
                    validated.changes.push(change);
                }
                Ok(None) => {}
                Err(reason) => validated.refused.push(self.refusal(&edit.page, &reason)),
            }
        }
        validated
    }

    fn refusal(&self, page: &str, reason: &str) -> String {
        let name: String = page.chars().take(80).collect();
        truncate_line(&(self.redact)(&format!("{name}: {reason}")), MAX_REASON_BYTES)
    }

    /// The change that an edit makes. `None` if it changes nothing. The error is the reason for a refusal.
    fn validate_edit(
        &self,
        edit: &PageEditRequest,
        pages: usize,
        taken_out: &mut Vec<String>,
    ) -> Result<Option<PageChange>, String> {
        if let Err(Error::BadName { reason, .. }) = page::check_page_name(&edit.page) {
            return Err(format!("invalid page name: {reason}"));
        }
        let before = self.page_set.page_text(&edit.page);
        if before.is_some() && !self.shown.contains(&edit.page) {
            return Err("the page exists, but the model was not shown it".to_owned());
        }
        let mut sources = Vec::new();
        for number in &edit.items {
            let item = number.checked_sub(1).and_then(|index| self.items.get(index));
            sources.push(item.ok_or_else(|| format!("no item {number}"))?.0);
        }
        if let Some(reason) = size_error(&edit.text) {
            return Err(reason);
        }
        let dropped: Vec<String> =
            edit.dropped.iter().take(MAX_DROPPED).map(|line| self.truncate_line(line)).collect();
        let text = normalise_page(&(self.redact)(&edit.text));
        let text = text.map(|text| self.validated_lines(edit, &text, &mut sources, taken_out));
        let text = match text {
            Some(text) if page_items(&text).next().is_some() => Some(text),
            Some(_) if before.is_none() => return Ok(None),
            Some(_) => return Err("nothing would be left".to_owned()),
            None if before.is_none() => return Err("no such page".to_owned()),
            None => None,
        };
        if text.as_deref() == before {
            return Ok(None);
        }
        if before.is_none() && pages >= MAX_PAGES {
            return Err(format!("the limit of {MAX_PAGES} pages is reached"));
        }
        self.check_losses(
            &edit.page,
            before.unwrap_or_default(),
            text.as_deref().unwrap_or_default(),
            &dropped,
        )?;
        if let Some(reason) = text.as_deref().and_then(|text| self.rejects_text(&edit.page, before, text)) {
            return Err(reason);
        }
        sources.sort_unstable();
        sources.dedup();
        let reason = self.truncate_line(&edit.reason);
        Ok(Some(PageChange { page: edit.page.clone(), text, reason, sources, dropped }))
    }

    /// Why this text is refused for any page, whatever its old text is.
    fn rejects_text(&self, name: &str, before: Option<&str>, text: &str) -> Option<String> {
        if name == CORE_PAGE
            && estimate_text(text) > MAX_CORE_TOKENS.max(estimate_text(before.unwrap_or_default()))
        {
            return Some(format!("the core page would have more than {MAX_CORE_TOKENS} tokens"));
        }
        let words = ContentWords::of(&name.replace(['-', '_'], " "));
        let says_something = words.len() >= MIN_CLAIM_WORDS;
        // Page names are in every context. If all items of the page are marked as untrusted, its name is marked there
        // too.
        if before.is_none() && !page::is_untrusted(text) && says_something && self.is_from_untrusted(&words) {
            return Some("no trusted source supports its name".to_owned());
        }
        size_error(text)
    }

    fn truncate_line(&self, text: &str) -> String {
        truncate_line(&(self.redact)(text), MAX_REASON_BYTES)
    }

    /// Checks that a page keeps enough of its items.
    fn check_losses(&self, name: &str, before: &str, after: &str, dropped: &[String]) -> Result<(), String> {
        let now: BTreeSet<(bool, &str)> =
            page_items(after).map(|line| (line.is_untrusted, line.words)).collect();
        let by_people: BTreeSet<&str> = self.page_set.lines_by_people(name).collect();
        let stands = |line: &PageLine<'_>| {
            let redacted = (self.redact)(line.words);
            now.contains(&(line.is_untrusted, line.words))
                || now.contains(&(line.is_untrusted, redacted.trim()))
        };
        let mut theirs = page_items(before).filter(|line| by_people.contains(line.words));
        if let Some(PageLine { words: says, .. }) = theirs.find(|line| !stands(line)) {
            return Err(format!("it drops what the user wrote: {says}"));
        }
        let lost = unnamed_losses(before, after, dropped);
        let all = page_items(before).count();
        if lost.len() * UNNAMED_DIVISOR > all {
            let example = lost.first().copied().unwrap_or_default();
            return Err(format!("it drops {} of {all} items without naming them: {example}", lost.len()));
        }
        Ok(())
    }

    /// The page with a title. Each new line is removed, replaced, marked or kept.
    fn validated_lines(
        &self,
        edit: &PageEditRequest,
        text: &str,
        sources: &mut Vec<ItemSource>,
        taken_out: &mut Vec<String>,
    ) -> String {
        let before = self.page_set.page_text(&edit.page).unwrap_or_default();
        let is_core = edit.page == CORE_PAGE;
        let known: BTreeSet<_> = before.lines().map(|line| line_key(&PageLine::of(line))).collect();
        let mut lines = Vec::new();
        for line in text.lines() {
            let taken = PageLine::of(line);
            let is_known = taken.words.is_empty() || known.contains(&line_key(&taken));
            let words = ContentWords::of(taken.words);
            let says_little = words.is_empty() || (taken.is_heading() && words.len() < MIN_CLAIM_WORDS);
            let is_from_untrusted = taken.is_untrusted || (!says_little && self.is_from_untrusted(&words));
            let reason = if is_known {
                None
            } else if is_core && taken.is_heading() && !is_core_heading(&taken) {
                Some("the core page has fixed headings")
            } else if says_little && !is_from_untrusted {
                None
            } else if words.share_in(&self.all) < SUPPORT_SHARE {
                Some("nothing supports it")
            } else if is_core && (is_from_untrusted || words.share_in(&self.by_people) < SUPPORT_SHARE) {
                Some("no trusted source said it")
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
                    // A line that the page already has stays where the new text has it.
                    let was_there = known.contains(&line_key(&PageLine::of(&quotation.line)));
                    let stands = was_there && text.lines().any(|line| line == quotation.line);
                    if !stands && !lines.contains(&quotation.line) {
                        lines.push(quotation.line.clone());
                    }
                }
                (Some(reason), _) => {
                    let reason = format!("a line was taken out, since {reason}: {}", taken.words);
                    taken_out.push(self.refusal(&edit.page, &reason));
                }
                (None, None) if is_known || !is_from_untrusted => lines.push(line.to_owned()),
                (None, None) => lines.push(taken.as_untrusted()),
            }
        }
        let text = lines.join("\n") + "\n";
        if text.lines().next().is_some_and(|line| PageLine::of(line).is_heading()) {
            return text;
        }
        format!("# {}\n{text}", title_from_name(&edit.page))
    }

    /// The quotation that a line of the core page paraphrases.
    fn matching_quotation(&self, words: &ContentWords) -> Option<&Quotation> {
        let shares = self.quotations.iter().map(|quotation| (words.share_in(&quotation.words), quotation));
        let told = shares.filter(|(share, _)| *share >= SUPPORT_SHARE);
        told.max_by(|(one, _), (other, _)| one.total_cmp(other)).map(|(_, quotation)| quotation)
    }

    /// Whether a new line comes from untrusted items.
    fn is_from_untrusted(&self, words: &ContentWords) -> bool {
        let best =
            |sides: &[ContentWords]| sides.iter().map(|side| words.share_in(side)).fold(0.0_f64, f64::max);
        let (trusted, untrusted) = (best(&self.trusted), best(&self.untrusted));
        let only_foreign =
            |side: &ContentWords| words.common(side).filter(|word| !self.all_trusted.contains(word)).count();
        let foreign = self.untrusted.iter().map(only_foreign).max().unwrap_or_default();
        untrusted > trusted || (foreign >= MIN_UNTRUSTED_WORDS && foreign * UNTRUSTED_DIVISOR >= words.len())
    }
}

/// The key that identifies a line. A heading and an item with the same words are different lines.
fn line_key<'l>(line: &PageLine<'l>) -> (bool, bool, &'l str) {
    (line.is_heading(), line.is_untrusted, line.words)
}

fn is_core_heading(line: &PageLine<'_>) -> bool {
    let says = line.words.trim_end_matches(':');
    !line.is_untrusted && CORE_HEADINGS.iter().any(|heading| heading.eq_ignore_ascii_case(says))
}

/// The core page's own lines, and the quotations of the user in the items.
fn quotations(page_set: &PageSet, items: &[(ItemSource, ExtractedItem)]) -> Vec<Quotation> {
    let there = page_set.page_text(CORE_PAGE).unwrap_or_default().lines();
    let there =
        there.map(|line| (line, PageLine::of(line))).filter(|(_, line)| line.is_item() && !line.is_untrusted);
    let there = there.map(|(line, taken)| Quotation {
        line: line.to_owned(),
        words: ContentWords::of(taken.words),
        source: None,
    });
    let refusal = items.iter().filter(|(_, item)| item.speaker == Speaker::User);
    let refusal = refusal.filter_map(|(source, item)| {
        let quote = item.quote.as_ref()?;
        Some(Quotation {
            line: format!("- \"{quote}\""),
            words: ContentWords::of(quote),
            source: Some(*source),
        })
    });
    there.chain(refusal).collect()
}

/// The items of a page that are neither in its new text nor named as dropped. An item is in the new text if that
/// contains it verbatim, or if one new line contains most of its words. An old line counts only for itself.
pub(super) fn unnamed_losses<'a>(before: &'a str, after: &str, dropped: &[String]) -> Vec<&'a str> {
    let old: BTreeSet<&str> = page_items(before).map(|line| line.words).collect();
    let now: BTreeSet<&str> = page_items(after).map(|line| line.words).collect();
    let stand_in = now.iter().filter(|says| !old.contains(*says)).map(|says| ContentWords::of(says));
    let stand_in: Vec<ContentWords> =
        stand_in.chain(dropped.iter().map(|line| ContentWords::of(line))).collect();
    let is_named = |says: &str| dropped.iter().any(|line| PageLine::of(line).words == says);
    let is_lost = |says: &&str| {
        let words = ContentWords::of(says);
        !now.contains(says)
            && !is_named(says)
            && !stand_in.iter().any(|other| words.share_in(other) >= STANDS_IN_SHARE)
    };
    page_items(before).map(|line| line.words).filter(is_lost).collect()
}

#[cfg(test)]
#[path = "validate_tests.rs"]
mod tests;
