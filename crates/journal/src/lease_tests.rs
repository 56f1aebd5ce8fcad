use super::*;

fn here() -> Holder {
    Holder::this_process()
}

#[test]
fn a_living_process_is_not_gone() {
    assert!(!here().is_gone_for(&here()));
}

/// J7.
#[test]
fn a_process_is_gone_if_its_pid_is_free_or_belongs_to_another_by_now() {
    let free = Holder { pid: u32::MAX - 1, ..here() };
    let used_again = Holder { started: here().started + 1, ..here() };

    assert!(free.is_gone_for(&here()));
    assert!(used_again.is_gone_for(&here()));
}

#[test]
fn a_process_of_an_earlier_boot_is_gone() {
    let before_the_reboot = Holder { boot: "another".into(), ..here() };

    assert!(before_the_reboot.is_gone_for(&here()));
}

/// What can't be seen from here can only expire.
#[test]
fn a_process_of_another_machine_or_container_may_be_alive() {
    let elsewhere = Holder { host: "elsewhere".into(), pid: u32::MAX - 1, ..here() };
    let rebooted_elsewhere = Holder { boot: "another".into(), ..elsewhere.clone() };
    let in_a_container = Holder { pid_namespace: "pid:[1]".into(), pid: u32::MAX - 1, ..here() };
    let unknown = Holder { boot: String::new(), pid: u32::MAX - 1, ..here() };

    for holder in [elsewhere, rebooted_elsewhere, in_a_container, unknown] {
        assert!(!holder.is_gone_for(&here()), "{holder:?}");
    }
}

/// A child that was killed and not yet waited for can't write any more.
#[test]
fn a_zombie_is_gone() {
    let mut child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
    let holder = Holder { pid: child.id(), started: process_start(child.id()).unwrap(), ..here() };
    assert!(!holder.is_gone_for(&here()));

    child.kill().unwrap();
    let since = std::time::Instant::now();
    while !holder.is_gone_for(&here()) {
        assert!(since.elapsed().as_secs() < 60, "the child was killed and still counts as alive");
        std::thread::yield_now();
    }

    child.wait().unwrap();
}
