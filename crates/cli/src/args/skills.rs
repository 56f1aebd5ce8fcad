//! The options of `skills`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Subcommand)]
pub(crate) enum SkillsCommand {
    /// List the skills of this folder, and why some are not used.
    List {
        /// Print a JSON array.
        #[arg(long)]
        json: bool,
    },
    /// Show a skill: where it is, its files and its text.
    Show {
        /// Name of the skill.
        name: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Check skills for mistakes.
    ///
    /// Exits with 1 if a skill can't be used as it is. Warnings are about what other programs would refuse.
    Check {
        /// Folder of a skill [default: all skills of this folder].
        #[arg(value_name = "FOLDER")]
        folders: Vec<PathBuf>,
        /// Print a JSON array.
        #[arg(long)]
        json: bool,
    },
    /// Trust a skill of this project.
    ///
    /// Shows all of its files, or what has changed since you trusted it, and asks. If a file changes, the skill has to be trusted again.
    Trust(SkillTrustOptions),
}

#[derive(Args)]
pub(crate) struct SkillTrustOptions {
    /// Name of the skill.
    pub(crate) name: String,
    /// Don't ask; required without a terminal.
    #[arg(long, short, conflicts_with = "remove")]
    pub(crate) yes: bool,
    /// Stop trusting the skill.
    #[arg(long)]
    pub(crate) remove: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
