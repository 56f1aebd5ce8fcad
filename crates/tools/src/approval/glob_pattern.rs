//! Patterns of commands. `*` matches anything, including spaces and slashes; `?` matches one character.

use crate::shell::{ShellWord, WordKind};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PatternPart {
    Letter(char),
    One,
    Any,
}

/// A pattern of tool names or commands.
#[derive(Debug, Clone)]
pub(super) struct GlobPattern {
    parts: Vec<PatternPart>,
    /// How many parts have to match. The rest is optional: `git push *` also matches `git push`.
    required_len: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TextPiece {
    Letter(char),
    /// Text that is known only at run time.
    Unknown,
}

/// The text that a pattern is compared with.
#[derive(Debug)]
pub(super) struct CommandText {
    /// The known text. An unknown word is one piece.
    known: Vec<TextPiece>,
    /// What the text may become: an unknown word may become no word or several, and a file pattern may become other words. The part of
    /// a word before an expansion stays. `None` if the whole text is known.
    possible: Option<Vec<TextPiece>>,
}

impl CommandText {
    pub(super) fn plain_text(text: &str) -> Self {
        Self { known: text.chars().map(TextPiece::Letter).collect(), possible: None }
    }

    /// The words of a command without the folder of its program. `None` if the program is written without a folder.
    pub(super) fn without_folder(words: &[ShellWord]) -> Option<Self> {
        let (name, arguments) = words.split_first()?;
        let program = name.program().filter(|program| *program != name.text)?;
        let program = ShellWord { text: program.to_owned(), kind: WordKind::Literal };
        let words: Vec<ShellWord> = std::iter::once(program).chain(arguments.iter().cloned()).collect();
        Some(Self::of_words(&words))
    }

    /// The words of a command, as they are.
    pub(super) fn of_words(words: &[ShellWord]) -> Self {
        let mut known = Vec::new();
        let mut possible = Vec::new();
        for (index, word) in words.iter().enumerate() {
            if index > 0 {
                known.push(TextPiece::Letter(' '));
            }
            match word.kind {
                WordKind::Unknown | WordKind::Words => known.push(TextPiece::Unknown),
                WordKind::Literal | WordKind::Pattern => {
                    known.extend(word.text.chars().map(TextPiece::Letter));
                }
            }
            match word.kind {
                WordKind::Unknown | WordKind::Words | WordKind::Pattern => {
                    let beginning = word.certain_beginning();
                    if !beginning.is_empty() && index > 0 {
                        possible.push(TextPiece::Letter(' '));
                    }
                    possible.extend(beginning.chars().map(TextPiece::Letter));
                    possible.push(TextPiece::Unknown);
                }
                WordKind::Literal => {
                    if index > 0 {
                        possible.push(TextPiece::Letter(' '));
                    }
                    possible.extend(word.text.chars().map(TextPiece::Letter));
                }
            }
        }
        let is_certain = words.iter().all(|word| word.kind == WordKind::Literal);
        Self { known, possible: (!is_certain).then_some(possible) }
    }
}

impl GlobPattern {
    pub(super) fn new(pattern: &str) -> Self {
        let part = |letter| match letter {
            '*' => PatternPart::Any,
            '?' => PatternPart::One,
            letter => PatternPart::Letter(letter),
        };
        let parts: Vec<PatternPart> = pattern.chars().map(part).collect();
        Self { required_len: parts.len(), parts }
    }

    pub(super) fn of_command(pattern: &str) -> Self {
        let all = Self::new(pattern);
        let has_optional_end = all.parts.len() > 2 && pattern.ends_with(" *");
        Self { required_len: all.parts.len() - if has_optional_end { 2 } else { 0 }, parts: all.parts }
    }

    /// Whether the pattern certainly matches. Only `*` matches unknown text.
    pub(super) fn matches(&self, text: &CommandText) -> bool {
        self.accepts(&text.known, |reached| {
            for (at, part) in self.parts.iter().enumerate() {
                reached[at] &= *part == PatternPart::Any;
            }
            reached[self.parts.len()] = false;
        })
    }

    /// Whether the pattern matches for some value of the unknown text.
    pub(super) fn may_match(&self, text: &CommandText) -> bool {
        let Some(possible) = &text.possible else { return false };
        self.accepts(possible, |reached| {
            if let Some(first) = reached.iter().position(|reached| *reached) {
                reached[first..].fill(true);
            }
        })
    }

    /// Runs the pattern over the text. Tracks all positions in the pattern that can be reached so far.
    fn accepts(&self, text: &[TextPiece], pass_unknown: impl Fn(&mut [bool])) -> bool {
        let end = self.parts.len();
        let mut reached = vec![false; end + 1];
        reached[0] = true;
        self.skip_any(&mut reached);
        for piece in text {
            match piece {
                TextPiece::Unknown => pass_unknown(&mut reached),
                TextPiece::Letter(letter) => {
                    // Backwards, so that one letter is not used twice.
                    for at in (0..=end).rev() {
                        let stays = self.parts.get(at) == Some(&PatternPart::Any) && reached[at];
                        let comes = at > 0 && reached[at - 1] && self.parts[at - 1].accepts_char(*letter);
                        reached[at] = stays || comes;
                    }
                }
            }
            self.skip_any(&mut reached);
        }
        reached[end] || reached[self.required_len]
    }

    /// `*` matches the empty text, too.
    fn skip_any(&self, reached: &mut [bool]) {
        for (at, part) in self.parts.iter().enumerate() {
            reached[at + 1] |= reached[at] && *part == PatternPart::Any;
        }
    }
}

impl PatternPart {
    fn accepts_char(self, letter: char) -> bool {
        match self {
            Self::Letter(own) => own == letter,
            Self::One => true,
            Self::Any => false,
        }
    }
}
