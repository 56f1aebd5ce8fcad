//! What a command may reach, as its spec says it.
//!
//! Whoever writes the spec decides; the keeper carries it out and decides nothing. Every path is absolute and without links: one
//! that goes through a link when the command starts is passed over, because a command could have put it there.

use std::path::PathBuf;

use longhaul_protocol::json_path;
use serde::{Deserialize, Serialize};

/// What a command may reach. What is not named is out of its reach.
///
/// Landlock holds the command to the folders and files that are allowed. What it has no words for is done by mounts that only the
/// command sees: something denied inside an allowed folder, and sockets, which it does not guard.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Bounds {
    /// What may be read and executed. What is not there is passed over, here and in every other list.
    #[serde(with = "json_path::list")]
    pub read: Vec<PathBuf>,
    /// What may be read, executed and written.
    #[serde(with = "json_path::list")]
    pub write: Vec<PathBuf>,
    /// Devices that may be read, written and set, and folders of such. If terminals (`/dev/pts`) are among them, the command has its
    /// own and sees no others.
    #[serde(with = "json_path::list")]
    pub devices: Vec<PathBuf>,
    /// Folders in whose place the command sees one of its own, which it may write.
    pub private: Vec<Private>,
    /// What the command sees as empty and may not open, whatever else is allowed.
    #[serde(with = "json_path::list")]
    pub hidden: Vec<PathBuf>,
    /// Files that the command reads as empty, for programs that fail at a file which they may not open.
    #[serde(with = "json_path::list")]
    pub emptied: Vec<PathBuf>,
    /// What can't be written, also where it lies in something that can.
    #[serde(with = "json_path::list")]
    pub read_only: Vec<PathBuf>,
    /// What shows at its own path although it lies in a private or a hidden folder. This allows nothing by itself.
    #[serde(with = "json_path::list")]
    pub kept: Vec<PathBuf>,
    /// Whether it reaches the network.
    pub network: Network,
    /// Whether it can make Unix sockets.
    #[serde(skip_serializing_if = "UnixSockets::are_allowed")]
    pub unix_sockets: UnixSockets,
    /// Names that the command must not take. Each is in [`Bounds::read_only`] too.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub placeholders: Vec<Placeholder>,
    /// Folders that the command changes in a layer of its own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub overlays: Vec<Overlay>,
    /// Which processes it sees.
    #[serde(skip_serializing_if = "ProcessNamespace::is_shared")]
    pub processes: ProcessNamespace,
}

/// Something harmless at a path where a command must not put anything. Only what exists can be covered by a mount, so the keeper makes
/// it before the command starts, and removes it after the last command that needs it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placeholder {
    /// The path.
    #[serde(with = "json_path::path")]
    pub at: PathBuf,
    /// The content of a file. Without it, it is an empty folder, which stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// A folder in parts of which a command sees its own changes on top of what is there. The folder itself doesn't change.
///
/// Where the system has no such file system (overlayfs), the command sees folders of its own in place of these parts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Overlay {
    /// The folder that is the lower layer.
    #[serde(with = "json_path::path")]
    pub over: PathBuf,
    /// The parts of it that the command may write: folders, or `over` itself.
    #[serde(with = "json_path::list")]
    pub at: Vec<PathBuf>,
    /// Where the changes are kept. It is made if it isn't there.
    #[serde(with = "json_path::path")]
    pub kept_in: PathBuf,
}

/// A folder in whose place a command sees one of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Private {
    /// The folder.
    #[serde(with = "json_path::path")]
    pub at: PathBuf,
    /// Where what is written to it is kept. It is made if it isn't there. Without it, it is kept in memory until the command ends.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "json_path::option")]
    pub kept_in: Option<PathBuf>,
}

/// Whether a command reaches the network.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Network {
    /// As its keeper does.
    #[default]
    Open,
    /// Only itself, by a loopback of its own.
    Closed,
}

/// Whether a command can make Unix sockets, and so connect to those of others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UnixSockets {
    /// Yes. It can connect to every socket file that it sees: Landlock does not guard that.
    #[default]
    Allowed,
    /// No. Pairs of connected sockets (`socketpair`) still work: they reach nothing else.
    Refused,
}

/// Which processes a command sees.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProcessNamespace {
    /// Those that its keeper sees.
    #[default]
    Shared,
    /// Its own: it has a PID namespace. What it leaves behind stays in there.
    Own,
}

impl ProcessNamespace {
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    fn is_shared(&self) -> bool {
        *self == Self::Shared
    }
}

impl UnixSockets {
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    fn are_allowed(&self) -> bool {
        *self == Self::Allowed
    }
}
