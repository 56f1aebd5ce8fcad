//! `search_text`.

use std::fs::File;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use grep_matcher::LineTerminator;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use longhaul_protocol::Effect;
use schemars::JsonSchema;
use serde::Deserialize;

use super::matches::{CancellableReader, SearchMatches};
use super::path_pattern::PathPattern;
use super::walk::{FolderWalk, UNLIMITED_DEPTH, WalkEntry};
use crate::blocking_run::CancelFlag;
use crate::scope::{EntryKind, Permission};
use crate::{
    FileError, PreparedCall, Scope, Tool, ToolDefinition, ToolInvocation, ToolOutcome, function_tool,
    schema_of,
};

/// A line has to be in memory as a whole to be searched.
const MAX_LINE_BYTES: usize = 8 << 20;

/// What search_text takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// Regular expression for single lines; `(?i)` ignores case.
    #[schemars(length(max = 1000))]
    pattern: String,
    /// File or folder. Default: the work folder.
    path: Option<String>,
    /// Only files such as `*.rs` or `src/**/*.toml`.
    #[schemars(length(max = 1000))]
    glob: Option<String>,
    /// Lines around each match.
    #[schemars(range(min = 0, max = 20))]
    context: Option<u8>,
}

pub(crate) fn definition() -> ToolDefinition {
    ToolDefinition {
        name: "search_text".into(),
        description:
            "Search the text of files; prefer it to grep in exec. Matches are shown as path:line:text.".into(),
        effect: Effect::Read,
        schema: schema_of::<Arguments>(),
        limits: &[
            "At most 500 matches or 1 MiB; lines are cut at 500 bytes. Files with lines over 8 MiB are named and passed over.",
            "Binary files (with a zero byte), what .gitignore leaves out, the folder .git and what is denied are not \
             searched; links are not followed.",
        ],
        example: r#"{"pattern": "fn \\w+_scope", "path": "src", "glob": "*.rs", "context": 2}"#,
    }
}

pub(crate) fn tool(scope: Arc<Scope>) -> Arc<dyn Tool> {
    function_tool(definition(), scope, prepare)
}

fn prepare(
    scope: &Arc<Scope>,
    arguments: Arguments,
    _: &ToolInvocation,
) -> Result<PreparedCall, ToolOutcome> {
    let matcher = RegexMatcherBuilder::new().multi_line(true).crlf(true).build(&arguments.pattern);
    let matcher = matcher.map_err(|error| {
        ToolOutcome::error(format!("the pattern `{}` can't be understood: {error}", arguments.pattern))
    })?;
    let glob = arguments.glob.as_deref().map(PathPattern::new).transpose().map_err(ToolOutcome::error)?;
    let scope = Arc::clone(scope);
    Ok(PreparedCall::cancellable(move |cancel| {
        let search = TextSearch::new(&scope, matcher, arguments.context, cancel);
        search.run(&arguments, glob.as_ref()).unwrap_or_else(ToolOutcome::from)
    }))
}

/// One search.
struct TextSearch<'a> {
    scope: &'a Scope,
    matcher: RegexMatcher,
    searcher: Searcher,
    cancel: &'a CancelFlag,
    found: SearchMatches,
    files: usize,
    passed_over: Vec<String>,
}

impl<'a> TextSearch<'a> {
    fn new(scope: &'a Scope, matcher: RegexMatcher, context: Option<u8>, cancel: &'a CancelFlag) -> Self {
        let context = context.map_or(0, usize::from);
        let searcher = SearcherBuilder::new()
            .line_number(true)
            .line_terminator(LineTerminator::crlf())
            .before_context(context)
            .after_context(context)
            .heap_limit(Some(MAX_LINE_BYTES))
            .binary_detection(BinaryDetection::quit(0))
            .build();
        Self {
            scope,
            matcher,
            searcher,
            cancel,
            found: SearchMatches::default(),
            files: 0,
            passed_over: Vec::new(),
        }
    }

    fn run(mut self, arguments: &Arguments, glob: Option<&PathPattern>) -> Result<ToolOutcome, FileError> {
        let place = self.scope.resolve(arguments.path.as_deref().unwrap_or("."), Permission::Read)?;
        let mut note = None;
        match place.folder() {
            Ok(folder) => {
                let (scope, cancel) = (self.scope, self.cancel);
                let visit = |entry: &WalkEntry<'_>| {
                    let inside = entry.path.strip_prefix(place.path()).unwrap_or(&entry.path);
                    if entry.status.kind == EntryKind::File
                        && glob.is_none_or(|glob| glob.matches(inside))
                        && let Ok((file, _)) = entry.folder.open(entry.name)
                    {
                        self.search(&entry.path, file);
                    }
                    if self.found.is_full() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                };
                note = FolderWalk { depth: UNLIMITED_DEPTH, cancel, visit }.walk(scope, &folder).note(scope);
            }
            Err(FileError::NotFolder { .. }) => {
                let file = place.open()?.file;
                let name = place.path().file_name().map(Path::new).unwrap_or(place.path());
                if glob.is_none_or(|glob| glob.matches(name)) {
                    self.search(place.path(), file);
                }
            }
            Err(error) => return Err(error),
        }
        let mut lines = std::mem::take(&mut self.found.lines);
        if lines.is_empty() {
            let (files, shown) = (self.files, place.shown());
            lines.push(format!("[no line matches {} in {shown}; {files} files searched]", arguments.pattern));
        }
        lines.extend(self.found.note());
        lines.extend(self.passed_over_note());
        lines.extend(note);
        Ok(ToolOutcome::ok(lines.join("\n")))
    }

    fn search(&mut self, path: &Path, file: File) {
        self.files += 1;
        let shown = self.scope.show(path);
        let sink = self.found.of_file(&shown, self.cancel);
        if self.searcher.search_reader(&self.matcher, CancellableReader(file, self.cancel), sink).is_err() {
            self.passed_over.push(shown);
        }
    }

    fn passed_over_note(&self) -> Option<String> {
        let first = self.passed_over.first()?;
        let others = match self.passed_over.len() - 1 {
            0 => String::new(),
            others => format!(" and {others} more"),
        };
        Some(format!("[not searched to the end: {first}{others}; a line is too long, or it can't be read]"))
    }
}
