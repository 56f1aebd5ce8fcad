//! The scope as the user writes it in the configuration.

use serde::{Deserialize, Serialize};

/// `[[scope.allow]]` and `[[scope.deny]]`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ScopeConfig {
    /// What may be used. If empty, the work folder may be written.
    pub allow: Vec<AllowedTarget>,
    /// What may not be used. It wins over `allow`.
    pub deny: Vec<DeniedTarget>,
}

/// A folder or file that may be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AllowedTarget {
    /// Absolute, from the work folder on, or from `~/` on.
    pub target: String,
    /// Reading, or reading and writing.
    #[serde(default)]
    pub permission: Permission,
}

/// A folder or file that may not be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeniedTarget {
    /// Absolute, from the work folder on, or from `~/` on. It need not exist yet.
    pub target: String,
    /// `read` denies reading and writing, `write` only writing.
    #[serde(default)]
    pub permission: Permission,
}

/// What may be done with a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Permission {
    #[default]
    Read,
    /// Reading and writing.
    Write,
}

impl Permission {
    /// Whether this permission includes another.
    pub(crate) fn covers(self, wanted: Self) -> bool {
        self == Self::Write || wanted == Self::Read
    }

    /// Whether denying this permission denies another. A file that may not be read may not be written either.
    pub(crate) fn forbids(self, wanted: Self) -> bool {
        self == Self::Read || wanted == Self::Write
    }

    pub(crate) fn in_words(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "read and write",
        }
    }
}
