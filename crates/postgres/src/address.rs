//! The address of the database: its URL, the password file, and the form that may be shown.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use longhaul_journal::{Error, Result};
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

use crate::failure::unusable;

/// How long one attempt to connect may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a connection may be silent before the system asks the server whether it is there.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(15);
/// How often it asks again, and how often in all. The system's own interval of 75 s would leave a statement whose answer was cut off
/// waiting for minutes.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
const KEEPALIVE_RETRIES: u32 = 3;
/// How long sent bytes may stay unacknowledged before the connection counts as broken.
const UNACKNOWLEDGED_TIMEOUT: Duration = Duration::from_secs(20);

/// The address of a database. It is shown without its password.
#[derive(Clone)]
pub struct DatabaseAddress {
    pub(crate) config: Config,
    /// The file with the certificate authority that signed the server's certificate.
    pub(crate) root_certificate: Option<PathBuf>,
    shown: String,
}

impl fmt::Display for DatabaseAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl fmt::Debug for DatabaseAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DatabaseAddress({})", self.shown)
    }
}

impl DatabaseAddress {
    /// Whether a text is the URL of a database, and not a path.
    pub fn is_url(text: &str) -> bool {
        text.starts_with("postgres://") || text.starts_with("postgresql://")
    }

    /// Parses a `postgres://` URL. Without a password in it, the password file of PostgreSQL is read: `PGPASSFILE`, or
    /// `.pgpass` in the user's folder.
    pub fn parse(url: &str) -> Result<Self> {
        let bad = |reason: String| {
            let next_step = "use postgres://USER@HOST:PORT/DATABASE".to_owned();
            Error::Database { database: "the journal's URL".to_owned(), reason, next_step }
        };
        if !Self::is_url(url) {
            return Err(bad("it does not begin with postgres://".to_owned()));
        }
        let SplitUrl { plain, ssl_mode, root_certificate } = split_url(url);
        // The error of the parser may quote the URL with its password.
        let mut config: Config = plain.parse().map_err(|_| bad("it can't be parsed".to_owned()))?;
        if config.get_hosts().is_empty() {
            return Err(bad("it names no host".to_owned()));
        }
        if config.get_dbname().is_none() {
            return Err(bad("it names no database".to_owned()));
        }
        config.ssl_mode(match ssl_mode.as_deref() {
            Some("disable") => SslMode::Disable,
            Some("require" | "verify-ca" | "verify-full") => SslMode::Require,
            // Passwords and conversations cross a network unencrypted only if the user says so.
            None if config.get_hosts().iter().all(is_this_machine) => SslMode::Disable,
            None => SslMode::Require,
            Some(other) => {
                return Err(bad(format!("sslmode {other:?} is unknown (disable, require or verify-full)")));
            }
        });
        config.application_name("longhaul").connect_timeout(CONNECT_TIMEOUT);
        config.keepalives_idle(KEEPALIVE_IDLE).keepalives_interval(KEEPALIVE_INTERVAL);
        config.keepalives_retries(KEEPALIVE_RETRIES).tcp_user_timeout(UNACKNOWLEDGED_TIMEOUT);
        let shown = shown_address(&config);
        let mut address = Self { config, root_certificate, shown };
        if address.config.get_password().is_none()
            && let Some(password) = address.password_from_file()?
        {
            address.config.password(password);
        }
        Ok(address)
    }

