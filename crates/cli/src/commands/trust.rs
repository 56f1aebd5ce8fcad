//! `longhaul trust`: lets the longhaul.toml of a project set every key, its .mcp.json start MCP servers, and the agent use its skills and
//! its kinds of subagents.

use std::path::Path;

use longhaul_agent::config::{
    DisallowedKey, ProjectFile, ProjectServersFile, Sources, TrustState, TrustedFile, distrust_kinds,
    distrust_project, load_trust_list, trust_kind, trust_project, trust_project_servers, trust_state,
};
use longhaul_agent::skills::{
    Skill, SkillReview, SkillState, distrust_project_skills, find_skills, review_skill,
};
use longhaul_agent::{Config, KindFile, kind_files};
use longhaul_protocol::{PrintablePath, printable};
use serde_json::{Value, json};
use similar::TextDiff;

use crate::args::{GlobalArgs, TrustOptions};
use crate::commands::skills::{Asking, trust_reviewed};
use crate::output::{json, line, note, review_line};
use crate::questions::{confirm, has_terminal};
use crate::{bad_usage, exit};

pub(crate) fn run(globals: &GlobalArgs, options: &TrustOptions) -> anyhow::Result<u8> {
    let (home, sources) = (globals.home_dir()?, globals.sources()?);
    if options.list {
        list(&home, options.json)?;
    } else if options.remove {
        remove(&home, &sources, options.json)?;
    } else {
        trust(&home, &sources, options)?;
    }
    Ok(exit::DONE)
}

fn trust(home: &Path, sources: &Sources, options: &TrustOptions) -> anyhow::Result<()> {
    let file = ProjectFile::find(home, sources)?;
    // A file that can't be used is no reason not to trust the others.
    let (servers, broken) = match ProjectServersFile::find(home, sources) {
        Ok(servers) => (servers, None),
        Err(why) => (None, Some(why)),
    };
    let skills = unreviewed_skills(home, sources)?;
    let kinds = unreviewed_kinds(home, sources)?;
    if file.is_none() && servers.is_none() && skills.is_empty() && kinds.is_empty() {
        if let Some(why) = broken {
            return Err(bad_usage(format!("{why}; nothing to trust")));
        }
        let missing = "no longhaul.toml and no .mcp.json in";
        return Err(none_here(
            sources,
            missing,
            ", and no new skills or kinds of subagents; nothing to trust",
        ));
    }
    let mut trusted = match &file {
        Some(file) => trust_file(home, file, options)?,
        None => json!({}),
    };
    if let Some(why) = &broken {
        note(why);
    }
    if let Some(servers) = &servers {
        trusted["mcp"] = trust_servers(home, servers, options)?;
    }
    let how = if options.json { Asking::Json } else { Asking::Terminal };
    let skills = skills.iter().map(|review| trust_reviewed(home, review, options.yes, how));
    let skills = skills.collect::<anyhow::Result<Vec<_>>>()?;
    let kinds = kinds.iter().map(|kind| trust_kind_file(home, kind, options));
    let kinds = kinds.collect::<anyhow::Result<Vec<_>>>()?;
    if options.json {
        trusted["skills"] = skills.into();
        trusted["agents"] = kinds.into();
        return json(&trusted);
    }
    Ok(())
}

/// The project's skills that the user has not looked at as they are now.
fn unreviewed_skills(home: &Path, sources: &Sources) -> anyhow::Result<Vec<SkillReview>> {
    let config = Config::load(home, sources)?;
    let library = find_skills(&config, &config.work_dir);
    let is_new = |skill: &&Skill| matches!(skill.state, SkillState::Untrusted | SkillState::Changed);
    Ok(library
        .skills
        .iter()
        .filter(is_new)
        .map(|skill| review_skill(home, &skill.folder))
        .collect::<Result<_, _>>()?)
}

