//! Attempts to reach this machine, its network and metadata services. None may get through.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use longhaul_tools::{GuardedClient, WebError};

use longhaul_testkit::{WebReply, WebServer, web_page, web_redirect};

use crate::lookup::{LyingLookup, client, get, guard, limits};

/// Hosts that are private, in every spelling that a URL parser, a resolver or a person might know.
const PRIVATE_HOSTS: [&str; 50] = [
    "127.0.0.1",
    "127.0.0.1.",
    "127.1",
    "127.0.1",
    "2130706433",
    "017700000001",
    "0x7f000001",
    "0x7f.0.0.1",
    "0177.0.0.1",
    "0177.0.0.0x1",
    "127.000.000.001",
    "0x7f.1",
    "0",
    "0.0.0.0",
    "0x0",
    "localhost",
    "LOCALHOST",
    "localhost.",
    "a.localhost",
    "１２７.0.0.1",
    "①②⑦.⓪.⓪.①",
    "127。0。0。1",
    "ⓛocalhost",
    "%6cocalhost",
    "127.0.0.1%2e",
    "[::1]",
    "[0:0:0:0:0:0:0:1]",
    "[::]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[0:0:0:0:0:ffff:7f00:0001]",
    "[::127.0.0.1]",
    "[64:ff9b::127.0.0.1]",
    "[64:ff9b::a9fe:a9fe]",
    "[2002:7f00:1::]",
    "[2001:0:7f00:1::]",
    "[fd00:ec2::254]",
    "[fe80::1]",
    "[fc00::1]",
    "[ff02::1]",
    "169.254.169.254",
    "0xa9fea9fe",
    "2852039166",
    "192.0.0.192",
    "100.100.100.200",
    "168.63.129.16",
    "10.0.0.1",
    "172.16.0.1",
    "192.168.1.1",
    "255.255.255.255",
];

/// P5
#[tokio::test]
async fn no_spelling_of_a_private_host_is_reached() {
    let server = WebServer::of_page("secret").await;
    let client = client(&[]);

    for host in PRIVATE_HOSTS {
        for port in [server.address.port(), 80] {
            let got = get(&client, &format!("http://{host}:{port}/")).await;

            assert!(matches!(got, Err(WebError::Private { .. })), "{host}:{port}: {got:?}");
        }
    }
    assert_eq!(server.connections(), 0);
}

/// P5
#[tokio::test]
async fn no_trick_with_the_rest_of_a_url_reaches_this_machine() {
    let server = WebServer::of_page("secret").await;
    let at = server.address;
    let urls = [
        format!("http://example.org@{at}/"),
        format!("http://example.org:80@{at}/"),
        format!("http://example.org%40{at}/"),
        format!("http:{at}/"),
        format!("http:///{at}/"),
        format!("http:\\\\{at}\\"),
        format!("ht\ntp://{at}/"),
        format!("  http://{at}/#@example.org"),
        format!("http://{at}\t/"),
        "http://user:password@example.org/".to_owned(),
        "file:///etc/passwd".to_owned(),
        "gopher://127.0.0.1:70/_x".to_owned(),
        "ftp://127.0.0.1/x".to_owned(),
        "data:text/html,x".to_owned(),
        "javascript:alert(1)".to_owned(),
        "unix:/run/docker.sock".to_owned(),
        "ws://127.0.0.1/".to_owned(),
        "jar:http://127.0.0.1!/".to_owned(),
        "//127.0.0.1/".to_owned(),
        "http://".to_owned(),
        "http://[::1%25lo]/".to_owned(),
        "http://1.2.3.4.5/".to_owned(),
        "http://example.org:22/".to_owned(),
        "http://example.org:25/".to_owned(),
        String::new(),
    ];

    for url in &urls {
        let got = get(&client(&[]), url).await;

        assert!(got.is_err(), "{url}: {got:?}");
    }
    assert_eq!(server.connections(), 0);
}

/// P5
#[tokio::test]
async fn a_name_that_leads_to_a_private_address_is_refused_and_the_error_says_why() {
    let server = WebServer::of_page("secret").await;
    let lookup = LyingLookup::default()
        .with("rebound.test", &[&["127.0.0.1"]])
        .with("both.test", &[&["169.254.169.254", "10.0.0.7"]])
        .with("v6.test", &[&["::ffff:127.0.0.1"]])
        .with("nat64.test", &[&["64:ff9b::7f00:1"]])
        .with("none.test", &[&[]]);
    let client = GuardedClient::new(guard(&[]).with_lookup(Arc::new(lookup)), limits());
    let port = server.address.port();

    for name in ["rebound.test", "both.test", "v6.test", "nat64.test"] {
        let got = get(&client, &format!("http://{name}:{port}/")).await;

        assert!(matches!(&got, Err(WebError::Private { host, .. }) if host == name), "{name}: {got:?}");
    }
    for name in ["none.test", "unknown.test"] {
        let got = get(&client, &format!("http://{name}:{port}/")).await;

        assert!(matches!(&got, Err(WebError::NoSuchHost { host, .. }) if host == name), "{name}: {got:?}");
    }
    assert_eq!(server.connections(), 0);
}

