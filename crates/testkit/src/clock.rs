use std::fs;
use std::path::PathBuf;

/// `libfaketime`, to be named in `LD_PRELOAD`; `None` if it is not installed.
pub fn faketime_library() -> Option<PathBuf> {
    let architectures = fs::read_dir("/usr/lib").ok()?.flatten();
    let mut libraries = architectures.map(|folder| folder.path().join("faketime/libfaketimeMT.so.1"));
    libraries.find(|library| library.exists())
}
