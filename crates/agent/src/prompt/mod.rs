//! What the model is told at the beginning of every request, apart from the tools.
//!
//! The text itself is `system_prompt.md` of the crate `context`. `docs/prompt.md` says how users replace and extend it.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `instruction_files` | finding and reading AGENTS.md and CLAUDE.md, of the user and of the project |
//! | `environment` | the surroundings of a session: date, system, shell, repository, sandbox, model |
//! | `git_status` | whether the work tree was clean when the session began, found out beside the start |
//! | `local_date` | the date in the user's time zone |

pub(crate) mod environment;
pub(crate) mod git_status;
pub(crate) mod instruction_files;
mod local_date;

use std::borrow::Cow;

use longhaul_context::DEFAULT_PROMPT_TEXT;
use longhaul_protocol::PrintablePath;

use crate::config::files::read_user_file;
use crate::{Config, Error, Result};

/// The file of the home whose text replaces that of the system prompt.
pub(crate) const PROMPT_FILE: &str = "system_prompt.md";

/// The text that the system prompt begins with: the home's `system_prompt.md` if it exists, otherwise the default.
pub(crate) fn prompt_text(config: &Config) -> Result<Cow<'static, str>> {
    let path = config.home.join(PROMPT_FILE);
    match read_user_file(&path)? {
        None => Ok(DEFAULT_PROMPT_TEXT.into()),
        // An agent without any text would work blindly. That is a mistake rather than a wish.
        Some(text) if text.trim().is_empty() => {
            let reason = "the file is empty; write the system prompt into it, or remove it".to_owned();
            Err(Error::Config { origin: path.printable().to_string(), reason })
        }
        Some(text) => Ok(text.into()),
    }
}
