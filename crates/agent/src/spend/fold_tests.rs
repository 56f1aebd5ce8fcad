use longhaul_protocol::{Body, Hash, SpendHolder, SpentTokens, StreamName};
use proptest::prelude::*;

use super::*;

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;
const START: i64 = 1_794_873_600_000;

fn record(seq: Seq, at: i64, fact: &SpendRecord) -> Record {
    let new = fact.encode();
    Record {
        stream: StreamName::spend(),
        seq,
        at: At(at),
        kind: new.kind,
        key: None,
        body: Body::Here(new.body),
        prev: Hash::ZERO,
        hash: Hash::ZERO,
    }
}

fn reserved(attempt: u128, session: u128, turn: u64) -> SpendRecord {
    let holder = SpendHolder {
        host: "h".to_owned(),
        boot: "b".to_owned(),
        pid_namespace: String::new(),
        pid: 1,
        started: 1,
        runtime: String::new(),
    };
    SpendRecord::Reserved(SpendReserved {
        attempt: AttemptId::from_bits(attempt),
        session: SessionId::from_bits(session),
        cause: Cause::Turn,
        model: "a/b".to_owned(),
        limits: vec![format!("turn/{turn}")],
        past_soft: vec![],
        tokens: 1_000,
        cost: Some(0.01),
        made_at: None,
        holder,
    })
}

fn settled(attempt: u128, tokens: u64, cost: Option<f64>, source: SpendSource) -> SpendRecord {
    let usage = SpentTokens { input: Some(tokens), output: Some(1), ..SpentTokens::default() };
    SpendRecord::Settled(SpendSettled { attempt: AttemptId::from_bits(attempt), usage, cost, source })
}

#[derive(Debug, Clone)]
enum Step {
    Reserve { session: u128, turn: u64 },
    Settle { which: usize, tokens: u64, cost: Option<f64> },
    Open,
    NextDay,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0_u128..3, 1_u64..4).prop_map(|(session, turn)| Step::Reserve { session, turn }),
        4 => (any::<usize>(), 0_u64..5_000, prop::option::of(0.0_f64..1.0))
            .prop_map(|(which, tokens, cost)| Step::Settle { which, tokens, cost }),
        1 => Just(Step::Open),
        1 => Just(Step::NextDay),
    ];
    prop::collection::vec(step, 0..60)
}

/// The records of some steps.
fn records(steps: &[Step]) -> Vec<Record> {
    let (mut fold, mut records, mut open) = (LedgerFold::default(), Vec::<Record>::new(), Vec::new());
    let (mut at, mut attempt) = (START, 0);
    for step in steps {
        at += 1_000;
        let body = match step {
            Step::Reserve { session, turn } => {
                attempt += 1;
                open.push(attempt);
                reserved(attempt, *session, *turn)
            }
            Step::Settle { which, tokens, cost } if !open.is_empty() => {
                let attempt = open.remove(which % open.len());
                settled(attempt, *tokens, *cost, SpendSource::Provider)
            }
            Step::Open => SpendRecord::Opened(fold.opening(At(at), None)),
            Step::Settle { .. } => continue,
            Step::NextDay => {
                at += DAY_MS;
                continue;
            }
        };
        let new = record(records.len() as Seq + 1, at, &body);
        fold.apply(&new);
        records.push(new);
    }
    records
}

fn fold_of(records: &[Record]) -> LedgerFold {
    let mut fold = LedgerFold::default();
    records.iter().for_each(|record| fold.apply(record));
    fold
}

