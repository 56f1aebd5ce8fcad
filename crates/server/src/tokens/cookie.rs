//! The cookie of a signed-in page.
//!
//! It is `EXPIRY.ID.NAME.MAC`: until when it counts, an id of its own, the name of its token, and a keyed hash of all three and of the
//! token's hash. So no table of signed-in pages is stored, only the ids of those that signed out; a cookie ends with its token; it can't be turned
//! back into the token; and a reader of the journal, who has the hashes, can't make one without the key.
//!
//! A browser sends every cookie of a host to each of its ports, and a server on another port can set one of the same name. So each one is
//! looked at, and cookies of different tokens count for none.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hyper::header::{COOKIE, HeaderMap};
use longhaul_protocol::SessionId;

use super::{StoredToken, TokenStore};

const COOKIE_NAME: &str = "longhaul";
/// How long a page stays signed in.
const COOKIE_LIFE: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// Where a server on another port may have set a cookie that a browser sends before this server's.
const OTHER_PATHS: [&str; 2] = ["/api", "/api/"];
/// Cookies of one request to look at.
const MAX_COOKIES: usize = 32;

/// A cookie that is genuine and not too old, and whose token counts.
pub(crate) struct VerifiedCookie {
    pub(crate) token: Arc<StoredToken>,
    pub(crate) id: String,
    /// Seconds since 1970.
    pub(crate) expiry: u64,
}

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
        let id = SessionId::generate().to_string();
        format!("{expiry}.{id}.{}.{}", token.name, self.mac(expiry, &id, token))
    }

    fn mac(&self, expiry: u64, id: &str, token: &StoredToken) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        // All but the name have a fixed length, so the parts can't run into each other.
        hasher.update(&expiry.to_be_bytes()).update(blake3::hash(id.as_bytes()).as_bytes());
        hasher.update(token.hash().as_bytes()).update(token.name.as_bytes());
        hasher.finalize()
    }

    /// The cookie and its token, if the cookie is genuine and not too old and the token still counts.
    pub(crate) fn verify(
        &self,
        cookie: &str,
        tokens: &TokenStore,
        now: SystemTime,
    ) -> Option<VerifiedCookie> {
        let (expiry, rest) = cookie.split_once('.')?;
        let (id, rest) = rest.split_once('.')?;
        let (name, mac) = rest.rsplit_once('.')?;
        let expiry: u64 = expiry.parse().ok()?;
        let mac = blake3::Hash::from_hex(mac).ok()?;
        if expiry <= seconds(now) {
            return None;
        }
        let token = tokens.named(name).into_iter().find(|token| self.mac(expiry, id, token) == mac)?;
        Some(VerifiedCookie { token, id: id.to_owned(), expiry })
    }
}

pub(crate) fn seconds(moment: SystemTime) -> u64 {
    moment.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// The values of all cookies of this name in a request.
pub(crate) fn cookie_values(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let pairs = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let pairs = pairs.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.filter(|(name, _)| *name == COOKIE_NAME).map(|(_, value)| value).take(MAX_COOKIES)
}

/// The header values that set the cookie, and remove others of its name.
pub(crate) fn setting_cookies(value: &str, is_tls: bool) -> Vec<String> {
    let life = COOKIE_LIFE.as_secs();
    let secure = if is_tls { "; Secure" } else { "" };
    let set = format!("{COOKIE_NAME}={value}; Path=/; Max-Age={life}; HttpOnly; SameSite=Strict{secure}");
    std::iter::once(set).chain(OTHER_PATHS.map(clearing_cookie)).collect()
}

/// The header values that remove the cookie, and others of its name.
pub(crate) fn clearing_cookies() -> Vec<String> {
    std::iter::once("/").chain(OTHER_PATHS).map(clearing_cookie).collect()
}

fn clearing_cookie(path: &str) -> String {
    format!("{COOKIE_NAME}=; Path={path}; Max-Age=0; HttpOnly; SameSite=Strict")
}
