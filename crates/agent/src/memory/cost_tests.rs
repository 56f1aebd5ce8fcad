use longhaul_protocol::AttemptId;

use super::*;

fn costing(dollars: f64) -> Usage {
    Usage { cost: Some(dollars), ..Usage::of(AttemptId::generate()) }
}

/// T9
#[tokio::test]
async fn what_a_job_that_is_cut_has_cost_is_said_by_the_next() {
    let unpaid = Unpaid::default();
    let job = async {
        let mut bill = unpaid.bill("extract/a".to_owned());
        bill.usages.push(costing(2.0));
        std::future::pending::<()>().await;
    };

    tokio::select! {
        biased;
        () = job => {}
        () = std::future::ready(()) => {}
    }
    let (cut, bill) = (unpaid.nano(), unpaid.bill("extract/a".to_owned()));

    assert_eq!((cut, bill.usages.len(), unpaid.nano()), (2_000_000_000, 1, 0));
}

#[test]
fn what_was_said_is_not_said_again() {
    let unpaid = Unpaid::default();
    unpaid.bill("extract/a".to_owned()).usages.push(costing(1.0));
    unpaid.bill("extract/b".to_owned()).usages.push(costing(1.0));

    unpaid.bill("extract/a".to_owned()).usages.clear();

    assert_eq!(unpaid.nano(), 1_000_000_000);
}
