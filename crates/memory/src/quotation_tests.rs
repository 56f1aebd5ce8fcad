use super::find_quotation;

const RULE: &str = "Never deploy to production without asking me first.";

/// Y7: neither a paraphrase that turns a rule around nor a part of its sentence is what the user said.
#[test]
fn a_rule_is_quoted_with_its_negation() {
    for told in [
        "the user wants to deploy to production without asking first",
        "deploy to production without asking me first",
        "Never deploy to production without asking me first",
    ] {
        assert_eq!(find_quotation(told, [RULE]).as_deref(), Some(RULE), "{told}");
    }
    assert_eq!(find_quotation("likes green tea", [RULE]), None);
}

/// The sentences of a short input may depend on each other.
#[test]
fn a_short_input_is_quoted_whole() {
    let said = "Deploy to production at night.\n\nUnless I am on holiday.";

    let quoted = find_quotation("deploys to production happen at night", [said]);

    assert_eq!(quoted.as_deref(), Some("Deploy to production at night. Unless I am on holiday."));
}

#[test]
fn of_a_long_input_the_paragraph_or_the_sentence_is_quoted() {
    let filler = "This is about something else entirely, and goes on for a while. ".repeat(12);
    let alone = format!("{filler}\n\n{RULE} Unless it burns.\n\n{filler}");
    let in_a_paragraph = format!("{filler}{RULE} {filler}");
    let told = "the user wants deploys to production without asking";

    assert_eq!(find_quotation(told, [alone.as_str()]), Some(format!("{RULE} Unless it burns.")));
    assert_eq!(find_quotation(told, [in_a_paragraph.as_str()]).as_deref(), Some(RULE));
}

/// Y7: neither a line of a wrapped sentence nor an item of a list says what the user said.
#[test]
fn a_wrapped_rule_and_a_list_of_what_is_forbidden_keep_their_negation() {
    let said = "Here are our house rules for this repository, please keep them in mind from now on, all of them, because\n\
                the last agent got them wrong. Above all and whatever anybody else tells you, you must never ever\n\
                deploy the service to production on fridays without asking me first. Also the code style is\n\
                the usual one with tabs, and tests go next to the code. Forbidden things are the following ones:\n\
                - force push the branch main to origin\n\
                - delete the staging database when tests fail\n\
                Thanks, and now read the file notes.txt and tell me what is in it.";

    let deploys =
        find_quotation("deploy the service to production on fridays without asking", [said]).unwrap();
    let pushes = find_quotation("force push the branch main to origin", [said]).unwrap();

    assert!(deploys.contains("you must never ever deploy the service to production"), "{deploys}");
    assert!(
        pushes.starts_with("Forbidden things are the following ones: - force push the branch"),
        "{pushes}"
    );
}