/// The project's kinds of subagents that the user has not looked at as they are now.
fn unreviewed_kinds(home: &Path, sources: &Sources) -> anyhow::Result<Vec<KindFile>> {
    let config = Config::load(home, sources)?;
    let is_new = |file: &KindFile| matches!(file.trust, Some(TrustState::Unknown | TrustState::Changed));
    Ok(kind_files(&config, Some(&config.work_dir)).into_iter().filter(is_new).collect())
}

/// Trusts a kind of subagent, after the user has seen its text.
fn trust_kind_file(home: &Path, file: &KindFile, options: &TrustOptions) -> anyhow::Result<Value> {
    let before = file.trust.unwrap_or(TrustState::Unknown);
    if !options.json {
        line(file.path.printable())?;
        let list = load_trust_list(home)?;
        let trusted = list.find(&file.path).and_then(|trusted| trusted.text.as_deref());
        if before == TrustState::Unknown {
            // All of it: what it tells a subagent is what the user allows.
            file.text.lines().map(|text| format!("  {text}")).try_for_each(review_line)?;
        }
        show_changes(&file.text, trusted, before)?;
        line(format!("It is a kind of subagent, {}.", printable(file.name().as_bytes())))?;
    }
    if !options.yes {
        if options.json {
            return Err(bad_usage("--json can't ask; add --yes to trust the file"));
        }
        agree(&file.path)?;
    }
    trust_kind(home, file)?;
    if !options.json {
        say_trusted(before)?;
    }
    Ok(json!({"path": file.path, "blake3": file.hash, "before": in_words(Some(before)), "name": file.name()}))
}

/// Trusts the longhaul.toml, and returns the JSON of it.
fn trust_file(home: &Path, file: &ProjectFile, options: &TrustOptions) -> anyhow::Result<Value> {
    // What is shown is what is trusted: both are of the bytes that were read once.
    if !options.json {
        show(file)?;
    }
    if file.trust != TrustState::Trusted && !options.yes {
        if options.json {
            return Err(bad_usage("--json can't ask; add --yes to trust the file"));
        }
        agree(&file.path)?;
    }
    trust_project(home, file)?;
    if !options.json {
        say_trusted(file.trust)?;
    }
    let sets = file.disallowed.iter().map(|disallowed| {
        json!({"key": disallowed.key, "value": disallowed.value, "line": disallowed.line, "reason": disallowed.reason})
    });
    Ok(json!({
        "path": file.path,
        "blake3": file.hash,
        "before": in_words(Some(file.trust)),
        "sets": sets.collect::<Vec<_>>(),
    }))
}

/// Trusts the MCP servers of a project, after the user has seen which programs they would run.
fn trust_servers(home: &Path, file: &ProjectServersFile, options: &TrustOptions) -> anyhow::Result<Value> {
    if !options.json {
        line(file.path.printable())?;
        show_changes(&file.text, file.trusted_text.as_deref(), file.trust)?;
        line("It starts these MCP servers:")?;
        for (name, settings) in &file.servers {
            let words = std::iter::once(&settings.command).chain(&settings.args);
            let command = words.map(String::as_str).collect::<Vec<_>>().join(" ");
            let target = if settings.url.is_empty() { &command } else { &settings.url };
            review_line(format!("  {name}: {target}"))?;
            // All of it: a header or a variable can take a key along.
            for (header, value) in &settings.headers {
                review_line(format!("    sends the header {header}: {value}"))?;
            }
            for variable in &settings.env {
                review_line(format!("    gets your variable {variable}"))?;
            }
            for (variable, value) in &settings.variables {
                review_line(format!("    gets {variable}={value}"))?;
            }
        }
        for warning in &file.warnings {
            line(format!("  warning: {warning}"))?;
        }
    }
    if file.trust != TrustState::Trusted && !options.yes {
        if options.json {
            return Err(bad_usage("--json can't ask; add --yes to trust the file"));
        }
        agree(&file.path)?;
    }
    trust_project_servers(home, file)?;
    if !options.json {
        say_trusted(file.trust)?;
    }
    let names: Vec<&String> = file.servers.keys().collect();
    let before = in_words(Some(file.trust));
    Ok(json!({"path": file.path, "blake3": file.hash, "before": before, "servers": names}))
}

