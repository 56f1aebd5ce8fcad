//! Finding files and what is in them.
//!
//! All three tools go through a folder in the same way (`walk`): through the scope's handles, so that nothing outside is
//! looked at whatever is swapped meanwhile; never through links; in the order of the names; and leaving out what
//! `.gitignore` leaves out (`ignored`), the folder `.git`, and what is denied.

mod find;
mod ignored;
mod list;
mod matches;
mod pattern;
mod text;
mod walk;

pub(crate) use find::{FindFiles, about as find_files};
pub(crate) use list::{ListFiles, about as list_files};
pub(crate) use text::{SearchText, about as search_text};
