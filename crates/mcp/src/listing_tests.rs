use super::*;

/// E1: a server that lists page after page of large entries would otherwise take the memory of the whole runtime.
#[test]
fn a_list_takes_no_more_bytes_than_one_message_however_many_pages_it_has() {
    let mut listing = Listing::new(1_000);
    let page = || vec!["x".repeat(MAX_MESSAGE_BYTES / 4)];

    let mut pages = 0;
    while !listing.is_full() {
        listing.add_page(page());
        pages += 1;
    }

    assert_eq!((pages, listing.entries.len(), listing.is_cut), (4, 3, true));
}

#[test]
fn a_list_of_small_entries_ends_with_the_most_that_it_may_have() {
    let mut listing = Listing::new(3);

    listing.add_page(vec!["a", "b"]);
    assert!(!listing.is_full());
    listing.add_page(vec!["c", "d"]);

    assert_eq!((listing.entries.as_slice(), listing.is_cut), (["a", "b", "c"].as_slice(), false));
    assert!(listing.is_full());
}
