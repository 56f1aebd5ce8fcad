use super::*;

#[test]
fn each_way_in_which_a_turn_ends_has_its_exit_code() {
    let failed = |code| code_of(Outcome::Failed, Some(code));

    assert_eq!(code_of(Outcome::Completed, None), 0);
    assert_eq!([failed("script"), failed("bad_key"), code_of(Outcome::Failed, None)], [1, 1, 1]);
    assert_eq!([failed("throttled"), failed("quota")], [3, 3]);
    assert_eq!([failed("offline"), failed("unreachable")], [4, 4]);
    assert_eq!([failed("context_too_long"), code_of(Outcome::Limit, None)], [5, 6]);
    assert_eq!(code_of(Outcome::Cancelled, None), 1, "somebody else cancelled it");
}

#[test]
fn what_failed_first_gives_the_exit_code() {
    let codes = |codes: [u8; 3]| codes.into_iter().fold(exit::DONE, first_failure);

    assert_eq!([codes([0, 0, 0]), codes([1, 0, 0]), codes([0, 3, 1])], [0, 1, 3]);
}

#[test]
fn where_there_is_nothing_to_retry_the_reason_is_said() {
    assert_eq!(
        nothing_to(&Request::Retry, Some(Outcome::Completed)),
        "nothing to retry: the last turn completed"
    );
    assert_eq!(
        nothing_to(&Request::Retry, Some(Outcome::Cancelled)),
        "nothing to retry: the last turn was cancelled"
    );
    assert_eq!(nothing_to(&Request::Retry, None), "nothing to retry: there is no turn yet");
}

/// B3: another turn has the room of its own limits again, but not that of a day.
#[test]
fn only_a_limit_of_more_than_one_turn_has_to_be_raised() {
    let ended = |outcome, error: &str| TurnEnded {
        turn: 1,
        outcome,
        limit: None,
        text: String::new(),
        error: Some(error.to_owned()),
        code: None,
        inbox_through: None,
    };
    let day = ended(Outcome::Limit, "the next model call would pass limits.cost_per_day: $1 of $1; raise it");
    let turn = ended(Outcome::Limit, "the next model call would pass limits.cost_per_turn: $1 of $1");
    let failed = ended(Outcome::Failed, "the server knows no limits.cost_per_day");

    assert_eq!(limit_to_raise(&day), Some("limits.cost_per_day"));
    assert_eq!([&turn, &failed].map(limit_to_raise), [None, None]);
}
