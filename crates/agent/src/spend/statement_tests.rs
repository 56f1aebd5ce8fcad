use longhaul_testkit::TestHome;

use super::*;

/// B2, H8: who shows the last days gets them without reading all.
#[tokio::test]
async fn days_come_in_their_order_or_newest_first() {
    let home = TestHome::in_memory();
    let journal = home.journal().await;
    let days = ["2026-11-15", "2026-11-17", "2026-11-16"];
    let mut names = Vec::new();
    for newest_first in [false, true] {
        let query = StatementQuery {
            by: StatementBy::Day,
            newest_first,
            limit: Some(2),
            ..StatementQuery::default()
        };
        let sums = days.map(|day| (RowName::Text(day.to_owned()), RowSum::default())).into_iter().collect();
        let (items, next) = page(sorted_items(&*journal, &query, sums).await.unwrap(), &query);
        names.extend(items.into_iter().map(|item| item.name).chain(next));
    }

    assert_eq!(names, ["2026-11-15", "2026-11-16", "2026-11-16", "2026-11-17", "2026-11-16", "2026-11-16"]);
}
