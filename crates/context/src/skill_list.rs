//! The list of skills that a context begins with, and the text of the skills in use after a compaction. Pure.
//!
//! Every name stands in the list, because a skill that is not named is never used. Descriptions stand there as far as they
//! fit, and the list says what it leaves out.

use longhaul_protocol::{SKILL_MARK, SKILLS_MARK};

use crate::truncate::{neutralise_marks, one_line, truncate_end, with_commas};

const INTRODUCTION: &str = "Instructions for certain tasks. Before a task that one of them fits, read it: read_file with path \"skill:NAME\". \
     It may name more files, which are \"skill:NAME/FILE\".";
/// If not all descriptions fit, each has at most this many bytes.
const SHORT_DESCRIPTION_BYTES: usize = 200;
/// Begins the names of the skills whose descriptions do not fit.
const BARE_NAMES: &str = "\nWithout their descriptions: ";
const SEPARATOR: &str = ", ";
/// A part of a skill's text that is shorter than this is of no use.
const MIN_PART_BYTES: usize = 400;

/// A skill in the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SkillLine<'a> {
    pub name: &'a str,
    pub description: &'a str,
}

/// The list of skills for the model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SkillList {
    /// Empty without any skill.
    pub text: String,
    /// Skills whose description is cut.
    pub shortened: usize,
    /// Skills that stand there with their name alone.
    pub without_description: usize,
    /// Skills that are not named: not even their names fit.
    pub left_out: usize,
}

/// How many bytes the list may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SkillListRoom {
    /// With descriptions.
    pub usual: usize,
    /// At most, for names that do not fit into the usual room.
    pub names: usize,
}

/// Lists the skills by name, within this room. The first ones get their descriptions first.
pub fn render_skill_list(skills: &[SkillLine<'_>], room: SkillListRoom) -> SkillList {
    if skills.is_empty() {
        return SkillList::default();
    }
    let clean = |text: &str| neutralise_marks(&one_line(text)).into_owned();
    let full: Vec<String> =
        skills.iter().map(|skill| format!("- {}: {}", clean(skill.name), clean(skill.description))).collect();
    let head = format!("{SKILLS_MARK}\n{INTRODUCTION}\n");
    let size = |lines: &[String]| lines.iter().map(|line| line.len() + 1).sum::<usize>();
    if head.len() + size(&full) <= room.usual {
        return SkillList { text: join_sorted(&head, full), ..SkillList::default() };
    }
    let names: Vec<String> = skills.iter().map(|skill| clean(skill.name)).collect();
    // Every name with a comma and a blank, and what the lines below take.
    let note_bytes = note(skills.len(), skills.len(), skills.len()).len() + "\n".len();
    let bare_bytes: usize = names.iter().map(|name| name.len() + SEPARATOR.len()).sum();
    let mut used = head.len() + BARE_NAMES.len() + bare_bytes + note_bytes;
    let (mut lines, mut bare, mut shortened) = (Vec::new(), Vec::new(), 0);
    for ((skill, name), full) in skills.iter().zip(names).zip(full) {
        let description = clean(skill.description);
        let short = shorten(&description);
        let line = format!("- {name}: {short}");
        let more = line.len().saturating_sub(name.len());
        if used + more <= room.usual {
            used += more;
            shortened += usize::from(line.len() < full.len());
            lines.push(line);
        } else {
            bare.push(name);
        }
    }
    let mut left_out = 0;
    let most = room.names.max(room.usual);
    while used > most
        && let Some(name) = bare.pop()
    {
        used -= name.len() + SEPARATOR.len();
        left_out += 1;
    }
    bare.sort();
    let mut text = join_sorted(&head, lines);
    if !bare.is_empty() {
        text += &format!("{BARE_NAMES}{}", bare.join(SEPARATOR));
    }
    let without_description = bare.len();
    let note = note(shortened, without_description, left_out);
    if !note.is_empty() {
        text = text + "\n" + &note;
    }
    SkillList { text, shortened, without_description, left_out }
}

fn join_sorted(head: &str, mut lines: Vec<String>) -> String {
    lines.sort();
    head.to_owned() + &lines.join("\n")
}

/// What the list leaves out, and how to read it.
fn note(shortened: usize, without_description: usize, left_out: usize) -> String {
    let mut parts = Vec::new();
    if shortened > 0 {
        parts.push(format!("{} descriptions are cut", with_commas(shortened)));
    }
    if without_description > 0 {
        parts.push(format!("{} have no room here", with_commas(without_description)));
    }
    if left_out > 0 {
        parts.push(format!("{} more skills are not even named", with_commas(left_out)));
    }
    match parts.is_empty() {
        true => String::new(),
        false => format!("[{}; read_file with path \"skill:\" lists all of them]", parts.join(", ")),
    }
}

fn shorten(description: &str) -> String {
    if description.len() <= SHORT_DESCRIPTION_BYTES {
        return description.to_owned();
    }
    let cut = truncate_end(description, SHORT_DESCRIPTION_BYTES - "…".len());
    let cut = cut.rsplit_once(' ').map_or(cut, |(whole_words, _)| whole_words);
    format!("{cut}…")
}

/// The line in place of a list for which a context has no room at all.
pub fn unlisted_skills() -> String {
    format!(
        "{SKILLS_MARK}\nThere is no room for their names here; read_file with path \"skill:\" lists them."
    )
}

/// The text of a skill in use, in at most `max_bytes`. If it is an error, that says why the text is not shown.
pub fn render_active_skill(name: &str, folder: &str, body: Result<&str, &str>, max_bytes: usize) -> String {
    let (name, again) = (one_line(name), format!("read_file with path \"skill:{}\"", one_line(name)));
    let heading = format!("{SKILL_MARK}{name}]");
    let body = match body {
        Ok(body) => body,
        Err(reason) => return format!("{heading}\nIt is not shown: {reason}. Before you use it, {again}."),
    };
    let head = format!("{heading}\nFolder: {}\n", one_line(folder));
    let body = neutralise_marks(body);
    if head.len() + body.len() <= max_bytes {
        return head + &body;
    }
    let rest = format!("\n[the rest is left out here; {again} shows it]");
    let room = max_bytes.saturating_sub(head.len() + rest.len());
    if room < MIN_PART_BYTES {
        return format!("{heading}\nThere is no room for its text here. Before you use it, {again}.");
    }
    head + truncate_end(&body, room) + &rest
}

#[cfg(test)]
#[path = "skill_list_tests.rs"]
mod tests;