proptest! {
    /// B1: a fold that begins at the newest opening is the same as one that reads everything.
    #[test]
    fn a_fold_from_the_newest_opening_is_the_fold_of_everything(steps in steps()) {
        let records = records(&steps);
        let opened = records.iter().rposition(|record| record.kind == "spend_opened").unwrap_or(0);

        prop_assert_eq!(fold_of(&records[opened..]), fold_of(&records));
    }

    /// B2: the segments and the tail together hold each settled call once.
    #[test]
    fn the_rows_of_all_segments_are_the_settled_calls(steps in steps()) {
        let records = records(&steps);
        let mut settled = RowSum::default();
        let mut rows = RowSum::default();
        for record in &records {
            match SpendRecord::decode(record).unwrap() {
                SpendRecord::Settled(call) => {
                    settled.calls += 1;
                    settled.input += call.usage.input.unwrap();
                    settled.nano += call.cost.map_or(0, nano);
                }
                SpendRecord::Opened(opened) => {
                    opened.spent.into_iter().map(row_of).for_each(|(_, sum)| rows.add(&sum));
                }
                _ => {}
            }
        }
        fold_of(&records).spent().values().for_each(|sum| rows.add(sum));

        prop_assert_eq!((rows.calls, rows.input, rows.nano), (settled.calls, settled.input, settled.nano));
    }
}

/// B1
#[test]
fn a_call_counts_to_the_day_of_its_reservation() {
    let records = [
        record(1, START, &reserved(1, 1, 1)),
        record(2, START + DAY_MS, &settled(1, 99, Some(0.5), SpendSource::Provider)),
    ];

    let fold = fold_of(&records);

    let (first, _) = fold.used(&format!("day/{}", day_of(At(START))));
    let (second, _) = fold.used(&format!("day/{}", day_of(At(START + DAY_MS))));
    assert_eq!((first.nano, second.nano), (500_000_000, 0));
}

/// B1
#[test]
fn a_call_is_settled_once() {
    let records = [
        record(1, START, &reserved(1, 1, 1)),
        record(2, START, &settled(1, 99, Some(0.5), SpendSource::Provider)),
        record(3, START, &settled(1, 99, Some(0.5), SpendSource::Bound)),
    ];

    let fold = fold_of(&records);

    assert_eq!(fold.used(TOTAL).0, Amount { tokens: 100, nano: 500_000_000 });
}

/// B1: an open reservation counts in full, against everything that applies.
#[test]
fn a_reservation_counts_against_its_turn_session_day_month_and_the_total() {
    let fold = fold_of(&[record(1, START, &reserved(1, 5, 2))]);
    let session = SessionId::from_bits(5);

    for scope in [
        TOTAL.to_owned(),
        format!("turn/{session}/2"),
        format!("session/{session}"),
        format!("day/{}", day_of(At(START))),
        format!("month/{}", month_of(At(START))),
    ] {
        assert_eq!(fold.used(&scope).1, Amount { tokens: 1_000, nano: 10_000_000 }, "{scope}");
    }
}

/// B3: turns come and go, so what was said about one must not stay in the ledger for ever.
#[test]
fn the_passed_soft_limit_of_a_turn_goes_with_the_turn() {
    let passing = |attempt: u128, turn: u64| {
        let SpendRecord::Reserved(call) = reserved(attempt, 7, turn) else { unreachable!() };
        let name = format!("tokens_per_turn/{}/{turn}", call.session);
        SpendRecord::Reserved(SpendReserved { past_soft: vec![name, "cost_total".to_owned()], ..call })
    };
    let facts = [
        passing(1, 1),
        settled(1, 10, Some(0.0), SpendSource::Provider),
        passing(2, 2),
        settled(2, 10, Some(0.0), SpendSource::Provider),
        passing(3, 3),
    ];
    let records: Vec<Record> = (1..).zip(&facts).map(|(seq, fact)| record(seq, START, fact)).collect();

    let opened = fold_of(&records).opening(At(START), None);
    let later = fold_of(&records).opening(At(START + 32 * DAY_MS), None);

    let turn = |turn: u64| format!("tokens_per_turn/{}/{turn}", SessionId::from_bits(7));
    assert_eq!(opened.past_soft, ["cost_total".to_owned(), turn(2), turn(3)], "the newest, and the open one");
    assert_eq!(later.past_soft, ["cost_total".to_owned(), turn(3)]);
}
