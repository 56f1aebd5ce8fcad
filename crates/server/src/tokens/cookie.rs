//! The cookie of a signed-in page.
//!
//! It is `EXPIRY.NAME.MAC`: until when it counts, the name of its token, and a keyed hash of both and of the token's hash.
//! So no table of sessions is stored; a cookie ends with its token; it can't be turned back into the token; and a reader
//! of the journal, who has the hashes, can't make one without the key.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hyper::header::{COOKIE, HeaderMap};

use super::{StoredToken, TokenStore};

const COOKIE_NAME: &str = "longhaul";
/// How long a page stays signed in.
const COOKIE_LIFE: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// The secret with which a home signs its cookies.
#[derive(Clone)]
pub(crate) struct CookieKey([u8; 32]);

impl CookieKey {
    /// The key that belongs to a secret of the home.
    pub(crate) fn derive(secret: &[u8]) -> Self {
        Self(blake3::derive_key("longhaul sign-in cookie", secret))
    }

    /// The cookie that signs in the page with this token.
    pub(crate) fn sign(&self, token: &StoredToken, now: SystemTime) -> String {
        let expiry = seconds(now) + COOKIE_LIFE.as_secs();
        format!("{expiry}.{}.{}", token.name, self.mac(expiry, token))
    }

    fn mac(&self, expiry: u64, token: &StoredToken) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        // The two numbers have a fixed length, so the parts can't run into each other.
        hasher.update(&expiry.to_be_bytes()).update(token.hash().as_bytes()).update(token.name.as_bytes());
        hasher.finalize()
    }

    /// The token that a cookie stands for, if the cookie is genuine and not too old and the token still counts.
    pub(crate) fn verify(
        &self,
        cookie: &str,
        tokens: &TokenStore,
        now: SystemTime,
    ) -> Option<Arc<StoredToken>> {
        let (expiry, rest) = cookie.split_once('.')?;
        let (name, mac) = rest.rsplit_once('.')?;
        let expiry: u64 = expiry.parse().ok()?;
        let mac = blake3::Hash::from_hex(mac).ok()?;
        if expiry <= seconds(now) {
            return None;
        }
        tokens.named(name).into_iter().find(|token| self.mac(expiry, token) == mac)
    }
}

fn seconds(moment: SystemTime) -> u64 {
    moment.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// The value of the cookie in a request.
pub(crate) fn cookie_value(headers: &HeaderMap) -> Option<&str> {
    let pairs = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = pairs.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(name, _)| *name == COOKIE_NAME).map(|(_, value)| value)
}

/// The header value that sets the cookie.
pub(crate) fn setting_cookie(value: &str, is_tls: bool) -> String {
    let life = COOKIE_LIFE.as_secs();
    let secure = if is_tls { "; Secure" } else { "" };
    format!("{COOKIE_NAME}={value}; Path=/; Max-Age={life}; HttpOnly; SameSite=Strict{secure}")
}

/// The header value that removes the cookie.
pub(crate) fn clearing_cookie() -> String {
    format!("{COOKIE_NAME}=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict")
}
