use longhaul_tools::AllowList;

use super::*;

fn refusal(server: &str, target: &str) -> Option<String> {
    let guard = NetworkGuard::new(AllowList::default());
    GuardedHttp::new(&guard, server).unwrap().check(target).err().map(|error| error.to_string())
}

/// E7, P5: what a server names is fetched only from where a web page may be.
#[test]
fn a_login_reaches_no_private_address_and_no_plain_http() {
    let server = "https://mcp.example.org/mcp";
    for target in [
        "https://169.254.169.254/latest/meta-data",
        "https://127.0.0.1/.well-known/openid-configuration",
        "https://localhost/token",
        "https://10.0.0.8/token",
        "https://[::1]/token",
        "https://0x7f.1/token",
        "http://login.example.org/token",
    ] {
        assert!(refusal(server, target).is_some(), "{target}");
    }
    assert_eq!(refusal(server, "https://login.example.org/token"), None);
    assert_eq!(refusal(server, "https://mcp.example.org/token"), None);
    // A server on this machine reaches itself, and no other port.
    assert_eq!(refusal("http://127.0.0.1:8123/mcp", "http://127.0.0.1:8123/token"), None);
    assert!(refusal("http://127.0.0.1:8123/mcp", "http://127.0.0.1:8124/token").is_some());
}
