//! Detects whether a cached folder listing is still valid.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, SystemTime};

/// A folder that changed within this time may change again with the same change time.
const SETTLE_TIME: Duration = Duration::from_millis(100);
/// The same for file systems with times in whole seconds.
const SETTLE_TIME_WHOLE_SECONDS: Duration = Duration::from_secs(2);

/// Identity and change time of a folder. No program can set the change time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FolderStamp {
    device: u64,
    inode: u64,
    seconds: i64,
    nanoseconds: i64,
}

impl FolderStamp {
    pub(crate) fn of(folder: &Metadata) -> Self {
        Self {
            device: folder.dev(),
            inode: folder.ino(),
            seconds: folder.ctime(),
            nanoseconds: folder.ctime_nsec(),
        }
    }

    /// Whether a later change would show. Ask before reading the folder; a listing of an unsettled folder must not be
    /// cached.
    pub(crate) fn is_settled(self) -> bool {
        let since = |time: Duration| SystemTime::UNIX_EPOCH.checked_add(time);
        let changed = u64::try_from(self.seconds).ok().zip(u32::try_from(self.nanoseconds).ok());
        let changed = changed.and_then(|(seconds, nanoseconds)| since(Duration::new(seconds, nanoseconds)));
        let unsettled = if self.nanoseconds == 0 { SETTLE_TIME_WHOLE_SECONDS } else { SETTLE_TIME };
        changed.is_some_and(|changed| changed.elapsed().is_ok_and(|age| age > unsettled))
    }
}

#[cfg(test)]
#[path = "folder_stamp_tests.rs"]
mod tests;
