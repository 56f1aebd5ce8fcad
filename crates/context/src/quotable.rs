//! Quotable passages: the parts of an input that keep their meaning when they are quoted alone.
//!
//! Half a sentence can mean the opposite of the whole: "deploy without asking me" is part of "Never deploy without
//! asking me". The same is true of a line in hard-wrapped text, and of a list item below "Forbidden:". So a short
//! input is quoted whole. A long one is split into paragraphs, and a long paragraph into sentences. A list keeps the
//! paragraph before it, and every block keeps its heading. If the end of a sentence is unclear, the sentence
//! continues. Pasted text is never quoted.

use longhaul_protocol::is_wordlike;

use crate::UserText;

/// An input of at most this many characters is one passage, because its sentences may depend on each other.
const SHORT_INPUT_CHARS: usize = 300;
/// A longer passage that can't be split is not quoted.
const MAX_PASSAGE_CHARS: usize = 600;
/// A shorter sentence ("Never.", "Not on Fridays!") belongs to its neighbour.
const MIN_SENTENCE_WORDS: usize = 4;
/// Columns by which a line after an empty one must be indented to belong to the list item above.
const MIN_ITEM_INDENT: usize = 2;
/// Replaces text that a quotation leaves out.
pub(crate) const ELLIPSIS: &str = "[…]";

/// Words that a full stop may follow inside a sentence.
const ABBREVIATIONS: [&str; 32] = [
    "al", "approx", "bzw", "ca", "cf", "dept", "dr", "ed", "esp", "est", "etc", "excl", "fig", "inc", "incl",
    "ltd", "max", "min", "mr", "mrs", "ms", "no", "nr", "p", "prof", "resp", "sec", "st", "usw", "vgl",
    "vol", "vs",
];
/// A sentence that begins with one of these words limits the one before it.
const LIMITING_WORDS: [&str; 9] =
    ["although", "but", "except", "however", "nor", "otherwise", "though", "unless", "yet"];

/// The passages of an input, each as one line: the whole input if it is short, otherwise its paragraphs, sentences
/// and lists.
pub fn quotable_passages(said: &str) -> Vec<String> {
    let said = &UserText::of(said).own;
    let whole = join_words(said.split_whitespace());
    let passages = if whole.chars().count() <= SHORT_INPUT_CHARS {
        vec![whole]
    } else {
        split_blocks(said).iter().flat_map(QuotableBlock::quotable_parts).collect()
    };
    passages.into_iter().filter(|passage| passage.contains(char::is_alphanumeric)).collect()
}

/// A paragraph or a list, with the heading and the words before it that determine its meaning.
#[derive(Debug, Default)]
struct QuotableBlock {
    /// The heading, and for a list also the paragraph that introduces it.
    context_words: Vec<String>,
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

impl QuotableBlock {
    /// The block as one passage, or its parts if it is too long.
    fn quotable_parts(&self) -> Vec<String> {
        let whole = join_words(self.context_words.iter().chain(&self.parts));
        if is_quotable(&whole) {
            return vec![whole];
        }
        // Without a heading or introduction, any item may say what the list is about.
        if self.kind == BlockKind::List && self.context_words.is_empty() {
            return vec![];
        }
        let passage = |(index, part): (usize, &String)| {
            let gap = (index > 0 && !self.context_words.is_empty()).then(|| ELLIPSIS.to_owned());
            join_words(self.context_words.iter().chain(&gap).chain([part]))
        };
        self.parts.iter().enumerate().map(passage).filter(|passage| is_quotable(passage)).collect()
    }

