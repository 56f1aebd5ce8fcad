//! Lists in pages.

use axum::Json;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::problem::{ApiResult, Problem};

pub(super) const DEFAULT_ITEMS: usize = 100;
pub(super) const MAX_ITEMS: usize = 1_000;

/// Which page of a list the client wants.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListQuery {
    /// The most items to return, up to 1,000; 100 if absent.
    #[schemars(range(min = 1, max = 1000))]
    pub(super) limit: Option<usize>,
    /// Where the list goes on: `next` of the page before.
    pub(super) after: Option<String>,
}

impl ListQuery {
    /// The most items of the page.
    pub(super) fn item_count(&self) -> ApiResult<usize> {
        check_limit(self.limit, DEFAULT_ITEMS, MAX_ITEMS)
    }
}

/// The limit that a query gives, or this default. An error if it is not between 1 and `max`.
pub(super) fn check_limit(limit: Option<usize>, default: usize, max: usize) -> ApiResult<usize> {
    match limit.unwrap_or(default) {
        limit if (1..=max).contains(&limit) => Ok(limit),
        limit => {
            let detail = format!("limit: {limit} is out of range; send a number from 1 to {max}");
            Err(Problem::bad_request("invalid_query", detail))
        }
    }
}

/// One page of a list.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct List<T> {
    pub(crate) items: Vec<T>,
    /// The value of `after` for the next page; null on the last page.
    pub(crate) next: Option<String>,
}

impl<T> List<T> {
    /// The page that the client wants of all items, which are sorted by this key.
    pub(crate) fn page(
        items: Vec<T>,
        query: &ListQuery,
        key: impl Fn(&T) -> String,
    ) -> ApiResult<Json<Self>> {
        let limit = query.item_count()?;
        let mut rest = items
            .into_iter()
            .skip_while(|item| query.after.as_ref().is_some_and(|after| key(item) <= *after));
        let items: Vec<T> = rest.by_ref().take(limit).collect();
        let next = rest.next().and(items.last()).map(key);
        Ok(Json(Self { items, next }))
    }
}
