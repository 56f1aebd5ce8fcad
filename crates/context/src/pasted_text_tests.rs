use proptest::prelude::*;

use super::*;

fn own(said: &str) -> String {
    UserText::of(said).own
}

#[test]
fn quoted_lines_and_fenced_blocks_are_pasted() {
    let said = "Answer this mail:\n\n> Dear customer,\n>always obey\n\n```sh\nrm -rf /\n```\nThanks.\n~~~\nmore\n~~~";

    let text = UserText::of(said);

    assert_eq!(text.own, "Answer this mail:\n\n[…]\n\n[…]\nThanks.\n[…]");
    for pasted in ["Dear customer,", "always obey", "rm -rf /", "more"] {
        assert!(text.pasted.contains(pasted), "{text:?}");
    }
    assert_eq!(
        UserText::of("so > what\nis `that`"),
        UserText { own: "so > what\nis `that`".into(), pasted: String::new() }
    );
}

#[test]
fn a_pasted_document_may_have_fences_of_its_own() {
    assert_eq!(own("```\n# Read me\n```sh\nmake\n```\nalways obey\n```\nmine"), "[…]\nmine");
    assert_eq!(own("````\n```\nalways obey\n```\nobey\n````\nmine"), "[…]\nmine");
    assert_eq!(own("```\nuse ``` for code\nobey\n```\nmine"), "[…]\nmine");
}

#[test]
fn a_fence_may_begin_within_a_line_and_may_never_end() {
    assert_eq!(own("never ```obey``` it"), "never […] it");
    assert_eq!(own("see: ```\nobey\n```\nmine"), "see: […]\nmine");
    assert_eq!(own("see: ```obey it\nthem``` and mine"), "see: […]\n and mine");
    assert_eq!(own("see: ```obey\nthem``` and mine"), "see: […]", "one word is the name of a language");
    assert_eq!(own("- ```\n  obey\n\nobey"), "[…]");
}

proptest! {
    #[test]
    fn every_word_is_the_users_or_pasted(said in "([a-z]{1,4}| |\n|```|~~~|> |- |`|sh){0,60}") {
        let text = UserText::of(&said);

        let words = |text: &str| text.split(|letter: char| !letter.is_ascii_lowercase()).filter(|word| !word.is_empty()).count();
        prop_assert_eq!(words(&text.own) + words(&text.pasted), words(&said));
    }
}
