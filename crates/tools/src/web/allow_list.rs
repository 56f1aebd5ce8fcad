//! The private hosts that may be reached: `web.allow`.

use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

use reqwest::Url;

/// Hosts that may be reached although they are private.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllowList(Vec<AllowedHost>);

/// An entry that names no host.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a host; write a name, an address or a network, with a port or without: \"wiki.lan\", \"*.lan\", \
     \"127.0.0.1:3000\", \"10.0.0.0/8\", \"[::1]:3000\""
)]
pub struct InvalidAllowedHost(pub String);

#[derive(Debug, Clone, PartialEq, Eq)]
struct AllowedHost {
    host: HostPattern,
    /// `None`: every port.
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum HostPattern {
    /// In lower case, without a dot at its end.
    Name(String),
    /// All names below this one: `*.lan`.
    Below(String),
    Network {
        /// As an IPv6 address. An IPv4 address is mapped.
        base: u128,
        /// How many of the 128 bits count.
        bits: u32,
    },
}

impl AllowList {
    /// Reads the entries of the config.
    pub fn parse<'a>(entries: impl IntoIterator<Item = &'a str>) -> Result<Self, InvalidAllowedHost> {
        entries.into_iter().map(str::parse).collect::<Result<_, _>>().map(Self)
    }

    /// The host and the port of a URL.
    pub(super) fn of_url(url: &Url) -> Self {
        let entry = url
            .host_str()
            .and_then(HostPattern::of_host)
            .map(|host| AllowedHost { host, port: url.port_or_known_default() });
        Self(entry.into_iter().collect())
    }

    pub(super) fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// Whether a name is allowed with this port.
    pub(super) fn allows_name(&self, name: &str, port: Option<u16>) -> bool {
        let name = normalize_name(name);
        self.0.iter().filter(|entry| entry.port.is_none() || entry.port == port).any(|entry| {
            match &entry.host {
                HostPattern::Name(allowed) => *allowed == name,
                HostPattern::Below(parent) => name
                    .strip_suffix(parent.as_str())
                    .is_some_and(|rest| rest.len() > 1 && rest.ends_with('.')),
                HostPattern::Network { .. } => false,
            }
        })
    }

    /// Whether an address that stands in a URL is allowed with this port.
    pub(super) fn allows_address(&self, address: IpAddr, port: Option<u16>) -> bool {
        self.0.iter().any(|entry| (entry.port.is_none() || entry.port == port) && entry.host.holds(address))
    }

    /// Whether an address is allowed with every port, and so also for a name that leads to it.
    pub(super) fn allows_network_of(&self, address: IpAddr) -> bool {
        self.0.iter().any(|entry| entry.port.is_none() && entry.host.holds(address))
    }
}

impl FromStr for AllowedHost {
    type Err = InvalidAllowedHost;

    fn from_str(text: &str) -> Result<Self, InvalidAllowedHost> {
        let invalid = || InvalidAllowedHost(text.to_owned());
        if let Some(host) = HostPattern::of_host(text) {
            return Ok(Self { host, port: None });
        }
        let (host, port) = text.rsplit_once(':').ok_or_else(invalid)?;
        let port = port.parse().map_err(|_| invalid())?;
        Ok(Self { host: HostPattern::of_host(host).ok_or_else(invalid)?, port: Some(port) })
    }
}

impl HostPattern {
    fn holds(&self, address: IpAddr) -> bool {
        match self {
            Self::Network { base, bits } => (base ^ mapped(address)).leading_zeros() >= *bits,
            Self::Name(_) | Self::Below(_) => false,
        }
    }

    fn of_host(text: &str) -> Option<Self> {
        if let Some((address, bits)) = text.split_once('/') {
            let address: IpAddr = address.parse().ok()?;
            let (bits, most): (u32, u32) = (bits.parse().ok()?, if address.is_ipv4() { 32 } else { 128 });
            return (bits <= most).then(|| Self::Network { base: mapped(address), bits: bits + 128 - most });
        }
        let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
        if let Ok(address) = bare.parse::<IpAddr>() {
            return Some(Self::Network { base: mapped(address), bits: 128 });
        }
        if let Some(parent) = text.strip_prefix("*.") {
            return is_name(parent).then(|| Self::Below(normalize_name(parent)));
        }
        is_name(text).then(|| Self::Name(normalize_name(text)))
    }
}

fn is_name(text: &str) -> bool {
    // The URL parser brings a name with other letters into its ASCII form; the config has to name that form.
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.');
    !text.is_empty() && text.chars().all(is_plain) && !text.starts_with('.')
}

fn normalize_name(name: &str) -> String {
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

/// An address as 128 bits. An IPv4 address is mapped, so that it equals its mapped form.
fn mapped(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
        IpAddr::V6(address) => Ipv6Addr::to_bits(address),
    }
}

#[cfg(test)]
#[path = "allow_list_tests.rs"]
mod tests;
