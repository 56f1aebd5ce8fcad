use super::*;

fn asked_for(offset: Option<usize>, limit: Option<usize>) -> Asked {
    Asked { path: "output:x".into(), offset, limit }
}

#[test]
fn a_part_says_what_it_is_a_part_of_and_how_to_go_on() {
    let text = "a\nb\nc\nd\n";

    assert_eq!(lines(text, &asked_for(Some(2), Some(2))), "b\nc\n[lines 2 to 3 of 4; go on with offset 4]");
    assert_eq!(lines(text, &asked_for(Some(4), Some(2))), "d");
    assert_eq!(lines(text, &asked_for(None, None)), "a\nb\nc\nd");
    assert_eq!(lines(text, &asked_for(Some(9), None)), "[there is no line 9: it has 4 lines]");
}
