use super::*;

fn response(content_type: &str, body: &[u8]) -> WebResponse {
    WebResponse {
        url: Url::parse("https://example.org/docs/page.html").unwrap(),
        status: 200,
        content_type: content_type.to_owned(),
        body: body.to_vec(),
        is_cut: false,
    }
}

fn page(html: &str) -> PageText {
    page_text(&response("text/html; charset=utf-8", html.as_bytes())).unwrap()
}

/// E7
#[test]
fn a_page_becomes_markdown_with_links_that_can_be_fetched() {
    let read = page(
        "<html><head><title> The\n title </title><style>p{}</style></head><body><nav>Menu</nav>\
         <h1>One</h1><p>See <a href='../other?a=1#b'>other</a> and <code>x</code>.</p>\
         <ul><li>first<li>second</ul><pre><code>let a = 1;\n</code></pre>\
         <table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table>\
         <p hidden>secret</p><p style='display: none'>secret</p><script>evil()</script>\
         <img alt=dot src='data:image/png;base64,AAAA'><footer>Imprint</footer></body></html>",
    );

    assert_eq!(read.title, "The title");
    for part in [
        "# One",
        "[other](https://example.org/other?a=1#b)",
        "`x`",
        "*   first",
        "```\nlet a = 1;\n```",
        "| 1",
        "| a",
    ] {
        assert!(read.text.contains(part), "{part}: {}", read.text);
    }
    for part in ["Menu", "secret", "evil", "Imprint", "AAAA", "The title"] {
        assert!(!read.text.contains(part), "{part}: {}", read.text);
    }
}

/// E7
#[test]
fn of_a_page_with_a_main_part_only_that_is_read() {
    let around = |main: &str| page(&format!("<body><div>Around</div>{main}<div>Around</div>")).text;

    assert_eq!(around("<main><p>Text</p></main>"), "Text");
    assert_eq!(around("<div role=main><p>Text</p></div>"), "Text");
    assert_eq!(around("<article><p>Text</p></article>"), "Text");
    assert!(around("<main></main>").contains("Around"));
    assert!(around("<article>a</article><article>b</article>").contains("Around"));
}

/// E7
#[test]
fn a_base_element_counts_for_the_links_behind_it() {
    let read = page("<head><base href='https://other.test/dir/'></head><a href=x>x</a>");

    assert_eq!(read.text, "[x](https://other.test/dir/x)");
}

/// E7: the conversion is recursive, so this would overflow the stack and end the runtime.
#[test]
fn a_page_that_is_nested_deep_is_read_as_far_as_may_be() {
    for tag in ["<div>", "<b>", "<table><td>", "<ul><li>", "<blockquote>"] {
        let read = page(&format!("<p>start</p>{}end", tag.repeat(2_000)));

        assert!(read.text.contains("start") && read.text.contains("elements deep is left out"), "{tag}");
    }
}

/// E7: the parser needs quadratic time for elements that are never closed: an hour for this page.
#[test]
fn a_page_that_would_take_the_parser_hours_is_given_up() {
    let html = format!("<p>start</p>{}", "<div>".repeat(1 << 20));
    let base = Url::parse("https://example.org/").unwrap();

    let read = convert_html(&html, &base, Duration::from_millis(100));

    assert!(read.text.contains("start") && read.text.contains("because the page is too complex"));
}

/// E7: the cells of a row are told apart by their place, whether they are headers or not.
#[test]
fn a_table_keeps_all_of_its_cells() {
    let read = page(
        "<table><caption>Turing</caption><tr><th>Born<td>1912<tr><th>Died<td>1954 | June<td>Wilmslow</table>",
    );

    assert_eq!(
        read.text,
        "Turing\n| Born | 1912 | |\n| --- | --- | --- |\n| Died | 1954 \\| June | Wilmslow |"
    );
}

#[test]
fn a_table_without_headers_and_one_in_a_cell_are_plain_text() {
    let layout = page("<table><tr><td>Menu<td>Text</table>");
    let nested = page("<table><tr><th>a<tr><td><table><tr><th>b</table></table>");

    assert!(!layout.text.contains('|') && layout.text.contains("Menu"), "{}", layout.text);
    assert_eq!(nested.text, "| a |\n| --- |\n| b |");
}

