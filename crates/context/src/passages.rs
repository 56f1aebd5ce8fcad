//! Passages: the parts of an input that can be quoted alone and still mean what the user meant.
//!
//! Half a sentence can mean the opposite of the whole: "deploy without asking me" stands in "Never deploy without asking me". So can a line of
//! a hard-wrapped text, and an item of a list that "Forbidden:" stands above. A short input is therefore quoted whole. A long one is cut
//! between paragraphs, and a paragraph that is too long between sentences. A list keeps the paragraph that leads into it, and everything
//! keeps the heading that it stands under. Where it is not clear that a sentence ends, it goes on. What the user only pasted is never quoted.

use crate::UserText;

/// An input of at most this many characters is one passage: its sentences may depend on each other.
const SHORT_INPUT: usize = 300;
/// Characters of a passage. What can't be cut so small is not quoted.
const MAX_PASSAGE: usize = 600;
/// A sentence with fewer words ("Never.", "Not on Fridays!") belongs to the one beside it.
const MIN_WORDS: usize = 4;
/// Columns by which a line after an empty one must be indented to belong to the list item above.
const ITEM_INDENT: usize = 2;
/// Stands where a quotation leaves something out.
pub(crate) const ELLIPSIS: &str = "[…]";

/// Words that a full stop may follow in the middle of a sentence.
const ABBREVIATIONS: [&str; 32] = [
    "al", "approx", "bzw", "ca", "cf", "dept", "dr", "ed", "esp", "est", "etc", "excl", "fig", "inc", "incl",
    "ltd", "max", "min", "mr", "mrs", "ms", "no", "nr", "p", "prof", "resp", "sec", "st", "usw", "vgl",
    "vol", "vs",
];
/// A sentence that begins with one of these words limits the one before it.
const LIMITING_WORDS: [&str; 9] =
    ["although", "but", "except", "however", "nor", "otherwise", "though", "unless", "yet"];

/// What can be quoted of an input: all of it if it is short, else its paragraphs, sentences and lists, each as one line.
pub fn quotable_passages(said: &str) -> Vec<String> {
    let said = &UserText::of(said).own;
    let whole = joined(said.split_whitespace());
    let passages = if whole.chars().count() <= SHORT_INPUT {
        vec![whole]
    } else {
        blocks(said).iter().flat_map(Block::quotable_parts).collect()
    };
    passages.into_iter().filter(|passage| passage.contains(char::is_alphanumeric)).collect()
}

/// A paragraph or a list, with what its meaning depends on.
#[derive(Debug, Default)]
struct Block {
    /// The heading that it stands under, and for a list the words that lead into it.
    opening: Vec<String>,
    /// The sentences of the paragraph, or the items of the list.
    parts: Vec<String>,
    kind: BlockKind,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum BlockKind {
    #[default]
    Paragraph,
    List,
}

impl Block {
    /// The block as a whole, or what it is made of if it is too long.
    fn quotable_parts(&self) -> Vec<String> {
        let whole = joined(self.opening.iter().chain(&self.parts));
        if is_quotable(&whole) {
            return vec![whole];
        }
        // What the items of a list without an opening are about may stand in any of them.
        if self.kind == BlockKind::List && self.opening.is_empty() {
            return vec![];
        }
        let passage = |(index, part): (usize, &String)| {
            let gap = (index > 0 && !self.opening.is_empty()).then(|| ELLIPSIS.to_owned());
            joined(self.opening.iter().chain(&gap).chain([part]))
        };
        self.parts.iter().enumerate().map(passage).filter(|passage| is_quotable(passage)).collect()
    }

