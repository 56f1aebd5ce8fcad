//! Chips: parts of the input that are shown as one label, such as a long paste as `[pasted 120 lines]`.
//!
//! In the text each chip is one mark character from a private-use plane, so that cursor and keys treat it as one character. A mark that the
//! user types or pastes becomes a chip, too: every mark in the text has its chip.

/// The last private-use plane.
const CHIP_MARKS: std::ops::RangeInclusive<char> = '\u{10_0000}'..='\u{10_FFFD}';
/// A paste with more lines or bytes becomes a chip.
const MAX_PASTED_LINES: usize = 20;
const MAX_PASTED_BYTES: usize = 4096;
/// A recalled text may be longer than a paste before it becomes a chip; keys still stay fast.
const MAX_EDITABLE_BYTES: usize = 64 * 1024;

pub(super) fn is_mark(character: char) -> bool {
    CHIP_MARKS.contains(&character)
}

/// The text with `\n` as line breaks, and without control characters except tabs.
pub(super) fn clean(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    match text.chars().any(is_unwanted) {
        true => text.chars().filter(|character| !is_unwanted(*character)).collect(),
        false => text,
    }
}

fn is_unwanted(character: char) -> bool {
    character.is_control() && !matches!(character, '\n' | '\t')
}

pub(super) fn is_long_paste(text: &str) -> bool {
    text.len() > MAX_PASTED_BYTES || text.lines().nth(MAX_PASTED_LINES).is_some() || text.contains(is_mark)
}

pub(super) fn is_too_long_to_edit(text: &str) -> bool {
    text.len() > MAX_EDITABLE_BYTES || text.contains(is_mark)
}

pub(super) fn pasted_label(text: &str) -> String {
    match (text.lines().count(), text.len()) {
        (..=1, bytes @ 1000..) => format!("[pasted {} kB]", bytes.div_ceil(1000)),
        (..=1, _) => "[pasted 1 line]".to_owned(),
        (lines, _) => format!("[pasted {lines} lines]"),
    }
}

struct Chip {
    text: String,
    label: String,
}

/// The chips by their marks.
#[derive(Default)]
pub(super) struct Chips {
    chips: Vec<Chip>,
}

impl Chips {
    /// Adds a chip and returns its mark. Chips whose marks are in none of the texts `in_use` are replaced, so that deleted ones don't stay in
    /// memory. `None` if there are no more marks.
    pub(super) fn add<'a>(
        &mut self,
        text: String,
        label: String,
        in_use: impl Iterator<Item = &'a str>,
    ) -> Option<char> {
        if let Some(same) = self.chips.iter().position(|chip| chip.text == text && chip.label == label) {
            return mark_of(same);
        }
        let mut is_used = vec![false; self.chips.len()];
        for index in in_use.flat_map(str::chars).filter_map(index_of) {
            if let Some(used) = is_used.get_mut(index) {
                *used = true;
            }
        }
        let free = is_used.iter().position(|used| !used).unwrap_or(self.chips.len());
        let mark = mark_of(free)?;
        let chip = Chip { text, label };
        match self.chips.get_mut(free) {
            Some(unused) => *unused = chip,
            None => self.chips.push(chip),
        }
        Some(mark)
    }

    pub(super) fn label(&self, mark: char) -> &str {
        self.chip(mark).map_or("\u{FFFD}", |chip| &chip.label)
    }

    /// Bytes of a text with its chips expanded.
    pub(super) fn size(&self, text: &str) -> usize {
        let marks = text.chars().filter(|character| is_mark(*character));
        let more =
            |mark: char| self.chip(mark).map_or(0, |chip| chip.text.len()).saturating_sub(mark.len_utf8());
        text.len() + marks.map(more).sum::<usize>()
    }

    /// The text with its chips expanded.
    pub(super) fn expand(&self, text: &str) -> String {
        if !text.contains(is_mark) {
            return text.to_owned();
        }
        let mut whole = String::with_capacity(self.size(text));
        for character in text.chars() {
            match self.chip(character) {
                Some(chip) => whole.push_str(&chip.text),
                None => whole.push(character),
            }
        }
        whole
    }

    fn chip(&self, mark: char) -> Option<&Chip> {
        self.chips.get(index_of(mark)?)
    }
}

fn mark_of(index: usize) -> Option<char> {
    let mark = char::from_u32(u32::try_from(index).ok()?.checked_add(u32::from(*CHIP_MARKS.start()))?)?;
    is_mark(mark).then_some(mark)
}

fn index_of(mark: char) -> Option<usize> {
    is_mark(mark).then(|| (u32::from(mark) - u32::from(*CHIP_MARKS.start())) as usize)
}
