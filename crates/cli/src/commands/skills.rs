//! `longhaul skills`: list, show, check and trust skills.

use std::path::{Path, PathBuf};

use longhaul_agent::Config;
use longhaul_agent::config::TrustState;
use longhaul_agent::skills::{
    Skill, SkillDocument, SkillError, SkillLibrary, SkillReport, SkillReview, SkillSource, SkillState,
    check_skill, distrust_skill, find_skills, review_skill, trust_skill,
};
use longhaul_protocol::PrintablePath;
use serde_json::{Value, json};
use similar::TextDiff;

use crate::args::{GlobalArgs, SkillTrustOptions, SkillsCommand};
use crate::nearest::nearest;
use crate::output::{json, line, note, print, review_line, truncate};
use crate::questions::{confirm, has_terminal};
use crate::{bad_usage, config, exit};

/// Columns of a description in the list.
const DESCRIPTION_COLUMNS: usize = 100;
/// Jaro-Winkler similarity below which a name is no suggestion.
const MIN_SIMILARITY: f64 = 0.75;

/// What the lists say if there are no skills.
pub(crate) const NO_SKILLS: &str =
    "no skills; make one in ~/.agents/skills/NAME/SKILL.md, or in .agents/skills of the project";

pub(crate) fn run(globals: &GlobalArgs, command: Option<SkillsCommand>, as_json: bool) -> anyhow::Result<u8> {
    let config = config::load(globals)?;
    match command {
        None => list(&config, as_json),
        Some(SkillsCommand::List { json }) => list(&config, as_json || json),
        Some(SkillsCommand::Show { name, json }) => show(&config, &name, as_json || json),
        Some(SkillsCommand::Check { folders, json }) => check(&config, &folders, as_json || json),
        Some(SkillsCommand::Trust(options)) => trust(&config, &options),
    }
}

fn list(config: &Config, as_json: bool) -> anyhow::Result<u8> {
    let library = find_skills(config, &config.work_dir);
    library.notes.iter().for_each(note);
    if library.skills.is_empty() && !as_json {
        note(NO_SKILLS);
    }
    let reports = || library.skills.iter().map(SkillReport::from).collect::<Vec<_>>();
    print(as_json, reports, || skill_lines(&library))?;
    Ok(exit::DONE)
}

/// The skills for people, one line each.
pub(crate) fn skill_lines(library: &SkillLibrary) -> Vec<String> {
    let width = library.skills.iter().map(|skill| skill.name.chars().count()).max().unwrap_or(0);
    let mut skills: Vec<&Skill> = library.skills.iter().collect();
    skills.sort_by_key(|skill| (skill.state != SkillState::Ready, skill.name.clone()));
    let row = |skill: &&Skill| {
        let description = skill.document.as_ref().map_or("", |document| document.description.as_str());
        let text = match skill.state {
            SkillState::Ready => truncate(description, DESCRIPTION_COLUMNS),
            _ => skill.reason.clone(),
        };
        format!("{:<width$}  {:<7}  {:<9}  {text}", skill.name, skill.source.as_str(), skill.state.as_str())
    };
    skills.iter().map(row).collect()
}

fn show(config: &Config, name: &str, as_json: bool) -> anyhow::Result<u8> {
    let library = find_skills(config, &config.work_dir);
    let skill = find_named(&library, name, |skill| skill.state == SkillState::Ready)?;
    let review = review_skill(&config.home, &skill.folder);
    if as_json {
        let mut shown = serde_json::to_value(SkillReport::from(skill))?;
        if let (Ok(review), Value::Object(fields)) = (&review, &mut shown) {
            fields.insert("blake3".to_owned(), json!(review.hash));
            fields.insert("listing".to_owned(), json!(review.listing));
        }
        json(&shown)?;
        return Ok(exit::DONE);
    }
    line(format!("{} ({}, {})", skill.name, skill.source.as_str(), skill.state.as_str()))?;
    line(skill.folder.printable())?;
    if !skill.reason.is_empty() {
        line(&skill.reason)?;
    }
    if let Some(document) = &skill.document {
        line(format!("description: {}", document.description))?;
        let optional = [("license", &document.license), ("compatibility", &document.compatibility)];
        for (field, value) in optional.into_iter().filter_map(|(field, value)| Some((field, value.as_ref()?)))
        {
            line(format!("{field}: {value}"))?;
        }
        if !document.allowed_tools.is_empty() {
            line(format!(
                "allowed-tools: {} (shown only; approval rules decide)",
                document.allowed_tools.join(" ")
            ))?;
        }
        for (key, value) in &document.metadata {
            line(format!("{key}: {value}"))?;
        }
        document.warnings.iter().map(|warning| format!("warning: {warning}")).try_for_each(line)?;
    }
    line("")?;
    review?.listing.lines().try_for_each(line)?;
    Ok(exit::DONE)
}

