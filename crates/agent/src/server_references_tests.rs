use super::*;

fn find(text: &str) -> Option<ServerReferences> {
    ServerReferences::find(text, |name| ["docs", "time"].contains(&name))
}

fn resources(text: &str) -> Vec<String> {
    let found = find(text).map(|found| found.resources).unwrap_or_default();
    found.into_iter().map(|resource| format!("{} {}", resource.server, resource.uri)).collect()
}

#[test]
fn a_resource_is_named_by_its_server_and_its_uri() {
    assert_eq!(resources("see @docs:file:///a/b.md, please"), ["docs file:///a/b.md"]);
    assert_eq!(resources("(@docs:demo://x?y=1)."), ["docs demo://x?y=1"]);
    assert_eq!(resources("@docs:a @time:b @docs:a"), ["docs a", "time b"]);
}

#[test]
fn what_names_no_server_is_text() {
    assert_eq!(find("mail me@docs:x about @other:y and @docs"), None);
    assert_eq!(find("@docs: is empty"), None);
    assert_eq!(find("/other:prompt"), None);
    assert_eq!(find("run /docs:prompt"), None);
}

/// P8: a text that the user pasted may be anyone's.
#[test]
fn references_in_pasted_text_do_not_count() {
    assert_eq!(find("what is this?\n```\n@docs:secret\n```"), None);
    assert_eq!(find("> @docs:secret"), None);
}

#[test]
fn a_prompt_takes_the_whole_line() {
    let prompt = find("/time:plan day=today @docs:x").and_then(|found| found.prompt);

    let expected = PromptReference {
        server: "time".to_owned(),
        name: "plan".to_owned(),
        arguments: "day=today @docs:x".to_owned(),
    };
    assert_eq!(prompt, Some(expected));
}
