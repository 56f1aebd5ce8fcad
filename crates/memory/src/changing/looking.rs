//! What was changed, for people: the list of changes, and what one of them did.

use std::collections::{BTreeMap, BTreeSet};

use longhaul_journal::Journal;
use longhaul_protocol::{At, ChangedBy, ItemSource, PagesChanged, Record, Seq, SessionId};

use crate::book::{PageSet, changes_in};
use crate::difference::difference;
use crate::paging::read_after;
use crate::{Error, Result, page};

/// One change, for people.
#[derive(Debug, Clone, PartialEq)]
pub struct PageLogEntry {
    /// The record.
    pub seq: Seq,
    /// When.
    pub at: At,
    /// By whom.
    pub by: ChangedBy,
    /// Why.
    pub reason: String,
    /// The pages, each with the reason that is given for it and from how many items it was made.
    pub pages: Vec<(String, String, usize)>,
    /// What the model wrote and was not taken.
    pub refused: Vec<String>,
    /// The change that it takes back.
    pub undoes: Option<Seq>,
    /// What it cost, in US dollars.
    pub cost: Option<f64>,
}

/// All changes, or those of one page, the newest first.
pub async fn page_log(journal: &dyn Journal, scope: &str, page: Option<&str>) -> Result<Vec<PageLogEntry>> {
    if let Some(name) = page {
        page::check_page_name(name)?;
    }
    let mut entries = Vec::new();
    let book = fold(journal, scope, |_, record, changed| {
        if page.is_none_or(|page| changed.pages.iter().any(|change| change.page == page)) {
            entries.push(entry(record, changed));
        }
    })
    .await?;
    if let (Some(name), true) = (page, entries.is_empty()) {
        return Err(book.no_page(name));
    }
    entries.reverse();
    Ok(entries)
}

/// The pages, each with its scope, that were made from items of these records of extract streams: they may say the same in other words.
pub async fn pages_citing(
    journal: &dyn Journal,
    extracts: &[(SessionId, Seq)],
) -> Result<BTreeSet<(String, String)>> {
    let mut found = BTreeSet::new();
    for stream in journal.streams().await? {
        let Some(scope) = stream.as_str().strip_prefix("memory/") else { continue };
        read_after(journal, &stream, 0, |record| {
            let pages = changes_in(&record).map(|changed| changed.pages).unwrap_or_default();
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

/// What a change did to its pages, line by line.
pub async fn page_diff(journal: &dyn Journal, scope: &str, seq: Seq) -> Result<String> {
    Ok(Looked::at(journal, scope, seq).await?.deed.shown())
}

/// What one change did to pages: each with its text before and after.
#[derive(Debug, Default)]
pub(super) struct Deed(pub(super) BTreeMap<String, (Option<String>, Option<String>)>);

impl Deed {
    /// For people.
    fn shown(&self) -> String {
        let shown = |(page, (before, after)): (&String, &(Option<String>, Option<String>))| {
            let what = match (before, after) {
                (None, Some(_)) => " (new)",
                (Some(_), None) => " (removed)",
                _ => "",
            };
            let text = |text: &Option<String>| text.clone().unwrap_or_default();
            format!("== {page}{what}\n{}", difference(&text(before), &text(after)))
        };
        self.0.iter().map(shown).collect()
    }
}

/// One change, and what came of its pages after it.
pub(super) struct Looked {
    /// What it did.
    pub(super) deed: Deed,
    /// The newest changes of its pages that came after it.
    newer: BTreeMap<Seq, Deed>,
    /// All as it is now.
    pub(super) book: PageSet,
}

impl Looked {
    /// Goes through the past of a scope.
    pub(super) async fn at(journal: &dyn Journal, scope: &str, seq: Seq) -> Result<Self> {
        let mut found: Option<Deed> = None;
        let mut newer: BTreeMap<Seq, Deed> = BTreeMap::new();
        let book = fold(journal, scope, |book, record, changed| {
            let pages = changed.pages.iter().map(|change| {
                let before = book.text(&change.page).map(str::to_owned);
                (change.page.clone(), (before, change.text.clone()))
            });
            if record.seq == seq {
                found = Some(Deed(pages.collect()));
            } else if let Some(deed) = &found {
                let pages: BTreeMap<_, _> = pages.filter(|(page, _)| deed.0.contains_key(page)).collect();
                for older in newer.values_mut() {
                    older.0.retain(|page, _| !pages.contains_key(page));
                }
                newer.insert(record.seq, Deed(pages));
                newer.retain(|_, deed| !deed.0.is_empty());
            }
        })
        .await?;
        let deed = found.ok_or(Error::NoChange { seq })?;
        Ok(Self { deed, newer, book })
    }

    /// That a newer change of a page builds on this one.
    pub(super) fn built_upon(&self, seq: Seq, page: &str) -> Error {
        let newest = self.newer.iter().find(|(_, deed)| deed.0.contains_key(page));
        let (newer, shown) =
            newest.map_or((self.book.head, String::new()), |(seq, deed)| (*seq, deed.shown()));
        let both = format!("change {seq}:\n{}\nchange {newer}:\n{shown}", self.deed.shown());
        Error::BuiltUpon { page: page.to_owned(), seq, newer, both }
    }
}

/// Goes through all changes that can be read; each is shown with the book as it was before it.
async fn fold(
    journal: &dyn Journal,
    scope: &str,
    mut see: impl FnMut(&PageSet, &Record, &PagesChanged),
) -> Result<PageSet> {
    let mut book = PageSet { scope: scope.to_owned(), ..PageSet::default() };
    let stream = book.stream()?;
    let head = read_after(journal, &stream, 0, |record| {
        if let Some(changed) = changes_in(&record) {
            see(&book, &record, &changed);
            book.apply(&record, &changed);
        }
    })
    .await?;
    book.head = head;
    Ok(book)
}
