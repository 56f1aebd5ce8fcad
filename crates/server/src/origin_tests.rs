use std::net::SocketAddr;

use axum::body::Body;

use super::*;

fn connection() -> Connection {
    let address = |text: &str| text.parse::<SocketAddr>().unwrap();
    Connection::new(address("192.0.2.9:1234"), address("192.0.2.1:7171"), false)
}

fn request(headers: &[(&str, &str)]) -> Request {
    let mut request = Request::builder().uri("/api/sessions").extension(connection());
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(Body::empty()).unwrap()
}

/// H5: the table of hosts.
#[test]
fn only_names_and_addresses_of_this_server_are_hosts() {
    let policy = OriginPolicy::new(&["Agent.Example".to_owned(), "proxy.example:8443".to_owned()], &[]);

    for (host, allowed) in [
        ("localhost", true),
        ("localhost:7171", true),
        ("LOCALHOST:1", true),
        ("app.localhost", true),
        ("127.0.0.1:7171", true),
        ("127.9.9.9", true),
        ("[::1]:7171", true),
        ("192.0.2.1:7171", true),
        ("agent.example", true),
        ("agent.example.:7171", true),
        ("proxy.example:8443", true),
        ("proxy.example", false),
        ("192.0.2.2", false),
        ("evil.example", false),
        ("127.0.0.1.evil.example", false),
        ("localhost.evil.example", false),
        ("notlocalhost", false),
        ("2130706433", false),
    ] {
        let authority: Authority = host.parse().unwrap();
        assert_eq!(policy.allows_host(&authority, Some(&connection())), allowed, "{host}");
    }
}

/// H5: the table of pages. Each row is what a browser would send.
#[test]
fn a_page_of_another_origin_is_refused_unless_the_config_allows_it() {
    let policy = OriginPolicy::new(&[], &["https://friend.example/".to_owned()]);
    let host = ("host", "localhost:7171");

    for (headers, allowed) in [
        (vec![], true),
        (vec![("origin", "http://localhost:7171")], true),
        (vec![("origin", "http://localhost:7171"), ("sec-fetch-site", "same-origin")], true),
        (vec![("sec-fetch-site", "same-origin")], true),
        (vec![("sec-fetch-site", "none")], true),
        (vec![("origin", "https://friend.example"), ("sec-fetch-site", "cross-site")], true),
        (vec![("origin", "http://localhost:3000")], false),
        (vec![("origin", "http://evil.example")], false),
        (vec![("origin", "null")], false),
        (vec![("origin", "https://friend.example.evil.example")], false),
        (vec![("sec-fetch-site", "cross-site")], false),
        (vec![("sec-fetch-site", "same-site")], false),
        (vec![("origin", "http://evil.example"), ("sec-fetch-site", "same-origin")], false),
        (
            vec![
                ("sec-fetch-site", "cross-site"),
                ("sec-fetch-mode", "navigate"),
                ("sec-fetch-dest", "document"),
            ],
            false,
        ),
    ] {
        let request = request(&[vec![host], headers.clone()].concat());
        assert_eq!(check_page(&policy, &request).is_ok(), allowed, "{headers:?}");
    }
}

/// H5.
#[test]
fn a_cookie_counts_only_where_the_browser_names_a_page_of_this_server() {
    let host = ("host", "agent.example");

    for (headers, counts) in [
        (vec![], false),
        (vec![("sec-fetch-site", "none")], false),
        (vec![("sec-fetch-site", "same-site")], false),
        (vec![("sec-fetch-site", "same-origin")], true),
        (vec![("origin", "https://agent.example")], true),
        (vec![("origin", "https://agent.example:443")], false),
        (vec![("origin", "https://evil.example")], false),
        (vec![("origin", "https://evil.example"), ("sec-fetch-site", "same-origin")], false),
        (vec![("origin", "https://agent.example"), ("sec-fetch-site", "cross-site")], false),
    ] {
        let request = request(&[vec![host], headers.clone()].concat());
        assert_eq!(is_same_origin(&request), counts, "{headers:?}");
    }
}

/// H5.
#[test]
fn a_path_that_hides_bytes_is_refused() {
    for (path, is_clean) in [
        ("/api/sessions/cli%3Ademo", true),
        ("/api/sessions/%C3%A9", true),
        ("/api/sessions/..%2f..%2fetc", true),
        ("/a%00b", false),
        ("/a%0d%0ax", false),
        ("/a%7f", false),
        ("/a%c0%ae", false),
        ("/a%ff", false),
        ("/a%", false),
        ("/a%zz", false),
    ] {
        assert_eq!(is_clean_path(path), is_clean, "{path}");
    }
}
