//! Finding files and what is in them.
//!
//! All three tools go through a folder in the same way (`walk`): through the scope's handles, so that nothing outside is
//! looked at whatever is swapped meanwhile; never through links; in the order of the names; and leaving out what
//! `.gitignore` leaves out (`ignored`), the folder `.git`, and what is denied.

mod find_files;
mod gitignore;
mod list_files;
mod matches;
mod path_pattern;
mod search_text;
mod walk;

pub(crate) use find_files::{FindFiles, about as find_files_about};
pub(crate) use list_files::{ListFiles, about as list_files_about};
pub(crate) use search_text::{SearchText, about as search_text_about};
