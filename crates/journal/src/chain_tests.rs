use longhaul_protocol::{Body, Gone};
use serde_json::value::RawValue;

use super::*;

fn record(seq: Seq, prev: Hash, body: &str) -> Record {
    let stream: StreamName = "names".parse().unwrap();
    let (at, kind, body_hash) = (At(1_700_000_000_000), "note".to_owned(), Hash::of(body));
    let hash = ChainLink { stream: &stream, seq, at, kind: &kind, key: None, prev, body_hash }.hash();
    Record {
        stream,
        seq,
        at,
        kind,
        key: None,
        body: Body::Here(RawValue::from_string(body.into()).unwrap()),
        prev,
        hash,
    }
}

/// The hash is a format: another value here means that no journal verifies any more.
#[test]
fn the_hash_of_a_record_is_pinned() {
    let hash = record(1, Hash::ZERO, r#"{"text":"hello"}"#).hash.to_string();

    assert_eq!(hash, "79a057351aed08b45bc7d49456875131457d8e6c325d1cb47c38a61556cb8116");
}

#[test]
fn a_key_is_part_of_the_hash() {
    let mut with_key = record(1, Hash::ZERO, "{}");
    with_key.key = Some(Hash::of("key"));

    assert!(ChainCheck::from(1).follow(&with_key).is_err());
}

#[test]
fn each_change_of_a_record_breaks_the_chain() {
    let first = record(1, Hash::ZERO, r#"{"a":1}"#);
    let second = record(2, first.hash, r#"{"b":2}"#);
    let changes: [fn(&mut Record); 7] = [
        |record| record.stream = "other".parse().unwrap(),
        |record| record.seq = 3,
        |record| record.at.0 += 1,
        |record| record.kind.push('x'),
        |record| record.prev = Hash::ZERO,
        |record| record.hash = Hash::ZERO,
        |record| record.body = Body::Here(RawValue::from_string(r#"{"b": 2}"#.into()).unwrap()),
    ];

    for (number, change) in changes.iter().enumerate() {
        let mut chain = ChainCheck::from(1);
        chain.follow(&first).unwrap();
        let mut changed = second.clone();
        change(&mut changed);
        assert!(chain.follow(&changed).is_err(), "change {number} goes unnoticed");
    }
}

#[test]
fn an_erased_body_keeps_the_chain_and_a_lost_record_is_trusted_only_by_its_neighbours() {
    let first = record(1, Hash::ZERO, r#"{"a":1}"#);
    let mut second = record(2, first.hash, r#"{"b":2}"#);
    let third = record(3, second.hash, r#"{"c":3}"#);
    let (at, reason) = (At(0), String::new());

    for body_hash in [Some(Hash::of(r#"{"b":2}"#)), None] {
        second.body = Body::Gone(Gone { at, reason: reason.clone(), body_hash });
        let mut chain = ChainCheck::from(1);
        let verdicts = [&first, &second, &third].map(|record| chain.follow(record));
        assert_eq!(verdicts, [Ok(()), Ok(()), Ok(())]);
    }
    second.body = Body::Gone(Gone { at, reason, body_hash: Some(Hash::of("something else")) });
    assert!(ChainCheck::from(2).follow(&second).is_err());
}
