//! `longhaul sessions show`: the conversation as a page (`report`), or its records.

use longhaul_journal::{Error, Journal, Page};
use longhaul_protocol::{Record, Seq, StreamName};
use serde::Serialize;

use super::{SessionForm, epochs, report};
use crate::args::{Family, GlobalArgs, ShowOptions};
use crate::exit;
use crate::output::{count, grouped, json, line, record, shortened};
use crate::session_lookup::find_session;

/// So many records are listed, unless somebody says how many.
const DEFAULT_RECORD_LIMIT: u64 = 200;

#[derive(Serialize)]
struct ShownForm {
    #[serde(flatten)]
    session: SessionForm,
    stream: StreamName,
    /// The epoch that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    epoch: Option<u64>,
    records_shown: Vec<Shown>,
}

/// A record, or why there is none to show.
#[derive(Serialize)]
#[serde(untagged)]
enum Shown {
    Record(Record),
    Damaged { seq: Seq, damaged: String },
}

pub(crate) async fn run(globals: &GlobalArgs, options: ShowOptions) -> anyhow::Result<u8> {
    if options.is_page() {
        return report::show(globals, &options).await;
    }
    let ShowOptions { key, from, epoch, limit, stream, json: as_json, .. } = options;
    let (limit, family) = (limit.unwrap_or(DEFAULT_RECORD_LIMIT), stream.unwrap_or(Family::Session));
    let Some(journal) = globals.open_journal().await? else {
        return Err(Error::NoSuchSession { key }.into());
    };
    let session = find_session(&journal, &key).await?;
    let stream = family.stream(session.id);
    let head = journal.head(&stream).await?.seq;
    let newest_epoch = if family == Family::Session { session.epoch_from } else { None };
    let (from, end) = match epoch {
        Some(number) => epochs::range_of(&journal, &stream, number).await?,
        None => (from.or(newest_epoch).unwrap_or(1).max(1), head),
    };
    let through = end.min(from.saturating_add(limit).saturating_sub(1));
    let shown = read(&journal, &stream, from, through).await?;
    journal.close().await;
    let damaged = shown.iter().any(|shown| matches!(shown, Shown::Damaged { .. }));
    let code = if damaged { exit::FAILED } else { exit::DONE };
    if as_json {
        json(&ShownForm { session: session.into(), stream, epoch, records_shown: shown })?;
        return Ok(code);
    }
    line(format!("{}  {}", shortened(&session.key, 100), session.id))?;
    let range = match epoch {
        Some(number) => format!("epoch {number} is seq {from} to {end}"),
        None => format!("shown from seq {from}"),
    };
    line(format!("{stream}: {}, {range}", count(head, "record")))?;
    for record_or_damage in &shown {
        match record_or_damage {
            Shown::Record(shown) => line(record(shown))?,
            Shown::Damaged { seq, damaged } => line(format!("{seq:>6}  damaged: {damaged}"))?,
        }
    }
    if through < end {
        line(format!("{} more: --from {} shows them", grouped(end - through), through + 1))?;
    }
    Ok(code)
}

/// Records of a stream between two places; a damaged one is said and passed over.
async fn read(
    journal: &dyn Journal,
    stream: &StreamName,
    from: Seq,
    through: Seq,
) -> anyhow::Result<Vec<Shown>> {
    let mut shown = Vec::new();
    let mut next = from;
    while next <= through {
        match journal.read(stream, next, Page::default()).await {
            Ok(page) if page.is_empty() => break,
            Ok(page) => {
                next = page.last().map_or(through, |last| last.seq) + 1;
                shown.extend(page.into_iter().filter(|record| record.seq <= through).map(Shown::Record));
            }
            Err(Error::Damaged { seq, reason, .. }) => {
                shown.push(Shown::Damaged { seq, damaged: reason });
                next = seq + 1;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(shown)
}
