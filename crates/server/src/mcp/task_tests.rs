use longhaul_protocol::SessionId;

use super::TaskId;

/// E3: a task is found again by its id alone.
#[test]
fn an_id_names_the_session_and_the_place_in_its_inbox() {
    let id = TaskId { session: SessionId::generate(), seq: 17 };

    assert_eq!(id.to_string().parse(), Ok(id));
}

#[test]
fn a_task_has_one_id() {
    let id = TaskId { session: SessionId::generate(), seq: 17 }.to_string();

    for other in ["", "-", "x-1", &format!("{id}x"), &id.replace("-17", "-017"), &id.replace("-17", "")] {
        assert_eq!(other.parse::<TaskId>(), Err(()), "{other}");
    }
}