    /// The text that introduces a list after this paragraph.
    fn list_intro(&self) -> String {
        match self.parts.last() {
            Some(last) if last.ends_with(':') => last.clone(),
            _ => join_words(&self.parts),
        }
    }
}

fn is_quotable(passage: &str) -> bool {
    passage.chars().count() <= MAX_PASSAGE_CHARS
}

fn join_words<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> String {
    let mut joined = String::new();
    texts.into_iter().for_each(|text| append_words(&mut joined, text.as_ref()));
    joined
}

/// Appends words with a space between. Two ellipses in a row become one.
fn append_words(text: &mut String, more: &str) {
    if more == ELLIPSIS && text.ends_with(ELLIPSIS) {
        return;
    }
    if !text.is_empty() && !more.is_empty() {
        text.push(' ');
    }
    text.push_str(more);
}

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
    } else if is_list_item(text) {
        LineKind::Item
    } else {
        LineKind::Text
    }
}

fn is_list_item(text: &str) -> bool {
    let Some((sign, _)) = text.split_once(char::is_whitespace) else { return false };
    let number = sign.trim_start_matches('(').trim_end_matches(['.', ')']);
    let is_number = (1..=3).contains(&number.len()) && number.bytes().all(|byte| byte.is_ascii_digit());
    let is_letter = number.len() == 1 && number.bytes().all(|byte| byte.is_ascii_alphabetic());
    matches!(sign, "-" | "*" | "+" | "•" | "–" | "—" | "◦" | "▪")
        || (number.len() < sign.len() && (is_number || (is_letter && sign.ends_with(')'))))
}

fn split_blocks(said: &str) -> Vec<QuotableBlock> {
    let mut cutter = BlockSplitter::default();
    said.lines().for_each(|line| cutter.push(line));
    cutter.finish()
}

/// Collects the lines of an input into blocks.
#[derive(Debug, Default)]
struct BlockSplitter {
    blocks: Vec<QuotableBlock>,
    heading: Option<String>,
    /// How many blocks there are under this heading so far.
    under_heading: usize,
    /// The paragraph or the list that is open.
    paragraph: String,
    items: Vec<String>,
    /// Columns before the first item of the open list.
    indent: usize,
    is_after_blank: bool,
}

impl BlockSplitter {
    fn push(&mut self, line: &str) {
        let text = join_words(line.split_whitespace());
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
            Some(item) if indent > self.indent => append_words(item, &text),
            Some(_) => self.items.push(text),
            None => {
                self.close_paragraph();
                self.items.push(text);
                self.indent = indent;
            }
        }
    }

    fn push_text(&mut self, text: &str, indent: usize) {
        let starts_lowercase = text.starts_with(char::is_lowercase);
        if let Some(item) = self.items.last_mut() {
            let goes_on = if self.is_after_blank {
                indent >= self.indent + MIN_ITEM_INDENT || starts_lowercase
            } else {
                indent > self.indent || starts_lowercase || !is_finished(item)
            };
            if goes_on {
                append_words(item, text);
                return;
            }
            self.close();
        } else if self.is_after_blank && is_finished(&self.paragraph) && !starts_lowercase {
            self.close_paragraph();
        }
        append_words(&mut self.paragraph, text);
    }

    /// Adds an ellipsis for pasted text. It belongs to the open paragraph or item and ends neither.
    fn push_ellipsis(&mut self) {
        let open = self.items.last_mut().unwrap_or(&mut self.paragraph);
        append_words(open, ELLIPSIS);
    }

    fn close_paragraph(&mut self) {
        let paragraph = std::mem::take(&mut self.paragraph);
        if !paragraph.is_empty() {
            let context_words = self.context_words();
            self.add(QuotableBlock {
                context_words,
                parts: sentences(&paragraph),
                kind: BlockKind::Paragraph,
            });
        }
    }

    fn close(&mut self) {
        self.close_paragraph();
        let items = std::mem::take(&mut self.items);
        if !items.is_empty() {
            let mut context_words = self.context_words();
            let before = self.blocks.last_mut().filter(|_| self.under_heading > 0);
            if let Some(before) = before.filter(|block| block.kind == BlockKind::Paragraph) {
                context_words.push(before.list_intro());
                // The introduction may be quoted without its list. Then it must not seem to introduce the next text.
                if let Some(last) = before.parts.last_mut().filter(|last| last.ends_with(':')) {
                    append_words(last, ELLIPSIS);
                }
            }
            self.add(QuotableBlock { context_words, parts: items, kind: BlockKind::List });
        }
    }

    fn context_words(&self) -> Vec<String> {
        let gap = (self.under_heading > 0).then(|| ELLIPSIS.to_owned());
        self.heading.iter().flat_map(|heading| [heading.clone()].into_iter().chain(gap.clone())).collect()
    }

    fn add(&mut self, block: QuotableBlock) {
        self.blocks.push(block);
        self.under_heading += 1;
    }

    fn finish(mut self) -> Vec<QuotableBlock> {
        self.close();
        self.blocks
    }
}