/// E7: each of these would fill the memory or take hours, and end all sessions of the runtime with it.
#[test]
fn a_short_page_does_not_become_a_huge_one() {
    let long = "a/".repeat(1 << 16);
    let pages = [
        (
            "columns as wide as the widest cell",
            format!("<table><tr><th>{long}{}", "<tr><td>y".repeat(50_000)),
        ),
        (
            "as many columns as the longest row",
            format!("<table><tr>{}{}", "<th>".repeat(50_000), "<tr><td>y".repeat(50_000)),
        ),
        ("neighbours that are joined", format!("<p>{}", "<b>x</b>".repeat(100_000))),
        (
            "links with a long base",
            format!("<base href='http://h/{long}'>{}", "<a href=x>y</a>".repeat(20_000)),
        ),
        (
            "a link in every paragraph",
            format!("<div><a href='http://h/{long}'></div>{}", "<p>x</p>".repeat(20_000)),
        ),
        ("quotations of quotations", format!("{}{}", "<blockquote>".repeat(150), "x<br>".repeat(200_000))),
        ("lists of lists", format!("{}{}", "<ol start=2147483000><li>".repeat(90), "x<br>".repeat(200_000))),
    ];

    for (what, html) in pages {
        let read = page(&html);

        let most = html.len() + (64 << 20);
        assert!(read.text.len() < most, "{what}: {} bytes of {}", read.text.len(), html.len());
        assert!(!read.text.contains("could not be converted"), "{what}: {}", read.text);
    }
}

/// E7
#[test]
fn links_without_room_for_their_addresses_are_said() {
    let base = "a/".repeat(1 << 16);
    let read = |links: usize| {
        page(&format!("<base href='http://h/{base}'>{}", "<a href=x>y</a>".repeat(links))).text
    };
    let note = "its last links have no addresses here";

    let (few, many) = (read(10), read(1_000));

    assert!(few.matches("http://h/").count() == 10 && !few.contains(note));
    assert!(many.matches("http://h/").count() < 1_000 && many.contains(note));
}

/// E7
#[test]
fn text_is_decoded_by_the_charset_that_is_named() {
    let text = |media: &str, body: &[u8]| page_text(&response(media, body)).unwrap().text;

    assert_eq!(text("text/plain; charset=ISO-8859-1", b"caf\xe9"), "café");
    assert_eq!(text("text/html", b"<meta charset=\"windows-1252\"><p>\x80 5</p>"), "€ 5");
    assert_eq!(
        text("application/xml", b"<?xml version='1.0' encoding='iso-8859-15'?><a>\xa4</a>")
            .chars()
            .nth_back(4),
        Some('€')
    );
    assert_eq!(text("text/plain", b"\xef\xbb\xbfx"), "x");
    assert_eq!(text("text/plain; charset=utf-8", "日本".as_bytes()), "日本");
    assert_eq!(text("text/plain; charset=shift_jis", b"\x93\xfa\x96\x7b"), "日本");
    assert_eq!(text("text/plain", b"a\xffb"), "a\u{fffd}b");
    assert_eq!(text("text/plain", "charset=koi8-r is café".as_bytes()), "charset=koi8-r is café");
    assert_eq!(text("text/html", b"<meta charset=utf-16><p>plain</p>"), "plain");
}

/// E7
#[test]
fn what_is_no_text_is_an_error_that_says_what_it_is() {
    let kind = |media: &str, body: &[u8]| page_text(&response(media, body)).map(|page| page.text);

    assert_eq!(kind("application/json", b"{\"a\": 1}"), Ok("{\"a\": 1}".to_owned()));
    assert_eq!(kind("application/ld+json", b"{}"), Ok("{}".to_owned()));
    assert_eq!(kind("", b"<!DOCTYPE html><p>x"), Ok("x".to_owned()));
    assert_eq!(kind("application/octet-stream", b"plain"), Ok("plain".to_owned()));
    assert!(kind("image/png", b"\x89PNG").unwrap_err().contains("an image (image/png, 4 bytes)"));
    assert!(kind("application/pdf", b"%PDF").unwrap_err().contains("application/pdf"));
    assert!(kind("", b"\x00\x01").unwrap_err().contains("binary data"));
}

proptest::proptest! {
    /// E7: whatever a server sends is text or an error.
    #[test]
    fn no_bytes_make_the_conversion_fail(body in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..2_000)) {
        let html = [b"<div><table><a href=".as_slice(), &body].concat();

        let _ = page_text(&response("text/html", &html));
        let _ = page_text(&response("", &body));
    }
}
