//! Finding files and text in them.
//!
//! All three tools walk a folder in the same way (`walk`): through the scope's handles, so that nothing outside is
//! read whatever is swapped meanwhile; never through links; in the order of the names; and without files that
//! `.gitignore` excludes (`gitignore`), the folder `.git`, and what is denied.

pub(crate) mod find_files;
mod gitignore;
pub(crate) mod list_files;
mod matches;
mod path_pattern;
pub(crate) mod search_text;
mod walk;
