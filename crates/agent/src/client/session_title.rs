//! The title of a session in lists: the beginning of its first input.

use longhaul_context::UserText;
use longhaul_journal::{Journal, Page};
use longhaul_protocol::{
    FIRST_REQUEST_PIN, InboxRecord, Item, Origin, Role, SessionId, SessionRecord, StreamName,
};

/// The first records of a session, in which its title is looked for.
const TITLE_PAGE: Page = Page { records: 16, bytes: 1 << 16 };

/// How a session began.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionTitle {
    /// Its first input, in one line. `None` if there was none, or if it can't be read.
    pub text: Option<String>,
    /// Where it was forked from.
    pub origin: Option<Origin>,
}

/// The title of a session. Unreadable records are skipped.
pub async fn session_title(journal: &dyn Journal, id: SessionId) -> SessionTitle {
    let mut title = SessionTitle::default();
    for record in journal.read(&StreamName::session(id), 1, TITLE_PAGE).await.unwrap_or_default() {
        let first = match SessionRecord::decode(&record) {
            Ok(SessionRecord::SessionCreated(created)) => {
                title.origin = created.origin;
                None
            }
            Ok(SessionRecord::InputTaken(input)) => Some(input.text),
            // A fork of a session that was compacted begins with that epoch, which has the first request.
            Ok(SessionRecord::EpochStarted(epoch)) => {
                let pinned = epoch.pins.into_iter().find(|pin| pin.name == FIRST_REQUEST_PIN);
                let kept = epoch.kept.into_iter().find_map(|kept| match kept.item {
                    Item::Text { role: Role::User, text } if kept.place.said.is_some() => Some(text),
                    _ => None,
                });
                pinned.map(|pin| pin.text).or(kept)
            }
            _ => None,
        };
        title.text = title.text.or(first);
    }
    if title.text.is_none() {
        let waiting = journal.read(&StreamName::inbox(id), 1, TITLE_PAGE).await.unwrap_or_default();
        title.text = waiting.iter().find_map(|record| match InboxRecord::decode(record) {
            Ok(InboxRecord::Input(input)) => Some(input.text),
            _ => None,
        });
    }
    title.text = title.text.map(|text| {
        // What was piped or attached says less about the session than the user's own words.
        let UserText { own, .. } = UserText::of(&text);
        let own = own.trim().trim_end_matches("[…]");
        let words = if own.trim().is_empty() { &text } else { own };
        words.split_whitespace().collect::<Vec<_>>().join(" ")
    });
    title
}
