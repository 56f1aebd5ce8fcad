//! The bounds of a command: the settings of its sandbox, in its spec.
//!
//! The runtime decides, the keeper only enforces. Every path is absolute and has no symbolic links. If a path goes
//! through a link when the command starts, it is ignored, because another command could have created the link.

use std::path::PathBuf;

use longhaul_protocol::json_path;
use serde::{Deserialize, Serialize};

/// What a command may access. Everything else is denied.
///
/// Landlock enforces which folders and files are allowed. Mounts that only the command sees do what Landlock can't: deny
/// something inside an allowed folder, and hide sockets.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Bounds {
    /// Paths to read and execute. Missing paths are ignored, here and in every other list.
    #[serde(with = "json_path::list")]
    pub read: Vec<PathBuf>,
    /// Paths to read, execute and write.
    #[serde(with = "json_path::list")]
    pub write: Vec<PathBuf>,
    /// Devices to read, write and control (ioctl), and folders of devices. If the terminals (`/dev/pts`) are among
    /// them, the command gets terminals of its own and sees no others.
    #[serde(with = "json_path::list")]
    pub devices: Vec<PathBuf>,
    /// Folders that are replaced by a private writable one.
    pub private: Vec<Private>,
    /// Paths that appear empty and can't be opened, whatever else is allowed.
    #[serde(with = "json_path::list")]
    pub hidden: Vec<PathBuf>,
    /// Files that read as empty, for programs that fail if they can't open the file.
    #[serde(with = "json_path::list")]
    pub emptied: Vec<PathBuf>,
    /// Read-only paths, even inside writable ones.
    #[serde(with = "json_path::list")]
    pub read_only: Vec<PathBuf>,
    /// Paths that stay visible inside a private or hidden folder. This alone does not allow access.
    #[serde(with = "json_path::list")]
    pub kept: Vec<PathBuf>,
    pub network: Network,
    #[serde(skip_serializing_if = "UnixSockets::are_allowed")]
    pub unix_sockets: UnixSockets,
    /// Paths that the command must not create. Each is in [`Bounds::read_only`] too.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub placeholders: Vec<Placeholder>,
    /// Folders that the command changes in a layer of its own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub overlays: Vec<Overlay>,
    #[serde(skip_serializing_if = "ProcessNamespace::is_shared")]
    pub processes: ProcessNamespace,
}

/// A harmless file at a path where the command must not create one. A mount can cover only an existing path. So the
/// keeper creates the file before the command starts, and removes it after the last command that needs it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placeholder {
    #[serde(with = "json_path::path")]
    pub at: PathBuf,
    /// The content of the file; `None` for an empty folder, which is not removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// A folder with parts that the command changes in its own layer (overlayfs). The folder itself does not change.
///
/// On a system without overlayfs, the command gets empty folders instead of these parts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Overlay {
    /// The lower layer.
    #[serde(with = "json_path::path")]
    pub over: PathBuf,
    /// The writable parts of it: folders, or `over` itself.
    #[serde(with = "json_path::list")]
    pub at: Vec<PathBuf>,
    /// The folder for the changes (the upper layer), created if it doesn't exist.
    #[serde(with = "json_path::path")]
    pub kept_in: PathBuf,
}

/// A folder that is replaced by a private one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Private {
    #[serde(with = "json_path::path")]
    pub at: PathBuf,
    /// The folder to mount there, created if it doesn't exist; `None` for a tmpfs that ends with the command.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "json_path::option")]
    pub kept_in: Option<PathBuf>,
}

/// A command's access to the network.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Network {
    /// The network of its keeper.
    #[default]
    Open,
    /// A network namespace with nothing but a loopback.
    Closed,
}

/// Whether a command can create Unix sockets, and so connect to those of other processes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UnixSockets {
    /// It can connect to every socket file that it sees, because Landlock does not restrict that.
    #[default]
    Allowed,
    /// Refused by seccomp. Connected pairs (`socketpair`) still work.
    Refused,
}

/// The PID namespace of a command.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProcessNamespace {
    /// The namespace of its keeper.
    #[default]
    Shared,
    /// A namespace of its own. Orphans can't leave it.
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