    /// The words that lead into a list after this paragraph.
    fn lead_in(&self) -> String {
        match self.parts.last() {
            Some(last) if last.ends_with(':') => last.clone(),
            _ => joined(&self.parts),
        }
    }
}

fn is_quotable(passage: &str) -> bool {
    passage.chars().count() <= MAX_PASSAGE
}

fn joined<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> String {
    let mut joined = String::new();
    texts.into_iter().for_each(|text| append(&mut joined, text.as_ref()));
    joined
}

/// Adds words to a text. Two gaps in a row are one.
fn append(text: &mut String, more: &str) {
    if more == ELLIPSIS && text.ends_with(ELLIPSIS) {
        return;
    }
    if !text.is_empty() && !more.is_empty() {
        text.push(' ');
    }
    text.push_str(more);
}

/// One line of an input.
#[derive(Debug, Clone, Copy)]
enum LineKind {
    Blank,
    Heading,
    /// The beginning of a list item.
    Item,
    Text,
}

fn line_kind(line: &str) -> LineKind {
    let text = line.trim_start();
    let after_hashes = text.trim_start_matches('#');
    let hashes = text.len() - after_hashes.len();
    if text.is_empty() {
        LineKind::Blank
    } else if (1..=6).contains(&hashes) && (after_hashes.is_empty() || after_hashes.starts_with(' ')) {
        LineKind::Heading
    } else if is_item(text) {
        LineKind::Item
    } else {
        LineKind::Text
    }
}

fn is_item(text: &str) -> bool {
    let Some((sign, _)) = text.split_once(char::is_whitespace) else { return false };
    let number = sign.trim_start_matches('(').trim_end_matches(['.', ')']);
    let is_number = (1..=3).contains(&number.len()) && number.bytes().all(|byte| byte.is_ascii_digit());
    let is_letter = number.len() == 1 && number.bytes().all(|byte| byte.is_ascii_alphabetic());
    matches!(sign, "-" | "*" | "+" | "•" | "–" | "—" | "◦" | "▪")
        || (number.len() < sign.len() && (is_number || (is_letter && sign.ends_with(')'))))
}

/// Cuts an input into blocks.
fn blocks(said: &str) -> Vec<Block> {
    let mut cutter = Cutter::default();
    said.lines().for_each(|line| cutter.push(line));
    cutter.finish()
}

/// Follows the lines of an input.
#[derive(Debug, Default)]
struct Cutter {
    blocks: Vec<Block>,
    heading: Option<String>,
    /// Blocks under this heading so far.
    under_heading: usize,
    /// The paragraph or the list that is open.
    paragraph: String,
    items: Vec<String>,
    /// Columns before the first item of the open list.
    indent: usize,
    is_after_blank: bool,
}

impl Cutter {
    fn push(&mut self, line: &str) {
        let text = joined(line.split_whitespace());
        let indent = line.chars().take_while(|letter| letter.is_whitespace()).count();
        match line_kind(line) {
            LineKind::Blank => {
                self.is_after_blank = true;
                return;
            }
            LineKind::Heading => {
                self.close();
                let heading = text.trim_matches(['#', ' ']);
                self.heading = Some(heading.to_owned()).filter(|heading| !heading.is_empty());
                self.under_heading = 0;
            }
            LineKind::Item => self.push_item(text, indent),
            LineKind::Text if text == ELLIPSIS => return self.push_ellipsis(),
            LineKind::Text => self.push_text(&text, indent),
        }
        self.is_after_blank = false;
    }

    fn push_item(&mut self, text: String, indent: usize) {
        match self.items.last_mut() {
            // A nested list belongs to its item.
            Some(item) if indent > self.indent => append(item, &text),
            Some(_) => self.items.push(text),
            None => {
                self.close_paragraph();
                self.items.push(text);
                self.indent = indent;
            }
        }
    }

    fn push_text(&mut self, text: &str, indent: usize) {
        let begins_small = text.starts_with(char::is_lowercase);
        if let Some(item) = self.items.last_mut() {
            let goes_on = if self.is_after_blank {
                indent >= self.indent + ITEM_INDENT || begins_small
            } else {
                indent > self.indent || begins_small || !is_finished(item)
            };
            if goes_on {
                append(item, text);
                return;
            }
            self.close();
        } else if self.is_after_blank && is_finished(&self.paragraph) && !begins_small {
            self.close_paragraph();
        }
        append(&mut self.paragraph, text);
    }

    /// Pasted text stands within what is open, and ends nothing.
    fn push_ellipsis(&mut self) {
        let open = self.items.last_mut().unwrap_or(&mut self.paragraph);
        append(open, ELLIPSIS);
    }

    fn close_paragraph(&mut self) {
        let paragraph = std::mem::take(&mut self.paragraph);
        if !paragraph.is_empty() {
            let opening = self.opening();
            self.add(Block { opening, parts: sentences(&paragraph), kind: BlockKind::Paragraph });
        }
    }

    fn close(&mut self) {
        self.close_paragraph();
        let items = std::mem::take(&mut self.items);
        if !items.is_empty() {
            let mut opening = self.opening();
            let before = self.blocks.last_mut().filter(|_| self.under_heading > 0);
            if let Some(before) = before.filter(|block| block.kind == BlockKind::Paragraph) {
                opening.push(before.lead_in());
                // Quoted without its list, the lead-in must not seem to lead into whatever comes next.
                if let Some(last) = before.parts.last_mut().filter(|last| last.ends_with(':')) {
                    append(last, ELLIPSIS);
                }
            }
            self.add(Block { opening, parts: items, kind: BlockKind::List });
        }
    }

