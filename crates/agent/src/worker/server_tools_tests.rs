use super::*;

fn changes(lines: &[&str]) -> ToolChanges {
    let lines = lines.iter().map(|line| format!("the MCP server a {line}")).collect();
    ToolChanges { server: "a".to_owned(), lines }
}

/// E2: the model is told of each change once, also of one that takes an earlier one back, and of the next one after that.
#[test]
fn a_change_that_reverts_and_comes_again_is_told_each_time() {
    let (lost, nothing) = (changes(&["no longer has a__x"]), changes(&[]));
    let mut notes: Vec<String> = vec!["the MCP server ab no longer has ab__x".to_owned()];
    let mut tell = |now: &ToolChanges| {
        let told: Vec<&str> = notes.iter().map(String::as_str).collect();
        let lines = unannounced_changes(&told, std::slice::from_ref(now));
        notes.extend((!lines.is_empty()).then(|| lines.join("\n")));
        lines
    };

    assert_eq!(tell(&nothing), Vec::<String>::new());
    assert_eq!(tell(&lost), ["the MCP server a no longer has a__x"]);
    assert_eq!(tell(&lost), Vec::<String>::new());
    assert_eq!(tell(&nothing), ["the MCP server a again has the tools that you were given for it"]);
    assert_eq!(tell(&nothing), Vec::<String>::new());
    assert_eq!(tell(&lost), ["the MCP server a no longer has a__x"]);
}

/// E2: a server that does not run tells nothing, so that what was told of it stays.
#[test]
fn a_server_that_does_not_run_changes_nothing_of_what_was_told() {
    let told = ["the MCP server a now also has a__y, which you can call after the next compaction"];

    assert_eq!(unannounced_changes(&told, &[]), Vec::<String>::new());
}
