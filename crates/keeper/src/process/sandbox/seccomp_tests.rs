use super::*;

const HERE: u32 = 0xc000_003e;

/// What the filter of most commands answers to a call.
fn answer_to(architecture: u32, number: u32, arguments: [u64; 3]) -> u32 {
    answer_within(&Bounds::default(), architecture, number, arguments)
}

/// What the filter answers to a call, by doing what the system does with it.
fn answer_within(bounds: &Bounds, architecture: u32, number: u32, arguments: [u64; 3]) -> u32 {
    let program = program(HERE, bounds);
    let (mut at, mut value) = (0, 0);
    loop {
        let libc::sock_filter { code, jt, jf, k } = program[at];
        at += 1;
        match u32::from(code) {
            code if code == libc::BPF_RET | libc::BPF_K => return k,
            code if code == libc::BPF_LD | libc::BPF_W | libc::BPF_ABS => {
                value = match k {
                    AT_NUMBER => number,
                    AT_ARCHITECTURE => architecture,
                    half => {
                        let argument = arguments[(half as usize - 16) / 8];
                        (argument >> (8 * (half % 8))) as u32
                    }
                }
            }
            code if code == libc::BPF_JMP | libc::BPF_JA => at += k as usize,
            code if code == libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K => {
                at += usize::from(if value == k { jt } else { jf });
            }
            code if code == libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K => {
                at += usize::from(if value & k != 0 { jt } else { jf });
            }
            code if code == libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K => {
                at += usize::from(if value >= k { jt } else { jf });
            }
            other => panic!("no such step: {other}"),
        }
    }
}

fn is_refused(number: libc::c_long, arguments: [u64; 3]) -> bool {
    answer_to(HERE, number as u32, arguments) != PASS
}

/// P3
#[test]
fn what_a_process_does_to_itself_passes_and_what_it_does_to_others_does_not() {
    let by_first = [
        libc::SYS_sched_setaffinity,
        libc::SYS_sched_setscheduler,
        libc::SYS_sched_setparam,
        libc::SYS_sched_setattr,
    ];

    for number in by_first {
        assert!(!is_refused(number, [0, 7, 7]), "{number}");
        assert!(is_refused(number, [1, 0, 0]), "{number}");
        assert!(is_refused(number, [u64::from(u32::MAX), 0, 0]), "{number}");
    }
    for (number, all_of_user) in [(libc::SYS_setpriority, 2), (libc::SYS_ioprio_set, 3)] {
        assert!(!is_refused(number, [1, 0, 19]), "{number}");
        assert!(is_refused(number, [1, 4, 19]), "{number}");
        assert!(is_refused(number, [all_of_user, 0, 19]), "{number}");
    }
}

/// P3
#[test]
fn only_sockets_to_the_machine_beneath_are_refused() {
    assert!(is_refused(libc::SYS_socket, [libc::AF_VSOCK as u64, 1, 0]));
    for family in [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK] {
        assert!(!is_refused(libc::SYS_socket, [family as u64, 1, 0]));
    }
}

/// P3
#[test]
fn without_a_network_only_sockets_of_ordinary_families_are_made() {
    let bounds = Bounds { network: Network::Closed, ..Bounds::default() };
    let answer =
        |family: libc::c_int| answer_within(&bounds, HERE, libc::SYS_socket as u32, [family as u64, 1, 0]);

    for family in [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK] {
        assert_eq!(answer(family), PASS, "{family}");
    }
    for family in [libc::AF_VSOCK, libc::AF_BLUETOOTH, libc::AF_CAN, libc::AF_ALG, libc::AF_TIPC, 200] {
        assert_ne!(answer(family), PASS, "{family}");
    }
}

/// P3
#[test]
fn without_unix_sockets_pairs_of_them_can_still_be_made() {
    let bounds = Bounds { unix_sockets: UnixSockets::Refused, ..Bounds::default() };
    let answer = |number: libc::c_long, family: libc::c_int| {
        answer_within(&bounds, HERE, number as u32, [family as u64, 1, 0])
    };

    assert_eq!(answer(libc::SYS_socket, libc::AF_UNIX), refuse(libc::EACCES));
    assert_eq!(answer(libc::SYS_socketpair, libc::AF_UNIX), PASS);
    assert_eq!(answer(libc::SYS_socket, libc::AF_INET), PASS);
}

/// P3
#[test]
fn user_namespaces_are_refused_and_other_new_processes_are_not() {
    let user = libc::CLONE_NEWUSER as u64;
    let thread = (libc::CLONE_VM | libc::CLONE_THREAD | libc::CLONE_SIGHAND) as u64;

    for number in [libc::SYS_clone, libc::SYS_unshare] {
        assert!(is_refused(number, [user, 0, 0]) && is_refused(number, [user | thread, 0, 0]), "{number}");
        assert!(!is_refused(number, [thread, 0, 0]) && !is_refused(number, [0, user, user]), "{number}");
    }
    assert_eq!(answer_to(HERE, libc::SYS_clone3 as u32, [0x1000, 88, 0]), refuse(libc::ENOSYS));
}

/// P3: an address may have nothing in either half.
#[test]
fn limits_of_others_are_read_and_not_set() {
    let limit_of = |process, new| is_refused(libc::SYS_prlimit64, [process, 7, new]);

    assert!(!limit_of(0, 0) && !limit_of(0, 0x7fff_0000_1000));
    assert!(!limit_of(4, 0));
    for new in [0x1000, 0x7fff_0000_0000, 0x7fff_0000_1000] {
        assert!(limit_of(4, new), "{new:x}");
    }
}

/// P3
#[test]
fn a_call_that_makes_sockets_out_of_sight_is_as_on_a_system_without_it() {
    let answer = answer_to(HERE, libc::SYS_io_uring_setup as u32, [8, 0, 0]);

    assert_eq!(answer, refuse(libc::ENOSYS));
}

/// P3: the same numbers mean something else there.
#[test]
fn calls_of_other_kinds_of_programs_are_refused() {
    let read = libc::SYS_read as u32;

    assert_eq!(answer_to(HERE, read, [0; 3]), PASS);
    assert_eq!(answer_to(0x4000_0003, read, [0; 3]), refuse(libc::EPERM));
    assert_eq!(answer_to(HERE, X32_CALLS | read, [0; 3]), refuse(libc::EPERM));
}

/// P3: a filter is its thread's own, so this thread can be one that the system lets set no filters.
#[test]
fn where_calls_cannot_be_filtered_a_command_without_unix_sockets_is_not_started() {
    let without_filters = [
        load(AT_NUMBER),
        unless_equal(libc::SYS_seccomp as u32, 0, 1),
        answer(refuse(libc::ENOSYS)),
        answer(PASS),
    ];

    let tried = std::thread::spawn(move || {
        rustix::thread::set_no_new_privs(true).unwrap();
        install(Some(&without_filters)).unwrap();
        let refused = Bounds { unix_sockets: UnixSockets::Refused, ..Bounds::default() };
        (install_filter(&refused), install_filter(&Bounds::default()))
    });

    let (strict, on) = tried.join().unwrap();
    assert!(strict.as_ref().is_err_and(|why| why.contains("Unix sockets")), "{strict:?}");
    assert_eq!(on, Ok(()));
}
