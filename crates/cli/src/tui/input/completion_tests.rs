use std::fs;
use std::path::Path;

use longhaul_agent::mcp::{ContentList, PromptParameter, ResourceEntry};

use super::*;
use crate::tui::chat::slash::COMMANDS;

static ROWS_OF_COMMANDS: [SlashCommand; COMMANDS.len()] = COMMANDS;

fn completer(work_dir: &Path) -> Completer {
    Completer::new(CompletionSources {
        commands: &ROWS_OF_COMMANDS,
        skills: SkillCommands::default(),
        servers: ServerMenu::default(),
        work_dir: work_dir.to_owned(),
    })
}

/// What is offered for a text with the cursor at its end, as it would be put there.
fn offered(completer: &mut Completer, text: &str) -> Vec<String> {
    completer.forget();
    completer.index.refresh();
    while completer.index.is_walking() {
        std::thread::yield_now();
    }
    let found = completer.find(text, text.len());
    found.into_iter().flat_map(|found| found.candidates).map(|candidate| candidate.text).collect()
}

fn folder(files: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for file in files {
        let path = folder.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
    }
    folder
}

/// S6
#[test]
fn a_slash_offers_the_commands_of_the_table() {
    let mut completer = completer(Path::new("/"));

    assert_eq!(offered(&mut completer, "/").len(), COMMANDS.len());
    assert_eq!(offered(&mut completer, "/st"), ["/status"]);
    assert_eq!(offered(&mut completer, "/qu"), ["/quit"]);
    assert_eq!(offered(&mut completer, "/mod"), ["/model ", "/mode "]);
    assert_eq!(offered(&mut completer, "/model x"), Vec::<String>::new());
    assert_eq!(offered(&mut completer, "//st"), Vec::<String>::new());
    assert_eq!(offered(&mut completer, "see /st"), Vec::<String>::new());
}

#[test]
fn an_at_sign_offers_the_entries_of_a_folder_and_all_paths_that_match() {
    let folder = folder(&["src/main.rs", "src/parts/one.rs", "Readme.md", ".env"]);
    let mut completer = completer(folder.path());

    assert_eq!(offered(&mut completer, "@"), ["@Readme.md ", "@src/"]);
    assert_eq!(offered(&mut completer, "look at @rea"), ["@Readme.md "]);
    assert_eq!(offered(&mut completer, "look at @one"), ["@src/parts/one.rs "]);
    assert_eq!(offered(&mut completer, "@spo"), ["@src/parts/one.rs "]);
    assert_eq!(offered(&mut completer, "@src/m"), ["@src/main.rs "]);
    assert_eq!(offered(&mut completer, "look\nat\n@src/"), ["@src/main.rs ", "@src/parts/"]);
    assert_eq!(offered(&mut completer, "@.e"), ["@.env "]);
    assert_eq!(offered(&mut completer, "@env"), Vec::<String>::new(), "it is hidden");
    assert_eq!(offered(&mut completer, "me@src"), Vec::<String>::new());
    assert_eq!(offered(&mut completer, "@src/none"), Vec::<String>::new());
}

#[test]
fn what_git_ignores_is_not_offered() {
    let folder = folder(&["target/a", "kept.log", "other.log", "work/inner.tmp", "work/inner.rs"]);
    fs::write(folder.path().join(".gitignore"), "/target\n*.log\n!kept.log\n*.tmp\n").unwrap();
    let mut completer = completer(folder.path());

    assert_eq!(offered(&mut completer, "@"), ["@kept.log ", "@work/"]);
    assert_eq!(offered(&mut completer, "@work/"), ["@work/inner.rs "]);
}

#[test]
fn a_path_with_spaces_is_put_in_quotes() {
    let folder = folder(&["my notes/to do.md", "plain.md"]);
    let mut completer = completer(folder.path());

    assert_eq!(offered(&mut completer, "@my"), ["@\"my notes/", "@\"my notes/to do.md\" "]);
    assert_eq!(offered(&mut completer, "see @\"my notes/to d"), ["@\"my notes/to do.md\" "]);
    assert_eq!(offered(&mut completer, "see @\"my notes/to do.md\" "), Vec::<String>::new());
}

#[test]
fn nothing_outside_the_folder_of_work_is_offered() {
    let outside = folder(&["secret"]);
    let folder = folder(&["inside/file"]);
    std::os::unix::fs::symlink(outside.path(), folder.path().join("inside/link")).unwrap();
    let mut completer = completer(&folder.path().join("inside"));

    assert_eq!(offered(&mut completer, "@../"), Vec::<String>::new());
    assert_eq!(offered(&mut completer, "@../inside/"), Vec::<String>::new());
    assert_eq!(offered(&mut completer, "@/"), Vec::<String>::new());
    assert_eq!(offered(&mut completer, "@link/"), Vec::<String>::new());
    assert_eq!(offered(&mut completer, "@./f"), ["@./file "]);
}

#[test]
fn a_huge_folder_is_looked_at_in_part() {
    let names: Vec<String> =
        (0..files::MAX_DIR_ENTRIES + 100).map(|number| format!("file-{number}")).collect();
    let folder = folder(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let mut completer = completer(folder.path());

    assert_eq!(offered(&mut completer, "@").len(), files::MAX_DIR_ENTRIES);
    assert_eq!(offered(&mut completer, "@file").len(), MAX_MATCHES);
}

/// E1
#[test]
fn resources_and_prompts_of_servers_are_offered_behind_files_and_commands() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("notes.txt"), "").unwrap();
    let resource = |uri: &str| ResourceEntry {
        server: "docs".to_owned(),
        uri: uri.to_owned(),
        title: "A note\nwith \u{1b}[31m more".to_owned(),
    };
    let parameter = PromptParameter { name: "topic".to_owned(), is_required: true };
    let prompt = |name: &str, parameters: Vec<PromptParameter>| PromptEntry {
        server: "docs".to_owned(),
        name: name.to_owned(),
        description: "Writes it".to_owned(),
        parameters,
    };
    let content = ContentList {
        resources: vec![resource("note://today"), resource("bad name"), resource("esc\u{1b}[31m")],
        prompts: vec![prompt("draft", vec![parameter]), prompt("plain", vec![])],
        ..ContentList::default()
    };
    let mut completer = Completer::new(CompletionSources {
        servers: ServerMenu::of(content),
        commands: &ROWS_OF_COMMANDS,
        skills: SkillCommands::default(),
        work_dir: folder.path().to_owned(),
    });

    assert_eq!(offered(&mut completer, "see @docs:no"), ["@docs:note://today "]);
    assert_eq!(offered(&mut completer, "@note"), ["@notes.txt ", "@docs:note://today "]);
    assert_eq!(offered(&mut completer, "/docs:"), ["/docs:draft ", "/docs:plain"]);
    assert_eq!(completer.resources(&path_part("@docs", 5).unwrap())[0].detail, "A note");
}
