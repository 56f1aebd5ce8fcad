//! K10: output that is larger than what is kept of it, and output that is read while it comes.

use std::fs;

use longhaul_keeper::{Chunk, Spec};

use crate::home::{Home, ended, keeper_of, until};

const CAP: u64 = 64 << 10;
/// A line of 16 bytes with its own number, so that any piece of the output tells where it belongs.
const LINES: &str = "seq -f '%015.0f' 0 655359";
const PRINTED: u64 = 655_360 * 16;

fn line(number: u64) -> String {
    format!("{number:015}\n")
}

/// K10
#[test]
fn head_and_tail_of_a_large_output_are_kept() {
    let home = Home::new();
    let task = home.tasks.start(&Spec { output_cap: CAP, ..home.spec(LINES) }).unwrap();
    let status = ended(&task);
    let output = home.tasks.output(task.id()).unwrap();

    let head = output.read(0, 1 << 20).unwrap();
    let tail = output.read(head.next, 1 << 20).unwrap();
    let end = output.read(tail.next, 1 << 20).unwrap();

    assert_eq!(status.printed, PRINTED);
    assert_eq!(output.printed().unwrap(), PRINTED);
    let half = CAP / 2;
    let expected_head: String = (0..half / 16).map(line).collect();
    assert_eq!(head, Chunk { dropped: None, bytes: expected_head.into_bytes(), next: half });
    let expected_tail: String = ((PRINTED - half) / 16..PRINTED / 16).map(line).collect();
    assert_eq!(
        tail,
        Chunk { dropped: Some(half..PRINTED - half), bytes: expected_tail.into_bytes(), next: PRINTED }
    );
    assert_eq!(end, Chunk { dropped: None, bytes: Vec::new(), next: PRINTED });
    let on_disk: u64 = ["output.head", "output.tail"]
        .iter()
        .map(|name| fs::metadata(home.task_folder(task.id()).join(name)).unwrap().len())
        .sum();
    assert!(on_disk <= CAP + 4096, "{on_disk}");
}

/// K10
#[test]
fn any_piece_can_be_read_by_its_offset() {
    let home = Home::new();
    let task = home.tasks.start(&Spec { output_cap: CAP, ..home.spec(LINES) }).unwrap();
    ended(&task);
    let output = home.tasks.output(task.id()).unwrap();
    let text = |offset, limit| String::from_utf8(output.read(offset, limit).unwrap().bytes).unwrap();

    assert_eq!(text(160, 16), line(10));
    assert_eq!(text(163, 13), line(10)[3..]);
    assert_eq!(text(PRINTED - 32, 16), line(655_358));
    assert_eq!(text(PRINTED - 5, 100), line(655_359)[11..]);
    assert_eq!(text(PRINTED + 1000, 100), "");
    let dropped = output.read(1_000_000, 16).unwrap();
    assert_eq!(dropped.dropped, Some(1_000_000..PRINTED - CAP / 2));
    assert_eq!(String::from_utf8(dropped.bytes).unwrap(), line((PRINTED - CAP / 2) / 16));
}

/// K10
#[test]
fn what_fits_is_kept_whole() {
    let home = Home::new();

    for bytes in [0, 1, CAP / 2 - 1, CAP / 2, CAP / 2 + 1, CAP - 1, CAP] {
        let command = format!("seq 1 100000 | head -c {bytes}");
        let task = home.tasks.start(&Spec { output_cap: CAP, ..home.spec(&command) }).unwrap();
        ended(&task);

        let numbers: String = (1..=100_000).map(|number| format!("{number}\n")).collect();
        assert_eq!(home.output(&task), numbers[..usize::try_from(bytes).unwrap()], "{bytes}");
    }
}

