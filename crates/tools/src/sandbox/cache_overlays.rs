//! The caches of tools, as overlays of the session.
//!
//! The user runs what lies in a cache later: programs that `npx` fetched, sources that `cargo` unpacked, files in
//! `~/.cache` that a shell reads when it starts. So a command sees the user's caches and changes them in an overlay of
//! its own. One overlay over the home folder serves all caches in it.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use longhaul_keeper::{Overlay, Private};

/// In a session's temporary folder: where its overlays are kept.
const OVERLAYS_FOLDER: &str = "caches";
const HOME_OVERLAY: &str = "home";

/// The overlays over these caches, kept in a session's own folder. Caches outside of the home folder share one if they
/// lie in the same folder.
pub(super) fn overlays(caches: &[PathBuf], home: Option<&Path>, session_folder: &Path) -> Vec<Overlay> {
    let home = home.map(|home| (home, device(home)));
    let mut parts: BTreeMap<&Path, Vec<PathBuf>> = BTreeMap::new();
    for cache in caches {
        let of_cache = device(cache);
        let is_in_home = |(home, of_home): &(&Path, Option<u64>)| {
            cache.starts_with(home) && cache != home && of_cache == *of_home
        };
        let over = match home.filter(is_in_home) {
            Some((home, _)) => home,
            // An overlay over the folder above would not show another file system that is mounted here.
            None => cache
                .parent()
                .filter(|above| above.parent().is_some() && device(above) == of_cache)
                .unwrap_or(cache),
        };
        parts.entry(over).or_default().push(cache.clone());
    }
    let layer = |(over, at): (&Path, Vec<PathBuf>)| {
        let name = match home {
            Some((home, _)) if home == over => HOME_OVERLAY.to_owned(),
            _ => blake3::hash(over.as_os_str().as_encoded_bytes()).to_hex()[..16].to_owned(),
        };
        Overlay { over: over.to_owned(), at, kept_in: session_folder.join(OVERLAYS_FOLDER).join(name) }
    };
    parts.into_iter().map(layer).collect()
}

fn device(path: &Path) -> Option<u64> {
    fs::metadata(path).ok().map(|metadata| metadata.dev())
}

/// Empty folders in memory in place of the caches, for a command without a session.
pub(super) fn in_memory(caches: &[PathBuf]) -> Vec<Private> {
    let folders = caches.iter().filter(|cache| cache.is_dir());
    folders.map(|cache| Private { at: cache.clone(), kept_in: None }).collect()
}
