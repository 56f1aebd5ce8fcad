use super::quotation_for;

const RULE: &str = "Never deploy to production without asking me first.";

/// Y7: neither a paraphrase that turns a rule around nor a part of its sentence is what the user said.
#[test]
fn a_rule_is_quoted_with_its_negation() {
    for told in [
        "the user wants to deploy to production without asking first",
        "deploy to production without asking me first",
        "Never deploy to production without asking me first",
    ] {
        assert_eq!(quotation_for(told, [RULE]).as_deref(), Some(RULE), "{told}");
    }
    assert_eq!(quotation_for("likes green tea", [RULE]), None);
}

/// The sentences of a short input may depend on each other.
#[test]
fn a_short_input_is_quoted_whole() {
    let said = "Deploy to production at night.\n\nUnless I am on holiday.";

    let quoted = quotation_for("deploys to production happen at night", [said]);

    assert_eq!(quoted.as_deref(), Some("Deploy to production at night. Unless I am on holiday."));
}

#[test]
fn of_a_long_input_the_line_or_the_sentence_is_quoted() {
    let filler = "This is about something else entirely, and goes on for a while. ".repeat(12);
    let in_a_line = format!("{filler}\n{RULE} Unless it burns.\n{filler}");
    let in_a_paragraph = format!("{filler}{RULE} {filler}");
    let told = "the user wants deploys to production without asking";

    assert_eq!(quotation_for(told, [in_a_line.as_str()]), Some(format!("{RULE} Unless it burns.")));
    assert_eq!(quotation_for(told, [in_a_paragraph.as_str()]).as_deref(), Some(RULE));
}
