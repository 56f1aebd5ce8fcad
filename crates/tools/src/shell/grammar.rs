//! Lists, pipelines, loops, conditions, functions, redirections.

use std::mem::take;

use super::expansion::HereDocument;
use super::variables::VariableScope;
use super::word::is_name;
use super::{Beside, DEEPEST, Kind, Script, Unseen, Word};

/// Words of the shell that may follow a `}` or `)` without anything in between.
const FOLLOWING: [&str; 8] = ["then", "elif", "else", "do", "fi", "done", "esac", "}"];
/// From the longest on, so that none is taken for the beginning of another.
const REDIRECTIONS: [&str; 12] = ["&>>", "<<<", "<<-", "&>", "<<", "<>", "<&", ">>", ">&", ">|", "<", ">"];

/// Reads one text. What it finds goes to a script that several of these fill, one inside the other.
pub(super) struct Parser<'text, 'script> {
    pub(super) text: &'text str,
    pub(super) at: usize,
    pub(super) depth: usize,
    /// Here documents whose line has not ended yet.
    pub(super) here_documents: Vec<HereDocument>,
    pub(super) script: &'script mut Script,
}

/// What ends a list.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Close {
    End,
    Parenthesis,
    Word(&'static str),
    /// `;;` and its like, or `esac`.
    Case,
}

/// What did end it.
#[derive(PartialEq, Eq)]
pub(super) enum Closed {
    AsExpected,
    ByCaseSeparator,
}

/// Where a command's standard input comes from, as the last redirection says.
pub(super) enum Input {
    HereDocument(usize),
    Text(Word),
    Other,
}

impl<'text, 'script> Parser<'text, 'script> {
    pub(super) fn new(text: &'text str, script: &'script mut Script) -> Self {
        Self { text, at: 0, depth: 0, here_documents: Vec::new(), script }
    }

    /// Reads all of it as commands.
    pub(super) fn script(&mut self) {
        if let Err(unseen) = self.list(Close::End) {
            self.script.unseen.push(unseen);
        }
    }

