use longhaul_protocol::{CallId, QuestionId, TaskId};

use super::*;

fn task(bits: u128) -> TaskId {
    CallId::from_bits(bits).into()
}

#[test]
fn a_task_is_found_by_its_id_its_beginning_and_its_end() {
    let known = [task(1), task(1 << 120 | 2)];

    for name in [known[0].to_string(), short(known[0]), known[0].to_string().to_uppercase()] {
        assert_eq!(find(known, &name), IdMatch::One(known[0]), "{name}");
    }
    let beginning = known[1].to_string();
    assert_eq!(find(known, &beginning[5..10]), IdMatch::One(known[1]));
    assert_eq!(find(known, &beginning[..10]), IdMatch::One(known[1]));
}

#[test]
fn what_fits_several_is_none_of_them() {
    let known = [task(1 << 40 | 1), task(2 << 40 | 1)];

    assert_eq!(find(known, "0001"), IdMatch::Several(known.to_vec()));
    assert_eq!(find(known, "zzzz"), IdMatch::Nothing);
    assert_eq!(find(known, "01"), IdMatch::Nothing, "so little may be a word");
    assert_eq!(find(known, "task_"), IdMatch::Nothing);
    assert_eq!(find(known, "task_1"), IdMatch::Nothing, "nor is what comes after it long enough");
    assert_eq!(find(known, "task_0001"), IdMatch::Nothing, "no id begins so");
    assert_eq!(find(known, ""), IdMatch::Nothing);
}

#[test]
fn a_question_is_named_as_a_task_is() {
    let question = QuestionId::generate();
    let id = question.to_string();

    for name in [&id, &id[..6], &id[id.len() - 6..], &id.to_lowercase()] {
        assert_eq!(find([question], name), IdMatch::One(question), "{name}");
    }
    assert_eq!(find([question], "yes"), IdMatch::Nothing);
}

/// The screen shows the last six characters of an id.
#[test]
fn a_task_is_found_by_either_end_of_what_the_screen_shows() {
    let known: [TaskId; 2] =
        ["task_01m7mcevz1tgjcxxahwra6k87v", "task_01m7mcevz1tgjcxxahwra6m9vs"].map(|id| id.parse().unwrap());

    for name in ["a6k87v", "a6k8", "a6k", "87v", "A6K"] {
        assert_eq!(find_task(known, name), IdMatch::One(known[0]), "{name}");
    }
    assert_eq!(find_task(known, "01m7mc"), IdMatch::Several(known.to_vec()));
    assert_eq!(find_task(known, "7v"), IdMatch::Nothing, "so little names nothing");
}
