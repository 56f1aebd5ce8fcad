use proptest::prelude::*;

use super::*;

fn parse(front_matter: &str) -> Result<SkillDocument, String> {
    let text = format!("---\n{front_matter}\n---\n\nDo it.\n");
    parse_document(&text, "pdf").map_err(|error| error.to_string())
}

#[test]
fn every_field_of_the_open_form_is_read() {
    let document = parse(
        "name: pdf\ndescription: >-\n  Read PDF files,\n  page by page.\nlicense: MIT\ncompatibility: needs pdftotext\n\
         allowed-tools: Bash(git log:*) Read\nmetadata:\n  author: someone\n  version: 1.0",
    );

    assert_eq!(
        document,
        Ok(SkillDocument {
            name: "pdf".to_owned(),
            description: "Read PDF files, page by page.".to_owned(),
            license: Some("MIT".to_owned()),
            compatibility: Some("needs pdftotext".to_owned()),
            allowed_tools: vec!["Bash(git log:*)".to_owned(), "Read".to_owned()],
            metadata: BTreeMap::from([
                ("author".to_owned(), "someone".to_owned()),
                ("version".to_owned(), "1.0".to_owned())
            ]),
            body: "Do it.".to_owned(),
            warnings: vec![],
        })
    );
    let listed = parse("name: pdf\ndescription: x\nallowed-tools:\n  - Read\n  - Write").unwrap();
    assert_eq!(listed.allowed_tools, ["Read", "Write"]);
}

/// E5: the commonest mistake in skills is no reason to lose one.
#[test]
fn a_colon_without_quotes_is_read_with_a_warning() {
    let document = parse("name: pdf\ndescription: Use when: the user has a PDF # or two").unwrap();

    assert_eq!(document.description, "Use when: the user has a PDF # or two");
    assert_eq!(
        document.warnings,
        ["the value of description needs quotes, because it has a colon or a # in it"]
    );
}

#[test]
fn a_field_that_the_form_does_not_have_is_ignored_with_a_warning() {
    let document = parse("name: pdf\ndescription: x\nmodel: opus").unwrap();

    assert_eq!(document.warnings, ["the field \"model\" is unknown and ignored"]);
}

/// E5: each malformed skill has a clear line.
#[test]
fn everything_that_is_wrong_is_said_at_once() {
    let long = "x".repeat(1_025);
    let cases = [
        ("description: x", "the front matter has no name"),
        ("name: pdf", "the front matter has no description"),
        ("name: pdf\ndescription:", "the front matter has no description"),
        ("name: pdf\ndescription: ' '", "its description is empty or not a text"),
        ("name: [pdf]\ndescription: x", "its name is empty or not a text"),
        (
            "name: PDF\ndescription: x",
            "its name \"PDF\" may have only lower-case letters, digits and hyphens; its name is \"PDF\", but its folder is called \"pdf\"; they must be the same",
        ),
        ("name: p_f\ndescription: x", "may have only lower-case letters"),
        ("name: -pdf\ndescription: x", "has a hyphen at an end, or two in a row"),
        ("name: pdf--x\ndescription: x", "has a hyphen at an end, or two in a row"),
        (
            "name: other\ndescription: x",
            "its name is \"other\", but its folder is called \"pdf\"; they must be the same",
        ),
        ("name: pdf\ndescription: x\ncompatibility: [a]", "its compatibility is not a text"),
        ("name: pdf\n  description: x: y\n wrong", "its front matter is not valid YAML"),
        ("- a list", "its front matter is not valid YAML"),
    ];

    for (front_matter, expected) in cases {
        let said = parse(front_matter).expect_err(front_matter);
        assert!(said.contains(expected), "{front_matter:?} says {said:?}");
        assert!(!said.contains('\n'), "one line: {said:?}");
    }
    assert!(
        parse(&format!("name: pdf\ndescription: {long}"))
            .unwrap_err()
            .contains("1025 characters; 1024 are allowed")
    );
    let name = "n".repeat(65);
    let said = parse_document(&format!("---\nname: {name}\ndescription: x\n---\n"), &name).unwrap_err();
    assert_eq!(said.to_string(), "its name has 65 characters; 64 are allowed");
}

#[test]
fn a_front_matter_needs_both_of_its_lines() {
    let said = |text: &str| parse_document(text, "pdf").unwrap_err().to_string();

    assert_eq!(said("name: pdf\n"), "it does not begin with a front matter (a line ---)");
    assert_eq!(said(""), "it does not begin with a front matter (a line ---)");
    assert_eq!(said("---\nname: pdf\n"), "its front matter has no end (a second line ---)");
    let windows = "\u{feff}---\r\nname: pdf\r\ndescription: x\r\n---\r\nbody\r\n";
    assert_eq!(parse_document(windows, "pdf").unwrap().body, "body");
}

proptest! {
    /// A SKILL.md comes from strangers.
    #[test]
    fn no_text_makes_the_parser_fail(text in "(---\n)?[ -~\n:#'\"\\[\\]{}&*!|>]{0,200}(\n---\n)?[ -~]{0,20}") {
        let _ = parse_document(&text, "pdf");
    }

    /// Whatever colons a description has, it is read word for word.
    #[test]
    fn a_plain_description_is_read_word_for_word(words in "[a-z][a-z: ,.()-]{0,80}[a-z]") {
        let document = parse(&format!("name: pdf\ndescription: {words}"));

        prop_assert_eq!(document.unwrap().description, words);
    }
}
