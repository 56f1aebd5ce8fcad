use super::*;

fn list(entries: &[&str]) -> AllowList {
    AllowList::parse(entries.iter().copied()).unwrap()
}

#[test]
fn an_entry_allows_its_host_with_its_port_and_no_other() {
    let allowed =
        list(&["Wiki.lan", "*.corp.test", "127.0.0.1:3000", "10.0.0.0/8", "[::1]:8080", "fd00::/16"]);
    let address = |text: &str, port| allowed.allows_address(text.parse().unwrap(), Some(port));

    assert!(allowed.allows_name("wiki.LAN.", Some(80)) && allowed.allows_name("a.b.corp.test", Some(443)));
    assert!(!allowed.allows_name("corp.test", Some(80)) && !allowed.allows_name("evilcorp.test", Some(80)));
    assert!(
        !allowed.allows_name("wiki.lan.evil.test", Some(80)) && !allowed.allows_name("10.0.0.0", Some(80))
    );
    assert!(address("127.0.0.1", 3000) && address("::ffff:127.0.0.1", 3000));
    assert!(!address("127.0.0.1", 3001) && !address("127.0.0.2", 3000));
    assert!(address("10.255.1.1", 80) && !address("11.0.0.1", 80));
    assert!(address("::1", 8080) && !address("::1", 80) && address("fd00::5", 80) && !address("fd01::5", 80));
}

#[test]
fn a_network_of_all_ipv4_addresses_holds_no_ipv6_address() {
    let allowed = list(&["0.0.0.0/0"]);

    assert!(allowed.allows_network_of("192.168.1.1".parse().unwrap()));
    assert!(!allowed.allows_network_of("fd00::1".parse().unwrap()));
}

#[test]
fn an_entry_that_names_no_host_is_an_error_that_shows_how_to_write_one() {
    for entry in [
        "",
        "http://wiki.lan",
        "wiki.lan/path",
        "*",
        "a b",
        "10.0.0.0/33",
        "wiki.lan:99999",
        "[::1",
        "*.",
        ".lan",
    ] {
        let error = AllowList::parse([entry]).unwrap_err().to_string();

        assert!(error.starts_with(&format!("{entry:?} is not a host")), "{entry}: {error}");
    }
}