fn say_trusted(before: TrustState) -> anyhow::Result<()> {
    let again = if before == TrustState::Trusted { "is still" } else { "is now" };
    line(format!("It {again} trusted. If it changes, run `longhaul trust` again."))
}

/// Asks the user, who has seen what the file sets.
fn agree(path: &Path) -> anyhow::Result<()> {
    if !has_terminal() {
        let hint =
            "not trusted: there is no terminal to ask on; review the file, then run `longhaul trust --yes`";
        return Err(bad_usage(hint));
    }
    match confirm(&format!("Trust {}?", path.printable()))? {
        true => Ok(()),
        false => Err(bad_usage("not trusted")),
    }
}

fn show(file: &ProjectFile) -> anyhow::Result<()> {
    line(file.path.printable())?;
    show_changes(&file.text, file.trusted_text.as_deref(), file.trust)?;
    if file.disallowed.is_empty() {
        return line("It sets nothing that needs your trust.");
    }
    line("It sets keys that need your trust:")?;
    for DisallowedKey { key, value, line: number, reason } in &file.disallowed {
        // All of it: the user is about to allow it.
        review_line(format!("  line {number}: {key} = {value}  # {reason}"))?;
    }
    Ok(())
}

/// Shows what has changed since the file was trusted.
fn show_changes(text: &str, trusted: Option<&str>, trust: TrustState) -> anyhow::Result<()> {
    match trusted {
        Some(before) if trust == TrustState::Changed => {
            line("It has changed since it was trusted:")?;
            let diff = TextDiff::from_lines(before, text);
            let changes = diff.unified_diff().context_radius(2).to_string();
            changes.lines().map(|changed| format!("  {changed}")).try_for_each(review_line)
        }
        None if trust == TrustState::Changed => {
            line("It has changed since it was trusted (the trusted version is not available).")
        }
        _ => Ok(()),
    }
}

fn list(home: &Path, as_json: bool) -> anyhow::Result<()> {
    let list = load_trust_list(home)?;
    if as_json {
        let files = list.files().iter().map(
            |file| json!({"path": file.path, "blake3": file.blake3, "standing": in_words(trust_state(file))}),
        );
        return json(&files.collect::<Vec<_>>());
    }
    if list.files().is_empty() {
        return line("No trusted projects.");
    }
    let shown = |file: &TrustedFile| format!("{}  # {}", file.path.printable(), in_words(trust_state(file)));
    list.files().iter().map(shown).try_for_each(line)
}

fn remove(home: &Path, sources: &Sources, as_json: bool) -> anyhow::Result<()> {
    let mut paths = distrust_project(home, sources)?;
    let config = Config::load(home, sources)?;
    paths.extend(distrust_project_skills(&config)?);
    paths.extend(distrust_kinds(home, &config.work_dir)?);
    let Some(path) = paths.first() else {
        return Err(none_here(
            sources,
            "no trusted longhaul.toml, .mcp.json, skill or kind of subagent in",
            "; `longhaul trust --list` lists all",
        ));
    };
    if as_json {
        return json(&json!({"path": path, "paths": paths, "removed": true}));
    }
    paths.iter().try_for_each(|path| line(format!("{} is no longer trusted", path.printable())))
}

fn none_here(sources: &Sources, what: &str, next: &str) -> anyhow::Error {
    let here = || std::env::current_dir().unwrap_or_default();
    let folder = sources.work_dir.clone().unwrap_or_else(here);
    bad_usage(format!("{what} {} or its parents{next}", folder.printable()))
}

pub(super) fn in_words(standing: Option<TrustState>) -> &'static str {
    match standing {
        Some(TrustState::Trusted) => "trusted",
        Some(TrustState::Changed) => "changed",
        Some(TrustState::Unknown) => "unknown",
        None => "gone",
    }
}
