//! `git`. Its subcommand may follow global options, and git runs commands from its config and for some subcommands.

use super::getopt::{OptionSpec, parse_options};
use super::wrappers::join_words;
use crate::shell::{ShellWord, UnseenReason};

/// Options before the subcommand.
const GLOBAL_OPTIONS: OptionSpec = OptionSpec::leading(
    "C:c:pPhv",
    "git-dir: work-tree: namespace: super-prefix: config-env: attr-source: exec-path:: html-path man-path info-path paginate no-pager \
     bare no-replace-objects no-lazy-fetch no-optional-locks no-advice literal-pathspecs glob-pathspecs noglob-pathspecs \
     icase-pathspecs list-cmds::",
);
const CONFIG_OPTIONS: OptionSpec = OptionSpec::leading(
    "f:lez",
    "file: blob: type: default: comment: value: url: global system local worktree null list edit get get-all get-regexp \
     get-urlmatch get-color get-colorbool name-only show-origin show-scope show-names includes no-includes no-type bool int \
     bool-or-int bool-or-str path expiry-date add replace-all append all unset unset-all rename-section remove-section fixed-value \
     regexp",
);
/// Options of `git config` that read or remove.
const READING_OPTIONS: &str =
    "get get-all get-regexp get-urlmatch get-color get-colorbool list l unset unset-all remove-section";
/// Sections and keys of the config that run nothing, whatever their value. Any other key may run something.
const HARMLESS_KEYS: &str = "user.name user.email color. advice. column. log. status. fetch. push. pull. rerere. branch. \
    core.quotepath core.autocrlf core.eol core.filemode core.abbrev core.longpaths core.ignorecase \
    init.defaultbranch commit.gpgsign=false tag.gpgsign=false core.pager=cat safe.directory";
/// The command without the options before the subcommand, if it is `git`. Treats `git-push` as `git push`.
pub(crate) fn without_global_options(words: &[ShellWord]) -> Option<Vec<ShellWord>> {
    let (name, arguments) = words.split_first()?;
    if let Some(subcommand) = name.program().and_then(|name| name.strip_prefix("git-")) {
        let name = ["git", subcommand].map(ShellWord::of_literal);
        return Some(name.into_iter().chain(arguments.iter().cloned()).collect());
    }
    let operands = (name.program()? == "git").then(|| parse_options(arguments, &GLOBAL_OPTIONS).operands)?;
    Some(std::iter::once(name).chain(operands).cloned().collect())
}

/// What git runs in addition to its subcommand.
#[derive(Debug, Default)]
pub(super) struct GitRuns {
    /// Commands as texts.
    pub(super) texts: Vec<ShellWord>,
    pub(super) unseen: Option<UnseenReason>,
}

pub(super) fn commands_run_by_git(words: &[ShellWord]) -> GitRuns {
    let Some(command) = without_global_options(words) else { return GitRuns::default() };
    let mut found = GitRuns::default();
    let mut code = (words[0].program() == Some("git")).then(|| configured(words)).flatten();
    if let Some((subcommand, arguments)) = command.get(1..).and_then(<[ShellWord]>::split_first) {
        let start = arguments.iter().position(|word| !word.text.starts_with('-')).unwrap_or(arguments.len());
        match (subcommand.text.as_str(), &arguments[start..]) {
            ("config", _) if sets_config(arguments) => code = Some(join_words(words)),
            ("filter-branch" | "for-each-repo", _) => code = Some(join_words(words)),
            ("bisect", [run, command @ ..]) if run.text == "run" => found.texts.extend(one_text(command)),
            ("submodule", [foreach, command @ ..]) if foreach.text == "foreach" => {
                let at = command.iter().position(|word| !word.text.starts_with('-')).unwrap_or(command.len());
                found.texts.extend(one_text(&command[at..]));
            }
            (subcommand, _) => {
                let values = parse_options(arguments, &command_options(subcommand)).with_values();
                for (option, value) in values {
                    match option {
                        "c" | "config" if is_harmless(&value) => {}
                        "c" | "config" => code = Some(join_words(words)),
                        _ => found.texts.push(value),
                    }
                }
            }
        }
        // The `ext` transport runs the rest of the address.
        if subcommand.may_be_option() || arguments.iter().any(|word| word.text.starts_with("ext::")) {
            code = Some(join_words(words));
        }
    }
    found.unseen = code.map(UnseenReason::Code);
    found
}

/// Options of a subcommand whose value is a command or a config setting.
fn command_options(subcommand: &str) -> OptionSpec {
    const COMMANDS: &str = "exec: extcmd: upload-pack: receive-pack: open-files-in-pager::";
    match subcommand {
        "rebase" | "difftool" => OptionSpec::partial("x:", COMMANDS),
        "grep" => OptionSpec::partial("O::", COMMANDS),
        "clone" => OptionSpec::partial("u:c:", "upload-pack: config:"),
        _ => OptionSpec::partial("", COMMANDS),
    }
}

/// The options before the subcommand that can make git run anything, if there are any.
fn configured(words: &[ShellWord]) -> Option<String> {
    let parsed = parse_options(&words[1..], &GLOBAL_OPTIONS);
    if !parsed.is_certain {
        return Some(join_words(words));
    }
    parsed.with_values().find_map(|(option, value)| match option {
        "c" if !is_harmless(&value) => Some(format!("git -c {}", value.text)),
        "config-env" | "exec-path" => Some(format!("git --{option}={}", value.text)),
        _ => None,
    })
}

/// Whether a config setting `key=value` runs nothing.
fn is_harmless(setting: &ShellWord) -> bool {
    let text = setting.text.trim_start_matches('"').to_ascii_lowercase();
    HARMLESS_KEYS.split_whitespace().any(|key| match key.ends_with('.') {
        true => text.starts_with(key),
        false => text.strip_prefix(key).is_some_and(|rest| rest.is_empty() || rest.starts_with('=')),
    })
}

/// Whether `git config` with these arguments writes a key that can make git run something. A renamed section may become `alias`.
fn sets_config(arguments: &[ShellWord]) -> bool {
    let parsed = parse_options(arguments, &CONFIG_OPTIONS);
    let operands = parsed.operands.as_slice();
    // `git config set` has options of its own.
    let set_at = arguments.len() - operands.len() + 1;
    let is_set = operands.first().is_some_and(|word| word.text == "set");
    let set = is_set.then(|| parse_options(&arguments[set_at..], &CONFIG_OPTIONS));
    let is_certain = parsed.is_certain && set.as_ref().is_none_or(|set| set.is_certain);
    if !is_certain || parsed.has("e edit rename-section") {
        return true;
    }
    match set.as_ref().map_or(operands, |set| &set.operands) {
        _ if parsed.has(READING_OPTIONS) => false,
        [first, ..] if matches!(first.text.as_str(), "edit" | "rename-section") => true,
        [first, ..] if matches!(first.text.as_str(), "get" | "list" | "unset" | "remove-section") => false,
        [key, value, ..] => !is_harmless(&ShellWord {
            text: format!("{}={}", key.text, value.text),
            kind: key.kind.max(value.kind),
        }),
        _ => false,
    }
}

/// Joins the words that git runs as one text.
fn one_text(words: &[ShellWord]) -> Option<ShellWord> {
    let kind = words.iter().map(|word| word.kind).max()?;
    Some(ShellWord { text: join_words(words), kind })
}
