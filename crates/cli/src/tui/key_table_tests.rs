use super::*;

/// The rows of the table in `docs/terminal.md`.
fn documented() -> String {
    let row = |row: &KeyRow| format!("| {} | {} |\n", row.keys.replace('`', ""), row.help);
    KEYS.iter().map(row).collect()
}

#[test]
fn docs_terminal_md_has_the_keys_of_help() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/terminal.md");
    let page = std::fs::read_to_string(path).unwrap();
    let head = "| key | what it does |\n| --- | --- |\n";
    let start = page.find(head).expect("a table of keys") + head.len();
    let end = start + page[start..].find("\n\n").expect("an end of the table") + 1;
    let rows = documented();

    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, format!("{}{rows}{}", &page[..start], &page[end..])).unwrap();
    } else {
        assert_eq!(&page[start..end], rows, "UPDATE_DOCS=1 writes docs/terminal.md");
    }
}

#[test]
fn help_has_every_key_once() {
    let help = key_help();

    for KeyRow { keys, help: what } in &KEYS {
        let begins = |line: &&str| {
            line.strip_prefix("  ").and_then(|line| line.strip_prefix(keys)).is_some_and(|rest| {
                rest.is_empty() || rest.starts_with("  ") || rest.starts_with(&format!(" {what}"))
            })
        };
        assert_eq!(help.lines().filter(begins).count(), 1, "{keys}");
        assert!(help.contains(what), "{what}");
    }
}
