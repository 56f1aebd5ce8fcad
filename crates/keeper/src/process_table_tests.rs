use super::*;

fn pid(number: i32) -> Pid {
    Pid::from_raw(number).unwrap()
}

#[test]
fn a_program_may_call_itself_anything() {
    let line = "71 (a) b) Z (1 2) S 70 69 68 0 -1 4194560 105 0 0 0 0 0 0 0 20 0 1 0 4711 2875392 240 1844";

    let entry = parse(pid(71), line).unwrap();

    let (is_over, is_stopped) = (false, false);
    let expected =
        Entry { pid: pid(71), parent: 70, group: 69, session: 68, start_time: 4711, is_over, is_stopped };
    assert_eq!(entry, expected);
}

#[test]
fn a_line_that_is_cut_is_no_process() {
    for line in ["", "71", "71 (sh)", "71 (sh) S", "71 (sh) S 70 69 68", "71 (sh S 70 69"] {
        assert_eq!(parse(pid(71), line), None, "{line:?}");
    }
}

#[test]
fn this_process_is_found_with_its_parent() {
    let ours = look_up(std::process::id().cast_signed()).unwrap();

    assert_eq!(Pid::from_raw(ours.parent), rustix::process::getppid());
    assert!(all().contains(&ours));
}
