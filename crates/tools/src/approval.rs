//! P4: what is done only after asking, by tool and command.
//!
//! For `exec`, each command of the line is judged alone and the strictest judgement holds for the line. A rule holds for a
//! command however it is written: behind `env` or `sudo`, in a loop, in quotes. That is a convenience for whoever wants to be
//! asked, and no border: a script file runs what it wants.

mod forms;
mod options;
mod pattern;

use serde::Deserialize;

use crate::shell::{Command, Script};
use forms::{Form, doubt_of, forms_of};
use options::{CommandOptions, OptionPattern};
use pattern::{Pattern, Text};

const EXEC: &str = "exec";

/// What is done about a call. The later one is the stricter one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Action {
    /// It is run.
    Auto,
    /// A person is asked first.
    Ask,
    /// It is not run.
    Deny,
}

/// A rule for some calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// The tool that it is about, or a pattern of their names.
    pub tool: String,
    /// A pattern of commands that it is about, such as `git push*`. Without it, it is about all calls.
    pub command: Option<String>,
    /// What is done about them.
    pub action: Action,
}

/// A rule that could never mean what was meant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("rule {} of approval ({rule}): {problem}", .index + 1)]
pub struct WrongRule {
    /// Which one, from 0 on.
    pub index: usize,
    /// The pattern that is wrong, with its key: ``command = " git"``.
    pub rule: String,
    /// What is wrong with it, and what to do.
    pub problem: &'static str,
}

/// What is done about a call, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// What is done.
    pub action: Action,
    /// Why, for a person: which command matches which rule.
    pub reason: String,
}

/// All the rules.
#[derive(Debug, Clone)]
pub struct Approvals {
    default: Action,
    rules: Vec<Checked>,
}

#[derive(Debug, Clone)]
struct Checked {
    rule: Rule,
    tool: Pattern,
    command: Option<Pattern>,
    /// The same without regard to the order of options, if the rule asks or denies.
    options: Option<OptionPattern>,
}

impl Checked {
    /// Whether it is about this form of a command, for certain.
    fn matches(&self, form: &Form) -> bool {
        let is_strict = self.rule.action > Action::Auto;
        let by_text = self.command.as_ref().is_some_and(|pattern| pattern.matches(&form.text));
        (by_text && (is_strict || !form.is_guess)) || self.has_options(form, OptionPattern::matches)
    }

    /// Whether it may be about it, depending on words that are not known.
    fn may_match(&self, form: &Form) -> bool {
        self.command.as_ref().is_some_and(|pattern| pattern.may_match(&form.text))
            || self.has_options(form, OptionPattern::may_match)
    }

    fn has_options(&self, form: &Form, holds: impl Fn(&OptionPattern, &CommandOptions) -> bool) -> bool {
        self.options
            .as_ref()
            .zip(form.options.as_ref())
            .is_some_and(|(pattern, options)| holds(pattern, options))
    }
}

/// A call of `exec`, as far as it concerns anybody here.
#[derive(Deserialize)]
struct Arguments {
    command: String,
}

impl Approvals {
    /// These rules, and what holds where none of them does.
    pub fn new(default: Action, rules: Vec<Rule>) -> Result<Self, WrongRule> {
        let rules = rules.into_iter().enumerate().map(|(index, rule)| checked(index, rule));
        Ok(Self { default, rules: rules.collect::<Result<_, _>>()? })
    }

    /// Judges a call of a tool with these arguments, which are JSON.
    pub fn judge(&self, tool: &str, arguments: &str) -> Verdict {
        let rules: Vec<&Checked> =
            self.rules.iter().filter(|rule| rule.tool.matches(&Text::plain(tool))).collect();
        let by_tool = self.judge_tool(tool, &rules);
        if tool != EXEC {
            return by_tool;
        }
        // Arguments that can't be read are not run either.
        let Ok(Arguments { command }) = serde_json::from_str(arguments) else { return by_tool };
        self.judge_line(&Script::parse(&command), by_tool, &rules)
    }

    /// What the rules that are about all calls of a tool say.
    fn judge_tool(&self, tool: &str, rules: &[&Checked]) -> Verdict {
        let of_tool = rules.iter().filter(|rule| rule.command.is_none());
        match of_tool.max_by_key(|rule| rule.rule.action) {
            Some(rule) => Verdict {
                action: rule.rule.action,
                reason: format!("`{tool}` matches the rule for the tool `{}`", rule.rule.tool),
            },
            None => Verdict { action: self.default, reason: format!("no rule matches `{tool}`") },
        }
    }

