//! The real binary, as people and scripts use it.

#![allow(clippy::unwrap_used, reason = "a test that can't go on should stop")]

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use longhaul_journal::{Append, Blob, Home, Journal, SqliteJournal, name_session};
use longhaul_protocol::{
    BlobRef, CompactDone, CompactStart, CompactedBy, EpochReason, EpochStarted, Note, SessionRecord,
    StreamName, SystemMessage, TextContent,
};
use serde_json::Value;

/// A folder for a test, with a home in it that begins empty.
struct Desk(tempfile::TempDir);

impl Desk {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// One that has the session of the journal's fixture.
    fn with_a_session() -> Self {
        let desk = Self::new();
        let imported = desk.run(&["sessions", "import", &export_fixture()]);
        assert!(imported.status.success(), "{}", said(&imported));
        desk
    }

    fn home(&self) -> PathBuf {
        self.0.path().join("home")
    }

    fn file(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_longhaul"));
        command
            .args(arguments)
            .env("LONGHAUL_HOME", self.home())
            .env_remove("RUST_BACKTRACE")
            .stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// What a command that must succeed prints.
    fn stdout(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", said(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.stdout(arguments)).unwrap()
    }

    /// The one line and the exit code of a command that must fail.
    fn refusal(&self, arguments: &[&str]) -> (i32, String) {
        let output = self.run(arguments);
        let line = String::from_utf8(output.stderr).unwrap();
        assert_eq!(line.trim_end().lines().count(), 1, "{arguments:?} says more than one line: {line}");
        (output.status.code().unwrap(), line.trim_end().to_owned())
    }
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn export_fixture() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../journal/fixtures/export-1.jsonl");
    path.to_str().unwrap().to_owned()
}

/// Every file below a folder with its bytes, to show that nothing changed.
fn snapshot(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut files: Vec<_> = entries
        .map(|entry| entry.unwrap().path())
        .flat_map(|path| {
            if path.is_dir() { snapshot(&path) } else { vec![(path.clone(), std::fs::read(&path).unwrap())] }
        })
        .collect();
    files.sort();
    files
}

/// Without what can be deleted at any time: the search index and its lock file.
fn without_cache(mut files: Vec<(PathBuf, Vec<u8>)>) -> Vec<(PathBuf, Vec<u8>)> {
    files.retain(|(path, _)| !path.components().any(|part| part.as_os_str() == "cache"));
    files
}

#[test]
fn looking_at_a_home_that_is_not_there_makes_none() {
    let desk = Desk::new();

    let listed = desk.json(&["sessions", "list", "--json"]);
    let verified = desk.json(&["verify", "--json"]);
    let shown = desk.refusal(&["sessions", "show", "cli:none"]);

    assert_eq!(listed, serde_json::json!([]));
    assert_eq!(verified["ok"], true);
    assert_eq!(shown.0, 2);
    assert!(!desk.home().exists());
}

#[test]
fn a_session_is_listed_shown_exported_and_imported() {
    let desk = Desk::with_a_session();

    let listed = desk.json(&["sessions", "list", "--json"]);
    assert_eq!(desk.json(&["sessions", "--json"]), listed, "alone, it lists");
    let table = desk.stdout(&["sessions", "list"]);
    let page = desk.stdout(&["sessions", "show", "cli:fixture", "--from", "1"]);
    let shown = desk.json(&["sessions", "show", "cli:fixture", "--json"]);
    desk.stdout(&["sessions", "export", "cli:fixture", &desk.file("out.jsonl")]);
    let piped = desk.stdout(&["sessions", "export", "cli:fixture"]);

    assert_eq!(listed[0]["key"], "cli:fixture");
    assert_eq!((listed[0]["records"].clone(), listed[0]["inbox"].clone()), (8.into(), 1.into()));
    assert!(table.contains("cli:fixture") && table.contains("000001"), "{table}");
    assert!(
        page.contains("There are 12 files.") && page.contains("erased on") && page.contains("a password"),
        "{page}"
    );
    assert_eq!(
        shown["records_shown"][0]["kind"], "epoch_started",
        "without --from the newest epoch is shown"
    );
    assert_eq!(shown["records_shown"].as_array().unwrap().len(), 7, "with the record of the import");
    assert_eq!(std::fs::read_to_string(desk.file("out.jsonl")).unwrap(), piped);
    let original = std::fs::read_to_string(export_fixture()).unwrap();
    let lines = original.lines().filter(|line| line.starts_with("{\"stream\":"));
    assert!(lines.clone().count() > 7 && lines.clone().all(|line| piped.contains(line)), "{piped}");
}

/// The fixture is from 2026-11-15T09:40:00Z.
#[test]
fn people_see_their_own_time_and_programs_see_utc() {
    let desk = Desk::with_a_session();
    let in_zone = |zone: &str, arguments: &[&str]| {
        let output = desk.command(arguments).env("TZ", zone).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };

    let page = in_zone("XYZ-5:30", &["sessions", "show", "cli:fixture"]);
    let entries = in_zone("XYZ-5:30", &["sessions", "show", "cli:fixture", "--records"]);
    let html = in_zone("XYZ-5:30", &["sessions", "show", "cli:fixture", "--html"]);
    let nowhere = in_zone("No/Such_Place", &["sessions", "show", "cli:fixture"]);
    let json = in_zone("XYZ-5:30", &["sessions", "show", "cli:fixture", "--json"]);

    assert!(page.contains("turn 1 · 2026-11-15 15:10 "), "{page}");
    assert!(page.contains(", 2026-11-15 15:10 to ") && page.contains(" XYZ\n"), "{page}");
    assert!(entries.contains("  2026-11-15 15:10:00  epoch_started"), "{entries}");
    assert!(html.contains("datetime=\"2026-11-15T09:40:00.515Z\">2026-11-15 15:10</time>"), "{html}");
    assert!(nowhere.contains("turn 1 · 2026-11-15 09:40 UTC "), "{nowhere}");
    let json: Value = serde_json::from_str(&json).unwrap();
    assert!(json["last_at"].as_str().unwrap().ends_with('Z'), "{json}");
}

/// J4.
#[test]
fn damage_is_named_salvaged_and_restored() {
    let desk = Desk::with_a_session();
    let file = desk.home().join("journal.db");
    let mut bytes = std::fs::read(&file).unwrap();
    let words = b"There are 12 files.";
    let place = bytes.windows(words.len()).position(|window| window == words).unwrap();
    bytes[place] ^= 1;
    std::fs::write(&file, &bytes).unwrap();

    let verified = desk.run(&["verify", "--json"]);
    let shown = desk.run(&["sessions", "show", "cli:fixture"]);
    let records = desk.run(&["sessions", "show", "cli:fixture", "--records"]);
    let salvaged = desk.run(&["verify", "--salvage", &desk.file("saved.db")]);
    let restored = desk.stdout(&["restore", &desk.file("saved.db")]);

    let report: Value = serde_json::from_slice(&verified.stdout).unwrap();
    assert_eq!((verified.status.code(), report["ok"].clone()), (Some(1), false.into()));
    assert_eq!(report["damage"][0]["stream"], "session/01JDFJM0000000000000000001");
    assert_eq!(report["damage"][0]["seq"], 6);
    assert_eq!(report["damage"].as_array().unwrap().len(), 1);
    for (shown, words) in [(&shown, "completed after"), (&records, "\"outcome\":\"completed\"")] {
        assert_eq!(shown.status.code(), Some(1));
        assert!(said(shown).contains("damaged:") && said(shown).contains(words), "{}", said(shown));
    }
    assert!(said(&salvaged).contains("lost to damage"), "{}", said(&salvaged));
    assert!(restored.contains("is kept as"), "{restored}");
    let page = desk.stdout(&["sessions", "show", "cli:fixture", "--from", "1"]);
    assert!(page.contains("Please count the files.") && page.contains("lost to damage"), "{page}");
    let verified = desk.stdout(&["verify"]);
    assert!(verified.contains("1 erased; 1 lost to earlier damage"), "{verified}");
    assert!(verified.contains("Everything that is left is intact."), "{verified}");
}

/// J11.
#[test]
fn a_backup_is_written_once_and_restored_whole() {
    let desk = Desk::with_a_session();
    let backup = desk.file("backup.db");

    let written = desk.json(&["backup", &backup, "--json"]);
    let again = desk.refusal(&["backup", &backup]);
    desk.stdout(&["erase", "cli:fixture", "6", "--reason", "changed my mind"]);
    let restored = desk.json(&["restore", &backup, "--json"]);

    assert_eq!((written["ok"].clone(), written["records"].clone()), (true.into(), 10.into()));
    assert_eq!(again, (2, format!("longhaul: {backup} already exists; choose another file")));
    let kept = restored["kept"].as_str().unwrap();
    assert!(Path::new(kept).exists());
    let erased = desk.stdout(&["erase", "cli:fixture", "7", "--reason", "a secret"]);
    assert!(erased.contains(kept), "what a restore has kept may still hold it: {erased}");
    assert!(desk.stdout(&["sessions", "show", "cli:fixture"]).contains("There are 12 files."));
}

/// J10: an input's words are in the inbox too.
#[test]
fn erasing_an_input_erases_it_from_the_inbox_too() {
    let desk = Desk::with_a_session();
    desk.stdout(&["sessions", "show", "cli:fixture"]);

    let erased = desk.json(&["erase", "cli:fixture", "3", "--reason", "on request", "--json"]);

    let places: Vec<_> =
        erased.as_array().unwrap().iter().map(|place| place["stream"].as_str().unwrap()).collect();
    assert_eq!(places, ["session/01JDFJM0000000000000000001", "inbox/01JDFJM0000000000000000001"]);
    for (path, bytes) in snapshot(&desk.home()) {
        let words = b"Please count the files.";
        assert!(!bytes.windows(words.len()).any(|window| window == words), "{} still has it", path.display());
    }
    assert!(desk.stdout(&["verify"]).contains("Everything is intact."));
}

/// Each bad input gets one line that names it and what to do, and changes nothing.
#[test]
fn bad_input_is_refused_in_one_line_and_nothing_changes() {
    let desk = Desk::with_a_session();
    let edited = std::fs::read_to_string(export_fixture()).unwrap().replace("12 files", "13 files");
    std::fs::write(desk.file("edited.jsonl"), edited).unwrap();
    std::fs::write(desk.file("letter.txt"), "Dear journal.\n").unwrap();
    desk.stdout(&["sessions", "list"]);
    let before = without_cache(snapshot(&desk.home()));
    let (edited, letter, nowhere) =
        (desk.file("edited.jsonl"), desk.file("letter.txt"), desk.file("nowhere"));
    let (inside, folder) = (desk.home().join("journal.db").to_str().unwrap().to_owned(), desk.file(""));
    let cases: &[(&[&str], &str)] = &[
        (&["sessions", "show", "cli:nobody"], r#"no session "cli:nobody"; `longhaul sessions list`"#),
        (&["sessions", "export", "cli:nobody", "x"], r#"no session "cli:nobody""#),
        (
            &["sessions", "import", &export_fixture()],
            r#"a session "cli:fixture" already exists; choose another key with --as"#,
        ),
        (
            &["sessions", "import", &export_fixture(), "--as", "cli:twin"],
            "is here already, as \"cli:fixture\"",
        ),
        (
            &["sessions", "import", &edited, "--as", "x"],
            "entry 6: content does not match its hash; nothing changed",
        ),
        (&["sessions", "import", &letter], "line 1: not a longhaul export"),
        (&["sessions", "export", "cli:fixture", &inside], "is in the longhaul home; choose another place"),
        (&["sessions", "export", "cli:fixture", "/nowhere/at/all"], "no folder /nowhere/at"),
        (&["backup", "/nowhere/at/all"], "no folder /nowhere/at"),
        (&["sessions", "import", &folder], "it is a folder"),
        (&["sessions", "import", &nowhere], "can't open it"),
        (&["restore", &letter], "not a longhaul journal: the file is too short"),
        (&["restore", &nowhere], "no such file"),
        (&["erase", "cli:fixture", "99", "--reason", "x"], "no entry 99 in session/"),
        (&["erase", "cli:nobody", "1", "--reason", "x"], "no session"),
    ];

    for (arguments, words) in cases {
        let (code, line) = desk.refusal(arguments);
        assert_eq!(code, 2, "{arguments:?}: {line}");
        assert!(line.contains(words), "{arguments:?}: {line}");
    }

    let after = without_cache(snapshot(&desk.home()));
    let changed: Vec<_> = after.iter().filter(|file| !before.contains(file)).map(|(path, _)| path).collect();
    assert!(after == before, "changed: {changed:?}");
    assert!(!Path::new("x").exists(), "a refused export leaves no file");
}

#[test]
fn a_database_of_another_program_is_left_alone() {
    let desk = Desk::new();
    std::fs::create_dir(desk.home()).unwrap();
    std::fs::write(desk.home().join("journal.db"), "something else entirely, ".repeat(10)).unwrap();
    let before = snapshot(&desk.home());

    let (code, line) = desk.refusal(&["sessions", "list"]);

    assert_eq!(code, 2);
    assert!(line.contains("journal.db is not a longhaul journal: not an SQLite database"), "{line}");
    let journal_only = |files: Vec<(PathBuf, Vec<u8>)>| -> Vec<_> {
        files.into_iter().filter(|(path, _)| path.ends_with("journal.db")).collect()
    };
    assert_eq!(journal_only(snapshot(&desk.home())), journal_only(before));
}

/// A bad file does not even leave a new home behind.
#[test]
fn a_refused_import_makes_no_home() {
    let desk = Desk::new();

    let (code, _) = desk.refusal(&["sessions", "import", &desk.file("nowhere")]);

    assert_eq!(code, 2);
    assert!(!desk.home().exists());
}

/// A file of one endless line is refused without being read into memory: the process may have far less than it.
#[test]
fn a_huge_line_is_refused_without_much_memory() {
    let desk = Desk::with_a_session();
    let huge = desk.file("huge.jsonl");
    std::fs::File::create(&huge).unwrap().set_len(4 << 30).unwrap();
    let script = r#"ulimit -v 600000; exec "$0" sessions import "$1""#;

    let output = Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_longhaul"), &huge])
        .env("LONGHAUL_HOME", desk.home())
        .output()
        .unwrap();

    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(said(&output).contains("line 1: the line is cut off or too long"), "{}", said(&output));
}

/// S5: what is not a file is written to, not replaced; a link is replaced, and what it leads to stays as it is.
#[test]
fn an_export_goes_through_pipes_and_own_outputs_and_replaces_links() {
    let desk = Desk::with_a_session();
    let original = desk.stdout(&["sessions", "export", "cli:fixture"]);
    let (pipe, link, target) = (desk.file("pipe"), desk.file("link"), desk.file("target"));
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    std::fs::write(&target, "old").unwrap();
    std::os::unix::fs::symlink(&target, &link).unwrap();
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || std::fs::read_to_string(pipe).unwrap()
    });

    desk.stdout(&["sessions", "export", "cli:fixture", &pipe]);
    let through_output = desk.stdout(&["sessions", "export", "cli:fixture", "/dev/stdout"]);
    desk.stdout(&["sessions", "export", "cli:fixture", &link]);

    assert_eq!(reader.join().unwrap(), original);
    assert!(through_output.starts_with(&original), "{through_output}");
    assert_eq!(std::fs::read_to_string(&link).unwrap(), original);
    assert_eq!(std::fs::read_to_string(&target).unwrap(), "old");
    assert!(!Path::new(&link).is_symlink());
}

/// What can't be looked at is not the same as what is not there.
#[test]
fn a_home_that_is_a_file_is_not_an_empty_home() {
    let desk = Desk::new();
    std::fs::write(desk.home(), "in the way").unwrap();

    for command in [&["sessions"][..], &["verify"], &["sessions", "show", "x"]] {
        let (code, line) = desk.refusal(command);
        assert_eq!(code, 2, "{line}");
        assert!(line.contains("not a folder"), "{line}");
    }
}

#[test]
fn a_home_that_can_not_be_made_is_said() {
    let desk = Desk::new();
    std::fs::write(desk.file("file"), "in the way").unwrap();

    let output = desk
        .command(&["--home", &desk.file("file"), "sessions", "import", &export_fixture()])
        .output()
        .unwrap();

    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("not a folder"), "{}", said(&output));
}

