//! Pages that a person writes in an editor.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use super::desk::{Desk, told};
use super::{names, without_model, write};

/// A program for `EDITOR` that does this with the file `$1`.
fn editor(desk: &Desk, script: &str) -> String {
    let path = desk.path("editor");
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o700)).unwrap();
    path.display().to_string()
}

fn edit(desk: &Desk, editor: &str, page: &str) -> (i32, String, String) {
    let mut command = desk.command(&["memory", "edit", page]);
    command.env_remove("VISUAL").env("EDITOR", editor).env("TMPDIR", desk.path("work"));
    told(&command.output().unwrap())
}

/// What an edit has left in the folder for temporary files.
fn drafts(desk: &Desk) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(desk.path("work")).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.to_string_lossy().contains("longhaul-")).collect()
}

/// Y10
#[test]
fn an_editor_is_given_a_private_copy_that_goes_with_it() {
    let desk = without_model();
    write(&desk, "core", "- tea\n");
    let editor = editor(&desk, "stat -c '%a %n' \"$1\" $(dirname \"$1\") >&2; sed -i s/tea/coffee/ \"$1\"");

    let (code, out, errors) = edit(&desk, &format!("{editor} "), "core");

    assert_eq!(code, 0, "{errors}");
    assert!(out.starts_with("changed: core (change 2;"), "{out}");
    assert!(errors.contains("600 ") && errors.contains("700 ") && errors.contains("core.md"), "{errors}");
    assert_eq!(desk.run(&["memory", "show", "core"]).1, "- coffee\n");
    assert_eq!(drafts(&desk), Vec::<PathBuf>::new());
}

#[test]
fn a_page_that_was_left_as_it_is_is_no_change() {
    let desk = without_model();
    write(&desk, "core", "- tea\n");

    let (code, out, errors) = edit(&desk, "true", "core");

    assert_eq!((code, out.as_str()), (0, "core: no changes\n"), "{errors}");
    assert_eq!(desk.json(&["memory", "log", "--json"]).as_array().unwrap().len(), 1);
}

#[test]
fn without_an_editor_the_other_ways_are_named() {
    let desk = without_model();
    let mut command = desk.command(&["memory", "edit", "core"]);

    let (code, _, errors) = told(&command.env_remove("VISUAL").env_remove("EDITOR").output().unwrap());

    assert_eq!(code, 2, "{errors}");
    assert!(errors.contains("set VISUAL or EDITOR, or use --file FILE"), "{errors}");
}

#[test]
fn an_editor_that_fails_changes_nothing_and_loses_nothing() {
    let desk = without_model();
    write(&desk, "core", "- tea\n");
    let editor = editor(&desk, "echo '- mine' > \"$1\"; exit 3");

    let (code, _, errors) = edit(&desk, &editor, "core");

    assert_eq!(code, 1, "{errors}");
    assert!(errors.contains("nothing changed") && errors.contains("your text is saved in "), "{errors}");
    let kept = drafts(&desk).pop().unwrap().join("core.md");
    assert_eq!(std::fs::read_to_string(kept).unwrap(), "- mine\n");
    assert_eq!(desk.run(&["memory", "show", "core"]).1, "- tea\n");
}

/// Y10: nobody overwrites what somebody else wrote meanwhile, and nobody's words are lost.
#[test]
fn a_page_that_changed_meanwhile_is_not_overwritten_and_the_text_is_kept() {
    let desk = without_model();
    write(&desk, "core", "- tea\n");
    std::fs::write(desk.path("theirs"), "- theirs\n").unwrap();
    let meanwhile = format!(
        "{} memory edit core --file {}",
        env!("CARGO_BIN_EXE_longhaul"),
        desk.path("theirs").display()
    );
    let editor = editor(&desk, &format!("{meanwhile} >&2\necho '- mine' > \"$1\""));

    let (code, _, errors) = edit(&desk, &editor, "core");

    assert_eq!(code, 1, "{errors}");
    assert!(errors.contains("core was changed in the meantime by change 2"), "{errors}");
    let kept = drafts(&desk).pop().unwrap().join("core.md");
    assert!(errors.contains(&format!("your text is saved in {}", kept.display())), "{errors}");
    assert_eq!(std::fs::read_to_string(kept).unwrap(), "- mine\n");
    assert_eq!(desk.run(&["memory", "show", "core"]).1, "- theirs\n");
}

#[test]
fn texts_and_names_that_can_not_be_a_page_are_refused_before_anything_is_written() {
    let desk = without_model();
    write(&desk, "core", "- tea\n");
    let refused = |text: &str| {
        let (code, out, errors) = desk.talk(&["memory", "edit", "core", "-"], text);
        assert_eq!(code, 2, "{out}{errors}");
        errors
    };

    for page in ["../core", "a/b", "", ".hidden", "Core!"] {
        let (code, _, errors) = desk.run(&["memory", "edit", page, "--file", "/dev/null"]);
        assert!(code == 2 && errors.contains("is not a valid page name"), "{page:?}: {errors}");
    }
    assert!(refused(" \n").contains("to remove the page, use --remove"));
    let long = desk.path("long");
    std::fs::write(&long, "- long\n".repeat(10_000)).unwrap();
    let (code, _, errors) = desk.run(&["memory", "edit", "core", "--file", long.to_str().unwrap()]);
    assert!(code == 2 && errors.contains("could not write core: it would have 70000 bytes"), "{errors}");
    let (code, _, errors) = desk.run(&["memory", "edit", "core", "--file", "/nowhere/at/all"]);
    assert!(code == 2 && errors.contains("/nowhere/at/all"), "{errors}");
    assert_eq!(names(&desk), ["core"]);
}

/// A name that no page may have is refused before anybody writes anything.
#[test]
fn no_editor_is_opened_for_a_name_that_leads_elsewhere() {
    let desk = without_model();
    let editor = editor(&desk, "echo opened >&2");

    let (code, _, errors) = edit(&desk, &editor, "../../escaped");

    assert!(code == 2 && !errors.contains("opened"), "{errors}");
}

#[test]
fn why_a_page_was_changed_stands_in_the_log() {
    let desk = without_model();

    let (code, _, errors) = desk.talk(&["memory", "edit", "core", "-", "--reason", "she said so"], "- tea\n");

    assert_eq!(code, 0, "{errors}");
    assert_eq!(desk.json(&["memory", "log", "--json"])[0]["reason"], "she said so");
}