    fn judge_line(&self, script: &Script, by_tool: Verdict, rules: &[&Checked]) -> Verdict {
        let doubt = doubt_of(script);
        let judged = script.commands.iter().map(|command| {
            let forms = forms_of(command, doubt.as_ref());
            self.judge_command(command, &forms, &by_tool, rules)
        });
        let mut found = judged.reduce(stricter);
        // What can't be taken apart, or is no command, is judged as a whole.
        if found.is_none() || script.is_cut_short() {
            found = found.into_iter().chain([by_tool.clone()]).reduce(stricter);
        }
        // A program may run the value of a variable or not: only rules that ask or deny count.
        let strict: Vec<&Checked> = rules
            .iter()
            .filter(|rule| rule.rule.action > Action::Auto && rule.command.is_some())
            .copied()
            .collect();
        let lenient = Self { default: Action::Auto, rules: Vec::new() };
        let values = script.values.iter().map(|value| {
            lenient.judge_command(value, &forms_of(value, None), &lenient.judge_tool(EXEC, &[]), &strict)
        });
        let found = values.fold(found.unwrap_or(by_tool), stricter);
        let is_stricter = |rule: &&Checked| rule.rule.action > found.action;
        match script.unseen.first() {
            Some(unseen) if found.action < Action::Ask && rules.iter().any(is_stricter) => {
                let reason = format!("not everything that it runs can be seen: {unseen}");
                Verdict { action: Action::Ask, reason }
            }
            _ => found,
        }
    }

    fn judge_command(
        &self,
        command: &Command,
        forms: &[Form],
        by_tool: &Verdict,
        rules: &[&Checked],
    ) -> Verdict {
        // Nothing is let run in spite of the default that may be something else than it looks like.
        let counts = |rule: &Checked, form: &Form| {
            rule.rule.action > Action::Auto || self.default == Action::Auto || form.doubt.is_none()
        };
        let holds = |rule: &&&Checked| forms.iter().any(|form| counts(rule, form) && rule.matches(form));
        let is_about_all = rules.iter().any(|rule| rule.command.is_none());
        let matching = rules.iter().filter(holds).max_by_key(|rule| rule.rule.action);
        let found = match matching.map(|rule| (rule.rule.action, shown_rule(&rule.rule))) {
            Some((action, pattern)) if !is_about_all || action > by_tool.action => {
                Verdict { action, reason: format!("`{command}` matches the rule `{pattern}`") }
            }
            _ if is_about_all => by_tool.clone(),
            _ => {
                let doubted = rules.iter().find_map(|rule| {
                    let doubt = forms.iter().find(|form| rule.matches(form))?.doubt.as_ref()?;
                    let pattern = shown_rule(&rule.rule);
                    Some(format!("`{command}` matches the rule `{pattern}`, but {doubt}"))
                });
                let reason = doubted.unwrap_or_else(|| format!("no rule matches `{command}`"));
                Verdict { action: self.default, reason }
            }
        };
        if found.action >= Action::Ask {
            return found;
        }
        let is_stricter = |rule: &&&Checked| rule.rule.action > found.action;
        let may_match = |rule: &&&Checked| is_stricter(rule) && forms.iter().any(|form| rule.may_match(form));
        if let Some(rule) = rules.iter().find(may_match) {
            let pattern = shown_rule(&rule.rule);
            let reason =
                format!("`{command}` may match the rule `{pattern}`: not all of it is known before it runs");
            return Verdict { action: Action::Ask, reason };
        }
        // A rule that lets an interpreter run means whatever that runs.
        if command.has_code && matching.is_none() && rules.iter().any(|rule| is_stricter(&rule)) {
            let reason =
                format!("not everything that it runs can be seen: `{command}` runs code that is not read");
            return Verdict { action: Action::Ask, reason };
        }
        found
    }
}

/// The stricter of two; of two that are the same, the first.
fn stricter(one: Verdict, other: Verdict) -> Verdict {
    if other.action > one.action { other } else { one }
}

fn shown_rule(rule: &Rule) -> &str {
    rule.command.as_deref().unwrap_or(&rule.tool)
}

fn checked(index: usize, rule: Rule) -> Result<Checked, WrongRule> {
    let wrong = |key: &str, value: &str, problem| {
        Err(WrongRule { index, rule: format!("{key} = {value:?}"), problem })
    };
    if rule.tool.is_empty() || rule.tool.contains(char::is_whitespace) {
        return wrong("tool", &rule.tool, "a tool's name is one word; `*` is all of them");
    }
    let tool = Pattern::new(&rule.tool);
    let command = match rule.command.as_deref() {
        None => None,
        Some(command) if !tool.matches(&Text::plain(EXEC)) => {
            return wrong(
                "command",
                command,
                "only `exec` has commands, so this rule would never hold; leave `command` out",
            );
        }
        Some(command) if command.trim().is_empty() => {
            return wrong("command", command, "it is empty; `*` is every command, and so is leaving it out");
        }
        Some(command) if command.trim() != command => {
            return wrong("command", command, "no command begins or ends with a space; take it away");
        }
        Some(command) if command.contains(char::is_control) => {
            return wrong(
                "command",
                command,
                "it has a control character in it; words are separated by spaces",
            );
        }
        Some(command) => Some(Pattern::of_command(command)),
    };
    let strict = rule.command.as_deref().filter(|_| rule.action > Action::Auto);
    let options = strict.and_then(OptionPattern::of_command);
    Ok(Checked { rule, tool, command, options })
}

#[cfg(test)]
#[path = "approval_tests.rs"]
mod tests;
