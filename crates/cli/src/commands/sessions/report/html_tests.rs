use longhaul_protocol::{At, Outcome, Role};
use longhaul_transcript::{Block, BlockContent, BlockState, SessionCost, TurnEnd, Update};

use super::super::figures::Figures;
use super::HtmlPage;

const HOSTILE: &str = "</div><script>alert('x')</script> ]]> \"quoted\" & <img src=x onerror=y> \u{202e}gnp.exe\u{2066} \u{1b}[31m\u{0}";

/// The names of the tags that are open after each other, which must all be closed again in their order.
fn check_well_formed(page: &str) {
    let mut open: Vec<String> = Vec::new();
    let mut rest = page.strip_prefix("<!DOCTYPE html>").unwrap();
    while let Some(begin) = rest.find('<') {
        let end = rest[begin..].find('>').map(|end| begin + end).unwrap();
        let tag = &rest[begin + 1..end];
        assert!(!tag.contains('<'), "{tag}");
        assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
        rest = &rest[end + 1..];
        let name = |tag: &str| tag.split([' ', '\n']).next().unwrap().to_owned();
        match tag.strip_prefix('/') {
            Some(closed) => assert_eq!(open.pop(), Some(closed.to_owned()), "{tag}"),
            None if tag.ends_with('/') => {}
            None => open.push(name(tag)),
        }
    }
    assert_eq!(open, Vec::<String>::new());
}

fn block(state: BlockState, content: BlockContent) -> Update {
    let (id, seq, turn, at) = (1, None, Some(1), At(0));
    Update::Ended(Block { id, seq, turn, started_at: at, ended_at: Some(at), state, content })
}

fn page(key: &str, updates: &[Update]) -> String {
    let id = "01JDFJM0000000000000000001".parse().unwrap();
    let mut out = Vec::new();
    let mut page = HtmlPage::begin(&mut out, key, id, &Figures::new(20)).unwrap();
    updates.iter().for_each(|update| page.push(update).unwrap());
    page.end().unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn whatever_a_session_says_is_text_in_the_page() {
    let said = || HOSTILE.to_owned();
    let ended = TurnEnd {
        outcome: Outcome::Failed,
        limit: None,
        text: said(),
        error: Some(said()),
        code: None,
        took_ms: Some(1),
        steps: 1,
        spend: SessionCost::default(),
    };
    let finished = |content| block(BlockState::Finished, content);
    let message = || BlockContent::Message { role: Role::Assistant, text: said() };

    let page = page(
        HOSTILE,
        &[
            finished(BlockContent::TurnStart { cause: None }),
            finished(BlockContent::Input { text: said(), images: 1, from: None, fork_at: None }),
            finished(BlockContent::Reasoning { text: said() }),
            finished(message()),
            block(BlockState::Interrupted, message()),
            finished(BlockContent::Warning { code: said(), text: said() }),
            finished(BlockContent::Summary { text: said() }),
            finished(BlockContent::ErasedRecord { seq: 1, kind: said(), at: At(0), reason: said() }),
            finished(BlockContent::DamagedRecord { seq: 2, reason: said() }),
            finished(BlockContent::TurnEnd(ended)),
            finished(BlockContent::Note { text: "between two turns".into() }),
            finished(BlockContent::TurnStart { cause: None }),
        ],
    );

    check_well_formed(&page);
    for forbidden in ["<script", "<img", "onerror=y>", "]]>", "\u{202e}", "\u{2066}", "\u{1b}", "\u{0}"] {
        assert!(!page.contains(forbidden), "{forbidden:?}: {page}");
    }
    assert!(page.contains("&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;"));
}

#[test]
fn the_page_needs_nothing_from_elsewhere() {
    let page = page("cli:plain", &[]);

    assert!(page.contains("default-src 'none'"));
    for outside in ["http://", "https://", "src=", "@import", "url(", "<link", "<script"] {
        assert!(!page.contains(outside), "{outside}");
    }
}
