use longhaul_protocol::AttemptId;

use super::*;

fn costing(dollars: f64) -> Usage {
    Usage { cost: Some(dollars), ..Usage::of(AttemptId::generate()) }
}

/// M15
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
    let cut = unrecorded_costs.of_stream("extract/a").len();
    let pending = unrecorded_costs.take_pending("extract/a".to_owned());

    assert_eq!((cut, pending.usages.len(), unrecorded_costs.of_stream("extract/a").len()), (1, 1, 0));
}

#[test]
fn what_was_said_is_not_said_again() {
    let unrecorded_costs = UnrecordedCosts::default();
    unrecorded_costs.take_pending("extract/a".to_owned()).usages.push(costing(1.0));
    unrecorded_costs.take_pending("extract/b".to_owned()).usages.push(costing(1.0));

    unrecorded_costs.take_pending("extract/a".to_owned()).usages.clear();

    let left = ["extract/a", "extract/b"].map(|stream| unrecorded_costs.of_stream(stream).len());
    assert_eq!(left, [0, 1]);
}
