//! The history of pages: the list of changes, and what one change did.

use std::collections::{BTreeMap, BTreeSet};

use longhaul_journal::{Journal, record_at};
use longhaul_protocol::{
    At, ChangedBy, ExtractRecord, ItemSource, PagesChanged, Record, Seq, SessionId, StreamName,
};

use crate::line_diff::line_diff;
use crate::page_set::{PageSet, decode_changes};
use crate::stream_reader::read_all_after;
use crate::{Error, Result, page};

#[derive(Debug, Clone, PartialEq)]
pub struct PageLogEntry {
    pub seq: Seq,
    pub at: At,
    pub by: ChangedBy,
    pub reason: String,
    /// Each changed page, with the reason and the number of items that it cites.
    pub pages: Vec<(String, String, usize)>,
    /// The edits that validation refused.
    pub refused: Vec<String>,
    /// The change that this one undoes.
    pub undoes: Option<Seq>,
    /// In US dollars.
    pub cost: Option<f64>,
}

/// All changes or those of one page, the newest first.
pub async fn page_log(journal: &dyn Journal, scope: &str, page: Option<&str>) -> Result<Vec<PageLogEntry>> {
    if let Some(name) = page {
        page::check_page_name(name)?;
    }
    let mut entries = Vec::new();
    let page_set = fold(journal, scope, |_, record, changed| {
        if page.is_none_or(|page| changed.pages.iter().any(|change| change.page == page)) {
            entries.push(entry(record, changed));
        }
    })
    .await?;
    if let (Some(name), true) = (page, entries.is_empty()) {
        return Err(page_set.no_page_error(name));
    }
    entries.reverse();
    Ok(entries)
}

/// The pages, with their scopes, that cite items of these extract records. Such a page may contain the items in other
/// words.
pub async fn pages_citing(
    journal: &dyn Journal,
    extracts: &[(SessionId, Seq)],
) -> Result<BTreeSet<(String, String)>> {
    let mut found = BTreeSet::new();
    for stream in journal.streams().await? {
        let Some(scope) = stream.as_str().strip_prefix("memory/") else { continue };
        read_all_after(journal, &stream, 0, |record| {
            let pages = decode_changes(&record).map(|changed| changed.pages).unwrap_or_default();
            let is_from = |source: &ItemSource| extracts.contains(&(source.session, source.seq));
            let made = pages.into_iter().filter(|change| change.sources.iter().any(is_from));
            found.extend(made.map(|change| (scope.to_owned(), change.page)));
        })
        .await?;
    }
    Ok(found)
}

fn entry(record: &Record, changed: &PagesChanged) -> PageLogEntry {
    let cost = changed.usage.iter().filter_map(|usage| usage.cost).reduce(|sum, cost| sum + cost);
    let pages = changed.pages.iter();
    let pages = pages.map(|change| (change.page.clone(), change.reason.clone(), change.sources.len()));
    PageLogEntry {
        seq: record.seq,
        at: record.at,
        by: changed.by,
        reason: changed.reason.clone(),
        pages: pages.collect(),
        refused: changed.refused.clone(),
        undoes: changed.undoes,
        cost,
    }
}

/// The diff of a change, line by line.
pub async fn page_diff(journal: &dyn Journal, scope: &str, seq: Seq) -> Result<String> {
    Ok(ChangeInHistory::at(journal, scope, seq).await?.diffs.shown())
}

/// A place where something was said that a change of pages cites.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CitedPlace {
    pub session: SessionId,
    /// The record of the session.
    pub seq: Seq,
    /// The extracted item, in the words of the model.
    pub item: String,
}