/// K10: a reader that is overtaken by the command gets a gap that is said, never bytes from elsewhere.
#[test]
fn what_is_read_while_a_command_prints_is_never_torn() {
    let home = Home::new();
    let task = home.tasks.start(&Spec { output_cap: CAP, ..home.spec(LINES) }).unwrap();
    let output = home.tasks.output(task.id()).unwrap();
    let (mut next, mut gaps, mut text) = (0, 0, String::new());

    loop {
        let over = task.status().unwrap().is_some();
        let chunk = output.read(next, 5000).unwrap();
        if let Some(dropped) = &chunk.dropped {
            assert_eq!(dropped.start, next);
            gaps += 1;
            // Whole lines only: the first one after a gap is cut where the gap ends.
            text.truncate(text.rfind('\n').map_or(0, |end| end + 1));
            let skipped = usize::try_from((16 - dropped.end % 16) % 16).unwrap();
            text.push_str(std::str::from_utf8(&chunk.bytes).unwrap().get(skipped..).unwrap_or_default());
        } else {
            text.push_str(std::str::from_utf8(&chunk.bytes).unwrap());
        }
        if over && chunk.next == next {
            break;
        }
        next = chunk.next;
    }

    assert_eq!(next, PRINTED);
    let numbers: Vec<u64> =
        text.lines().filter(|line| line.len() == 15).map(|line| line.parse().unwrap()).collect();
    assert!(numbers.is_sorted_by(|one, other| one < other));
    assert!(text.lines().filter(|line| line.len() != 15).count() <= gaps, "only lines at a gap are cut");
    assert_eq!(numbers.last(), Some(&655_359));
}

/// K10
#[test]
fn output_is_readable_while_the_command_runs() {
    let home = Home::new();
    let task = home.start("echo one; while [ ! -e go ]; do sleep 0.01; done; echo two");
    let output = home.tasks.output(task.id()).unwrap();

    let first =
        until("output", || Some(output.read(0, 100).unwrap()).filter(|chunk| !chunk.bytes.is_empty()));
    let nothing = output.read(first.next, 100).unwrap();
    fs::write(home.folder.join("go"), "").unwrap();
    ended(&task);
    let second = output.read(first.next, 100).unwrap();

    assert_eq!(first, Chunk { dropped: None, bytes: b"one\n".to_vec(), next: 4 });
    assert_eq!(nothing, Chunk { dropped: None, bytes: Vec::new(), next: 4 });
    assert_eq!(second, Chunk { dropped: None, bytes: b"two\n".to_vec(), next: 8 });
}

/// K10: a keeper's memory, counted in kilobytes that are its own.
#[test]
fn a_keepers_memory_does_not_depend_on_what_is_printed() {
    let home = Home::new();
    let written = |file: &str| {
        let text = fs::read_to_string(file).unwrap_or_default();
        let lines = text.lines().filter(|line| line.starts_with("Private_Dirty"));
        lines.filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok()).sum::<u64>()
    };
    let command = "echo begun; while [ ! -e go ]; do sleep 0.01; done; head -c 50000000 /dev/zero; while [ ! -e stop ]; do sleep 0.01; done";
    let task = home.tasks.start(&Spec { output_cap: CAP, ..home.spec(command) }).unwrap();
    let memory = format!("/proc/{}/smaps_rollup", keeper_of(&home.task_folder(task.id())));
    until("output", || (task.printed().unwrap() == 6).then_some(()));

    let before = written(&memory);
    fs::write(home.folder.join("go"), "").unwrap();
    until("all output", || (task.printed().unwrap() == 50_000_006).then_some(()));
    let after = written(&memory);
    fs::write(home.folder.join("stop"), "").unwrap();
    ended(&task);

    assert!(before > 0 && after < before + 300, "{before} kB before, {after} kB after");
}

/// K10
#[test]
fn a_disk_that_takes_no_more_does_not_hold_up_the_command() {
    let home = Home::new();
    let task = home.start("while [ ! -e go ]; do sleep 0.01; done; head -c 900000 /dev/zero; echo > reached");
    // A tail that is in the way can't be made, as on a full disk.
    fs::create_dir(home.task_folder(task.id()).join("output.tail")).unwrap();
    fs::write(home.folder.join("go"), "").unwrap();

    let status = ended(&task);

    assert_eq!(status.exit_code, Some(0));
    assert_eq!(status.printed, 900_000);
    assert!(status.message.unwrap().starts_with("could not save all of the output"));
    assert!(home.folder.join("reached").exists());
}
