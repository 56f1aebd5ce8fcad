//! `read_file`.

use std::io::Read;
use std::sync::Arc;

use longhaul_protocol::{Effect, FileSeen, Hash};
use schemars::JsonSchema;
use serde::Deserialize;

use super::file_type;
use super::line_range::{CollectedLines, LineCollector, LineRange};
use crate::blocking_run::CancelFlag;
use crate::scope::{OpenFile, Permission, ScopedPath};
use crate::{
    FileError, OutputLimit, PreparedCall, Scope, Tool, ToolDefinition, ToolImage, ToolInvocation,
    ToolOutcome, function_tool, schema_of,
};

const MAX_READ_BYTES: u64 = 64 << 20;
pub(super) const MAX_IMAGE_BYTES: u64 = 5 << 20;
const MAX_LINE_BYTES: usize = 16 << 10;
const DEFAULT_LINES: u64 = 2_000;
/// Reserved for the notes at the end, so that the whole result stays within the limit.
const NOTES_RESERVE: OutputLimit = OutputLimit { lines: 3, bytes: 256 };

/// What read_file takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// A file, `skill:NAME`, or `output:CALL_ID` as a cut output names it.
    path: String,
    /// First line. Default: 1.
    #[schemars(range(min = 1))]
    offset: Option<u64>,
    /// Most lines. Default: 2000.
    #[schemars(range(min = 1))]
    limit: Option<u64>,
}

pub(crate) fn definition() -> ToolDefinition {
    ToolDefinition {
        name: "read_file".into(),
        description:
            "Read a text file or look at an image. The last line of a partial read says how to go on.".into(),
        effect: Effect::Read,
        schema: schema_of::<Arguments>(),
        limits: &[
            "Files up to 64 MiB; larger ones can be searched with search_text or read in parts with a command.",
            "2,000 lines at once unless `limit` says otherwise, and never more than an output may have (2,000 lines, 32 KiB).",
            "Lines are cut at 16 KiB, with a mark that says so.",
            "A file with a zero byte in its first 8 KiB, or with more than 30 % of them no text, is binary and not shown. \
             Otherwise what is not UTF-8 is shown as �, with a note.",
            "Pictures (PNG, JPEG, GIF, WebP) up to 5 MiB.",
        ],
        example: r#"{"path": "src/main.rs", "offset": 1, "limit": 100}"#,
    }
}

pub(crate) fn tool(scope: Arc<Scope>) -> Arc<dyn Tool> {
    function_tool(definition(), scope, prepare)
}

fn prepare(
    scope: &Arc<Scope>,
    arguments: Arguments,
    call: &ToolInvocation,
) -> Result<PreparedCall, ToolOutcome> {
    let (scope, output_limit) = (Arc::clone(scope), call.output_limit);
    Ok(PreparedCall::cancellable(move |cancel| {
        read(&scope, &arguments, output_limit, cancel).unwrap_or_else(|problem| problem)
    }))
}

fn read(
    scope: &Scope,
    arguments: &Arguments,
    output_limit: OutputLimit,
    cancel: &CancelFlag,
) -> Result<ToolOutcome, ToolOutcome> {
    let place = scope.resolve(&arguments.path, Permission::Read)?;
    let mut open = place.open()?;
    let shown = place.shown();
    if open.bytes() > MAX_READ_BYTES {
        return Err(ToolOutcome::error(format!(
            "{shown} has {} bytes; read_file reads files up to {MAX_READ_BYTES}. Use search_text to find the place, or exec \
             with `sed -n 1,100p` to read a part",
            open.bytes()
        )));
    }
    let failed = |error| FileError::system("read", shown, error);
    let mut head = vec![0; file_type::SNIFFED_BYTES];
    let length = fill(&mut open, &mut head).map_err(failed)?;
    head.truncate(length);
    if let Some(media) = file_type::image_media_type(&head) {
        return picture(&place, open, head, media);
    }
    if let Some(kind) = file_type::binary_kind(&head) {
        let bytes = open.bytes();
        return Err(ToolOutcome::error(format!(
            "{shown} is binary, {kind}, {bytes} bytes; it can't be shown as text"
        )));
    }

    let lines = lines_within(arguments, output_limit);
    let mut excerpt = LineCollector::new(lines);
    let mut hasher = blake3::Hasher::new();
    let mut part = head.as_slice();
    let mut buffer = vec![0; 64 << 10];
    let mut bytes = 0;
    while !part.is_empty() {
        if cancel.is_cancelled() {
            return Err(ToolOutcome::error("stopped before it was done"));
        }
        hasher.update(part);
        excerpt.feed(part);
        bytes += part.len() as u64;
        // It may grow for ever while it is read.
        if bytes > MAX_READ_BYTES {
            return Err(ToolOutcome::error(format!(
                "{shown} grows while it is read and has more than {MAX_READ_BYTES} bytes"
            )));
        }
        let length = fill(&mut open, &mut buffer).map_err(failed)?;
        part = &buffer[..length];
    }
    let content = content(shown, lines, excerpt.finish())?;
    Ok(ToolOutcome {
        seen: seen(&place, Hash::from_bytes(hasher.finalize().into())),
        ..ToolOutcome::ok(content)
    })
}

