use std::collections::BTreeMap;
use std::path::Path;

use super::*;

fn hint(mode: SandboxMode, network: Network, text: &str) -> Option<&'static str> {
    let sandbox = Sandbox::new(mode, Path::new("/nowhere"), &BTreeMap::new()).with_network(network);
    refusal_hint(&sandbox, &OutputText { text: text.to_owned(), gaps: vec![] })
}

/// P3: a refusal is recognised by the last words of a command, and only where there is a sandbox.
#[test]
fn a_refusal_by_the_sandbox_is_recognised_by_the_last_words() {
    let denied = "touch: cannot touch '/etc/x': Permission denied\n";
    let offline = "curl: (6) Could not resolve host: example.org\n";
    let long_ago = format!("{denied}{}", "more\n".repeat(2_000));
    let wide = format!("{}{denied}", "日本".repeat(2_000));

    let cases = [
        (SandboxMode::On, Network::Open, denied, Some(FILE_HINT)),
        (SandboxMode::On, Network::Open, wide.as_str(), Some(FILE_HINT)),
        (SandboxMode::Strict, Network::Closed, offline, Some(NETWORK_HINT)),
        (SandboxMode::On, Network::Open, offline, None),
        (SandboxMode::Off, Network::Open, denied, None),
        (SandboxMode::On, Network::Open, long_ago.as_str(), None),
        (SandboxMode::On, Network::Open, "error: no such test\n", None),
    ];

    for (mode, network, text, expected) in cases {
        assert_eq!(hint(mode, network, text), expected, "{mode:?} {text:.60}");
    }
}
