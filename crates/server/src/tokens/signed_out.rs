//! The cookies that were signed out, so that they no longer count: a private file of the home.
//!
//! | the server dies | afterwards |
//! | --- | --- |
//! | before the file is replaced | the page has no answer, its cookie still counts, and the user signs out again |
//! | after it is replaced | the cookie does not count, whether or not the page got its answer |

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Cookies to remember. Of more, those that end first are forgotten.
const MAX_SIGNED_OUT: usize = 10_000;

/// Cookies that were signed out and have not expired, each with its expiry in seconds since 1970.
pub(crate) struct SignedOutCookies {
    path: PathBuf,
    cookies: Mutex<BTreeMap<String, u64>>,
}

impl SignedOutCookies {
    /// Reads the file of this home: a line `EXPIRY ID` for each cookie.
    pub(crate) fn in_home(home: &Path) -> Self {
        let path = home.join("run").join("signed-out-cookies");
        let text = fs::read_to_string(&path).unwrap_or_default();
        let parse = |line: &str| {
            let (expiry, id) = line.split_once(' ')?;
            Some((id.to_owned(), expiry.parse().ok()?))
        };
        let cookies = text.lines().filter_map(parse).take(MAX_SIGNED_OUT).collect();
        Self { path, cookies: Mutex::new(cookies) }
    }

    pub(crate) fn contains(&self, id: &str) -> bool {
        self.cookies.lock().unwrap_or_else(PoisonError::into_inner).contains_key(id)
    }

    /// Ends cookies, durably. `now` is in seconds since 1970.
    pub(crate) fn add(&self, ended: Vec<(String, u64)>, now: u64) -> io::Result<()> {
        let mut cookies = self.cookies.lock().unwrap_or_else(PoisonError::into_inner);
        cookies.extend(ended);
        cookies.retain(|_, expiry| *expiry > now);
        while cookies.len() > MAX_SIGNED_OUT {
            let first = cookies.iter().min_by_key(|(_, expiry)| **expiry).map(|(id, _)| id.clone());
            first.map(|id| cookies.remove(&id));
        }
        let text: String = cookies.iter().map(|(id, expiry)| format!("{expiry} {id}\n")).collect();
        self.replace_file(&text)
    }

    fn replace_file(&self, text: &str) -> io::Result<()> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        if !folder.exists() {
            fs::create_dir_all(folder)?;
            fs::set_permissions(folder, fs::Permissions::from_mode(0o700))?;
        }
        let partial = self.path.with_extension("partial");
        let _ = fs::remove_file(&partial);
        let mut file = File::options().write(true).create_new(true).mode(0o600).open(&partial)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&partial, &self.path)?;
        File::open(folder)?.sync_all()
    }
}
