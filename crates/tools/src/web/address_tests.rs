use super::*;

fn kinds(addresses: &[&str]) -> Vec<Option<AddressKind>> {
    addresses.iter().map(|address| classify_address(address.parse().unwrap())).collect()
}

/// P5
#[test]
fn private_addresses_are_recognised_in_every_range_and_form() {
    let table: [(AddressKind, &[&str]); 6] = [
        (
            AddressKind::Loopback,
            &["127.0.0.1", "127.255.255.254", "::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1"],
        ),
        (
            AddressKind::Private,
            &[
                "10.0.0.1",
                "10.255.255.255",
                "172.16.0.1",
                "172.31.255.255",
                "192.168.0.1",
                "100.64.0.1",
                "100.127.255.255",
                "fc00::1",
                "fdff::1",
                "::ffff:10.0.0.1",
                "64:ff9b::c0a8:1",
            ],
        ),
        (AddressKind::LinkLocal, &["169.254.0.1", "fe80::1", "febf::1", "fec0::1", "::ffff:169.254.1.1"]),
        (
            AddressKind::Metadata,
            &[
                "169.254.169.254",
                "192.0.0.192",
                "100.100.100.200",
                "168.63.129.16",
                "fd00:ec2::254",
                "::ffff:169.254.169.254",
                "64:ff9b::a9fe:a9fe",
            ],
        ),
        (
            AddressKind::NoHost,
            &[
                "0.0.0.0",
                "0.1.2.3",
                "224.0.0.1",
                "255.255.255.255",
                "240.0.0.1",
                "::",
                "ff02::1",
                "::ffff:0.0.0.0",
            ],
        ),
        (
            AddressKind::Reserved,
            &[
                "192.0.0.1",
                "192.0.2.1",
                "192.88.99.1",
                "198.18.0.1",
                "198.19.255.255",
                "198.51.100.1",
                "203.0.113.1",
                "::127.0.0.1",
                "::a00:1",
                "64:ff9b:1::a00:1",
                "100::1",
                "2001::1",
                "2001:0:7f00:1::",
                "2001:db8::1",
                "2002:7f00:1::",
                "2002:a9fe:a9fe::",
                "3fff::1",
                "5f00::1",
                "4000::1",
            ],
        ),
    ];

    for (kind, addresses) in table {
        assert_eq!(kinds(addresses), vec![Some(kind); addresses.len()], "{addresses:?}");
    }
}

#[test]
fn public_addresses_are_recognised() {
    let addresses = [
        "93.184.216.34",
        "1.1.1.1",
        "9.255.255.255",
        "11.0.0.1",
        "100.63.255.255",
        "100.128.0.1",
        "126.255.255.255",
        "128.0.0.1",
        "169.253.1.1",
        "172.15.0.1",
        "172.32.0.1",
        "192.167.1.1",
        "192.0.1.1",
        "198.17.1.1",
        "198.20.0.1",
        "223.255.255.255",
        "2606:4700::1111",
        "2a00:1450::1",
        "2001:200::1",
        "::ffff:1.1.1.1",
        "64:ff9b::101:101",
    ];

    assert_eq!(kinds(&addresses), vec![None; addresses.len()]);
}