fn is_finished(text: &str) -> bool {
    let closing = |letter: char| matches!(letter, '"' | '\'' | ')' | ']' | '”' | '’' | '»' | '*' | '_' | '`');
    let text = text.trim_end_matches(ELLIPSIS).trim_end();
    text.trim_end_matches(closing).ends_with(['.', '!', '?', '。', '！', '？'])
}

/// Splits a paragraph into sentences. A sentence that is very short or limits the previous one stays with it.
pub(crate) fn sentences(paragraph: &str) -> Vec<String> {
    let mut sentences: Vec<String> = Vec::new();
    let (mut begins, mut after_stop) = (0, 0);
    // The closing characters of the open brackets and quotes.
    let mut closers: Vec<char> = Vec::new();
    for (place, letter) in paragraph.char_indices() {
        if closers.last() == Some(&letter) {
            closers.pop();
        } else if let Some(closer) = closing_bracket(letter) {
            closers.push(closer);
        }
        let end = place + letter.len_utf8();
        let (since_stop, rest) = (&paragraph[after_stop..end], &paragraph[end..]);
        if !is_stop(since_stop, letter, rest) {
            continue;
        }
        after_stop = end;
        if closers.is_empty()
            && word_count(since_stop) >= MIN_SENTENCE_WORDS
            && !limits_previous(rest.trim_start())
        {
            sentences.push(paragraph[begins..end].trim().to_owned());
            begins = end;
        }
    }
    sentences.push(paragraph[begins..].trim().to_owned());
    sentences.retain(|sentence| !sentence.is_empty());
    sentences
}

fn closing_bracket(letter: char) -> Option<char> {
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

/// Whether a sentence may end with this letter, which is the last of `sentence`.
fn is_stop(sentence: &str, letter: char, rest: &str) -> bool {
    let is_end = match letter {
        '。' | '！' | '？' => true,
        '.' => rest.starts_with(' ') && !ends_with_abbreviation(sentence),
        '!' | '?' => rest.starts_with(' '),
        _ => false,
    };
    is_end && !rest.trim_start().starts_with(char::is_lowercase)
}

/// Whether the full stop at the end of this text may be inside a sentence: after an initial, an abbreviation, a
/// version or another stop.
fn ends_with_abbreviation(text: &str) -> bool {
    let word = text.trim_end_matches('.').rsplit(char::is_whitespace).next().unwrap_or_default();
    let word = word.trim_start_matches(|letter: char| !letter.is_alphanumeric()).to_lowercase();
    text.ends_with("..")
        || word.contains('.')
        || word.chars().count() == 1
        || ABBREVIATIONS.contains(&word.as_str())
}

/// Whether the next sentence limits the previous one, or is too short to be quoted alone.
fn limits_previous(text: &str) -> bool {
    let first: String = text.chars().take_while(|letter| letter.is_alphabetic()).collect();
    let ends = text.find(['.', '!', '?', '。', '！', '？']).unwrap_or(text.len());
    let is_short = !text.is_empty() && word_count(&text[..ends]) < MIN_SENTENCE_WORDS;
    is_short || LIMITING_WORDS.contains(&first.to_lowercase().as_str())
}

/// Words; in Chinese, Japanese and Korean each character counts as one.
fn word_count(text: &str) -> usize {
    text.split_whitespace().count() + text.chars().filter(|letter| is_wordlike(*letter)).count()
}

#[cfg(test)]
#[path = "quotable_tests.rs"]
mod tests;