    /// Something inside, one level deeper.
    pub(super) fn nested<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, Unseen>,
    ) -> Result<T, Unseen> {
        if self.depth == DEEPEST {
            return Err(Unseen::TooDeep);
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// Commands up to what closes them.
    pub(super) fn list(&mut self, close: Close) -> Result<Closed, Unseen> {
        self.nested(|parser| parser.items(close))
    }

    fn items(&mut self, close: Close) -> Result<Closed, Unseen> {
        loop {
            self.skip_lines();
            match self.peek() {
                None if close == Close::End => return Ok(Closed::AsExpected),
                Some(')') if close == Close::Parenthesis => {
                    self.at += 1;
                    return Ok(Closed::AsExpected);
                }
                Some(';') if close == Close::Case => {
                    let is_separator = [";;&", ";;", ";&"].into_iter().any(|separator| self.eat(separator));
                    return if is_separator { Ok(Closed::ByCaseSeparator) } else { Err(Unseen::Syntax) };
                }
                None | Some(')' | ';') => return Err(Unseen::Syntax),
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
                        Close::Word(word) => word == head,
                        Close::Case => head == "esac",
                        Close::End | Close::Parenthesis => false,
                    };
                    return if is_expected { Ok(Closed::AsExpected) } else { Err(Unseen::Syntax) };
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
                if !is_over && !FOLLOWING.contains(&self.head()) {
                    return Err(Unseen::Syntax);
                }
            }
        }
    }

    fn and_or(&mut self) -> Result<(), Unseen> {
        loop {
            self.pipeline()?;
            self.skip_blanks();
            if !self.eat("&&") && !self.eat("||") {
                return Ok(());
            }
            self.skip_lines();
        }
    }

    fn pipeline(&mut self) -> Result<(), Unseen> {
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

    /// `!` and `time`, which is a word of the shell only if no option of the program follows.
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

    fn command(&mut self) -> Result<(), Unseen> {
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

    fn keyword_list(&mut self, from: usize, close: &'static str) -> Result<(), Unseen> {
        self.at = from;
        self.list(Close::Word(close)).map(|_| ())
    }

    /// An arithmetic command, or a subshell.
    fn parentheses(&mut self) -> Result<(), Unseen> {
        if self.rest().starts_with("((") && self.arithmetic("((")? {
            return Ok(());
        }
        self.at += 1;
        self.list(Close::Parenthesis).map(|_| ())
    }

    fn for_loop(&mut self) -> Result<(), Unseen> {
        self.skip_blanks();
        if self.rest().starts_with("((") {
            if !self.arithmetic("((")? {
                return Err(Unseen::Syntax);
            }
        } else {
            let name = self.word()?.text;
            self.variable_set(&name, None, VariableScope::Shell);
            self.skip_lines();
            if self.head() == "in" {
                self.at += "in".len();
                loop {
                    self.skip_blanks();
                    match self.peek() {
                        Some(';' | '\n' | '#') => break,
                        None => return Err(Unseen::Syntax),
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
            _ => Err(Unseen::Syntax),
        }
    }

    fn case(&mut self) -> Result<(), Unseen> {
        self.skip_blanks();
        self.some_word()?;
        self.skip_lines();
        if self.head() != "in" {
            return Err(Unseen::Syntax);
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
                return Err(Unseen::Syntax);
            }
            if self.list(Close::Case)? == Closed::AsExpected {
                return Ok(());
            }
        }
    }

    /// `[[ … ]]`: of its operators only those matter that evaluate what stands beside them.
    fn test(&mut self) -> Result<(), Unseen> {
        let mut before = "";
        let mut is_evaluated = false;
        loop {
            self.skip_blanks();
            match self.peek() {
                None => return Err(Unseen::Syntax),
                Some('<' | '>') if !self.is_process_substitution() => self.at += 1,
                Some('\n' | '(' | ')' | '&' | '|' | ';') => self.at += 1,
                Some(_) => {
                    let from = self.at;
                    self.some_word()?;
                    let word = &self.text[from..self.at];
                    if word == "]]" {
                        return Ok(());
                    }
                    let compares = matches!(word, "-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge");
                    if compares {
                        self.evaluated(before);
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

    /// What stands behind an operator of `[[` that evaluates it: a number, or for `-v` a name.
    fn tested(&mut self, operator: &str, operand: &str) {
        let name = operand.split_once('[').filter(|_| operator == "-v");
        match name {
            Some((_, subscript)) => self.evaluated(subscript.trim_end_matches(']')),
            None if operator == "-v" && is_name(operand) => {}
            None => self.evaluated(operand),
        }
    }

    fn function_body(&mut self) -> Result<(), Unseen> {
        self.skip_lines();
        self.nested(Self::command)
    }

    /// It runs beside the rest, whatever it is. A name may stand before what is not a simple command.
    fn coprocess(&mut self) -> Result<(), Unseen> {
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

    fn simple_command(&mut self) -> Result<(), Unseen> {
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
                Some('(') => return Err(Unseen::Syntax),
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
                            self.evaluated(subscript.trim_end_matches(['}', ']']));
                        }
                        // Only the standard input is where a shell's script can come from.
                        let mut other = None;
                        self.redirection(if written == "0" { &mut input } else { &mut other })?;
                    } else {
                        words.push(word);
                    }
                }
            }
        }
        if self.at == from {
            return Err(Unseen::Syntax);
        }
        for (name, value) in set {
            // Bash exports no arrays.
            let is_exported = !words.is_empty() && value.is_some();
            let scope = if is_exported { VariableScope::Environment } else { VariableScope::Shell };
            self.variable_set(name, value.as_ref(), scope);
        }
        if !words.is_empty() {
            self.found(words, input.as_ref());
        }
        Ok(())
    }

    fn redirections(&mut self) -> Result<(), Unseen> {
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

    fn redirection(&mut self, input: &mut Option<Input>) -> Result<(), Unseen> {
        let operator = REDIRECTIONS.into_iter().find(|operator| self.eat(operator)).ok_or(Unseen::Syntax)?;
        self.skip_blanks();
        let from = self.at;
        let target = self.some_word()?;
        if writes(operator, &target) {
            self.script.beside.push(Beside::File(target.text.clone()));
        }
        match operator {
            "<<" | "<<-" => {
                let is_quoted = self.text[from..self.at].contains(['\'', '"', '\\']);
                // Bash takes the quotes away and expands nothing, so the end is not what the word says.
                if is_quoted && target.kind >= Kind::Unknown {
                    return Err(Unseen::Syntax);
                }
                *input = Some(Input::HereDocument(self.here_documents.len()));
                self.here_documents.push(HereDocument {
                    end: target.text,
                    strips_tabs: operator == "<<-",
                    is_quoted,
                    is_script: false,
                });
            }
            "<<<" => *input = Some(Input::Text(target)),
            "<" | "<>" | "<&" => *input = Some(Input::Other),
            _ => {}
        }
        Ok(())
    }

    /// A word that has to be here.
    fn some_word(&mut self) -> Result<Word, Unseen> {
        let from = self.at;
        let word = self.word()?;
        if self.at == from { Err(Unseen::Syntax) } else { Ok(word) }
    }

    /// A list in parentheses whose here documents are its own.
    pub(super) fn substitution(&mut self, close: Close) -> Result<(), Unseen> {
        let outer = take(&mut self.here_documents);
        let result = self.list(close);
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

    /// The word that begins here, as far as it could be one of the shell's own.
    fn head(&self) -> &'text str {
        let rest = self.rest();
        let end = rest.find([' ', '\t', '\n', ';', '&', '|', '(', ')', '<', '>']);
        &rest[..end.unwrap_or(rest.len())]
    }

    pub(super) fn skip_blanks(&mut self) {
        while self.eat(" ") || self.eat("\t") || self.eat("\\\n") {}
    }

    /// Blanks, comments and ends of lines, and the here documents that begin there.
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

/// Whether a redirection changes anything outside: not if it only goes to another descriptor, or nowhere.
fn writes(operator: &str, target: &Word) -> bool {
    let is_descriptor = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    match (operator, target.literal()) {
        ("<" | "<&" | "<<" | "<<-" | "<<<", _) => false,
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
