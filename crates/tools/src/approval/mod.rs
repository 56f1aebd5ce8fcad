//! P4: approval rules, by tool, command and host.
//!
//! For `exec`, each command of the line is judged alone, and the strictest verdict applies to the line. A rule matches
//! a command however it is written: behind `env` or `sudo`, in a loop, in quotes. Approval is a convenience, not a
//! security boundary: a script file runs what it wants.

mod command_forms;
mod glob_pattern;
mod grants;
mod option_pattern;
mod permission_mode;

use std::sync::Arc;

use longhaul_protocol::former_tool_names;
use serde::Deserialize;

use crate::shell::{ShellCommand, ShellScript};
use crate::web::fetch::WEB_FETCH;
use command_forms::{CommandForm, doubt_of_script, forms_of};
use glob_pattern::{CommandText, GlobPattern};
pub use grants::{describe_grant, is_granted, suggest_grant};
use option_pattern::{CommandOptions, OptionPattern};
pub use permission_mode::{JudgedCall, only_looks};

const EXEC_TOOL: &str = "exec";

/// What to do with a call. A later variant is stricter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ApprovalAction {
    /// Run it.
    Auto,
    /// Ask a person first.
    Ask,
    /// Refuse it.
    Deny,
}

/// One `[[approval.rule]]` of the config.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolApprovalRule {
    /// The name of a tool, or a pattern of names.
    pub tool: String,
    /// A pattern of commands, such as `git push*`. Without it, the rule matches every call of the tool.
    pub command: Option<String>,
    /// A pattern of hosts, such as `*.example.org`, for the tool that fetches pages.
    pub host: Option<String>,
    /// What to do with the calls that match.
    pub action: ApprovalAction,
}

/// A rule with an error, which could never match.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("rule {} of approval ({rule}): {problem}", .index + 1)]
pub struct InvalidRule {
    /// Its position in the config, from 0.
    pub index: usize,
    /// The pattern that is wrong, with its key: ``command = " git"``.
    pub rule: String,
    /// What is wrong with it, and how to write it.
    pub problem: &'static str,
}

/// The action for one call, and the reason for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalVerdict {
    /// What to do with the call.
    pub action: ApprovalAction,
    /// Which command matches which rule, in words for a person.
    pub reason: String,
}

/// All rules, and the action where none of them matches.
#[derive(Debug, Clone)]
pub struct ApprovalPolicy {
    default: ApprovalAction,
    /// Why the default applies, if the permission mode set it.
    default_reason: Option<&'static str>,
    rules: Arc<[CompiledRule]>,
}

#[derive(Debug, Clone)]
struct CompiledRule {
    rule: ToolApprovalRule,
    tool: GlobPattern,
    command: Option<GlobPattern>,
    host: Option<GlobPattern>,
    /// The same pattern regardless of the order of options. Only for a rule that asks or denies.
    options: Option<OptionPattern>,
}

impl CompiledRule {
    /// Whether the rule certainly matches this form of a command.
    fn matches(&self, form: &CommandForm) -> bool {
        let is_strict = self.rule.action > ApprovalAction::Auto;
        let by_text = self.command.as_ref().is_some_and(|pattern| pattern.matches(&form.text));
        (by_text && (is_strict || !form.is_guess)) || self.has_options(form, OptionPattern::matches)
    }

    /// Whether the rule matches for some value of the words that are known only at run time.
    fn may_match(&self, form: &CommandForm) -> bool {
        self.command.as_ref().is_some_and(|pattern| pattern.may_match(&form.text))
            || self.has_options(form, OptionPattern::may_match)
    }

    fn has_options(
        &self,
        form: &CommandForm,
        holds: impl Fn(&OptionPattern, &CommandOptions) -> bool,
    ) -> bool {
        self.options
            .as_ref()
            .zip(form.options.as_ref())
            .is_some_and(|(pattern, options)| holds(pattern, options))
    }
}

/// The argument of `exec` that rules look at.
#[derive(Deserialize)]
struct ExecArguments {
    command: String,
}

/// The argument of `web_fetch` that rules look at.
#[derive(Deserialize)]
struct FetchArguments {
    url: String,
}

impl ApprovalPolicy {
    /// Compiles the rules. `default` applies to calls that no rule matches.
    pub fn new(default: ApprovalAction, rules: Vec<ToolApprovalRule>) -> Result<Self, InvalidRule> {
        let rules = rules.into_iter().enumerate().map(|(index, rule)| compile_rule(index, rule));
        Ok(Self { default, default_reason: None, rules: rules.collect::<Result<_, _>>()? })
    }

