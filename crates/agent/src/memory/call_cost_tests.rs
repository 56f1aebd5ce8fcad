use longhaul_protocol::AttemptId;

use super::*;

fn costing(dollars: f64) -> Usage {
    Usage { cost: Some(dollars), ..Usage::of(AttemptId::generate()) }
}

/// T9
#[tokio::test]
async fn what_a_job_that_is_cut_has_cost_is_said_by_the_next() {
    let unrecorded_costs = UnrecordedCosts::default();
    let job = async {
        let mut pending = unrecorded_costs.take_pending("extract/a".to_owned());
        pending.usages.push(costing(2.0));
        std::future::pending::<()>().await;
    };

    tokio::select! {
        biased;
        () = job => {}
        () = std::future::ready(()) => {}
    }
    let (cut, pending) = (unrecorded_costs.nano(), unrecorded_costs.take_pending("extract/a".to_owned()));

    assert_eq!((cut, pending.usages.len(), unrecorded_costs.nano()), (2_000_000_000, 1, 0));
}

#[test]
fn what_was_said_is_not_said_again() {
    let unrecorded_costs = UnrecordedCosts::default();
    unrecorded_costs.take_pending("extract/a".to_owned()).usages.push(costing(1.0));
    unrecorded_costs.take_pending("extract/b".to_owned()).usages.push(costing(1.0));

    unrecorded_costs.take_pending("extract/a".to_owned()).usages.clear();

    assert_eq!(unrecorded_costs.nano(), 1_000_000_000);
}
