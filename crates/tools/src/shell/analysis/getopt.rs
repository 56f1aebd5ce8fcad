//! Parses the options of a command as `getopt_long` does: `-abc`, `-ovalue`, `-o value`, `--name=value`, `--name value`, abbreviated
//! names, `--`.

use crate::shell::{ShellWord, WordKind};

/// The options that a program takes, in the notation of `getopt`: `:` after an option with a value, `::` if the value has to be
/// attached.
#[derive(Debug, Clone, Copy)]
pub(super) struct OptionSpec {
    /// Letters, such as `"iu:S:"`. A `-` among them means the word `-`.
    short: &'static str,
    /// Names, separated by spaces: `"null unset: split-string:"`. A name that begins with a dash may be written with a single dash:
    /// `"-exec:"`.
    long: &'static str,
    position: OptionPosition,
}

/// Where the options of a program may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OptionPosition {
    /// Only before the first operand. Commands that run their other words do this.
    Leading,
    /// Also after operands. Most GNU programs do this.
    Permuted,
    /// The spec lists only some of the program's options, so any word may be the value of an unlisted one.
    Anywhere,
}

impl OptionSpec {
    /// The complete options of a program that takes them only before its operands.
    pub(super) const fn leading(short: &'static str, long: &'static str) -> Self {
        Self { short, long, position: OptionPosition::Leading }
    }

    /// The complete options of a program that takes them after operands too.
    pub(super) const fn permuted(short: &'static str, long: &'static str) -> Self {
        Self { short, long, position: OptionPosition::Permuted }
    }

    /// Some of a program's options. No word is skipped as the value of an unlisted option.
    pub(super) const fn partial(short: &'static str, long: &'static str) -> Self {
        Self { short, long, position: OptionPosition::Anywhere }
    }

    /// The same options, at any place.
    pub(super) const fn anywhere(self) -> Self {
        Self { position: OptionPosition::Anywhere, ..self }
    }

    fn letter(&self, letter: char) -> Option<(&'static str, usize)> {
        let at = self.short.find(letter).filter(|_| letter != ':')?;
        let behind = &self.short[at + 1..];
        Some((&self.short[at..=at], behind.len() - behind.trim_start_matches(':').len()))
    }

    /// The long option that this name or its abbreviation means.
    fn name(&self, name: &str) -> Option<(&'static str, usize)> {
        let names = self.long.split_whitespace().map(|long| long.trim_start_matches('-'));
        let exact = names.clone().find(|long| long.trim_end_matches(':') == name);
        exact.or_else(|| names.clone().find(|long| long.starts_with(name))).map(without_colons)
    }

    /// The long option that a word with a single dash means.
    fn single_dash(&self, word: &str) -> Option<(&'static str, usize)> {
        let found = self
            .long
            .split_whitespace()
            .find(|long| long.starts_with('-') && long.trim_end_matches(':') == word);
        found.map(|long| without_colons(&long[1..]))
    }
}

/// Whether a list of words, separated by spaces, contains this word.
pub(super) fn is_listed(list: &str, word: &str) -> bool {
    list.split_whitespace().any(|listed| listed == word)
}

fn without_colons(option: &'static str) -> (&'static str, usize) {
    let name = option.trim_end_matches(':');
    (name, option.len() - name.len())
}

/// The options and operands of a command.
#[derive(Debug)]
pub(super) struct ParsedOptions<'words> {
    options: Vec<(&'static str, Option<ShellWord>)>,
    pub(super) operands: Vec<&'words ShellWord>,
    /// False if an option is unknown, so that the next word may be its value, or if a word may become several.
    pub(super) is_certain: bool,
}

impl ParsedOptions<'_> {
    /// Whether the command has an option with one of these names, which are separated by spaces.
    pub(super) fn has(&self, names: &str) -> bool {
        self.names().any(|name| is_listed(names, name))
    }

    /// The values of an option with one of these names, which are separated by spaces.
    pub(super) fn values<'parsed>(
        &'parsed self,
        names: &'parsed str,
    ) -> impl Iterator<Item = &'parsed ShellWord> {
        self.options.iter().filter(|(name, _)| is_listed(names, name)).filter_map(|(_, value)| value.as_ref())
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.options.iter().map(|(name, _)| *name)
    }

    /// All options that have a value, in their order.
    pub(super) fn with_values(self) -> impl Iterator<Item = (&'static str, ShellWord)> {
        self.options.into_iter().filter_map(|(name, value)| Some((name, value?)))
    }
}

/// Parses the words after the name of a program.
pub(super) fn parse_options<'words>(
    arguments: &'words [ShellWord],
    spec: &OptionSpec,
) -> ParsedOptions<'words> {
    let mut parsed = ParsedOptions { options: Vec::new(), operands: Vec::new(), is_certain: true };
    let mut at = 0;
    while let Some(word) = arguments.get(at) {
        let text = word.certain_beginning();
        let is_option = text.starts_with('-') && (text.len() > 1 || spec.letter('-').is_some());
        if word.literal() == Some("--") {
            at += 1;
            break;
        }
        if !is_option && spec.position == OptionPosition::Leading {
            break;
        }
        at += 1;
        parsed.is_certain &= !word.may_become_options();
        if !is_option {
            parsed.operands.push(word);
            continue;
        }
        parsed.is_certain &= !word.may_become_several();
        let takes_next = parsed.read_word(word, arguments.get(at), spec);
        if takes_next && spec.position != OptionPosition::Anywhere {
            parsed.is_certain &= !arguments.get(at).is_some_and(ShellWord::may_become_several);
            at += 1;
        }
    }
    parsed.operands.extend(arguments.get(at..).unwrap_or_default());
    parsed
}

impl ParsedOptions<'_> {
    /// Adds the options of one word. Returns whether the next word is the value of the last option.
    fn read_word(&mut self, word: &ShellWord, next: Option<&ShellWord>, spec: &OptionSpec) -> bool {
        let certain = word.certain_beginning();
        let whole =
            if word.kind == WordKind::Literal { &word.text } else { word.text.trim_start_matches('"') };
        let value_at = |at: usize| ShellWord { text: whole[at..].to_owned(), kind: word.kind };
        let (option, attached) = match certain.split_once('=') {
            Some((option, _)) => (option, Some(value_at(option.len() + 1))),
            None => (certain, None),
        };
        let known = spec.single_dash(option);
        if let Some(name) = option.strip_prefix("--").or(known.map(|(name, _)| name)) {
            self.is_certain &= attached.is_some() || word.kind == WordKind::Literal;
            let known = known.or_else(|| spec.name(name));
            self.is_certain &= known.is_some() || matches!(name, "help" | "version");
            let Some((name, colons)) = known else { return false };
            let takes_next = colons == 1 && attached.is_none();
            self.options.push((name, if takes_next { next.cloned() } else { attached }));
            return takes_next;
        }
        for (at, letter) in certain.char_indices().skip(usize::from(certain.len() > 1)) {
            let behind = at + letter.len_utf8();
            let Some((name, colons)) = spec.letter(letter) else {
                self.is_certain = false;
                continue;
            };
            let attached = (colons > 0 && behind < whole.len()).then(|| value_at(behind));
            let takes_next = colons == 1 && attached.is_none();
            let is_last = takes_next || attached.is_some();
            self.options.push((name, if takes_next { next.cloned() } else { attached }));
            if is_last {
                return takes_next;
            }
        }
        self.is_certain &= word.kind == WordKind::Literal;
        false
    }
}
