//! The secret that the nodes of a cluster share.

use std::fmt;

use crate::{Error, Result};

/// A shorter secret could be guessed.
const MIN_BYTES: usize = 32;

/// The secret that the nodes of a cluster share. It opens what nodes do for each other over HTTP, and nothing else.
#[derive(Clone, PartialEq, Eq)]
pub struct ClusterToken(String);

impl fmt::Debug for ClusterToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClusterToken")
    }
}

impl ClusterToken {
    /// A token with this text, which comes from `origin`.
    pub fn new(text: &str, origin: &str) -> Result<Self> {
        let text = text.trim();
        let wrong = if text.len() < MIN_BYTES {
            format!("has fewer than {MIN_BYTES} characters and could be guessed")
        } else if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            "has spaces or characters that are not ASCII".to_owned()
        } else {
            return Ok(Self(text.to_owned()));
        };
        let reason = format!("the cluster token {wrong}; make one with `openssl rand -hex 32`");
        Err(Error::Config { origin: origin.to_owned(), reason })
    }

    /// The token in an environment variable; `None` if it is not set or empty, or no variable is named.
    pub fn from_variable(name: Option<&str>) -> Result<Option<Self>> {
        let Some(name) = name else { return Ok(None) };
        let text = std::env::var(name).ok().filter(|text| !text.trim().is_empty());
        text.map(|text| Self::new(&text, name)).transpose()
    }

    /// The secret itself.
    pub fn text(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::ClusterToken;

    #[test]
    fn a_cluster_token_that_could_be_guessed_or_sent_wrong_is_refused_and_not_shown() {
        for (text, reason) in [
            ("short", "fewer than 32"),
            ("a secret with spaces in it, and long enough", "spaces"),
            ("ein Geheimnis-mit-Umlauten-ä-ö-ü-und-ß", "spaces"),
        ] {
            let refused = ClusterToken::new(text, "NAME").unwrap_err().to_string();
            assert!(refused.contains(reason) && refused.contains("NAME"), "{refused}");
            assert!(!refused.contains(text), "{refused}");
        }
        let token = ClusterToken::new(&"x".repeat(32), "NAME").unwrap();
        assert!(!format!("{token:?}").contains("xx"));
    }
}
