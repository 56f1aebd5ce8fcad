//! Notes: facts that the user or the model asks to remember now.

use longhaul_journal::Journal;
use longhaul_protocol::{ChangedBy, PageChange, PagesChanged, Speaker};

use super::{MAX_CONFLICTS, PageEdited, append_edit, check_page_fits, conflict_error, empty_change};
use crate::page::{PageLine, UNTRUSTED_MARK, size_error, title_from_name};
use crate::page_set::{CORE_PAGE, PageSet};
use crate::text::one_line;
use crate::{Error, Result};

/// The page for notes of models.
const NOTES_PAGE: &str = "notes";
/// The heading on the core page for notes of the user.
const REQUESTED_HEADING: &str = "## Remembered on request";
const MAX_NOTE_CHARS: usize = 1_000;

/// Adds a note. A note of the user goes to the core page while it has room. Any other goes to the page `notes`,
/// marked if it is untrusted. The caller redacts secrets.
pub async fn add_note(
    journal: &dyn Journal,
    scope: &str,
    text: &str,
    speaker: Speaker,
) -> Result<PageEdited> {
    let asked_by = match speaker {
        Speaker::User => "the user",
        Speaker::Assistant | Speaker::Untrusted => "the agent",
    };
    insert_note(journal, scope, text, speaker, asked_by).await
}

/// Adds what the holder of a token asked to remember who may not write memory. It is never the user's word (P8), and the log
/// of the page names the token.
pub async fn add_token_note(
    journal: &dyn Journal,
    scope: &str,
    text: &str,
    token: &str,
) -> Result<PageEdited> {
    insert_note(journal, scope, text, Speaker::Untrusted, &format!("the token {token:?}")).await
}

async fn insert_note(
    journal: &dyn Journal,
    scope: &str,
    text: &str,
    speaker: Speaker,
    asked_by: &str,
) -> Result<PageEdited> {
    let reason = format!("{asked_by} asked to remember it");
    let (mut name, heading) = match speaker {
        Speaker::User => (CORE_PAGE, Some(REQUESTED_HEADING)),
        Speaker::Assistant | Speaker::Untrusted => (NOTES_PAGE, None),
    };
    let line = line(text, speaker).map_err(|reason| Error::Unfit { page: name.to_owned(), reason })?;
    let mut page_set = PageSet::load(journal, scope).await?;
    for _ in 0..MAX_CONFLICTS {
        let before = page_set.page_text(name);
        if before.is_some_and(|text| text.lines().any(|known| known == line)) {
            let seq = page_set.newest_change(name).unwrap_or(page_set.head);
            return Ok(PageEdited { seq, pages: vec![name.to_owned()] });
        }
        let text = insert_line(before, name, heading, &line);
        if name == CORE_PAGE && size_error(&text).is_some() {
            // The user wants to remember something, not to tidy up a page.
            name = NOTES_PAGE;
            continue;
        }
        check_page_fits(&page_set, name, Some(&text))?;
        let page = PageChange {
            page: name.to_owned(),
            text: Some(text),
            reason: reason.clone(),
            sources: vec![],
            dropped: vec![],
        };
        let changed = PagesChanged { pages: vec![page], ..empty_change(ChangedBy::Note, &reason) };
        if let Some(changed) = append_edit(journal, &mut page_set, changed).await? {
            return Ok(changed);
        }
    }
    Err(conflict_error(&page_set))
}

fn line(text: &str, speaker: Speaker) -> std::result::Result<String, String> {
    let text = one_line(text);
    let says = PageLine::of(&text).words;
    let characters = says.chars().count();
    if characters == 0 {
        return Err("there is nothing to remember".to_owned());
    }
    if characters > MAX_NOTE_CHARS {
        return Err(format!("the note has {characters} characters; the limit is {MAX_NOTE_CHARS}"));
    }
    let mark = if speaker == Speaker::Untrusted { UNTRUSTED_MARK } else { "" };
    Ok(format!("- {mark}{says}"))
}

/// The page with one more line: at its end, or at the end of the section with this heading. Adds the heading if it is
/// missing.
fn insert_line(before: Option<&str>, name: &str, heading: Option<&str>, line: &str) -> String {
    let title = format!("# {}\n", title_from_name(name));
    let mut lines: Vec<&str> = before.unwrap_or(&title).lines().collect();
    let place = match heading {
        None => lines.len(),
        Some(heading) => {
            let begins = lines.iter().position(|line| line.trim_end() == heading).unwrap_or_else(|| {
                lines.extend(["", heading]);
                lines.len() - 1
            });
            let rest = &lines[begins + 1..];
            let section = rest.iter().position(|line| PageLine::of(line).is_heading()).unwrap_or(rest.len());
            let filled = rest[..section].iter().rposition(|line| !line.trim().is_empty());
            begins + 1 + filled.map_or(0, |last| last + 1)
        }
    };
    lines.insert(place, line);
    lines.join("\n") + "\n"
}
