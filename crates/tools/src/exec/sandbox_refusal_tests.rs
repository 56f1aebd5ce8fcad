use longhaul_keeper::{Bounds, Network};

use super::*;

fn found(network: Network, text: &str) -> Option<(RefusedAccess, String)> {
    let bounds = Bounds { network, ..Bounds::default() };
    let refusal = find_refusal(&bounds, &OutputText { text: text.to_owned(), gaps: vec![] })?;
    Some((refusal.access, refusal.line))
}

/// P3: a refusal is recognised by the last words of a command, and the line that says so is quoted.
#[test]
fn a_refusal_by_the_sandbox_is_recognised_by_the_last_words() {
    let denied = "touch: cannot touch '/etc/x': Permission denied";
    let offline = "curl: (6) Could not resolve host: example.org";
    let long_ago = format!("{denied}\n{}", "more\n".repeat(2_000));
    let wide = format!("{}\n{denied}\nfailed\n", "日本".repeat(2_000));
    let files = Some((RefusedAccess::Files, denied.to_owned()));
    let network = Some((RefusedAccess::Network, offline.to_owned()));

    let cases = [
        (Network::Open, denied, files.clone()),
        (Network::Open, wide.as_str(), files),
        (Network::Closed, offline, network),
        (Network::Open, offline, None),
        (Network::Open, long_ago.as_str(), None),
        (Network::Open, "error: no such test\n", None),
    ];

    for (network, text, expected) in cases {
        assert_eq!(found(network, text), expected, "{network:?} {text:.60}");
    }
}
