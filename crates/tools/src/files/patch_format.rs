//! Parses the text of a patch. Nothing is guessed: the error says which line does not fit, and what may stand there.

use crate::display::truncate_with_ellipsis;

const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";
const ADD: &str = "*** Add File: ";
const DELETE: &str = "*** Delete File: ";
const UPDATE: &str = "*** Update File: ";
const MOVE_TO: &str = "*** Move to: ";
const END_OF_FILE: &str = "*** End of File";
const HUNK: &str = "@@";
const MAX_FILES: usize = 100;
/// Bytes of a wrong line to quote in an error.
const MAX_QUOTED_BYTES: usize = 80;

/// What a patch does with one file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FilePatch {
    pub(super) path: String,
    pub(super) action: PatchAction,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum PatchAction {
    Add { content: String },
    Delete,
    Update { move_to: Option<String>, hunks: Vec<Hunk> },
}

/// One change in a file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Hunk {
    /// A line above the place.
    pub(super) heading: Option<String>,
    pub(super) lines: Vec<HunkLine>,
    /// Whether its last line is the last of the file.
    pub(super) is_at_end: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum HunkLine {
    Context(String),
    Removed(String),
    Added(String),
}

impl FilePatch {
    /// What was done, in a line.
    pub(super) fn summary(&self) -> String {
        let path = &self.path;
        match &self.action {
            PatchAction::Add { .. } => format!("added {path}"),
            PatchAction::Delete => format!("deleted {path}"),
            PatchAction::Update { move_to: Some(to), hunks } if hunks.is_empty() => {
                format!("moved {path} to {to}")
            }
            PatchAction::Update { move_to: Some(to), .. } => format!("updated {path} and moved it to {to}"),
            PatchAction::Update { move_to: None, .. } => format!("updated {path}"),
        }
    }
}

/// Parses a patch into what it does with each file, in its order.
pub(super) fn parse_patch(text: &str) -> Result<Vec<FilePatch>, String> {
    let lines: Vec<&str> = text.trim_matches(['\n', '\r']).lines().collect();
    let (Some((first, rest)), Some(last)) = (lines.split_first(), lines.last()) else {
        return Err(format!("the patch is empty; it begins with `{BEGIN}`"));
    };
    if first.trim() != BEGIN {
        return Err(format!("the first line must be `{BEGIN}`, not {}", quoted(first)));
    }
    if last.trim() != END || rest.is_empty() {
        return Err(format!("the last line must be `{END}`, not {}", quoted(last)));
    }
    let mut parser = PatchParser { lines: &rest[..rest.len() - 1], at: 0 };
    let mut files = Vec::new();
    while let Some(line) = parser.take() {
        files.push(parser.file(line)?);
        if files.len() > MAX_FILES {
            return Err(format!("a patch has at most {MAX_FILES} files"));
        }
    }
    if files.is_empty() {
        return Err("the patch names no file".to_owned());
    }
    Ok(files)
}

struct PatchParser<'a> {
    /// Between the first and the last line.
    lines: &'a [&'a str],
    at: usize,
}

