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

/// Another order than a list has by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ListOrder {
    Newest,
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
        Self::page_of(items.into_iter(), query, None, key)
    }

    /// The same, with the newest items first, if that is the order. The key grows with the time.
    pub(crate) fn page_in_order(
        items: Vec<T>,
        query: &ListQuery,
        order: Option<ListOrder>,
        key: impl Fn(&T) -> String,
    ) -> ApiResult<Json<Self>> {
        match order {
            Some(ListOrder::Newest) => Self::page_of(items.into_iter().rev(), query, order, key),
            None => Self::page_of(items.into_iter(), query, order, key),
        }
    }

    fn page_of(
        items: impl Iterator<Item = T>,
        query: &ListQuery,
        order: Option<ListOrder>,
        key: impl Fn(&T) -> String,
    ) -> ApiResult<Json<Self>> {
        let limit = query.item_count()?;
        let was_shown = |item: &T, after: &String| match order {
            Some(ListOrder::Newest) => key(item) >= *after,
            None => key(item) <= *after,
        };
        let mut rest =
            items.skip_while(|item| query.after.as_ref().is_some_and(|after| was_shown(item, after)));
        let items: Vec<T> = rest.by_ref().take(limit).collect();
        let next = rest.next().and(items.last()).map(&key);
        Ok(Json(Self { items, next }))
    }
}
