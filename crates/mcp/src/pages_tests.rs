use std::cell::Cell;

use super::*;

/// E1
#[tokio::test]
async fn a_list_without_an_end_is_given_up() {
    let asked = Cell::new(0);

    let listing = all_pages(10, |_| {
        asked.set(asked.get() + 1);
        async { Ok((Vec::<u8>::new(), Some("again".to_owned()))) }
    });

    assert_eq!(listing.await.unwrap().entries, [0; 0]);
    assert_eq!(asked.get(), MAX_PAGES);
}

/// E1
#[tokio::test]
async fn a_list_is_read_to_its_end_or_to_its_limit() {
    let page = |params: Option<PaginatedRequestParams>| async move {
        match params.and_then(|params| params.cursor) {
            None => Ok((vec![1, 2], Some("second".to_owned()))),
            Some(_) => Ok((vec![3, 4], None)),
        }
    };

    let (all, some) = (all_pages(10, page).await.unwrap(), all_pages(3, page).await.unwrap());

    assert_eq!((all.entries, some.entries), (vec![1, 2, 3, 4], vec![1, 2, 3]));
}
