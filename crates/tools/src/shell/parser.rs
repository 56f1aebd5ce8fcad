//! Lists, pipelines, loops, conditions, functions, redirections.

use std::mem::take;

use super::analysis::VariableScope;
use super::here_document::HereDocument;
use super::word::is_name;
use super::{MAX_NESTING, ShellScript, ShellWord, SideEffect, UnseenReason, WordKind};

/// Keywords that may follow a `}` or `)` without a `;`.
const CLOSING_KEYWORDS: [&str; 8] = ["then", "elif", "else", "do", "fi", "done", "esac", "}"];
/// The longest come first, so that none is taken for the beginning of another.
const REDIRECTIONS: [&str; 12] = ["&>>", "<<<", "<<-", "&>", "<<", "<>", "<&", ">>", ">&", ">|", "<", ">"];

/// Parses one text. Parsers of nested texts add to the same script.
pub(super) struct ShellParser<'text, 'script> {
    pub(super) text: &'text str,
    pub(super) at: usize,
    pub(super) depth: usize,
    /// Here documents whose line has not ended yet.
    pub(super) here_documents: Vec<HereDocument>,
    /// Whether the commands are inside `$(…)`, `<(…)` or `${ …; }`.
    pub(super) in_substitution: bool,
    pub(super) script: &'script mut ShellScript,
}

/// What has to end a list of commands.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ListEnd {
    End,
    Parenthesis,
    Word(&'static str),
    /// `;;` or a similar operator, or `esac`.
    Case,
}

/// What did end a list of commands.
#[derive(PartialEq, Eq)]
pub(super) enum ListEnding {
    AsExpected,
    ByCaseSeparator,
}

/// Where the last redirection takes a command's standard input from.
pub(super) enum StdinSource {
    HereDocument(usize),
    Text(ShellWord),
    Other,
}

impl<'text, 'script> ShellParser<'text, 'script> {
    pub(super) fn new(text: &'text str, script: &'script mut ShellScript) -> Self {
        Self { text, at: 0, depth: 0, here_documents: Vec::new(), in_substitution: false, script }
    }

    /// Parses the whole text.
    pub(super) fn script(&mut self) {
        if let Err(unseen) = self.list(ListEnd::End) {
            self.script.unseen.push(unseen);
        }
    }