#[test]
fn unknown_commands_and_flags_name_the_nearest() {
    let desk = Desk::new();

    let command = desk.run(&["verfy"]);
    let flag = desk.run(&["verify", "--jsn"]);

    assert_eq!((command.status.code(), flag.status.code()), (Some(2), Some(2)));
    assert!(said(&command).contains("verify"), "{}", said(&command));
    assert!(said(&flag).contains("--json"), "{}", said(&flag));
}

#[test]
fn the_help_says_what_there_is() {
    let output = Desk::new().run(&["--help"]);

    assert_eq!(output.status.code(), Some(0));
    assert!(
        said(&output).contains("Usage: longhaul") && said(&output).contains("verify"),
        "{}",
        said(&output)
    );
    assert!(!said(&output).contains("keeper"), "what is not for people is not shown: {}", said(&output));
}

/// A reader that goes away in the middle is no error.
#[test]
fn output_into_a_closed_pipe_is_no_error() {
    let desk = Desk::with_a_session();
    let mut child = desk
        .command(&["sessions", "show", "cli:fixture", "--from", "1"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();

    drop(child.stdout.take());
    let status = child.wait().unwrap();

    let mut complaints = String::new();
    child.stderr.take().unwrap().read_to_string(&mut complaints).unwrap();
    assert_eq!((status.code(), complaints.as_str()), (Some(0), ""));
}

/// The demo kills a real runtime in the middle of a turn, and the turn ends as if nothing had been; it takes under twenty
/// seconds, on a machine that has nothing else to do, and leaves nothing behind.
#[test]
fn the_demo_shows_what_it_says() {
    let desk = Desk::new();
    let temporary = desk.0.path().join("tmp");
    std::fs::create_dir(&temporary).unwrap();

    let began = Instant::now();
    let output = desk.command(&["demo"]).env("TMPDIR", &temporary).output().unwrap();

    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
    let text = said(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    for word in ["a script", "kill -9", "A new process", "turn     completed", "started once", "all 9 lines"]
    {
        assert!(text.contains(word), "{word}: {text}");
    }
    assert!(!text.contains("{\"command\""), "calls are shown as in the terminal: {text}");
    assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 0);
    assert!(!desk.home().exists());
}

/// A home with a session of three epochs: the third knows where the second began; the second, of an older version, knows
/// nothing of the first.
async fn with_three_epochs(desk: &Desk) {
    let home = Home::create(&desk.home()).unwrap();
    let journal = SqliteJournal::open(&home).await.unwrap();
    let stream = StreamName::session(name_session(&journal, "cli:long").await.unwrap());
    let blob = || BlobRef::to(b"x", "text/plain");
    let epoch = |number, reason, previous| {
        let started = EpochStarted { previous, ..EpochStarted::new(number, reason, blob(), blob()) };
        SessionRecord::EpochStarted(started)
    };
    let note = |text: &str| SessionRecord::Note(Note::new(text));
    let message = |text: &str| {
        SessionRecord::SystemMessage(SystemMessage { content: vec![TextContent { text: text.into() }] })
    };
    let (by, before, after) = (CompactedBy::Model, 12_345, 678);
    let facts = [
        note("before any epoch"),
        epoch(1, EpochReason::Created, None),
        note("in the first"),
        SessionRecord::CompactStart(CompactStart { reason: "somebody asked".into(), focus: None }),
        epoch(2, EpochReason::Compacted, None),
        message("[Compacted context summary]\nShort."),
        SessionRecord::CompactDone(CompactDone { epoch: 2, by, before, after, from: 2, through: 4 }),
        note("in the second"),
        epoch(3, EpochReason::Changed, Some(5)),
        note("in the third"),
    ];
    let append = facts.iter().fold(Append::to(&stream), |append, fact| append.record(fact.encode()));
    journal.append(append.blob(Blob::new(b"x"))).await.unwrap();
    journal.close().await;
}

/// C10: each epoch can be opened again.
#[tokio::test(flavor = "multi_thread")]
async fn an_epoch_is_shown_from_its_beginning_to_that_of_the_next() {
    let desk = Desk::new();
    with_three_epochs(&desk).await;
    let seqs = |number: &str| {
        let shown = desk.json(&["sessions", "show", "cli:long", "--epoch", number, "--json"]);
        assert_eq!(shown["epoch"].to_string(), number);
        let records = shown["records_shown"].as_array().unwrap().clone();
        records.iter().map(|record| record["seq"].as_u64().unwrap()).collect::<Vec<_>>()
    };

    let page = desk.stdout(&["sessions", "show", "cli:long", "--context", "2"]);
    let part = desk.stdout(&["sessions", "show", "cli:long", "--epoch", "1", "--limit", "1"]);
    let (code, refusal) = desk.refusal(&["sessions", "show", "cli:long", "--epoch", "4"]);

    assert_eq!([seqs("1"), seqs("2"), seqs("3")], [vec![2, 3, 4], vec![5, 6, 7, 8], vec![9, 10]]);
    for words in [
        "10 entries, context 2: entries 5 to 8",
        "context 2: compacted",
        "[Compacted context summary] Short.",
        "context 2, by a summary: 12,345 → 678 tokens; covers entries 2 to 4 (to list them: --from 2 --limit 3)",
    ] {
        assert!(page.contains(words), "{words}: {page}");
    }
    assert!(part.ends_with("2 more; continue with --from 3\n"), "{part}");
    assert_eq!((code, refusal.as_str()), (2, "longhaul: no context 4; there are 1 to 3"));
    let both = desk.run(&["sessions", "show", "cli:long", "--epoch", "1", "--from", "2"]);
    assert_eq!(both.status.code(), Some(2));
}
