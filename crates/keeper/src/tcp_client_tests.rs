use super::*;

fn line(local: &str, remote: &str, state: &str) -> String {
    format!(
        "   3: {local} {remote} {state} 00000000:00000000 00:00000000 00000000  1000        0 4711 1 0000 20 4 30 10 -1"
    )
}

#[test]
#[cfg(target_endian = "little")]
fn a_line_of_the_table_has_both_ends_the_user_and_the_inode() {
    let parsed = parse_line(&line("0100007F:1C03", "0100007F:B2D4", "01")).unwrap();
    let in_v6 = line("0000000000000000FFFF00000100007F:1C03", "00000000000000000000000001000000:B2D4", "01");
    let (mapped, loopback, _) = parse_line(&in_v6).unwrap();

    let address = |text: &str| text.parse::<SocketAddr>().unwrap();
    let socket = Socket { user: 1000, inode: 4711 };
    assert_eq!(parsed, (address("127.0.0.1:7171"), address("127.0.0.1:45780"), socket));
    assert!(is_same(mapped, address("127.0.0.1:7171")));
    assert_eq!(loopback, address("[::1]:45780"));
}

#[test]
fn a_line_that_listens_or_is_cut_is_no_connection() {
    let whole = line("0100007F:1C03", "00000000:0000", "0A");

    assert_eq!(parse_line(&whole), None);
    for cut in ["", "3:", "3: 0100007F:1C03", "3: 0100007F 0100007F 01", "3: ééééé:1 0:1 01 0 0 0 0 0 0"]
    {
        assert_eq!(parse_line(cut), None, "{cut}");
    }
}

#[test]
fn an_address_of_this_machine_is_known() {
    let is_own = |text: &str| is_of_this_machine(text.parse().unwrap());

    assert!(
        is_own("127.0.0.1:1") && is_own("127.8.9.1:1") && is_own("[::1]:1") && is_own("[::ffff:127.0.0.1]:1")
    );
    assert!(!is_own("192.0.2.9:1") && !is_own("[2001:db8::1]:1"));
}
