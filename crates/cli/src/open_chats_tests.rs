use super::*;

fn write(home: &Path, name: &str, text: &str) {
    fs::create_dir_all(home.join("run/chats")).unwrap();
    fs::write(home.join("run/chats").join(name), text).unwrap();
}

/// S2: a terminal that was killed has nothing open.
#[test]
fn a_chat_counts_while_its_process_lives() {
    let home = tempfile::tempdir().unwrap();
    let mut process = std::process::Command::new("sleep").arg("600").spawn().unwrap();
    let stat = fs::read_to_string(format!("/proc/{}/stat", process.id())).unwrap();
    let started = stat.rsplit(')').next().unwrap().split_whitespace().nth(19).unwrap().parse().unwrap();
    let holder = Holder { pid: process.id(), started, ..Holder::this_process() };
    let chat = OpenChat { session: "cli:work".to_owned(), process: holder };
    write(home.path(), "1.json", &serde_json::to_string(&chat).unwrap());
    write(home.path(), "2.json", "no JSON");
    let mark = ChatMark::new(home.path());
    mark.open_session("cli:other").unwrap();

    let alive = mark.others();
    process.kill().unwrap();
    process.wait().unwrap();

    assert_eq!(alive, [chat]);
    assert_eq!(mark.others(), []);
    assert!(!home.path().join("run/chats/1.json").exists());
}

#[test]
fn the_mark_of_this_process_goes_with_it() {
    let home = tempfile::tempdir().unwrap();
    let mark = ChatMark::new(home.path());

    mark.open_session("cli:one").unwrap();
    mark.open_session("cli:two").unwrap();
    let text = fs::read_to_string(&mark.file).unwrap();
    let file = mark.file.clone();
    drop(mark);

    assert!(text.contains("cli:two"), "{text}");
    assert!(!file.exists());
}