    /// The same rules with another default.
    fn with_default(&self, default: ApprovalAction, reason: &'static str) -> Self {
        Self { default, default_reason: Some(reason), rules: Arc::clone(&self.rules) }
    }

    /// Why the default applies to a call or a command.
    fn default_reason(&self, what: &str) -> String {
        self.default_reason.map_or_else(|| format!("no rule matches `{what}`"), str::to_owned)
    }

    /// Judges a call of a tool. `arguments` are JSON.
    pub fn judge(&self, tool: &str, arguments: &str) -> ApprovalVerdict {
        // A rule with a name that the tool had before applies as well.
        let is_about = |rule: &&CompiledRule| {
            let matches = |name: &str| rule.tool.matches(&CommandText::plain_text(name));
            matches(tool) || former_tool_names(tool).any(matches)
        };
        let host = fetched_host(tool, arguments);
        let is_about_host = |rule: &&CompiledRule| match (&rule.host, &host) {
            (None, _) => true,
            (Some(pattern), Some(host)) => pattern.matches(&CommandText::plain_text(host)),
            (Some(_), None) => false,
        };
        let rules: Vec<&CompiledRule> = self.rules.iter().filter(is_about).filter(is_about_host).collect();
        let by_tool = self.judge_tool(tool, &rules);
        if tool != EXEC_TOOL {
            return by_tool;
        }
        // A call with unreadable arguments never runs.
        let Ok(ExecArguments { command }) = serde_json::from_str(arguments) else { return by_tool };
        self.judge_line(&ShellScript::parse(&command), by_tool, &rules)
    }

    /// The verdict of the rules without a `command`.
    fn judge_tool(&self, tool: &str, rules: &[&CompiledRule]) -> ApprovalVerdict {
        let of_tool = rules.iter().filter(|rule| rule.command.is_none());
        match of_tool.max_by_key(|rule| rule.rule.action) {
            Some(rule) => ApprovalVerdict {
                action: rule.rule.action,
                reason: match &rule.rule.host {
                    Some(host) => format!("`{tool}` matches the rule for the host `{host}`"),
                    None => format!("`{tool}` matches the rule for the tool `{}`", rule.rule.tool),
                },
            },
            None => ApprovalVerdict { action: self.default, reason: self.default_reason(tool) },
        }
    }

    fn judge_line(
        &self,
        script: &ShellScript,
        by_tool: ApprovalVerdict,
        rules: &[&CompiledRule],
    ) -> ApprovalVerdict {
        let doubt = doubt_of_script(script);
        let judged = script.commands.iter().map(|command| {
            let forms = forms_of(command, doubt.as_ref());
            self.judge_command(command, &forms, &by_tool, rules)
        });
        let mut found = judged.reduce(stricter);
        // A line without a command, or one that could not be parsed, gets the verdict for the tool.
        if found.is_none() || script.is_cut_short() {
            found = found.into_iter().chain([by_tool.clone()]).reduce(stricter);
        }
        // A program may run the value of a variable, so only rules that ask or deny look at it.
        let strict: Vec<&CompiledRule> = rules
            .iter()
            .filter(|rule| rule.rule.action > ApprovalAction::Auto && rule.command.is_some())
            .copied()
            .collect();
        let lenient = Self { default: ApprovalAction::Auto, default_reason: None, rules: Arc::default() };
        let values = script.values.iter().map(|value| {
            lenient.judge_command(value, &forms_of(value, None), &lenient.judge_tool(EXEC_TOOL, &[]), &strict)
        });
        let found = values.fold(found.unwrap_or(by_tool), stricter);
        let is_stricter = |rule: &&CompiledRule| rule.rule.action > found.action;
        match script.unseen.first() {
            Some(unseen) if found.action < ApprovalAction::Ask && rules.iter().any(is_stricter) => {
                let reason = format!("not everything that it runs can be seen: {unseen}");
                ApprovalVerdict { action: ApprovalAction::Ask, reason }
            }
            _ => found,
        }
    }

