use std::path::PathBuf;

use longhaul_protocol::{At, Event, EventKind, SessionId};

use super::{Folded, UpdateFold};
use crate::wire::params::ClientFeatures;
use crate::wire::update::SessionUpdate;

fn live(kind: EventKind) -> Event {
    Event { seq: None, at: At(0), session: "acp:x".to_owned(), turn: Some(1), kind }
}

fn fold(features: ClientFeatures) -> UpdateFold {
    UpdateFold::new(SessionId::from_bits(1), PathBuf::from("/work"), features)
}

#[test]
fn a_wait_for_a_retry_is_a_notice_where_the_editor_has_notices() {
    let wait = live(EventKind::RetryWait {
        class: "throttled".to_owned(),
        attempt: 1,
        of: 4,
        delay_ms: 3_000,
        reason: "rate limited (429)".to_owned(),
    });
    let with_notices = ClientFeatures { notices: true, ..ClientFeatures::default() };

    assert_eq!(fold(ClientFeatures::default()).apply_live(&wait), []);
    let shown = fold(with_notices).apply_live(&wait);

    let [Folded::Update(SessionUpdate::Notice { severity, title })] = &shown[..] else { panic!("{shown:?}") };
    assert!(*severity == "warning" && title.contains("3 s"), "{title}");
}
