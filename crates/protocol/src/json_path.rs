//! Paths in JSON, including those that are not UTF-8.
//!
//! A path is a string. One that is not UTF-8, or that begins with `bytes:`, is written as `bytes:` and its bytes in
//! hexadecimal digits. So every path has exactly one form, and reads back unchanged.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The prefix of a path that is written in hexadecimal digits.
const HEX_PREFIX: &str = "bytes:";

/// A path in JSON. It can also be the key of a map.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JsonPath(pub PathBuf);

impl Serialize for JsonPath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        path::serialize(&self.0, serializer)
    }
}

impl<'de> Deserialize<'de> for JsonPath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        path::deserialize(deserializer).map(Self)
    }
}

/// For a field that is a path: `#[serde(with = "json_path::path")]`.
pub mod path {
    use super::*;

    pub fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
        match path.to_str().filter(|text| !text.starts_with(HEX_PREFIX)) {
            Some(text) => serializer.serialize_str(text),
            None => {
                let digits = path.as_os_str().as_bytes().iter().map(|byte| format!("{byte:02x}"));
                serializer.serialize_str(&format!("{HEX_PREFIX}{}", digits.collect::<String>()))
            }
        }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
        let text = String::deserialize(deserializer)?;
        match text.strip_prefix(HEX_PREFIX) {
            None => Ok(PathBuf::from(text)),
            Some(digits) => decode_hex(digits)
                .map(|bytes| PathBuf::from(OsString::from_vec(bytes)))
                .ok_or_else(|| D::Error::custom(format!("{text:?} is no path: it has no pairs of digits"))),
        }
    }
}

/// For a field that is a list or a set of paths: `#[serde(with = "json_path::list")]`.
pub mod list {
    use super::*;

    pub fn serialize<'a, C, S: Serializer>(paths: &'a C, serializer: S) -> Result<S::Ok, S::Error>
    where
        &'a C: IntoIterator<Item = &'a PathBuf>,
    {
        serializer.collect_seq(paths.into_iter().cloned().map(JsonPath))
    }

    pub fn deserialize<'de, C: FromIterator<PathBuf>, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<C, D::Error> {
        Ok(Vec::<JsonPath>::deserialize(deserializer)?.into_iter().map(|JsonPath(path)| path).collect())
    }
}

/// For a field that is a map with paths for keys: `#[serde(with = "json_path::map")]`.
pub mod map {
    use super::*;

    pub fn serialize<V: Serialize, S: Serializer>(
        map: &BTreeMap<PathBuf, V>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_map(map.iter().map(|(path, value)| (JsonPath(path.clone()), value)))
    }

    pub fn deserialize<'de, V: Deserialize<'de>, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<BTreeMap<PathBuf, V>, D::Error> {
        let map = BTreeMap::<JsonPath, V>::deserialize(deserializer)?;
        Ok(map.into_iter().map(|(JsonPath(path), value)| (path, value)).collect())
    }
}

/// For a field that is an optional path: `#[serde(default, with = "json_path::option")]`.
pub mod option {
    use super::*;

    #[allow(clippy::ref_option, reason = "serde passes a reference")]
    pub fn serialize<S: Serializer>(path: &Option<PathBuf>, serializer: S) -> Result<S::Ok, S::Error> {
        path.clone().map(JsonPath).serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<PathBuf>, D::Error> {
        Ok(Option::<JsonPath>::deserialize(deserializer)?.map(|JsonPath(path)| path))
    }
}

fn decode_hex(digits: &str) -> Option<Vec<u8>> {
    let is_digits = digits.bytes().all(|digit| digit.is_ascii_hexdigit()) && digits.len().is_multiple_of(2);
    let pairs = (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok());
    is_digits.then(|| pairs.collect())?
}

#[cfg(test)]
#[path = "json_path_tests.rs"]
mod tests;