/// Where the items of a change were said. Items whose records can't be read any more are left out.
pub async fn cited_places(journal: &dyn Journal, scope: &str, seq: Seq) -> Result<Vec<CitedPlace>> {
    let stream = PageSet { scope: scope.to_owned(), ..PageSet::default() }.stream()?;
    let record = record_at(journal, &stream, seq).await?.ok_or(Error::NoChange { seq })?;
    let changed = decode_changes(&record).ok_or(Error::NoChange { seq })?;
    let cited: BTreeSet<ItemSource> = changed.pages.into_iter().flat_map(|change| change.sources).collect();
    let mut places = Vec::new();
    for ItemSource { session, seq, item } in cited {
        // `verify` reports the damage.
        let Ok(Some(record)) = record_at(journal, &StreamName::extract(session), seq).await else { continue };
        let Ok(ExtractRecord::Extracted(extracted)) = ExtractRecord::decode(&record) else { continue };
        let Some(item) = extracted.items.into_iter().nth(item) else { continue };
        let said = item.sources.first().copied();
        places.extend(said.map(|seq| CitedPlace { session, seq, item: item.text }));
    }
    Ok(places)
}

/// The text of each changed page before and after a change.
#[derive(Debug, Default)]
pub(super) struct PageDiffs(pub(super) BTreeMap<String, (Option<String>, Option<String>)>);

impl PageDiffs {
    fn shown(&self) -> String {
        let shown = |(page, (before, after)): (&String, &(Option<String>, Option<String>))| {
            let what = match (before, after) {
                (None, Some(_)) => " (new)",
                (Some(_), None) => " (removed)",
                _ => "",
            };
            let text = |text: &Option<String>| text.clone().unwrap_or_default();
            format!("== {page}{what}\n{}", line_diff(&text(before), &text(after)))
        };
        self.0.iter().map(shown).collect()
    }
}

/// A change, and the later changes of its pages.
pub(super) struct ChangeInHistory {
    pub(super) diffs: PageDiffs,
    /// The later changes of its pages.
    newer: BTreeMap<Seq, PageDiffs>,
    pub(super) page_set: PageSet,
}

impl ChangeInHistory {
    /// Folds the whole history of a scope to find a change.
    pub(super) async fn at(journal: &dyn Journal, scope: &str, seq: Seq) -> Result<Self> {
        let mut found: Option<PageDiffs> = None;
        let mut newer: BTreeMap<Seq, PageDiffs> = BTreeMap::new();
        let page_set = fold(journal, scope, |page_set, record, changed| {
            let pages = changed.pages.iter().map(|change| {
                let before = page_set.page_text(&change.page).map(str::to_owned);
                (change.page.clone(), (before, change.text.clone()))
            });
            if record.seq == seq {
                found = Some(PageDiffs(pages.collect()));
            } else if let Some(diffs) = &found {
                let pages: BTreeMap<_, _> = pages.filter(|(page, _)| diffs.0.contains_key(page)).collect();
                for older in newer.values_mut() {
                    older.0.retain(|page, _| !pages.contains_key(page));
                }
                newer.insert(record.seq, PageDiffs(pages));
                newer.retain(|_, diffs| !diffs.0.is_empty());
            }
        })
        .await?;
        let diffs = found.ok_or(Error::NoChange { seq })?;
        Ok(Self { diffs, newer, page_set })
    }

    /// The error that a newer change of a page builds on this one.
    pub(super) fn built_upon(&self, seq: Seq, page: &str) -> Error {
        let newest = self.newer.iter().find(|(_, diffs)| diffs.0.contains_key(page));
        let (newer, shown) =
            newest.map_or((self.page_set.head, String::new()), |(seq, diffs)| (*seq, diffs.shown()));
        let both = format!("change {seq}:\n{}\nchange {newer}:\n{shown}", self.diffs.shown());
        Error::BuiltUpon { page: page.to_owned(), seq, newer, both }
    }
}

/// Folds all readable changes. `see` gets each change, and the pages from before it.
async fn fold(
    journal: &dyn Journal,
    scope: &str,
    mut see: impl FnMut(&PageSet, &Record, &PagesChanged),
) -> Result<PageSet> {
    let mut page_set = PageSet { scope: scope.to_owned(), ..PageSet::default() };
    let stream = page_set.stream()?;
    let head = read_all_after(journal, &stream, 0, |record| {
        if let Some(changed) = decode_changes(&record) {
            see(&page_set, &record, &changed);
            page_set.apply(&record, &changed);
        }
    })
    .await?;
    page_set.head = head;
    Ok(page_set)
}
