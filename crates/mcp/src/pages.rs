//! Lists that a server gives page by page: its tools, resources and prompts.

use rmcp::model::PaginatedRequestParams;
use rmcp::service::ServiceError;

/// The most pages of one list. A server whose list does not end shows only these.
const MAX_PAGES: usize = 100;

/// The entries of all pages, at most `max_entries` of them. `list_page` asks for one page and returns its entries and the cursor of
/// the next page, if there is one.
pub(crate) async fn all_pages<T, P>(
    max_entries: usize,
    list_page: impl Fn(Option<PaginatedRequestParams>) -> P,
) -> Result<Vec<T>, ServiceError>
where
    P: Future<Output = Result<(Vec<T>, Option<String>), ServiceError>>,
{
    let (mut entries, mut cursor) = (Vec::new(), None);
    for _ in 0..MAX_PAGES {
        let page = PaginatedRequestParams::default().with_cursor(cursor);
        let (listed, next) = list_page(Some(page)).await?;
        entries.extend(listed);
        entries.truncate(max_entries);
        cursor = next;
        if cursor.is_none() || entries.len() == max_entries {
            break;
        }
    }
    Ok(entries)
}

#[cfg(test)]
#[path = "pages_tests.rs"]
mod tests;
