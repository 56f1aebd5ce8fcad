use longhaul_protocol::{At, Outcome};

use super::super::figures::{Figures, Spent};
use super::super::story::Entry;
use super::Page;

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

fn page(key: &str, entries: &[Entry]) -> String {
    let id = "01JDFJM0000000000000000001".parse().unwrap();
    let mut out = Vec::new();
    let mut page = Page::begin(&mut out, key, id, &Figures::new(20)).unwrap();
    entries.iter().for_each(|entry| page.entry(entry).unwrap());
    page.end().unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn whatever_a_session_says_is_text_in_the_page() {
    let said = || HOSTILE.to_owned();
    let ended = Entry::Ended {
        outcome: Outcome::Failed,
        error: Some(said()),
        took_ms: 1,
        steps: 1,
        spent: Spent::default(),
    };

    let page = page(
        HOSTILE,
        &[
            Entry::Turn { number: 1, at: At(0) },
            Entry::Said { at: At(0), text: said(), images: 1 },
            Entry::Thought(said()),
            Entry::Answer(said()),
            Entry::Unfinished(said()),
            Entry::Aside(said()),
            Entry::Summary(said()),
            Entry::Gone { seq: 1, kind: said(), at: At(0), reason: said() },
            Entry::Damaged { seq: 2, reason: said() },
            ended,
            Entry::Aside("between two turns".into()),
            Entry::Turn { number: 2, at: At(0) },
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