    /// Its password, wherever it is from, so that it can be kept out of what is shown and recorded.
    pub fn password(&self) -> Option<Cow<'_, str>> {
        self.config.get_password().map(String::from_utf8_lossy)
    }

    fn password_from_file(&self) -> Result<Option<String>> {
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let file = variable("PGPASSFILE").or_else(|| variable("HOME").map(|home| home.join(".pgpass")));
        file.filter(|file| file.is_file()).map_or(Ok(None), |file| self.password_in(&file))
    }

    /// The password for this database in a password file. If the database has several hosts, the file must have the same one for each.
    fn password_in(&self, file: &Path) -> Result<Option<String>> {
        let is_open = file.metadata().is_ok_and(|file| file.permissions().mode() & 0o077 != 0);
        if is_open {
            let (reason, next) = (
                format!("other users can read the password file {}", file.display()),
                format!("run `chmod 600 {}`", file.display()),
            );
            return Err(unusable(self, reason, next));
        }
        let lines = std::fs::read_to_string(file).map_err(|error| {
            let reason = format!("can't read the password file {}: {error}", file.display());
            unusable(self, reason, "make it readable, or unset PGPASSFILE")
        })?;
        let password = |(host, port): (&Host, u16)| {
            let host = match host {
                Host::Tcp(host) => host.clone(),
                Host::Unix(_) => "localhost".to_owned(),
            };
            let database = self.config.get_dbname().unwrap_or_default().to_owned();
            let user = self.config.get_user().unwrap_or_default().to_owned();
            let wanted = [host, port.to_string(), database, user];
            lines.lines().find_map(|line| password_in_line(line, &wanted))
        };
        // Every host is sent the same password, so the file must name it for each of them.
        let passwords: BTreeSet<Option<String>> = endpoints(&self.config).map(password).collect();
        Ok(if passwords.len() == 1 { passwords.into_iter().next().flatten() } else { None })
    }
}

/// A URL, and the parameters that the client library doesn't know.
struct SplitUrl {
    plain: String,
    ssl_mode: Option<String>,
    root_certificate: Option<PathBuf>,
}

fn split_url(url: &str) -> SplitUrl {
    let (base, query) = url.split_once('?').unwrap_or((url, ""));
    let (mut ssl_mode, mut root_certificate, mut kept) = (None, None, Vec::new());
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        match pair.split_once('=') {
            Some(("sslmode", value)) => ssl_mode = Some(value.to_owned()),
            Some(("sslrootcert", value)) => root_certificate = Some(PathBuf::from(decode_percent(value))),
            _ => kept.push(pair),
        }
    }
    let query = kept.join("&");
    let plain = if query.is_empty() { base.to_owned() } else { format!("{base}?{query}") };
    SplitUrl { plain, ssl_mode, root_certificate }
}

fn decode_percent(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let code = tail.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        match (first, code.and_then(|hex| u8::from_str_radix(hex, 16).ok())) {
            (b'%', Some(byte)) => (bytes.push(byte), rest = &tail[2..]).1,
            _ => (bytes.push(*first), rest = tail).1,
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn is_this_machine(host: &Host) -> bool {
    match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => {
            name == "localhost" || name.parse().is_ok_and(|address: std::net::IpAddr| address.is_loopback())
        }
    }
}

/// The hosts of a database with their ports.
fn endpoints(config: &Config) -> impl Iterator<Item = (&Host, u16)> {
    let ports = config.get_ports();
    let port = move |place: usize| ports.get(place).or(ports.first()).copied().unwrap_or(5432);
    config.get_hosts().iter().enumerate().map(move |(place, host)| (host, port(place)))
}

fn shown_address(config: &Config) -> String {
    let hosts = endpoints(config).map(|(host, port)| match host {
        Host::Tcp(name) if name.contains(':') => format!("[{name}]:{port}"),
        Host::Tcp(name) => format!("{name}:{port}"),
        Host::Unix(folder) => format!("{}:{port}", folder.display()),
    });
    let hosts: Vec<String> = hosts.collect();
    let user = config.get_user().map(|user| format!("{user}@")).unwrap_or_default();
    format!("postgres://{user}{}/{}", hosts.join(","), config.get_dbname().unwrap_or_default())
}

/// The password of a line `host:port:database:user:password`, if its first fields are those that are wanted. `*` stands for
/// anything, and a backslash escapes the character after it.
fn password_in_line(line: &str, wanted: &[String; 4]) -> Option<String> {
    if line.starts_with('#') {
        return None;
    }
    let mut fields = vec![String::new()];
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        let is_last = fields.len() == 5;
        let field = fields.last_mut()?;
        match character {
            '\\' => field.extend(characters.next()),
            ':' if !is_last => fields.push(String::new()),
            other => field.push(other),
        }
    }
    let [host, port, database, user, password]: [String; 5] = fields.try_into().ok()?;
    let fits = [host, port, database, user]
        .iter()
        .zip(wanted)
        .all(|(pattern, wanted)| pattern == "*" || pattern == wanted);
    fits.then_some(password)
}

#[cfg(test)]
#[path = "address_tests.rs"]
mod tests;