fn lines_within(arguments: &Arguments, output_limit: OutputLimit) -> LineRange {
    let most_lines = output_limit.lines.saturating_sub(NOTES_RESERVE.lines).max(1) as u64;
    let max_bytes = output_limit.bytes.saturating_sub(NOTES_RESERVE.bytes).max(64);
    LineRange {
        first: arguments.offset.unwrap_or(1),
        lines: arguments.limit.unwrap_or(DEFAULT_LINES).min(most_lines),
        max_bytes,
        max_line_bytes: MAX_LINE_BYTES.min(max_bytes / 2),
    }
}

/// The lines, with notes if they are not the whole file or not exactly as in the file.
fn content(shown: &str, lines: LineRange, taken: CollectedLines) -> Result<String, ToolOutcome> {
    let (first, total) = (lines.first, taken.total);
    let Some(last) = taken.last else {
        return match total {
            0 => Ok(format!("[{shown} is empty]")),
            _ => Err(ToolOutcome::error(format!("{shown} has {total} lines; line {first} is past its end"))),
        };
    };
    let mut notes = Vec::new();
    if last < total {
        notes.push(format!("[lines {first}–{last} of {total}; go on with offset {}]", last + 1));
    } else if first > 1 {
        notes.push(format!("[lines {first}–{last} of {total}]"));
    }
    let mut text = String::from_utf8(taken.text).unwrap_or_else(|error| {
        notes.push("[not all of it is UTF-8; what is not is shown as �]".to_owned());
        String::from_utf8_lossy(error.as_bytes()).into_owned()
    });
    if text.contains("\r\n") {
        notes.push("[its lines end with \\r\\n]".to_owned());
    }
    if !notes.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    Ok(text + &notes.join("\n"))
}

fn picture(
    place: &ScopedPath,
    mut open: OpenFile,
    mut bytes: Vec<u8>,
    media: &str,
) -> Result<ToolOutcome, ToolOutcome> {
    let shown = place.shown();
    let rest = MAX_IMAGE_BYTES.saturating_sub(bytes.len() as u64) + 1;
    (&mut open.file)
        .take(rest)
        .read_to_end(&mut bytes)
        .map_err(|error| FileError::system("read", shown, error))?;
    if bytes.len() as u64 > MAX_IMAGE_BYTES {
        let size = open.bytes();
        return Err(ToolOutcome::error(format!(
            "{shown} is a picture ({media}) of {size} bytes; pictures up to {MAX_IMAGE_BYTES} bytes can be looked at. \
             Make a smaller copy first"
        )));
    }
    Ok(ToolOutcome {
        seen: seen(place, Hash::of(&bytes)),
        content: format!("{shown}: a picture ({media}), {} bytes", bytes.len()),
        images: vec![ToolImage { media: media.to_owned(), bytes }],
        ..ToolOutcome::default()
    })
}

fn seen(place: &ScopedPath, hash: Hash) -> Option<FileSeen> {
    place.key().map(|path| FileSeen { path: path.to_owned(), hash })
}

/// Fills the buffer, unless the file ends before.
fn fill(open: &mut OpenFile, buffer: &mut [u8]) -> std::io::Result<usize> {
    let mut length = 0;
    while length < buffer.len() {
        match open.file.read(&mut buffer[length..]) {
            Ok(0) => break,
            Ok(more) => length += more,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(length)
}
