//! Patterns of commands: `*` is anything, spaces and slashes too, `?` is one character, and all else is itself.

use crate::shell::{Kind, Word};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Letter(char),
    One,
    Any,
}

/// A pattern.
#[derive(Debug, Clone)]
pub(super) struct Pattern {
    parts: Vec<Part>,
    /// How many of them are enough: `git push *` is also about `git push`.
    enough: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Piece {
    Letter(char),
    /// Nobody knows what stands here.
    Unknown,
}

/// What a pattern is held against.
#[derive(Debug)]
pub(super) struct Text {
    /// As far as it is known: a word that isn't is one piece.
    known: Vec<Piece>,
    /// As it may become: an unknown word may also be none, or several, and a word with a pattern of files may become another. What
    /// stands before an expansion in a word stays.
    /// It is left out where it would be the same.
    possible: Option<Vec<Piece>>,
}

impl Text {
    pub(super) fn plain(text: &str) -> Self {
        Self { known: text.chars().map(Piece::Letter).collect(), possible: None }
    }

    /// The words of a command without the folder of its program, if that is written there.
    pub(super) fn without_folder(words: &[Word]) -> Option<Self> {
        let (name, arguments) = words.split_first()?;
        let program = name.program().filter(|program| *program != name.text)?;
        let program = Word { text: program.to_owned(), kind: Kind::Literal };
        let words: Vec<Word> = std::iter::once(program).chain(arguments.iter().cloned()).collect();
        Some(Self::of_words(&words))
    }

    /// The words of a command, as they are.
    pub(super) fn of_words(words: &[Word]) -> Self {
        let mut known = Vec::new();
        let mut possible = Vec::new();
        for (index, word) in words.iter().enumerate() {
            if index > 0 {
                known.push(Piece::Letter(' '));
            }
            match word.kind {
                Kind::Unknown | Kind::Words => known.push(Piece::Unknown),
                Kind::Literal | Kind::Pattern => known.extend(word.text.chars().map(Piece::Letter)),
            }
            match word.kind {
                Kind::Unknown | Kind::Words | Kind::Pattern => {
                    let beginning = word.certain_beginning();
                    if !beginning.is_empty() && index > 0 {
                        possible.push(Piece::Letter(' '));
                    }
                    possible.extend(beginning.chars().map(Piece::Letter));
                    possible.push(Piece::Unknown);
                }
                Kind::Literal => {
                    if index > 0 {
                        possible.push(Piece::Letter(' '));
                    }
                    possible.extend(word.text.chars().map(Piece::Letter));
                }
            }
        }
        let is_certain = words.iter().all(|word| word.kind == Kind::Literal);
        Self { known, possible: (!is_certain).then_some(possible) }
    }
}

impl Pattern {
    pub(super) fn new(pattern: &str) -> Self {
        let part = |letter| match letter {
            '*' => Part::Any,
            '?' => Part::One,
            letter => Part::Letter(letter),
        };
        let parts: Vec<Part> = pattern.chars().map(part).collect();
        Self { enough: parts.len(), parts }
    }

    pub(super) fn of_command(pattern: &str) -> Self {
        let all = Self::new(pattern);
        let has_optional_end = all.parts.len() > 2 && pattern.ends_with(" *");
        Self { enough: all.parts.len() - if has_optional_end { 2 } else { 0 }, parts: all.parts }
    }

    /// Whether it is about this text, for certain. What is unknown is matched by `*` only.
    pub(super) fn matches(&self, text: &Text) -> bool {
        self.accepts(&text.known, |reached| {
            for (at, part) in self.parts.iter().enumerate() {
                reached[at] &= *part == Part::Any;
            }
            reached[self.parts.len()] = false;
        })
    }

    /// Whether it may be about this text, depending on what is unknown in it.
    pub(super) fn may_match(&self, text: &Text) -> bool {
        let Some(possible) = &text.possible else { return false };
        self.accepts(possible, |reached| {
            if let Some(first) = reached.iter().position(|reached| *reached) {
                reached[first..].fill(true);
            }
        })
    }

    /// Goes through a text with all the places of the pattern that can be reached so far.
    fn accepts(&self, text: &[Piece], pass_unknown: impl Fn(&mut [bool])) -> bool {
        let end = self.parts.len();
        let mut reached = vec![false; end + 1];
        reached[0] = true;
        self.skip_any(&mut reached);
        for piece in text {
            match piece {
                Piece::Unknown => pass_unknown(&mut reached),
                Piece::Letter(letter) => {
                    // Backwards, so that one letter is not used twice.
                    for at in (0..=end).rev() {
                        let stays = self.parts.get(at) == Some(&Part::Any) && reached[at];
                        let comes = at > 0 && reached[at - 1] && self.parts[at - 1].takes(*letter);
                        reached[at] = stays || comes;
                    }
                }
            }
            self.skip_any(&mut reached);
        }
        reached[end] || reached[self.enough]
    }

    /// `*` is also nothing.
    fn skip_any(&self, reached: &mut [bool]) {
        for (at, part) in self.parts.iter().enumerate() {
            reached[at + 1] |= reached[at] && *part == Part::Any;
        }
    }
}

impl Part {
    fn takes(self, letter: char) -> bool {
        match self {
            Self::Letter(own) => own == letter,
            Self::One => true,
            Self::Any => false,
        }
    }
}