impl<'a> PatchParser<'a> {
    fn peek(&self) -> Option<&'a str> {
        self.lines.get(self.at).copied()
    }

    fn take(&mut self) -> Option<&'a str> {
        let line = self.peek()?;
        self.at += 1;
        Some(line)
    }

    /// The next line if it begins so, without that.
    fn take_after(&mut self, prefix: &str) -> Option<&'a str> {
        let rest = self.peek()?.strip_prefix(prefix)?;
        self.at += 1;
        Some(rest)
    }

    /// An error about the line that was taken last.
    fn wrong(&self, line: &str, expected: &str) -> String {
        // The first line is not among these.
        format!("line {} of the patch must be {expected}, not {}", self.at + 1, quoted(line))
    }

    fn file(&mut self, line: &str) -> Result<FilePatch, String> {
        let action: fn(&mut Self, &str) -> Result<PatchAction, String>;
        let path = if let Some(path) = line.strip_prefix(ADD) {
            action = Self::added;
            path
        } else if let Some(path) = line.strip_prefix(DELETE) {
            action = |_, _| Ok(PatchAction::Delete);
            path
        } else if let Some(path) = line.strip_prefix(UPDATE) {
            action = Self::updated;
            path
        } else {
            let expected = format!("`{ADD}PATH`, `{UPDATE}PATH` or `{DELETE}PATH`");
            return Err(self.wrong(line, &expected));
        };
        let path = path.trim();
        if path.is_empty() {
            return Err(self.wrong(line, "with a path at its end"));
        }
        Ok(FilePatch { action: action(self, path)?, path: path.to_owned() })
    }

    fn added(&mut self, _: &str) -> Result<PatchAction, String> {
        let mut content = String::new();
        while let Some(line) = self.peek().filter(|line| !is_file_line(line)) {
            self.at += 1;
            let line = line
                .strip_prefix('+')
                .ok_or_else(|| self.wrong(line, "a line of a new file with `+` before it"))?;
            content.push_str(line);
            content.push('\n');
        }
        Ok(PatchAction::Add { content })
    }

    fn updated(&mut self, path: &str) -> Result<PatchAction, String> {
        let move_to = self.take_after(MOVE_TO).map(|to| to.trim().to_owned());
        let mut hunks = Vec::new();
        while self.peek().is_some_and(|line| !is_file_line(line)) {
            hunks.push(self.hunk(hunks.is_empty())?);
        }
        match move_to {
            None if hunks.is_empty() => {
                Err(format!("the update of {path} has no hunk; one begins with `{HUNK}`"))
            }
            move_to => Ok(PatchAction::Update { move_to, hunks }),
        }
    }

    /// A hunk. The `@@` of the first one may be left out.
    fn hunk(&mut self, is_first: bool) -> Result<Hunk, String> {
        let mut hunk = Hunk::default();
        match self.take_after(HUNK) {
            Some(heading) => {
                // `@@ -1,3 +1,4 @@` of other tools' diffs says nothing that the lines don't.
                let heading = heading.rsplit_once(HUNK).map_or(heading, |(_, heading)| heading).trim();
                hunk.heading = Some(heading.to_owned()).filter(|heading| !heading.is_empty());
            }
            None if is_first => {}
            None => {
                let line = self.take().unwrap_or_default();
                return Err(self.wrong(line, &format!("`{HUNK}`, the beginning of a hunk")));
            }
        }
        while let Some(line) = self.peek().filter(|line| !line.starts_with(HUNK) && !is_file_line(line)) {
            self.at += 1;
            if line.trim_end() == END_OF_FILE {
                hunk.is_at_end = true;
                break;
            }
            let rest = || line.chars().skip(1).collect::<String>();
            hunk.lines.push(match line.chars().next() {
                Some(' ') => HunkLine::Context(rest()),
                Some('-') => HunkLine::Removed(rest()),
                Some('+') => HunkLine::Added(rest()),
                None => HunkLine::Context(String::new()),
                Some(_) => return Err(self.wrong(line, "a line that begins with a space, `-` or `+`")),
            });
        }
        if !hunk.lines.iter().any(|line| !matches!(line, HunkLine::Context(_))) {
            return Err(format!("the hunk that ends in line {} of the patch changes nothing", self.at + 1));
        }
        Ok(hunk)
    }
}

/// Whether a line begins with the next file.
fn is_file_line(line: &str) -> bool {
    [ADD, DELETE, UPDATE].iter().any(|prefix| line.starts_with(prefix))
}

fn quoted(line: &str) -> String {
    format!("`{}`", truncate_with_ellipsis(line, MAX_QUOTED_BYTES))
}

#[cfg(test)]
#[path = "patch_format_tests.rs"]
mod tests;