/// P5: what was checked is what is connected. A name is looked up once, so a second answer has no effect.
#[tokio::test]
async fn a_name_server_that_changes_its_answer_gains_nothing() {
    let server = WebServer::of_page("secret").await;
    // The first answer is public and nothing of ours; the second would lead here.
    let lookup = Arc::new(
        LyingLookup::default().with("rebinding.test", &[&["240.0.0.1", "93.184.216.34"], &["127.0.0.1"]]),
    );
    let limits = longhaul_tools::WebLimits { connect: std::time::Duration::from_millis(300), ..limits() };
    let client = GuardedClient::new(guard(&[]).with_lookup(lookup.clone()), limits);
    let url = format!("http://rebinding.test:{}/", server.address.port());

    let first = get(&client, &url).await;
    let lookups = lookup.lookups.load(Ordering::SeqCst);
    let second = get(&client, &url).await;

    assert!(matches!(first, Err(WebError::Connect { .. })), "{first:?}");
    assert_eq!(lookups, 1);
    assert!(matches!(second, Err(WebError::Private { .. })), "{second:?}");
    assert_eq!(server.connections(), 0);
}

/// P5: proxies of the environment would resolve names themselves.
#[test]
fn proxies_of_the_environment_are_not_used() {
    // In a process of its own, because the environment belongs to all tests of this one.
    let proxy = "http://127.0.0.1:1";
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "attempts::allowed_hosts_are_reached", "--nocapture"])
        .envs(
            ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]
                .map(|name| (name, proxy)),
        )
        .output()
        .unwrap();

    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"));
}

/// P5: loopback works where the user allowed it, by address, by name and by network, and only with the port that was named.
#[tokio::test]
async fn allowed_hosts_are_reached() {
    let server = WebServer::of_page("hello").await;
    let port = server.address.port();
    let lookup = LyingLookup::default().with("wiki.lan", &[&["127.0.0.1"]]);
    let lookup = Arc::new(lookup);
    let reach = |allowed: String, host: &'static str| {
        let client = GuardedClient::new(guard(&[&allowed]).with_lookup(lookup.clone()), limits());
        async move { get(&client, &format!("http://{host}:{port}/")).await.map(|page| page.body) }
    };

    for (allowed, host) in [
        ("127.0.0.1".to_owned(), "127.0.0.1"),
        (format!("127.0.0.1:{port}"), "0x7f000001"),
        (format!("127.0.0.1:{port}"), "[::ffff:127.0.0.1]"),
        ("127.0.0.0/8".to_owned(), "127.0.0.1"),
        ("127.0.0.0/8".to_owned(), "wiki.lan"),
        ("wiki.lan".to_owned(), "wiki.lan"),
        (format!("WIKI.lan:{port}"), "wiki.lan"),
        ("*.lan".to_owned(), "wiki.lan"),
    ] {
        assert_eq!(reach(allowed.clone(), host).await, Ok(b"hello".to_vec()), "{allowed}: {host}");
    }
    for (allowed, host) in [
        ("127.0.0.1:1".to_owned(), "127.0.0.1"),
        // A port that is allowed by address does not open the address for every name that leads there.
        (format!("127.0.0.1:{port}"), "wiki.lan"),
        ("wiki.lan:1".to_owned(), "wiki.lan"),
        ("wiki.lan".to_owned(), "127.0.0.1"),
    ] {
        let got = reach(allowed.clone(), host).await;

        assert!(matches!(got, Err(WebError::Private { .. })), "{allowed}: {host}: {got:?}");
    }
}

/// P5: an allowed name opens private networks, not the metadata service of a cloud.
#[tokio::test]
async fn an_allowed_name_does_not_lead_to_a_metadata_service() {
    let lookup = LyingLookup::default().with("wiki.lan", &[&["169.254.169.254", "fd00:ec2::254"]]);
    let client = GuardedClient::new(guard(&["wiki.lan"]).with_lookup(Arc::new(lookup)), limits());

    let got = get(&client, "http://wiki.lan/").await;

    assert!(matches!(got, Err(WebError::Private { .. })), "{got:?}");
}

/// E7: a configured service may be reached by its own client, with its port, and what it names is guarded.
#[tokio::test]
async fn a_configured_service_opens_its_own_host_and_nothing_else() {
    let other = WebServer::of_page("secret").await;
    let target = other.url("/");
    let service = WebServer::start(move |head| {
        let answer = if head.starts_with("GET /away ") {
            web_redirect(&target)
        } else {
            web_page("text/plain", b"service")
        };
        WebReply::Bytes(answer)
    })
    .await;
    let own = GuardedClient::new(guard(&[]).with_configured(&service.url("/mcp")).unwrap(), limits());

    let reached = get(&own, &service.url("/")).await.map(|page| page.body);
    let away = get(&own, &service.url("/away")).await;
    let by_others = get(&client(&[]), &service.url("/")).await;

    assert_eq!(reached, Ok(b"service".to_vec()));
    assert!(matches!(away, Err(WebError::Private { .. })), "{away:?}");
    assert!(matches!(by_others, Err(WebError::Private { .. })), "{by_others:?}");
    assert_eq!(other.connections(), 0);
}

/// P5: with a proxy that the user configured, addresses and names of this machine are refused all the same.
#[tokio::test]
async fn a_configured_proxy_is_asked_for_public_hosts_only() {
    let proxy = WebServer::of_page("by proxy").await;
    let guard = guard(&[]).with_proxy(&proxy.url("")).unwrap();
    let client = GuardedClient::new(guard, limits());

    let public = get(&client, "http://example.org/page").await.map(|page| page.body);
    let private = get(&client, "http://169.254.169.254/").await;
    let local = get(&client, "http://localhost/").await;

    assert_eq!(public, Ok(b"by proxy".to_vec()));
    assert!(
        proxy.requests()[0].starts_with("GET http://example.org/page HTTP/1.1"),
        "{:?}",
        proxy.requests()
    );
    assert!(matches!((&private, &local), (Err(WebError::Private { .. }), Err(WebError::Private { .. }))));
    assert_eq!(proxy.connections(), 1);
}
