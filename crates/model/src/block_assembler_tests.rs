use super::*;

#[test]
fn parts_become_blocks() {
    let mut blocks = BlockAssembler::default();
    let parts = [
        AnswerPart::ReasoningStart,
        AnswerPart::ReasoningDelta("hm".into()),
        AnswerPart::ReasoningStop { signature: Some("s".into()) },
        AnswerPart::TextStart,
        AnswerPart::TextDelta("a".into()),
        AnswerPart::TextDelta("b".into()),
        AnswerPart::TextStop,
        AnswerPart::End(StopReason::new(StopKind::Finished, "stop")),
    ];

    let progress: Vec<BlockProgress> = parts.into_iter().map(|part| blocks.push(part)).collect();

    let expected = [
        BlockProgress::Nothing,
        BlockProgress::Reasoning("hm".into()),
        BlockProgress::Block(Item::Reasoning { text: "hm".into(), signature: Some("s".into()) }),
        BlockProgress::Nothing,
        BlockProgress::Text("a".into()),
        BlockProgress::Text("b".into()),
        BlockProgress::Block(Item::Text { role: Role::Assistant, text: "ab".into() }),
        BlockProgress::End(StopReason::new(StopKind::Finished, "stop")),
    ];
    assert_eq!(progress, expected);
}

#[test]
fn a_call_keeps_its_arguments_as_they_came() {
    let mut blocks = BlockAssembler::default();
    blocks.push(AnswerPart::CallStart { wire_id: Some("w".into()), name: "exec".into() });
    blocks.push(AnswerPart::ArgumentsDelta("{\"a\": ".into()));
    blocks.push(AnswerPart::ArgumentsDelta("oops".into()));

    let call = blocks.push(AnswerPart::CallStop { signature: None });

    let BlockProgress::Block(Item::ToolCall { wire_id, name, arguments, .. }) = call else {
        panic!("{call:?}")
    };
    assert_eq!((wire_id.as_deref(), &*name, &*arguments), (Some("w"), "exec", "{\"a\": oops"));
}

#[test]
fn what_does_not_belong_there_is_told() {
    let after = |parts: Vec<AnswerPart>| {
        let mut blocks = BlockAssembler::default();
        parts.into_iter().map(|part| blocks.push(part)).last()
    };

    assert!(matches!(after(vec![AnswerPart::TextDelta("x".into())]), Some(BlockProgress::Odd(_))));
    assert!(matches!(
        after(vec![AnswerPart::TextStart, AnswerPart::CallStop { signature: None }]),
        Some(BlockProgress::Odd(_))
    ));
    assert!(matches!(
        after(vec![AnswerPart::TextStart, AnswerPart::End(StopReason::new(StopKind::Finished, "stop"))]),
        Some(BlockProgress::Odd(_))
    ));
}

#[test]
fn an_answer_without_end_is_cut_off() {
    let mut blocks = BlockAssembler::default();
    blocks.push(AnswerPart::TextStart);
    let delta = || AnswerPart::TextDelta("x".repeat(1 << 20));

    assert!(matches!(blocks.push(delta()), BlockProgress::Text(_)));
    assert!(matches!(blocks.push(delta()), BlockProgress::Text(_)));
    assert!(matches!(blocks.push(delta()), BlockProgress::TooLarge(_)));
}
