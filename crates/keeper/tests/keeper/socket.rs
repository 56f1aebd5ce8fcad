//! The keeper's socket: who is heard, and that nobody can disturb the command.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use longhaul_keeper::{Error, Task};
use longhaul_protocol::TaskStatus;

use crate::home::{Home, TEST_TIMEOUT, ended, until};

const TOKEN: &str = "{\"token\":\"open sesame\"}\n";

fn connect(home: &Home, task: &Task) -> UnixStream {
    let folder = fs::File::open(home.task_folder(task.id())).unwrap();
    let stream = UnixStream::connect(format!("/proc/self/fd/{}/socket", folder.as_raw_fd())).unwrap();
    stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    stream
}

fn say(stream: &UnixStream, text: &str) {
    let mut stream = stream;
    stream.write_all(text.as_bytes()).unwrap();
}

fn hear(lines: &mut BufReader<&UnixStream>) -> String {
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    line
}

#[test]
fn whoever_knows_the_token_hears_how_the_command_is() {
    let home = Home::new();
    let task = home.start("echo hello; sleep 600");
    until("output", || (task.printed().unwrap() == 6).then_some(()));
    let stream = connect(&home, &task);

    say(&stream, TOKEN);
    say(&stream, "{\"watch\":true}\n");
    let answer = hear(&mut BufReader::new(&stream));
    task.kill().unwrap();

    let pid = fs::read_to_string(home.task_folder(task.id()).join("pid")).unwrap();
    let pid = pid.split(['{', ',', '}']).find_map(|field| field.strip_prefix("\"pid\":")).unwrap();
    assert_eq!(answer, format!("{{\"format\":1,\"state\":\"running\",\"printed\":6,\"pid\":{pid}}}\n"));
}

#[test]
fn a_wrong_token_is_refused() {
    let home = Home::new();
    let task = home.start("sleep 600");

    for greeting in ["{\"token\":\"open barley\"}\n", "{\"watch\":true}\n", "GET / HTTP/1.1\r\n\r\n", "\n"] {
        let stream = connect(&home, &task);
        say(&stream, greeting);
        let _ = (&stream).write_all(b"{\"kill\":true}\n");
        let mut answer = String::new();
        let _ = (&stream).read_to_string(&mut answer);
        assert!(["", "{\"refused\":\"token\"}\n"].contains(&answer.as_str()), "{answer}");
    }

    assert_eq!(task.status().unwrap(), None);
    task.kill().unwrap();
}

#[test]
fn the_token_is_read_anew_for_each_connection() {
    let home = Home::new();
    let task = home.start("sleep 600");
    let file = home.folder.join("run/token");

    fs::write(&file, "another").unwrap();
    task.connect().expect("both sides read the new one");
    let stream = connect(&home, &task);
    say(&stream, TOKEN);
    let refused = hear(&mut BufReader::new(&stream));
    fs::remove_file(&file).unwrap();
    let without = task.connect();
    fs::write(&file, "open sesame").unwrap();
    task.kill().unwrap();

    assert_eq!(refused, "{\"refused\":\"token\"}\n");
    assert!(matches!(&without, Err(Error::Io { what, .. }) if what.contains("run/token")), "{without:?}");
}

#[test]
fn followers_hear_of_new_output() {
    let home = Home::new();
    let task = home.start("echo begun; while [ ! -e go ]; do sleep 0.01; done; echo more; sleep 600");
    until("output", || (task.printed().unwrap() == 6).then_some(()));
    let stream = connect(&home, &task);
    let mut lines = BufReader::new(&stream);

    say(&stream, TOKEN);
    say(&stream, "{\"follow\":true}\n");
    let first = hear(&mut lines);
    fs::write(home.folder.join("go"), "").unwrap();
    while hear(&mut lines) != "{\"printed\":11}\n" {}
    task.kill().unwrap();

    assert!(first.contains("\"state\":\"running\",\"printed\":6,"), "{first}");
    let mut rest = String::new();
    lines.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "", "only those who asked for it are told of a kill");
}

#[test]
fn much_output_is_told_in_few_lines() {
    let home = Home::new();
    let task = home.start("for n in $(seq 2000); do echo $n; done; sleep 600");
    let stream = connect(&home, &task);
    say(&stream, TOKEN);
    say(&stream, "{\"follow\":true}\n");
    let since = Instant::now();
    until("all output", || (task.printed().unwrap() == 8893).then_some(()));
    task.kill().unwrap();
    let took = since.elapsed();

    let lines = BufReader::new(&stream)
        .lines()
        .map_while(Result::ok)
        .filter(|line| line.starts_with("{\"printed\""))
        .count();

    assert!(lines as u128 <= took.as_millis() / 50 + 2, "{lines} lines in {took:?}");
}

#[test]
fn what_a_keeper_does_not_understand_it_passes_over() {
    let home = Home::new();
    let task = home.start("sleep 600");
    let stream = connect(&home, &task);

    say(&stream, TOKEN);
    say(&stream, "{\"dance\":true}\nnot json\n{\"watch\":\"yes\"}\n{\"kill\":true,\"how\":\"kindly\"}\n");
    let answer = hear(&mut BufReader::new(&stream));

    assert_eq!(answer, "{\"killed\":true}\n");
    assert_eq!(ended(&task).status, TaskStatus::Killed);
}

#[test]
fn silent_clients_and_many_of_them_do_not_disturb() {
    let home = Home::new();
    let task = home.start("while [ ! -e go ]; do sleep 0.01; done; seq 100000");
    let silent: Vec<UnixStream> = (0..100).map(|_| connect(&home, &task)).collect();

    let watching = task.connect().unwrap();
    fs::write(home.folder.join("go"), "").unwrap();
    let status = ended(&task);

    assert_eq!((status.status, status.printed), (TaskStatus::Completed, 588_895));
    drop((silent, watching));
}

#[test]
fn clients_that_flood_do_not_disturb() {
    let home = Home::new();
    let task = home.start("while [ ! -e go ]; do sleep 0.01; done; seq 100000");
    let flood = |first: &'static str, more: &'static str| {
        let stream = connect(&home, &task);
        move || {
            let since = Instant::now();
            let mut stream = stream;
            stream.set_write_timeout(Some(Duration::from_millis(200))).unwrap();
            if stream.write_all(first.as_bytes()).is_ok() {
                while since.elapsed() < Duration::from_secs(2) && stream.write_all(more.as_bytes()).is_ok() {}
            }
        }
    };

    let status = std::thread::scope(|scope| {
        scope.spawn(flood("", "endless "));
        scope.spawn(flood(TOKEN, "{\"watch\":true}\n"));
        scope.spawn(flood(TOKEN, "nonsense\n"));
        until("the keeper to answer in all of this", || task.printed().ok());
        fs::write(home.folder.join("go"), "").unwrap();
        ended(&task)
    });

    assert_eq!((status.status, status.printed), (TaskStatus::Completed, 588_895));
}

#[test]
fn several_who_kill_are_all_told() {
    let home = Home::new();
    let task = home.start("trap 'sleep 0.2; exit' TERM; while :; do sleep 0.01; done");

    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| task.kill().unwrap());
        }
    });

    assert_eq!(task.status().unwrap().unwrap().status, TaskStatus::Killed);
}
