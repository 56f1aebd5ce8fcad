//! Redirects: each hop is checked like the first.

use longhaul_tools::WebError;

use longhaul_testkit::{WebReply, WebServer, web_page, web_redirect};

use crate::lookup::{client, get};

/// A server whose path `/to/N` leads to `/to/N-1`, and `/to/0` is a page.
async fn chain_server() -> WebServer {
    WebServer::start(|head| {
        let left: u32 = head.split(['/', ' ']).find_map(|word| word.parse().ok()).unwrap_or_default();
        WebReply::Bytes(match left {
            0 => web_page("text/plain", b"arrived"),
            left => web_redirect(&format!("/to/{}", left - 1)),
        })
    })
    .await
}

/// P5
#[tokio::test]
async fn five_redirects_are_followed_and_no_more() {
    let server = chain_server().await;
    let client = client(&[&server.address.to_string()]);

    let five = get(&client, &server.url("/to/5")).await.unwrap();
    let six = get(&client, &server.url("/to/6")).await;

    assert_eq!(
        (five.body.as_slice(), five.url.as_str()),
        (b"arrived".as_slice(), server.url("/to/0").as_str())
    );
    assert!(matches!(six, Err(WebError::TooManyRedirects { most: 5, .. })), "{six:?}");
}

/// P5
#[tokio::test]
async fn no_redirect_leads_to_a_private_address_or_another_scheme() {
    let secret = WebServer::of_page("secret").await;
    let port = secret.address.port();
    let targets = [
        format!("http://127.0.0.1:{port}/"),
        format!("http://0x7f000001:{port}/"),
        format!("//127.1:{port}/"),
        format!("http://localhost:{port}/"),
        format!("http://[::ffff:127.0.0.1]:{port}/"),
        "http://169.254.169.254/latest/meta-data/".to_owned(),
        "http://[fd00:ec2::254]/".to_owned(),
        "file:///etc/passwd".to_owned(),
        "gopher://127.0.0.1:70/_x".to_owned(),
        "ftp://127.0.0.1/".to_owned(),
        format!("http://a:b@127.0.0.1:{port}/"),
        "http://[".to_owned(),
    ];

    for target in targets {
        let answer = web_redirect(&target);
        let server = WebServer::start(move |_| WebReply::Bytes(answer.clone())).await;

        let got = get(&client(&[&server.address.to_string()]), &server.url("/")).await;

        let is_refused = matches!(
            got,
            Err(WebError::Private { .. }
                | WebError::Scheme(_)
                | WebError::Credentials
                | WebError::BadRedirect { .. })
        );
        assert!(is_refused, "{target}: {got:?}");
    }
    assert_eq!(secret.connections(), 0);
}

/// E7: about another host the caller decides, who knows what the user allows.
#[tokio::test]
async fn a_redirect_to_another_host_is_followed_only_if_the_caller_agrees() {
    let other =
        WebServer::start_on("127.0.0.2:0", |_| WebReply::Bytes(web_page("text/plain", b"other"))).await;
    let target = other.url("/page");
    let server = WebServer::start(move |_| WebReply::Bytes(web_redirect(&target))).await;
    let client = client(&["127.0.0.0/8"]);

    let refused = client.get(&server.url("/"), "*/*", |_| false).await;
    let before = other.connections();
    let followed = client.get(&server.url("/"), "*/*", |url| url.host_str() == Some("127.0.0.2")).await;

    assert_eq!(refused, Err(WebError::OtherHost { from: server.url("/"), to: other.url("/page") }));
    assert_eq!((before, followed.unwrap().body), (0, b"other".to_vec()));
}
