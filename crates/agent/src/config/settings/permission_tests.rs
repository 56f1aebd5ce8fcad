use super::*;

fn network(mode: SandboxMode, network: Option<SandboxNetwork>) -> Option<Network> {
    SandboxSettings { mode, network, ..SandboxSettings::default() }.network()
}

/// P3
#[test]
fn the_network_is_what_is_set_or_else_what_the_mode_gives() {
    assert_eq!(network(SandboxMode::On, None), Some(Network::Open));
    assert_eq!(network(SandboxMode::Strict, None), Some(Network::Closed));
    assert_eq!(network(SandboxMode::On, Some(SandboxNetwork::Off)), Some(Network::Closed));
    assert_eq!(network(SandboxMode::Strict, Some(SandboxNetwork::On)), Some(Network::Open));
    assert_eq!(network(SandboxMode::Off, Some(SandboxNetwork::Off)), None);
}

/// P3
#[test]
fn the_model_is_told_the_mode_and_the_network_in_one_line() {
    let words = |mode, network| SandboxSettings { mode, network, ..SandboxSettings::default() }.in_words();
    let all = [
        words(SandboxMode::Off, None),
        words(SandboxMode::On, None),
        words(SandboxMode::On, Some(SandboxNetwork::Off)),
        words(SandboxMode::Strict, None),
    ];

    assert_eq!(all[0], "Commands run without a sandbox.");
    assert!(all[1].ends_with("The network is on."), "{}", all[1]);
    assert!(all[2].ends_with("The network is off, but for loopback."), "{}", all[2]);
    assert!(all[3].contains("no Unix sockets"), "{}", all[3]);
    assert!(all.iter().all(|words| words.len() < 160 && !words.contains('\n')));
}
