use super::*;

const HERE: u32 = 0xc000_003e;

/// What the filter answers to a call, by doing what the system does with it.
fn answer_to(network: Network, architecture: u32, number: u32, arguments: [u32; 3]) -> u32 {
    let program = program(HERE, network);
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
                    argument => arguments[(argument as usize - 16) / 8],
                }
            }
            code if code == libc::BPF_JMP | libc::BPF_JA => at += k as usize,
            code if code == libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K => {
                at += usize::from(if value == k { jt } else { jf });
            }
            code if code == libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K => {
                at += usize::from(if value >= k { jt } else { jf });
            }
            other => panic!("no such step: {other}"),
        }
    }
}

fn is_refused(number: libc::c_long, arguments: [u32; 3]) -> bool {
    answer_to(Network::Open, HERE, number as u32, arguments) != PASS
}

/// P3
#[test]
fn what_a_process_does_to_itself_passes_and_what_it_does_to_others_does_not() {
    let by_first = [
        libc::SYS_prlimit64,
        libc::SYS_sched_setaffinity,
        libc::SYS_sched_setscheduler,
        libc::SYS_sched_setparam,
        libc::SYS_sched_setattr,
    ];

    for number in by_first {
        assert!(!is_refused(number, [0, 7, 7]), "{number}");
        assert!(is_refused(number, [1, 0, 0]), "{number}");
        assert!(is_refused(number, [u32::MAX, 0, 0]), "{number}");
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
    assert!(is_refused(libc::SYS_socket, [libc::AF_VSOCK as u32, 1, 0]));
    for family in [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK] {
        assert!(!is_refused(libc::SYS_socket, [family as u32, 1, 0]));
    }
}

/// P3
#[test]
fn calls_that_make_sockets_out_of_sight_are_refused_where_there_is_no_network() {
    let answers = [Network::Open, Network::Closed]
        .map(|network| answer_to(network, HERE, libc::SYS_io_uring_setup as u32, [8, 0, 0]));

    assert_eq!(answers, [PASS, refuse(libc::ENOSYS)]);
}

/// P3: the same numbers mean something else there.
#[test]
fn calls_of_other_kinds_of_programs_are_refused() {
    let read = libc::SYS_read as u32;

    assert_eq!(answer_to(Network::Open, HERE, read, [0; 3]), PASS);
    assert_eq!(answer_to(Network::Open, 0x4000_0003, read, [0; 3]), refuse(libc::EPERM));
    assert_eq!(answer_to(Network::Open, HERE, OF_OTHER_PROGRAMS | read, [0; 3]), refuse(libc::EPERM));
}
