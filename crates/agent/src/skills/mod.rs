//! Skills in the runtime: which ones a session may use, how the model reads them, and how they stay in its context.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `library` | the skills that a work folder has, and whether each can be used |
//! | `review` | the trust in skills: what the user looks at, and what is recorded |
//! | `skill_read` | `read_file` of `skill:NAME` |
//! | `preface` | the list of skills and the skills in use, for a new epoch |
//!
//! The model learns of skills from a list in a `system_message` at the start of an epoch. It activates one by reading it.
//! The result is recorded with the hash of the skill's folder. A compaction reads an active skill again and puts its text
//! into the new epoch if the hash is still the same, and otherwise says why not.
//!
//! | a crash after | is on disk | on resume |
//! | --- | --- | --- |
//! | the answer that asks for `skill:NAME` | the call | it is run |
//! | `tool_started`, before or during the read | the call, and that it only reads | the folder is read and hashed again; the result has the hash of the bytes that it shows, whatever changed meanwhile |
//! | `tool_finished`: one append with the text and the hash | the text in the context, the skill as active | nothing is read again |
//! | `compact_start`, while the summary is written or the skills are read | that it began | as for every compaction: the context is as it was, the skills are active |
//! | `epoch_started` and its `system_message`s: one append | the active skills with their hashes, and their texts | nothing is read again before the next compaction |
//!
//! Never: a text without the hash of the folder that it came from; a text of a folder that the user did not agree to; an
//! active skill that a compaction drops without saying so; a list that changes within an epoch.

mod library;
mod preface;
mod review;
mod skill_read;

pub use library::{Skill, SkillLibrary, SkillReport, SkillState, check_skill, find_skills, skill_request};
pub use longhaul_skills::{SkillDocument, SkillError, SkillSource};
pub use preface::left_out_note;
pub(crate) use preface::{ActiveSkillText, SkillPreface, active_skill_texts, skill_preface};
pub use review::{SkillReview, distrust_project_skills, distrust_skill, review_skill, trust_skill};
pub(crate) use skill_read::prepare_skill_read;

/// Skills are not used, and why, for the user.
pub(crate) const SKILLS_SKIPPED: &str = "skills_skipped";
