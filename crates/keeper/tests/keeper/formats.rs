//! The forms of format 1, pinned: a newer version reads them for ever, and writes these bytes as long as it writes format 1.

use std::fs;
use std::path::{Path, PathBuf};

use longhaul_keeper::{Found, Network, Spec, Status};
use longhaul_protocol::{CallId, TaskId, TaskStatus};

use crate::home::{Home, ended};

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name)
}

fn text(name: &str) -> String {
    fs::read_to_string(file(name)).unwrap()
}

#[test]
fn a_spec_is_read_and_written_byte_for_byte() {
    let text = text("spec-1.json");

    let spec: Spec = serde_json::from_str(&text).unwrap();

    assert_eq!(serde_json::to_string(&spec).unwrap() + "\n", text);
    assert_eq!((spec.format, spec.max_runtime_s, spec.command.as_str()), (1, Some(600), "make -j4"));
}

#[test]
fn a_spec_with_bounds_is_read_and_written_byte_for_byte() {
    let text = text("spec-1-with-bounds.json");

    let spec: Spec = serde_json::from_str(&text).unwrap();

    assert_eq!(serde_json::to_string(&spec).unwrap() + "\n", text);
    assert_eq!(spec.bounds.map(|bounds| bounds.network), Some(Network::Closed));
}

#[test]
fn a_status_is_read_and_written_byte_for_byte() {
    let text = text("status-1.jsonl");

    let statuses: Vec<Status> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();

    let again: String = statuses.iter().map(|status| serde_json::to_string(status).unwrap() + "\n").collect();
    assert_eq!(again, text);
    let words: Vec<TaskStatus> = statuses.iter().map(|status| status.status).collect();
    let expected = [
        TaskStatus::Completed,
        TaskStatus::Failed,
        TaskStatus::Failed,
        TaskStatus::Killed,
        TaskStatus::TimedOut,
        TaskStatus::Failed,
    ];
    assert_eq!(words, expected);
    assert_eq!(statuses[5].never_started(), Some("the work folder /gone is not there"));
    assert!(statuses[..5].iter().all(|status| status.never_started().is_none()));
}

/// A folder of format 1, as a keeper left it, is adopted; what a later version has added is passed over.
#[test]
fn a_task_folder_of_format_1_is_adopted() {
    let home = Home::new();
    let id = TaskId::from(CallId::generate());
    let folder = home.task_folder(id);
    fs::create_dir(&folder).unwrap();
    let files = [
        ("spec-1.json", "spec.json"),
        ("pid-1.json", "pid"),
        ("output-1.head", "output.head"),
        ("output-1.tail", "output.tail"),
    ];
    for (fixture, name) in files {
        fs::copy(file(fixture), folder.join(name)).unwrap();
    }
    fs::write(folder.join("spawning"), "").unwrap();
    let statuses = text("status-1.jsonl");
    let status = statuses.lines().next().unwrap().replacen('{', "{\"mood\":\"good\",", 1);
    fs::write(folder.join("status.json"), status).unwrap();

    let found = home.tasks.find(id).unwrap();

    assert!(matches!(&found, Found::Ended(status) if status.exit_code == Some(0)), "{found:?}");
    let output = home.tasks.output(id).unwrap();
    let head = output.read(0, 1 << 20).unwrap();
    let tail = output.read(head.next, 1 << 20).unwrap();
    assert_eq!((head.bytes.len(), head.next), (2048, 2048));
    assert_eq!((tail.dropped, tail.next), (Some(2048..6845), 8893));
    assert_eq!(&tail.bytes[tail.bytes.len() - 10..], b"1999\n2000\n");
}

/// The lines on the socket, as a runtime of format 1 says them, are understood.
#[test]
fn a_keeper_understands_the_lines_of_format_1() {
    use std::io::{Read, Write};
    let home = Home::new();
    let task = home.start("sleep 600");
    let text = text("socket-1.jsonl");
    let (said, heard): (Vec<&str>, Vec<&str>) = text.lines().partition(|line| line.starts_with("> "));
    let mut stream =
        std::os::unix::net::UnixStream::connect(home.task_folder(task.id()).join("socket")).unwrap();

    for line in said {
        stream.write_all(format!("{}\n", &line[2..]).as_bytes()).unwrap();
    }
    ended(&task);

    let mut answers = String::new();
    stream.read_to_string(&mut answers).unwrap();
    let answers: Vec<String> = answers
        .lines()
        .map(|line| match line.split_once("\"pid\":") {
            Some((before, _)) => format!("< {before}\"pid\":4711}}"),
            None => format!("< {line}"),
        })
        .collect();
    assert_eq!(answers, heard);
}