    fn judge_command(
        &self,
        command: &ShellCommand,
        forms: &[CommandForm],
        by_tool: &ApprovalVerdict,
        rules: &[&CompiledRule],
    ) -> ApprovalVerdict {
        // A rule overrides a stricter default only for a command that is certainly what it looks like.
        let counts = |rule: &CompiledRule, form: &CommandForm| {
            rule.rule.action > ApprovalAction::Auto
                || self.default == ApprovalAction::Auto
                || form.doubt.is_none()
        };
        let holds = |rule: &&&CompiledRule| forms.iter().any(|form| counts(rule, form) && rule.matches(form));
        let is_about_all = rules.iter().any(|rule| rule.command.is_none());
        let matching = rules.iter().filter(holds).max_by_key(|rule| rule.rule.action);
        let found = match matching.map(|rule| (rule.rule.action, rule_pattern(&rule.rule))) {
            Some((action, pattern)) if !is_about_all || action > by_tool.action => {
                ApprovalVerdict { action, reason: format!("`{command}` matches the rule `{pattern}`") }
            }
            _ if is_about_all => by_tool.clone(),
            _ => {
                let doubted = rules.iter().find_map(|rule| {
                    let doubt = forms.iter().find(|form| rule.matches(form))?.doubt.as_ref()?;
                    let pattern = rule_pattern(&rule.rule);
                    Some(format!("`{command}` matches the rule `{pattern}`, but {doubt}"))
                });
                let reason = doubted.unwrap_or_else(|| self.default_reason(&command.to_string()));
                ApprovalVerdict { action: self.default, reason }
            }
        };
        if found.action >= ApprovalAction::Ask {
            return found;
        }
        let is_stricter = |rule: &&&CompiledRule| rule.rule.action > found.action;
        let may_match =
            |rule: &&&CompiledRule| is_stricter(rule) && forms.iter().any(|form| rule.may_match(form));
        if let Some(rule) = rules.iter().find(may_match) {
            let pattern = rule_pattern(&rule.rule);
            let reason =
                format!("`{command}` may match the rule `{pattern}`: not all of it is known before it runs");
            return ApprovalVerdict { action: ApprovalAction::Ask, reason };
        }
        // A rule that allows an interpreter allows all of its code.
        if command.has_code && matching.is_none() && rules.iter().any(|rule| is_stricter(&rule)) {
            let reason =
                format!("not everything that it runs can be seen: `{command}` runs code that is not read");
            return ApprovalVerdict { action: ApprovalAction::Ask, reason };
        }
        found
    }
}

/// The host of a call that fetches a page, in the form that every spelling of it has in common.
pub(crate) fn fetched_host(tool: &str, arguments: &str) -> Option<String> {
    let arguments: FetchArguments = (tool == WEB_FETCH).then(|| serde_json::from_str(arguments).ok())??;
    let url = reqwest::Url::parse(arguments.url.trim()).ok()?;
    let host = url.host_str()?;
    Some(host.strip_suffix('.').unwrap_or(host).to_owned())
}

fn is_host_letter(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.' | '*' | '?' | '[' | ']' | ':')
}

/// The stricter of two verdicts; the first if they are equal.
fn stricter(one: ApprovalVerdict, other: ApprovalVerdict) -> ApprovalVerdict {
    if other.action > one.action { other } else { one }
}

fn rule_pattern(rule: &ToolApprovalRule) -> &str {
    rule.command.as_deref().unwrap_or(&rule.tool)
}

fn compile_rule(index: usize, rule: ToolApprovalRule) -> Result<CompiledRule, InvalidRule> {
    let wrong = |key: &str, value: &str, problem| {
        Err(InvalidRule { index, rule: format!("{key} = {value:?}"), problem })
    };
    if rule.tool.is_empty() || rule.tool.contains(char::is_whitespace) {
        return wrong("tool", &rule.tool, "a tool's name is one word; `*` is all of them");
    }
    let tool = GlobPattern::new(&rule.tool);
    let command = match rule.command.as_deref() {
        None => None,
        Some(command) if !tool.matches(&CommandText::plain_text(EXEC_TOOL)) => {
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
        Some(command) => Some(GlobPattern::of_command(command)),
    };
    let host = match rule.host.as_deref() {
        None => None,
        Some(host) if !tool.matches(&CommandText::plain_text(WEB_FETCH)) => {
            return wrong(
                "host",
                host,
                "only `web_fetch` has hosts, so this rule would never hold; leave `host` out",
            );
        }
        Some(host) if host.is_empty() || !host.chars().all(is_host_letter) => {
            return wrong(
                "host",
                host,
                "a host is a name without scheme, port and path, in ASCII; `*` is anything",
            );
        }
        Some(host) => Some(GlobPattern::new(&host.to_ascii_lowercase())),
    };
    let strict = rule.command.as_deref().filter(|_| rule.action > ApprovalAction::Auto);
    let options = strict.and_then(OptionPattern::of_command);
    Ok(CompiledRule { rule, tool, command, host, options })
}

#[cfg(test)]
#[path = "approval_tests.rs"]
mod tests;
