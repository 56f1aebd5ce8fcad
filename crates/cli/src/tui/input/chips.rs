//! Pieces of the input that are shown as one: a long paste as `[pasted 120 lines]`.
//!
//! In the text, each is one mark from a private-use plane, so that the cursor and the keys take it for one character. A
//! mark that somebody types or pastes becomes a piece as well: no mark in the text is without its place in the table.

/// The marks: the last private-use plane.
const CHIP_MARKS: std::ops::RangeInclusive<char> = '\u{10_0000}'..='\u{10_FFFD}';
/// A paste with more lines or bytes than these is one piece.
const MAX_PASTED_LINES: usize = 20;
const MAX_PASTED_BYTES: usize = 4096;
/// A text that is put there to be edited may be longer, as long as a key stays quick.
const MAX_EDITABLE_BYTES: usize = 64 * 1024;

/// Whether a character of the text stands for a piece.
pub(super) fn is_mark(character: char) -> bool {
    CHIP_MARKS.contains(&character)
}

/// The text with line feeds alone as ends of lines, and without other control characters but tabs.
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

/// Whether a paste is shown as one piece.
pub(super) fn is_long_paste(text: &str) -> bool {
    text.len() > MAX_PASTED_BYTES || text.lines().nth(MAX_PASTED_LINES).is_some() || text.contains(is_mark)
}

/// Whether a text that is put there to be edited is shown as one piece nevertheless.
pub(super) fn is_too_long_to_edit(text: &str) -> bool {
    text.len() > MAX_EDITABLE_BYTES || text.contains(is_mark)
}

/// How a piece is shown.
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

/// The pieces by their marks.
#[derive(Default)]
pub(super) struct Chips {
    kept: Vec<Chip>,
}

impl Chips {
    /// A mark for a text. Places whose marks stand in none of the texts that are in use are taken again, so that what was
    /// deleted does not stay in memory for ever. None, if there are no more marks.
    pub(super) fn keep<'a>(
        &mut self,
        text: String,
        label: String,
        in_use: impl Iterator<Item = &'a str>,
    ) -> Option<char> {
        if let Some(same) = self.kept.iter().position(|chip| chip.text == text && chip.label == label) {
            return mark_of(same);
        }
        let mut is_used = vec![false; self.kept.len()];
        for place in in_use.flat_map(str::chars).filter_map(place_of) {
            if let Some(used) = is_used.get_mut(place) {
                *used = true;
            }
        }
        let free = is_used.iter().position(|used| !used).unwrap_or(self.kept.len());
        let mark = mark_of(free)?;
        let chip = Chip { text, label };
        match self.kept.get_mut(free) {
            Some(place) => *place = chip,
            None => self.kept.push(chip),
        }
        Some(mark)
    }

    /// How a mark is shown.
    pub(super) fn label(&self, mark: char) -> &str {
        self.chip(mark).map_or("\u{FFFD}", |chip| &chip.label)
    }

    /// How many bytes a text has with its pieces.
    pub(super) fn size(&self, text: &str) -> usize {
        let pieces = text.chars().filter(|character| is_mark(*character));
        let more =
            |mark: char| self.chip(mark).map_or(0, |chip| chip.text.len()).saturating_sub(mark.len_utf8());
        text.len() + pieces.map(more).sum::<usize>()
    }

    /// The text with the pieces in place of their marks.
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
        self.kept.get(place_of(mark)?)
    }
}

fn mark_of(place: usize) -> Option<char> {
    let mark = char::from_u32(u32::try_from(place).ok()?.checked_add(u32::from(*CHIP_MARKS.start()))?)?;
    is_mark(mark).then_some(mark)
}

fn place_of(mark: char) -> Option<usize> {
    is_mark(mark).then(|| (u32::from(mark) - u32::from(*CHIP_MARKS.start())) as usize)
}
