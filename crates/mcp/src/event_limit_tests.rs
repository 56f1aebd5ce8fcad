use super::LimitedEvents;

fn fits(chunks: &[&str]) -> bool {
    let mut events = LimitedEvents::new((), 10);
    chunks.iter().all(|chunk| events.add(chunk.as_bytes()))
}

/// E1
#[test]
fn events_may_go_on_but_none_may_be_too_long() {
    assert!(fits(&["data: 1234\n\n", "data: 5678\r\n\r\n", "data: 90ab\r\r", "data: cdef\n\n"]));
    assert!(!fits(&["data: 12345\n\n"]));
    // Wherever the chunks end.
    assert!(!fits(&["data: ", "123", "\n", "45", "\n\n"]));
    assert!(fits(&["data: 12\r", "\n\r", "\ndata: 3456"]));
    // The line ends of one event are not its end.
    assert!(!fits(&["data: 1\r\nid: 2\r\n\r\n"]));
}
