//! What somebody asked to be remembered now.

use longhaul_journal::Journal;
use longhaul_protocol::{ChangedBy, PageChange, PagesChanged, Speaker};

use super::{PageEdited, TRIES, by, check_room, too_busy, write};
use crate::book::{CORE_PAGE, PageSet};
use crate::page::{Line, UNTRUSTED, title_from, too_large};
use crate::text::one_line;
use crate::{Error, Result};

/// Where things are noted that no person asked for.
const NOTES: &str = "notes";
/// Where things stand that a person asked for.
const ON_REQUEST: &str = "## Remembered on request";
/// A note has at most so many characters.
const LONGEST_NOTE: usize = 1_000;

/// Notes what somebody asked to be remembered. What a person said goes to the core page, as long as
/// that has room; anything else to the page `notes`, marked. Secrets
/// are the caller's to take out.
pub async fn add_note(
    journal: &dyn Journal,
    scope: &str,
    text: &str,
    speaker: Speaker,
) -> Result<PageEdited> {
    let (mut name, heading) = match speaker {
        Speaker::User => (CORE_PAGE, Some(ON_REQUEST)),
        Speaker::Assistant | Speaker::Untrusted => (NOTES, None),
    };
    let line = line(text, speaker).map_err(|reason| Error::Unfit { page: name.to_owned(), reason })?;
    let mut book = PageSet::load(journal, scope).await?;
    for _ in 0..TRIES {
        let before = book.text(name);
        if before.is_some_and(|text| text.lines().any(|known| known == line)) {
            let seq = book.newest_change(name).unwrap_or(book.head);
            return Ok(PageEdited { seq, pages: vec![name.to_owned()] });
        }
        let text = with_line(before, name, heading, &line);
        if name == CORE_PAGE && too_large(&text).is_some() {
            // Somebody asked for it to be remembered, not for a page to be put in order.
            name = NOTES;
            continue;
        }
        check_room(&book, name, Some(&text))?;
        let reason = match speaker {
            Speaker::User => "a person asked to remember it",
            Speaker::Assistant | Speaker::Untrusted => "the model asked to remember it",
        };
        let page = PageChange {
            page: name.to_owned(),
            text: Some(text),
            reason: reason.to_owned(),
            sources: vec![],
            dropped: vec![],
        };
        let changed = PagesChanged { pages: vec![page], ..by(ChangedBy::Note, reason) };
        if let Some(changed) = write(journal, &mut book, changed).await? {
            return Ok(changed);
        }
    }
    Err(too_busy(&book))
}

/// The line of a note, or why there can't be one.
fn line(text: &str, speaker: Speaker) -> std::result::Result<String, String> {
    let text = one_line(text);
    let says = Line::of(&text).says;
    let characters = says.chars().count();
    if characters == 0 {
        return Err("there is nothing to remember in it".to_owned());
    }
    if characters > LONGEST_NOTE {
        return Err(format!("a note has at most {LONGEST_NOTE} characters, and this one has {characters}"));
    }
    let mark = if speaker == Speaker::Untrusted { UNTRUSTED } else { "" };
    Ok(format!("- {mark}{says}"))
}

/// A page with one more line: at its end, or under a heading, which comes at the end where there is none yet.
fn with_line(before: Option<&str>, name: &str, heading: Option<&str>, line: &str) -> String {
    let title = format!("# {}\n", title_from(name));
    let mut lines: Vec<&str> = before.unwrap_or(&title).lines().collect();
    let place = match heading {
        None => lines.len(),
        Some(heading) => {
            let begins = lines.iter().position(|line| line.trim_end() == heading).unwrap_or_else(|| {
                lines.extend(["", heading]);
                lines.len() - 1
            });
            let rest = &lines[begins + 1..];
            let section = rest.iter().position(|line| Line::of(line).is_heading()).unwrap_or(rest.len());
            let filled = rest[..section].iter().rposition(|line| !line.trim().is_empty());
            begins + 1 + filled.map_or(0, |last| last + 1)
        }
    };
    lines.insert(place, line);
    lines.join("\n") + "\n"
}