    fn opening(&self) -> Vec<String> {
        let gap = (self.under_heading > 0).then(|| ELLIPSIS.to_owned());
        self.heading.iter().flat_map(|heading| [heading.clone()].into_iter().chain(gap.clone())).collect()
    }

    fn add(&mut self, block: Block) {
        self.blocks.push(block);
        self.under_heading += 1;
    }

    fn finish(mut self) -> Vec<Block> {
        self.close();
        self.blocks
    }
}

/// Whether a text ends where a sentence does.
fn is_finished(text: &str) -> bool {
    let closing = |letter: char| matches!(letter, '"' | '\'' | ')' | ']' | '”' | '’' | '»' | '*' | '_' | '`');
    let text = text.trim_end_matches(ELLIPSIS).trim_end();
    text.trim_end_matches(closing).ends_with(['.', '!', '?', '。', '！', '？'])
}

/// The sentences of a paragraph. One that is very short, or limits the one before it, is not cut off.
pub(crate) fn sentences(paragraph: &str) -> Vec<String> {
    let mut sentences: Vec<String> = Vec::new();
    let (mut begins, mut after_stop) = (0, 0);
    // What closes the brackets and quotes that are open.
    let mut closers: Vec<char> = Vec::new();
    for (place, letter) in paragraph.char_indices() {
        if closers.last() == Some(&letter) {
            closers.pop();
        } else if let Some(closer) = closer_of(letter) {
            closers.push(closer);
        }
        let end = place + letter.len_utf8();
        let (since_stop, rest) = (&paragraph[after_stop..end], &paragraph[end..]);
        if !is_stop(since_stop, letter, rest) {
            continue;
        }
        after_stop = end;
        if closers.is_empty() && word_count(since_stop) >= MIN_WORDS && !limits(rest.trim_start()) {
            sentences.push(paragraph[begins..end].trim().to_owned());
            begins = end;
        }
    }
    sentences.push(paragraph[begins..].trim().to_owned());
    sentences.retain(|sentence| !sentence.is_empty());
    sentences
}

fn closer_of(letter: char) -> Option<char> {
    Some(match letter {
        '"' => '"',
        '“' => '”',
        '„' => '“',
        '«' => '»',
        '(' => ')',
        '[' => ']',
        '{' => '}',
        _ => return None,
    })
}

/// Whether a sentence may end with this letter, its last one.
fn is_stop(sentence: &str, letter: char, rest: &str) -> bool {
    let is_end = match letter {
        '。' | '！' | '？' => true,
        '.' => rest.starts_with(' ') && !ends_with_abbreviation(sentence),
        '!' | '?' => rest.starts_with(' '),
        _ => false,
    };
    is_end && !rest.trim_start().starts_with(char::is_lowercase)
}

/// Whether the full stop at the end of this text may stand within a sentence: after an initial, an abbreviation, a version, or another stop.
fn ends_with_abbreviation(text: &str) -> bool {
    let word = text.trim_end_matches('.').rsplit(char::is_whitespace).next().unwrap_or_default();
    let word = word.trim_start_matches(|letter: char| !letter.is_alphanumeric()).to_lowercase();
    text.ends_with("..")
        || word.contains('.')
        || word.chars().count() == 1
        || ABBREVIATIONS.contains(&word.as_str())
}

/// Whether this is the beginning of a sentence that limits the one before it, or is too short to stand alone.
fn limits(text: &str) -> bool {
    let first: String = text.chars().take_while(|letter| letter.is_alphabetic()).collect();
    let ends = text.find(['.', '!', '?', '。', '！', '？']).unwrap_or(text.len());
    let is_short = !text.is_empty() && word_count(&text[..ends]) < MIN_WORDS;
    is_short || LIMITING_WORDS.contains(&first.to_lowercase().as_str())
}

/// Words, where each character counts in a script without spaces.
fn word_count(text: &str) -> usize {
    const WITHOUT_SPACES: char = '\u{2e80}';
    let characters = text.chars().filter(|letter| *letter >= WITHOUT_SPACES).count();
    text.split_whitespace().count() + characters
}

#[cfg(test)]
#[path = "passages_tests.rs"]
mod tests;
