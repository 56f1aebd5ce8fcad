//! Skills: folders with a SKILL.md that tells the agent how to do something, in the open form that many agents share.
//!
//! # What this crate promises
//!
//! - **A malformed skill affects no other**, and one line says everything that is wrong with it.
//! - **What was hashed is what is used.** A folder is read once, through open descriptors; its hash covers every file.
//! - **No link leads out.** Neither a skill nor a file in it can be a link to something outside.
//! - **Everything is bounded**: depth, number of files, bytes.
//! - **Nothing here decides about trust.** The caller knows which hashes the user has agreed to.
//!
//! # Where things are
//!
//! | module | what it holds |
//! | --- | --- |
//! | `discovery` | the folders of skills, and which skills are in them |
//! | `folder` | reading a skill's folder: its files, its hash, its listing for the user |
//! | `document` | parsing and checking SKILL.md |
//! | `agent_kind` | parsing and checking the file of a kind of subagent |
//!
//! # Example
//!
//! ```
//! use longhaul_skills::parse_document;
//!
//! let text = "---\nname: release\ndescription: Use for releases\n---\nFirst run the tests.\n";
//!
//! let skill = parse_document(text, "release")?;
//! assert_eq!((skill.description.as_str(), skill.body.as_str()), ("Use for releases", "First run the tests."));
//! assert_eq!(
//!     parse_document(text, "other").unwrap_err().to_string(),
//!     "its name is \"release\", but its folder is called \"other\"; they must be the same"
//! );
//! # Ok::<(), longhaul_skills::SkillError>(())
//! ```

mod agent_kind;
mod discovery;
mod document;
mod error;
mod folder;

pub use agent_kind::{AgentKind, parse_agent_kind};
pub use discovery::{Discovery, SkillPlace, SkillRoot, SkillSource, find_skill_folders};
pub use document::{SkillDocument, parse_document};
pub use error::SkillError;
pub use folder::{DOCUMENT, SkillFile, SkillFileKind, SkillFolder, parse_document_bytes, read_document};
