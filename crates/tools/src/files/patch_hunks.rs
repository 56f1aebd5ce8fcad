//! Applies the hunks of a patch to a text: all of them or none, each only where it is unambiguous.
//!
//! The lines of a hunk must be in the file exactly, or apart from white space at their ends. Among several places the
//! heading decides; if it can't, the error says which hunk it is and where it could go.

use super::MAX_WRITTEN_BYTES;
use super::patch_format::{Hunk, HunkLine};

/// Places to name in an error.
const MAX_NAMED_PLACES: usize = 5;

/// The text after all hunks.
pub(super) fn apply_hunks(text: &str, hunks: &[Hunk]) -> Result<String, String> {
    let lines: Vec<&str> =
        text.split_inclusive('\n').map(|line| line.strip_suffix('\n').unwrap_or(line)).collect();
    let ends_with_newline = text.is_empty() || text.ends_with('\n');
    let line_end = if uses_carriage_returns(text) { "\r" } else { "" };
    let (mut new, mut cursor): (Vec<String>, usize) = (Vec::new(), 0);
    for (index, hunk) in hunks.iter().enumerate() {
        let at = find_place(&lines, cursor, hunk)
            .map_err(|problem| format!("hunk {} of {}: {problem}", index + 1, hunks.len()))?;
        new.extend(lines[cursor..at].iter().map(|line| (*line).to_owned()));
        cursor = at;
        for line in &hunk.lines {
            match line {
                HunkLine::Context(_) => {
                    new.push(lines[cursor].to_owned());
                    cursor += 1;
                }
                HunkLine::Removed(_) => cursor += 1,
                HunkLine::Added(line) => new.push(format!("{line}{line_end}")),
            }
        }
    }
    new.extend(lines[cursor..].iter().map(|line| (*line).to_owned()));
    let mut text = new.join("\n");
    if ends_with_newline && !new.is_empty() {
        text.push('\n');
    }
    if text.len() > MAX_WRITTEN_BYTES {
        return Err(format!("the file would have more than {MAX_WRITTEN_BYTES} bytes"));
    }
    Ok(text)
}

fn uses_carriage_returns(text: &str) -> bool {
    let newlines = text.matches('\n').count();
    newlines > 0 && newlines == text.matches("\r\n").count()
}

/// How two lines are compared.
type SameLine = fn(&str, &str) -> bool;

/// The line before which the hunk begins, from `cursor` on.
fn find_place(lines: &[&str], cursor: usize, hunk: &Hunk) -> Result<usize, String> {
    let old: Vec<&str> = hunk
        .lines
        .iter()
        .filter_map(|line| match line {
            HunkLine::Context(line) | HunkLine::Removed(line) => Some(line.as_str()),
            HunkLine::Added(_) => None,
        })
        .collect();
    if old.is_empty() {
        return place_of_insertion(lines, cursor, hunk);
    }
    let comparisons: [SameLine; 2] =
        [|one, other| one == other, |one, other| one.trim_end() == other.trim_end()];
    for is_same in comparisons {
        let mut places = places_of(lines, cursor, &old, is_same);
        if hunk.is_at_end {
            places.retain(|at| at + old.len() == lines.len());
        }
        match places.as_slice() {
            [] => {}
            [at] => return Ok(*at),
            several => return below_heading(lines, cursor, hunk, several),
        }
    }
    Err(describe_missing(lines, cursor, &old, hunk))
}

fn places_of(lines: &[&str], from: usize, old: &[&str], is_same: SameLine) -> Vec<usize> {
    let fits = |at: &usize| old.iter().zip(&lines[*at..]).all(|(old, line)| is_same(old, line));
    (from..(lines.len() + 1).saturating_sub(old.len()).max(from)).filter(fits).collect()
}

/// Where a hunk goes that only adds lines: below its heading, at the end, or into an empty file.
fn place_of_insertion(lines: &[&str], cursor: usize, hunk: &Hunk) -> Result<usize, String> {
    if hunk.is_at_end || lines.is_empty() {
        return Ok(lines.len());
    }
    match headings(lines, cursor, hunk).as_slice() {
        [at] => Ok(at + 1),
        [] => {
            Err("it only adds lines, and nothing says where; give some of the lines around them".to_owned())
        }
        several => Err(format!(
            "its `@@` line is in the lines {}; give some of the lines around it",
            numbers(several)
        )),
    }
}

/// The first of several places below the heading, if the heading is in one place only.
fn below_heading(lines: &[&str], cursor: usize, hunk: &Hunk, places: &[usize]) -> Result<usize, String> {
    let found = format!("its lines are in the file {} times, in the lines {}", places.len(), numbers(places));
    match headings(lines, cursor, hunk).as_slice() {
        [heading] => {
            let below = places.iter().find(|at| *at > heading).copied();
            below.ok_or_else(|| format!("{found}, none of them below its `@@` line"))
        }
        [] => Err(format!(
            "{found}; give more of the lines around the one that is meant, or a line above it after `@@`"
        )),
        several => Err(format!(
            "{found}, and its `@@` line is in the lines {}; give more of the lines around the one that is meant",
            numbers(several)
        )),
    }
}

/// The lines that are the heading of a hunk.
fn headings(lines: &[&str], from: usize, hunk: &Hunk) -> Vec<usize> {
    let Some(heading) = &hunk.heading else { return Vec::new() };
    (from..lines.len()).filter(|at| lines[*at].trim() == heading.trim()).collect()
}

fn describe_missing(lines: &[&str], cursor: usize, old: &[&str], hunk: &Hunk) -> String {
    let is_same: SameLine = |one, other| one.trim_end() == other.trim_end();
    if let [before, ..] = places_of(lines, 0, old, is_same).as_slice()
        && *before < cursor
    {
        let line = before + 1;
        return format!(
            "its lines are in line {line}, before those of an earlier hunk; put hunks in the order of the file"
        );
    }
    if hunk.is_at_end && !places_of(lines, cursor, old, is_same).is_empty() {
        return "its lines are in the file, but not at its end".to_owned();
    }
    if let [at, ..] = places_of(lines, cursor, old, |one, other| one.trim() == other.trim()).as_slice() {
        return format!("its lines differ from those in line {} on only in their indentation", at + 1);
    }
    // The longest beginning of the hunk that is in the file shows where it stops to fit.
    let fitting = (1..old.len()).rev().find_map(|count| {
        let places = places_of(lines, cursor, &old[..count], is_same);
        places.first().map(|at| (at + count, old[count]))
    });
    match fitting {
        Some((at, expected)) => format!(
            "its lines are not in the file; up to line {at} they fit, but then comes `{}`, not `{expected}`",
            lines.get(at).copied().unwrap_or("the end of the file")
        ),
        None => "its lines are not in the file; read it again to see how it is now".to_owned(),
    }
}

fn numbers(places: &[usize]) -> String {
    let mut numbers: Vec<String> =
        places.iter().take(MAX_NAMED_PLACES).map(|at| (at + 1).to_string()).collect();
    if places.len() > MAX_NAMED_PLACES {
        numbers.push("…".to_owned());
    }
    numbers.join(", ")
}

#[cfg(test)]
#[path = "patch_hunks_tests.rs"]
mod tests;
