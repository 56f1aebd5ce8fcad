use super::*;

#[test]
fn what_is_missing_is_said_with_what_to_do() {
    let all = Enforcement { landlock: Some(7), ..Enforcement::default() };
    let none = Enforcement {
        landlock: None,
        no_landlock: Some("Function not implemented".to_owned()),
        no_namespaces: Some("making user, mount and IPC namespaces: Operation not permitted".to_owned()),
        no_network_namespace: None,
        no_process_namespace: None,
        no_filter: None,
    };
    let no_network = Enforcement { no_network_namespace: Some("no".to_owned()), ..all.clone() };

    assert_eq!(all.missing(Network::Closed, UnixSockets::Allowed), None);
    let missing = none.missing(Network::Open, UnixSockets::Allowed).unwrap();
    for words in ["Function not implemented", "lsm=", "Operation not permitted", "sysctl"] {
        assert!(missing.contains(words), "{missing}");
    }
    assert_eq!(no_network.missing(Network::Open, UnixSockets::Allowed), None);
    assert!(no_network.missing(Network::Closed, UnixSockets::Allowed).is_some());
}

#[test]
fn an_older_landlock_leaves_gaps_that_are_said() {
    let gaps = |landlock| Enforcement { landlock: Some(landlock), ..Enforcement::default() }.gaps().len();

    assert_eq!([1, 2, 3, 4, 5, 6, 7].map(gaps), [2, 2, 2, 2, 1, 0, 0]);
}

#[test]
fn a_system_without_filters_leaves_a_gap_that_is_said_and_cannot_refuse_unix_sockets() {
    let unfiltered = Enforcement {
        landlock: Some(7),
        no_filter: Some("Function not implemented".to_owned()),
        ..Enforcement::default()
    };

    assert_eq!(unfiltered.gaps().len(), 1);
    assert_eq!(unfiltered.missing(Network::Closed, UnixSockets::Allowed), None);
    let missing = unfiltered.missing(Network::Open, UnixSockets::Refused).unwrap();
    assert!(missing.contains("Function not implemented") && missing.contains("seccomp"), "{missing}");
}

#[test]
fn a_system_without_pid_namespaces_leaves_a_gap_and_shared_processes() {
    let shared = Enforcement {
        landlock: Some(7),
        no_process_namespace: Some("mounting /proc: Operation not permitted".to_owned()),
        ..Enforcement::default()
    };

    assert_eq!((shared.gaps().len(), shared.processes()), (1, ProcessNamespace::Shared));
    assert_eq!(shared.missing(Network::Closed, UnixSockets::Allowed), None);
}
