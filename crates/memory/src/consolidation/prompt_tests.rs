use longhaul_context::estimate;
use longhaul_protocol::{At, SessionId};
use proptest::prelude::*;

use super::*;
use crate::Page;

fn extract(items: &[(Speaker, &str)]) -> PendingExtract {
    let items = items.iter().map(|(speaker, text)| ExtractedItem {
        kind: ExtractedKind::Fact,
        text: (*text).to_owned(),
        sources: vec![1],
        speaker: *speaker,
        quote: None,
    });
    PendingExtract {
        session: SessionId::generate(),
        seq: 1,
        at: At(1_700_000_000_000),
        items: items.collect(),
    }
}

fn pending(extracts: Vec<PendingExtract>) -> PendingExtracts {
    PendingExtracts { extracts, ..PendingExtracts::default() }
}

fn page_set(pages: &[(&str, &str)]) -> PageSet {
    let page = |text: &str| Page { text: text.to_owned(), versions: vec![] };
    let pages = pages.iter().map(|(name, text)| ((*name).to_owned(), page(text))).collect();
    PageSet { pages, ..PageSet::default() }
}

fn size(prompt: &StructuredPrompt) -> u64 {
    estimate(&prompt.system, &prompt.tools, &[]) + estimate_text(&prompt.text)
}

#[test]
fn the_items_the_index_the_core_page_and_those_that_are_touched_are_shown() {
    let page_set = page_set(&[
        ("core", "# Core\n- Likes tea\n"),
        ("build", "# Building\n- cargo builds it\n<<end>>\n"),
        ("garden", "# Garden\n- roses\n"),
    ]);
    let pending =
        pending(vec![extract(&[(Speaker::User, "cargo builds\nwith nextest"), (Speaker::Untrusted, "x y")])]);

    let question =
        ConsolidationPrompt::new(&page_set, &pending, AnswerForm::ToolCall, 20_000, 8_000).unwrap();

    let prompt = question.with_complaint(None);
    let material = prompt.text.split("\nNow call").next().unwrap();
    assert_eq!(
        material,
        "<<items>>\n[1] fact, said by user, 2023-11-14: cargo builds with nextest\n[2] fact, said by untrusted, 2023-11-14: x y\n\
         <<index of pages>>\n- core\n- build: Building\n- garden: Garden\n\
         <<page core>>\n# Core\n- Likes tea\n<<page build>>\n# Building\n- cargo builds it\n\\<<end>>\n<<end>>\n"
    );
    assert_eq!(question.shown.iter().map(String::as_str).collect::<Vec<_>>(), ["build", "core"]);
    assert_eq!((question.extracts, question.items.len(), question.left_out), (1, 2, 0));
}

#[test]
fn lines_of_a_person_are_named_by_their_numbers() {
    let mut page_set = page_set(&[("core", "# Core\n- Likes tea\n- Likes rust\n")]);
    page_set
        .histories
        .entry(CORE_PAGE.to_owned())
        .or_default()
        .lines_by_people
        .insert("Likes rust".to_owned());

    let shown = render_page(&page_set, CORE_PAGE);

    assert!(shown.starts_with("<<page core; a person wrote line 3>>\n# Core\n"), "{shown}");
}

#[test]
fn a_page_that_could_not_be_written_back_is_not_shown() {
    let large = "- words of tea\n".repeat(600);
    let page_set = page_set(&[("core", &large), ("tea", "- tea is green\n")]);
    let pending = pending(vec![extract(&[(Speaker::User, "tea")])]);

    let question =
        ConsolidationPrompt::new(&page_set, &pending, AnswerForm::ToolCall, 20_000, 2_000).unwrap();

    assert_eq!(question.shown.iter().map(String::as_str).collect::<Vec<_>>(), ["tea"]);
}

#[test]
fn an_extract_that_is_too_large_by_itself_is_shown_in_part_and_says_so() {
    let large = "word ".repeat(1_000);
    let items: Vec<(Speaker, &str)> = vec![(Speaker::User, &large); 300];
    let pending = pending(vec![extract(&items), extract(&[(Speaker::User, "next")])]);

    let question =
        ConsolidationPrompt::new(&PageSet::default(), &pending, AnswerForm::Text, 8_000, 2_000).unwrap();

    assert_eq!(question.extracts, 1);
    assert!(question.items.len() > 100 && question.left_out == 300 - question.items.len());
}

#[test]
fn where_nothing_has_room_that_is_said() {
    let pending = pending(vec![extract(&[(Speaker::User, "tea")])]);

    let error =
        ConsolidationPrompt::new(&PageSet::default(), &pending, AnswerForm::ToolCall, 900, 300).unwrap_err();

    let Error::TooSmall { needs, usable } = error else { panic!("{error}") };
    assert!(usable == 900 && needs > 900);
    assert!(
        ConsolidationPrompt::new(&PageSet::default(), &pending, AnswerForm::ToolCall, needs, 300).is_ok()
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_question_never_takes_more_than_it_may(
        extracts in prop::collection::vec((1usize..40, 0usize..3_000), 1..8),
        pages in prop::collection::vec(0usize..9_000, 0..30),
        most in 1_500u64..30_000,
        answer in 100u64..9_000,
        is_call in any::<bool>(),
    ) {
        let item = |length: usize| "ü<<x tea ".repeat(length / 10);
        let extracts: Vec<PendingExtract> = extracts.iter().map(|(count, length)| {
            let text = item(*length);
            extract(&vec![(Speaker::User, text.as_str()); *count])
        }).collect();
        let pages: Vec<(String, String)> = pages.iter().enumerate()
            .map(|(index, length)| (if index == 0 { "core".to_owned() } else { format!("page-{index}") }, format!("# T\n{}", "<<tea\n".repeat(length / 6))))
            .collect();
        let pages: Vec<(&str, &str)> = pages.iter().map(|(name, text)| (&**name, &**text)).collect();
        let form = if is_call { AnswerForm::ToolCall } else { AnswerForm::Text };

        if let Ok(question) = ConsolidationPrompt::new(&page_set(&pages), &pending(extracts), form, most, answer) {
            let prompt = question.with_complaint(Some(&"wrong ".repeat(200)));

            prop_assert!(size(&prompt) <= most, "{} > {most}", size(&prompt));
            prop_assert!(!question.items.is_empty() && question.extracts > 0);
        }
    }
}
