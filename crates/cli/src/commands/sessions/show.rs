//! `longhaul sessions show`: the conversation as a page (`report`), or its records.

use longhaul_journal::{Error, Journal, records};
use longhaul_protocol::{Record, Seq, StreamName};
use serde::Serialize;

use super::{SessionForm, epochs, report};
use crate::args::{Family, GlobalArgs, ShowOptions};
use crate::exit;
use crate::output::{format_count, format_number, print, record_line, truncate};
use crate::session_lookup::{open_session, session_name};

/// Records listed without `--limit`.
const DEFAULT_RECORD_LIMIT: u64 = 200;

#[derive(Serialize)]
struct ShownForm {
    #[serde(flatten)]
    session: SessionForm,
    stream: StreamName,
    /// The value of `--epoch`.
    #[serde(skip_serializing_if = "Option::is_none")]
    epoch: Option<u64>,
    records_shown: Vec<ShownRecord>,
}

/// A record, or why it can't be read.
#[derive(Serialize)]
#[serde(untagged)]
enum ShownRecord {
    Record(Record),
    Damaged { seq: Seq, damaged: String },
}

pub(crate) async fn run(globals: &GlobalArgs, options: ShowOptions) -> anyhow::Result<u8> {
    let name = session_name(globals, options.key.clone()).await?;
    if options.is_page() {
        return report::show(globals, &name, &options).await;
    }
    let ShowOptions { from, epoch, limit, stream, json: as_json, .. } = options;
    let (limit, family) = (limit.unwrap_or(DEFAULT_RECORD_LIMIT), stream.unwrap_or(Family::Session));
    let (journal, session) = open_session(globals, &name).await?;
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
    let damaged = shown.iter().any(|shown| matches!(shown, ShownRecord::Damaged { .. }));
    let code = if damaged { exit::FAILED } else { exit::DONE };
    let range = match epoch {
        Some(number) => format!("context {number}: entries {from} to {end}"),
        None => format!("from entry {from}"),
    };
    let mut lines = vec![
        format!("{}  {}", truncate(&session.key, 100), session.id),
        format!("{stream}: {}, {range}", format_count(head, "entry")),
    ];
    lines.extend(shown.iter().map(|shown| match shown {
        ShownRecord::Record(shown) => record_line(shown),
        ShownRecord::Damaged { seq, damaged } => format!("{seq:>6}  damaged: {damaged}"),
    }));
    if through < end {
        lines.push(format!("{} more; continue with --from {}", format_number(end - through), through + 1));
    }
    let form = ShownForm { session: session.into(), stream, epoch, records_shown: shown };
    print(as_json, || form, || lines)?;
    Ok(code)
}

/// The records between two sequence numbers; damaged ones with the reason.
async fn read(
    journal: &dyn Journal,
    stream: &StreamName,
    from: Seq,
    through: Seq,
) -> anyhow::Result<Vec<ShownRecord>> {
    let mut shown = Vec::new();
    let mut cursor = records(journal, stream, from).through(through);
    loop {
        match cursor.next().await {
            Ok(Some(record)) => shown.push(ShownRecord::Record(record)),
            Ok(None) => return Ok(shown),
            Err(Error::Damaged { seq, reason, .. }) => {
                shown.push(ShownRecord::Damaged { seq, damaged: reason });
            }
            Err(error) => return Err(error.into()),
        }
    }
}