fn check(config: &Config, folders: &[PathBuf], as_json: bool) -> anyhow::Result<u8> {
    let folders: Vec<PathBuf> = match folders {
        [] => {
            let library = find_skills(config, &config.work_dir);
            library.notes.iter().for_each(note);
            library.skills.into_iter().map(|skill| skill.folder).collect()
        }
        named => {
            named.iter().map(|folder| folder.canonicalize().unwrap_or_else(|_| folder.clone())).collect()
        }
    };
    let checked: Vec<_> =
        folders.iter().map(|folder| (folder.printable().to_string(), check_skill(folder))).collect();
    let report = |(folder, checked): &(String, Result<SkillDocument, SkillError>)| match checked {
        Ok(document) => json!({"folder": folder, "error": null, "warnings": document.warnings}),
        Err(error) => json!({"folder": folder, "error": error.to_string(), "warnings": []}),
    };
    let lines = |(folder, checked): &(String, Result<SkillDocument, SkillError>)| match checked {
        Ok(document) if document.warnings.is_empty() => vec![format!("ok       {folder}")],
        Ok(document) => {
            document.warnings.iter().map(|warning| format!("warning  {folder}: {warning}")).collect()
        }
        Err(error) => vec![format!("error    {folder}: {error}")],
    };
    print(
        as_json,
        || checked.iter().map(report).collect::<Vec<_>>(),
        || checked.iter().flat_map(lines).collect(),
    )?;
    let is_any_malformed = checked.iter().any(|(_, checked)| checked.is_err());
    Ok(if is_any_malformed { exit::FAILED } else { exit::DONE })
}

fn trust(config: &Config, options: &SkillTrustOptions) -> anyhow::Result<u8> {
    let library = find_skills(config, &config.work_dir);
    let needs_trust = |skill: &Skill| matches!(skill.state, SkillState::Untrusted | SkillState::Changed);
    let skill = find_named(&library, &options.name, needs_trust)?;
    if options.remove {
        if !distrust_skill(&config.home, &skill.folder)? {
            return Err(bad_usage(format!("{} was not trusted", skill.name)));
        }
        if options.json {
            json(&json!({"name": skill.name, "folder": skill.folder, "removed": true}))?;
        } else {
            line(format!("{} is no longer trusted", skill.folder.printable()))?;
        }
        return Ok(exit::DONE);
    }
    if skill.source != SkillSource::Project && skill.state == SkillState::Ready {
        return Err(bad_usage(format!("{} is your own skill and needs no trust", skill.name)));
    }
    let review = review_skill(&config.home, &skill.folder)?;
    let how = if options.json { Asking::Json } else { Asking::Terminal };
    let trusted = trust_reviewed(&config.home, &review, options.yes, how)?;
    if options.json {
        json(&trusted)?;
    }
    Ok(exit::DONE)
}

/// Whether a person reads what is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asking {
    Terminal,
    Json,
}

/// Shows what a review found, asks unless the user said yes already, and records the trust. Returns the JSON of it.
pub(crate) fn trust_reviewed(
    home: &Path,
    review: &SkillReview,
    is_agreed: bool,
    how: Asking,
) -> anyhow::Result<Value> {
    if how == Asking::Terminal {
        show_review(review)?;
    }
    if review.trust != TrustState::Trusted && !is_agreed {
        if how == Asking::Json {
            return Err(bad_usage("--json can't ask; add --yes to trust the skill"));
        }
        if !has_terminal() {
            return Err(bad_usage(
                "not trusted: there is no terminal to ask on; review the skill, then add --yes",
            ));
        }
        if !confirm(&format!("Trust {}?", review.folder.printable()))? {
            return Err(bad_usage("not trusted"));
        }
    }
    trust_skill(home, review)?;
    if how == Asking::Terminal {
        let again = if review.trust == TrustState::Trusted { "is still" } else { "is now" };
        line(format!("It {again} trusted. If one of its files changes, it has to be trusted again."))?;
    }
    let before = super::trust::in_words(Some(review.trust));
    Ok(json!({"path": review.folder, "blake3": review.hash, "before": before}))
}

/// Shows all files of a skill, or what has changed in them since it was trusted.
fn show_review(review: &SkillReview) -> anyhow::Result<()> {
    line(review.folder.printable())?;
    match (&review.trusted_listing, review.trust) {
        (_, TrustState::Trusted) => return Ok(()),
        (Some(before), TrustState::Changed) => {
            line("It has changed since it was trusted:")?;
            let diff = TextDiff::from_lines(before.as_str(), review.listing.as_str());
            let changes = diff.unified_diff().context_radius(2).to_string();
            return changes.lines().map(|changed| format!("  {changed}")).try_for_each(review_line);
        }
        (None, TrustState::Changed) => {
            line("It has changed since it was trusted (the trusted version is not available):")?;
        }
        (_, TrustState::Unknown) => line("The project brought this skill along:")?,
    }
    review.listing.lines().map(|listed| format!("  {listed}")).try_for_each(review_line)
}

/// The skill of this name; if there are several, the first that is wanted, or else the first.
fn find_named<'a>(
    library: &'a SkillLibrary,
    name: &str,
    is_wanted: impl Fn(&Skill) -> bool,
) -> anyhow::Result<&'a Skill> {
    let named = || library.skills.iter().filter(|skill| skill.name == name);
    if let Some(found) = named().find(|skill| is_wanted(skill)).or_else(|| named().next()) {
        return Ok(found);
    }
    let nearest = nearest(library.skills.iter().map(|skill| skill.name.as_str()), name, MIN_SIMILARITY);
    let hint = match nearest.is_empty() {
        true => "`longhaul skills list` lists them".to_owned(),
        false => format!("did you mean {}?", nearest.join(" or ")),
    };
    Err(bad_usage(format!("no skill named {name:?}; {hint}")))
}
