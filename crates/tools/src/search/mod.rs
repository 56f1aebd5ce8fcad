//! Finding files and what is in them.
//!
//! All three tools go through a folder in the same way (`walk`): through the scope's handles, so that nothing outside is
//! looked at whatever is swapped meanwhile; never through links; in the order of the names; and leaving out what
//! `.gitignore` leaves out (`ignored`), the folder `.git`, and what is denied.

pub(crate) mod find_files;
mod gitignore;
pub(crate) mod list_files;
mod matches;
mod path_pattern;
pub(crate) mod search_text;
mod walk;
