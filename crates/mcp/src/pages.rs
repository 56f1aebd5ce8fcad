//! Lists that a server gives page by page: its tools, resources and prompts.

use rmcp::model::PaginatedRequestParams;
use rmcp::service::ServiceError;
use serde::Serialize;

use crate::listing::Listing;

/// The most pages of one list. A server whose list does not end shows only these.
const MAX_PAGES: usize = 100;

/// The entries of all pages, at most `max_entries` of them and the bytes of a message. `list_page` asks for one page and returns its entries and the cursor of
/// the next page, if there is one.
pub(crate) async fn all_pages<T, P>(
    max_entries: usize,
    list_page: impl Fn(Option<PaginatedRequestParams>) -> P,
) -> Result<Listing<T>, ServiceError>
where
    T: Serialize,
    P: Future<Output = Result<(Vec<T>, Option<String>), ServiceError>>,
{
    let (mut listing, mut cursor) = (Listing::new(max_entries), None);
    for _ in 0..MAX_PAGES {
        let page = PaginatedRequestParams::default().with_cursor(cursor);
        let (listed, next) = list_page(Some(page)).await?;
        listing.add_page(listed);
        cursor = next;
        if cursor.is_none() || listing.is_full() {
            break;
        }
    }
    Ok(listing)
}

#[cfg(test)]
#[path = "pages_tests.rs"]
mod tests;