    /// Parses something one level deeper.
    pub(super) fn nested<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, UnseenReason>,
    ) -> Result<T, UnseenReason> {
        if self.depth == MAX_NESTING {
            return Err(UnseenReason::TooDeep);
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// Parses commands up to the end of their list.
    pub(super) fn list(&mut self, close: ListEnd) -> Result<ListEnding, UnseenReason> {
        self.nested(|parser| parser.items(close))
    }

    fn items(&mut self, close: ListEnd) -> Result<ListEnding, UnseenReason> {
        loop {
            self.skip_lines();
            match self.peek() {
                None if close == ListEnd::End => return Ok(ListEnding::AsExpected),
                Some(')') if close == ListEnd::Parenthesis => {
                    self.at += 1;
                    return Ok(ListEnding::AsExpected);
                }
                Some(';') if close == ListEnd::Case => {
                    let is_separator = [";;&", ";;", ";&"].into_iter().any(|separator| self.eat(separator));
                    return if is_separator {
                        Ok(ListEnding::ByCaseSeparator)
                    } else {
                        Err(UnseenReason::Syntax)
                    };
                }
                None | Some(')' | ';') => return Err(UnseenReason::Syntax),
                Some(_) => {}
            }
            let head = self.head();
            match head {
                "then" | "elif" | "else" | "do" => {
                    self.at += head.len();
                    continue;
                }
                "fi" | "done" | "esac" | "}" => {
                    self.at += head.len();
                    let is_expected = match close {
                        ListEnd::Word(word) => word == head,
                        ListEnd::Case => head == "esac",
                        ListEnd::End | ListEnd::Parenthesis => false,
                    };
                    return if is_expected { Ok(ListEnding::AsExpected) } else { Err(UnseenReason::Syntax) };
                }
                _ => {}
            }
            let first = self.script.commands.len();
            self.and_or()?;
            self.skip_blanks();
            if self.eat("&") {
                self.script.commands[first..].iter_mut().for_each(|command| command.background = true);
            } else if !self.rest().starts_with(";;") && !self.rest().starts_with(";&") && !self.eat(";") {
                let is_over = matches!(self.peek(), None | Some('\n' | ')' | ';' | '#'));
                if !is_over && !CLOSING_KEYWORDS.contains(&self.head()) {
                    return Err(UnseenReason::Syntax);
                }
            }
        }
    }

    fn and_or(&mut self) -> Result<(), UnseenReason> {
        loop {
            self.pipeline()?;
            self.skip_blanks();
            if !self.eat("&&") && !self.eat("||") {
                return Ok(());
            }
            self.skip_lines();
        }
    }

    fn pipeline(&mut self) -> Result<(), UnseenReason> {
        loop {
            while self.eat_pipeline_prefix() {
                if matches!(self.peek(), None | Some('\n' | ';' | '&' | ')')) {
                    return Ok(());
                }
            }
            self.nested(Self::command)?;
            self.skip_blanks();
            if self.rest().starts_with("||") || !(self.eat("|&") || self.eat("|")) {
                return Ok(());
            }
            self.skip_lines();
        }
    }

    /// Skips `!` and `time`. `time` is a keyword unless an option of the program `time` follows.
    fn eat_pipeline_prefix(&mut self) -> bool {
        let head = self.head();
        let before = self.at;
        match head {
            "!" => self.at += 1,
            "time" => {
                self.at += head.len();
                self.skip_blanks();
                for option in ["-p", "--"] {
                    if self.head() == option {
                        self.at += option.len();
                        self.skip_blanks();
                    }
                }
                if self.rest().starts_with('-') {
                    self.at = before;
                    return false;
                }
            }
            _ => return false,
        }
        self.skip_blanks();
        true
    }

    fn command(&mut self) -> Result<(), UnseenReason> {
        let head = self.head();
        let after_head = self.at + head.len();
        match head {
            "if" => self.keyword_list(after_head, "fi")?,
            "while" | "until" => self.keyword_list(after_head, "done")?,
            "{" => self.keyword_list(after_head, "}")?,
            "for" | "select" => {
                self.at = after_head;
                self.for_loop()?;
            }
            "case" => {
                self.at = after_head;
                self.case()?;
            }
            "[[" => {
                self.at = after_head;
                self.test()?;
            }
            "function" => {
                self.at = after_head;
                self.skip_blanks();
                self.word()?;
                self.skip_blanks();
                self.eat_empty_parentheses();
                return self.function_body();
            }
            "coproc" => {
                self.at = after_head;
                return self.coprocess();
            }
            "" if self.rest().starts_with('(') => self.parentheses()?,
            _ => return self.simple_command(),
        }
        self.redirections()
    }

    fn keyword_list(&mut self, from: usize, close: &'static str) -> Result<(), UnseenReason> {
        self.at = from;
        self.list(ListEnd::Word(close)).map(|_| ())
    }

    /// An arithmetic command, or a subshell.
    fn parentheses(&mut self) -> Result<(), UnseenReason> {
        if self.rest().starts_with("((") && self.arithmetic("((")? {
            return Ok(());
        }
        self.at += 1;
        self.list(ListEnd::Parenthesis).map(|_| ())
    }

    fn for_loop(&mut self) -> Result<(), UnseenReason> {
        self.skip_blanks();
        if self.rest().starts_with("((") {
            if !self.arithmetic("((")? {
                return Err(UnseenReason::Syntax);
            }
        } else {
            let name = self.word()?.text;
            self.record_variable(&name, None, VariableScope::Shell);
            self.skip_lines();
            if self.head() == "in" {
                self.at += "in".len();
                loop {
                    self.skip_blanks();
                    match self.peek() {
                        Some(';' | '\n' | '#') => break,
                        None => return Err(UnseenReason::Syntax),
                        Some(_) => self.some_word().map(|_| ())?,
                    }
                }
            }
        }
        self.skip_blanks();
        self.eat(";");
        self.skip_lines();
        match self.head() {
            "do" => self.keyword_list(self.at + "do".len(), "done"),
            "{" => self.keyword_list(self.at + 1, "}"),
            _ => Err(UnseenReason::Syntax),
        }
    }

    fn case(&mut self) -> Result<(), UnseenReason> {
        self.skip_blanks();
        self.some_word()?;
        self.skip_lines();
        if self.head() != "in" {
            return Err(UnseenReason::Syntax);
        }
        self.at += "in".len();
        loop {
            self.skip_lines();
            if self.head() == "esac" {
                self.at += "esac".len();
                return Ok(());
            }
            self.eat("(");
            loop {
                self.skip_blanks();
                self.some_word()?;
                self.skip_blanks();
                if !self.eat("|") {
                    break;
                }
            }
            if !self.eat(")") {
                return Err(UnseenReason::Syntax);
            }
            if self.list(ListEnd::Case)? == ListEnding::AsExpected {
                return Ok(());
            }
        }
    }

    /// `[[ … ]]`. Only operators that evaluate their operands matter.
    fn test(&mut self) -> Result<(), UnseenReason> {
        let mut before = "";
        let mut is_evaluated = false;
        loop {
            self.skip_blanks();
            match self.peek() {
                None | Some('#') => return Err(UnseenReason::Syntax),
                Some('<' | '>') if !self.is_process_substitution() => self.at += 1,
                Some('\n') => self.skip_lines(),
                Some('(' | ')' | '&' | '|' | ';') => self.at += 1,
                Some(_) => {
                    let from = self.at;
                    self.some_word()?;
                    let word = &self.text[from..self.at];
                    if word == "]]" {
                        return Ok(());
                    }
                    let compares = matches!(word, "-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge");
                    if compares {
                        self.record_evaluation(before);
                    }
                    if is_evaluated {
                        self.tested(before, word);
                    }
                    is_evaluated = compares || word == "-v";
                    before = word;
                }
            }
        }
    }

    /// Records the operand of a `[[` operator that evaluates it: a number, or a name for `-v`.
    fn tested(&mut self, operator: &str, operand: &str) {
        let name = operand.split_once('[').filter(|_| operator == "-v");
        match name {
            Some((_, subscript)) => self.record_evaluation(subscript.trim_end_matches(']')),
            None if operator == "-v" && is_name(operand) => {}
            None => self.record_evaluation(operand),
        }
    }

    fn function_body(&mut self) -> Result<(), UnseenReason> {
        self.skip_lines();
        self.nested(Self::command)
    }

    /// `coproc`, which runs in the background. Before a compound command it may have a name.
    fn coprocess(&mut self) -> Result<(), UnseenReason> {
        let first = self.script.commands.len();
        self.skip_blanks();
        let name = self.head();
        let before = self.at;
        self.at += name.len();
        self.skip_blanks();
        let is_named = !name.is_empty()
            && (matches!(self.head(), "{" | "if" | "while" | "until" | "for" | "case" | "[[" | "select")
                || self.rest().starts_with('('));
        if !is_named {
            self.at = before;
        }
        self.nested(Self::command)?;
        self.script.commands[first..].iter_mut().for_each(|command| command.background = true);
        Ok(())
    }

    fn simple_command(&mut self) -> Result<(), UnseenReason> {
        let from = self.at;
        let mut words = Vec::new();
        let mut input = None;
        let mut set = Vec::new();
        loop {
            self.skip_blanks();
            match self.peek() {
                None | Some('\n' | ';' | '|' | ')' | '#') => break,
                Some('&') if !self.rest().starts_with("&>") => break,
                Some('(') if words.len() == 1 && self.eat_empty_parentheses() => return self.function_body(),
                Some('(') => return Err(UnseenReason::Syntax),
                Some('&') => self.redirection(&mut input)?,
                Some('<' | '>') if !self.is_process_substitution() => self.redirection(&mut input)?,
                Some(_) => {
                    if words.is_empty()
                        && let Some(assigned) = self.assignment()?
                    {
                        set.push(assigned);
                        continue;
                    }
                    let from = self.at;
                    let word = self.word()?;
                    let written = &self.text[from..self.at];
                    if matches!(self.peek(), Some('<' | '>')) && is_descriptor(written) {
                        if let Some((_, subscript)) = written.split_once('[') {
                            self.record_evaluation(subscript.trim_end_matches(['}', ']']));
                        }
                        let mut source = Some(StdinSource::Other);
                        self.redirection(&mut source)?;
                        // A shell reads its script only from descriptor 0, which may be written as `00`.
                        if written.bytes().all(|digit| digit == b'0') {
                            input = source;
                        }
                    } else {
                        words.push(word);
                    }
                }
            }
        }
        if self.at == from {
            return Err(UnseenReason::Syntax);
        }
        for (name, value) in set {
            // Bash exports no arrays.
            let is_exported = !words.is_empty() && value.is_some();
            let scope = if is_exported { VariableScope::Environment } else { VariableScope::Shell };
            self.record_variable(name, value.as_ref(), scope);
        }
        if !words.is_empty() {
            self.record_command(words, input.as_ref());
        }
        Ok(())
    }

    fn redirections(&mut self) -> Result<(), UnseenReason> {
        loop {
            self.skip_blanks();
            let digits = self.rest().len()
                - self.rest().trim_start_matches(|letter: char| letter.is_ascii_digit()).len();
            let after = &self.rest()[digits..];
            if !after.starts_with(['<', '>']) && !after.starts_with("&>") {
                return Ok(());
            }
            self.at += digits;
            self.redirection(&mut None)?;
        }
    }

    fn redirection(&mut self, input: &mut Option<StdinSource>) -> Result<(), UnseenReason> {
        let operator =
            REDIRECTIONS.into_iter().find(|operator| self.eat(operator)).ok_or(UnseenReason::Syntax)?;
        self.skip_blanks();
        let from = self.at;
        let target = self.some_word()?;
        if writes(operator, &target) {
            self.script.side_effects.push(SideEffect::File(target.text.clone()));
        }
        match operator {
            "<<" | "<<-" => {
                let is_quoted = self.text[from..self.at].contains(['\'', '"', '\\']);
                // Bash removes the quotes and expands nothing. Here the word still has its quotes.
                if is_quoted && target.kind >= WordKind::Unknown {
                    return Err(UnseenReason::Syntax);
                }
                *input = Some(StdinSource::HereDocument(self.here_documents.len()));
                self.here_documents.push(HereDocument {
                    end: target.text,
                    strips_tabs: operator == "<<-",
                    is_quoted,
                    is_script: false,
                });
            }
            "<<<" => *input = Some(StdinSource::Text(target)),
            "<" | "<>" | "<&" => *input = Some(StdinSource::Other),
            _ => {}
        }
        Ok(())
    }

    /// A word. It is a syntax error if there is none.
    fn some_word(&mut self) -> Result<ShellWord, UnseenReason> {
        let from = self.at;
        let word = self.word()?;
        if self.at == from { Err(UnseenReason::Syntax) } else { Ok(word) }
    }

    /// A list in parentheses with here documents of its own.
    pub(super) fn substitution(&mut self, close: ListEnd) -> Result<(), UnseenReason> {
        let outer = take(&mut self.here_documents);
        let was_in_substitution = std::mem::replace(&mut self.in_substitution, true);
        let result = self.list(close);
        self.in_substitution = was_in_substitution;
        let left = std::mem::replace(&mut self.here_documents, outer);
        self.here_documents.extend(left);
        result.map(|_| ())
    }

    pub(super) fn rest(&self) -> &'text str {
        &self.text[self.at..]
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    pub(super) fn eat(&mut self, expected: &str) -> bool {
        let is_here = self.rest().starts_with(expected);
        if is_here {
            self.at += expected.len();
        }
        is_here
    }

    fn eat_empty_parentheses(&mut self) -> bool {
        let Some(inner) = self.rest().strip_prefix('(') else { return false };
        let Some(after) = inner.trim_start_matches([' ', '\t']).strip_prefix(')') else { return false };
        self.at = self.text.len() - after.len();
        true
    }

    pub(super) fn is_process_substitution(&self) -> bool {
        self.rest().starts_with("<(") || self.rest().starts_with(">(")
    }

    /// The text of the next word, to compare with keywords.
    fn head(&self) -> &'text str {
        let rest = self.rest();
        let end = rest.find([' ', '\t', '\n', ';', '&', '|', '(', ')', '<', '>']);
        let (head, after) = rest.split_at(end.unwrap_or(rest.len()));
        head.strip_suffix('\\').filter(|_| after.starts_with('\n')).unwrap_or(head)
    }

    /// Skips spaces, comments and line ends, and reads the here documents that begin there.
    pub(super) fn skip_lines(&mut self) {
        loop {
            self.skip_blanks();
            if self.rest().starts_with('#') {
                self.at += self.rest().find('\n').unwrap_or(self.rest().len());
            }
            if !self.eat("\n") {
                return;
            }
            self.read_here_documents();
        }
    }
}

/// Whether a redirection writes to a file, and not to a descriptor or `/dev/null`, or may open a connection.
fn writes(operator: &str, target: &ShellWord) -> bool {
    let is_descriptor = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    match (operator, target.literal()) {
        // Bash opens connections by the names of such files.
        ("<", Some(text)) => text.starts_with("/dev/tcp/") || text.starts_with("/dev/udp/"),
        ("<", None) => true,
        ("<&" | "<<" | "<<-" | "<<<", _) => false,
        (_, Some("/dev/null" | "/dev/stdout" | "/dev/stderr")) => false,
        (">&", Some(text)) => !is_descriptor(text),
        _ => true,
    }
}

/// `2`, `{name}` or `{name[1]}`, before a redirection.
fn is_descriptor(word: &str) -> bool {
    let named = word.strip_prefix('{').and_then(|word| word.strip_suffix('}'));
    let is_named = named.is_some_and(|name| is_name(name.split('[').next().unwrap_or_default()));
    is_named || (!word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit()))
}
