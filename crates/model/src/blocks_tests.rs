use super::*;

#[test]
fn parts_become_blocks() {
    let mut blocks = Blocks::default();
    let parts = [
        Part::ReasoningStart,
        Part::ReasoningDelta("hm".into()),
        Part::ReasoningStop { signature: Some("s".into()) },
        Part::TextStart,
        Part::TextDelta("a".into()),
        Part::TextDelta("b".into()),
        Part::TextStop,
        Part::End(Stop::new(StopKind::Finished, "stop")),
    ];

    let progress: Vec<Progress> = parts.into_iter().map(|part| blocks.push(part)).collect();

    let expected = [
        Progress::Nothing,
        Progress::Reasoning("hm".into()),
        Progress::Block(Item::Reasoning { text: "hm".into(), signature: Some("s".into()) }),
        Progress::Nothing,
        Progress::Text("a".into()),
        Progress::Text("b".into()),
        Progress::Block(Item::Text { role: Role::Assistant, text: "ab".into() }),
        Progress::End(Stop::new(StopKind::Finished, "stop")),
    ];
    assert_eq!(progress, expected);
}

#[test]
fn a_call_keeps_its_arguments_as_they_came() {
    let mut blocks = Blocks::default();
    blocks.push(Part::CallStart { wire_id: Some("w".into()), name: "exec".into() });
    blocks.push(Part::ArgumentsDelta("{\"a\": ".into()));
    blocks.push(Part::ArgumentsDelta("oops".into()));

    let call = blocks.push(Part::CallStop { signature: None });

    let Progress::Block(Item::ToolCall { wire_id, name, arguments, .. }) = call else { panic!("{call:?}") };
    assert_eq!((wire_id.as_deref(), &*name, &*arguments), (Some("w"), "exec", "{\"a\": oops"));
}

#[test]
fn what_does_not_belong_there_is_told() {
    let after = |parts: Vec<Part>| {
        let mut blocks = Blocks::default();
        parts.into_iter().map(|part| blocks.push(part)).last()
    };

    assert!(matches!(after(vec![Part::TextDelta("x".into())]), Some(Progress::Odd(_))));
    assert!(matches!(
        after(vec![Part::TextStart, Part::CallStop { signature: None }]),
        Some(Progress::Odd(_))
    ));
    assert!(matches!(
        after(vec![Part::TextStart, Part::End(Stop::new(StopKind::Finished, "stop"))]),
        Some(Progress::Odd(_))
    ));
}

#[test]
fn an_answer_without_end_is_cut_off() {
    let mut blocks = Blocks::default();
    blocks.push(Part::TextStart);
    let delta = || Part::TextDelta("x".repeat(1 << 20));

    assert!(matches!(blocks.push(delta()), Progress::Text(_)));
    assert!(matches!(blocks.push(delta()), Progress::Text(_)));
    assert!(matches!(blocks.push(delta()), Progress::TooLarge(_)));
}
