//! Which addresses are public.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};

/// Why an address is not public.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AddressKind {
    Loopback,
    Private,
    LinkLocal,
    /// The metadata service of a cloud.
    Metadata,
    /// Multicast, broadcast, the unspecified address.
    NoHost,
    /// Reserved, or for documentation and benchmarks.
    Reserved,
    /// An address of this machine.
    Own,
}

impl AddressKind {
    /// Whether a name that the user allows may lead to it. No name of a private server leads to a metadata service by right.
    pub(super) fn is_allowed_by_name(self) -> bool {
        matches!(self, Self::Loopback | Self::Private | Self::Own)
    }

    /// What it is, as the end of "leads to …".
    pub(super) fn in_words(self) -> &'static str {
        match self {
            Self::Loopback => "this machine (loopback)",
            Self::Private => "a private network",
            Self::LinkLocal => "a link-local address",
            Self::Metadata => "the metadata service of a cloud",
            Self::NoHost => "an address that is no host",
            Self::Reserved => "a reserved address",
            Self::Own => "this machine",
        }
    }
}

/// Metadata services that stand outside of the link-local network.
const METADATA: [IpAddr; 5] = [
    IpAddr::V4(Ipv4Addr::new(169, 254, 169, 254)),
    IpAddr::V4(Ipv4Addr::new(192, 0, 0, 192)),
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
];

/// Why an address is not public; `None` if it is.
pub(super) fn classify_address(address: IpAddr) -> Option<AddressKind> {
    if METADATA.contains(&address) {
        return Some(AddressKind::Metadata);
    }
    let kind = match address {
        IpAddr::V4(address) => classify_v4(address),
        IpAddr::V6(address) => classify_v6(address),
    };
    kind.or_else(|| is_own_address(address).then_some(AddressKind::Own))
}

fn classify_v4(address: Ipv4Addr) -> Option<AddressKind> {
    match address.octets() {
        [127, ..] => Some(AddressKind::Loopback),
        // 0.0.0.0 connects to this machine.
        [0, ..] | [224..=255, ..] => Some(AddressKind::NoHost),
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] | [100, 64..=127, ..] => Some(AddressKind::Private),
        [169, 254, ..] => Some(AddressKind::LinkLocal),
        // Protocols, documentation, relays of 6to4, benchmarks.
        [192, 0, 0 | 2, _] | [192, 88, 99, _] | [198, 18 | 19, ..] | [198, 51, 100, _] | [203, 0, 113, _] => {
            Some(AddressKind::Reserved)
        }
        _ => None,
    }
}

/// Only 2000::/3 is given to hosts. An IPv4 address inside an IPv6 address is judged as that one.
fn classify_v6(address: Ipv6Addr) -> Option<AddressKind> {
    if let Some(inner) = address.to_ipv4_mapped() {
        return classify_address(inner.into());
    }
    let [a, b, c, d, e, f, g, h] = address.segments();
    match [a, b, c, d, e, f, g, h] {
        [0, 0, 0, 0, 0, 0, 0, 1] => Some(AddressKind::Loopback),
        [0, 0, 0, 0, 0, 0, 0, 0] | [0xff00..=0xffff, ..] => Some(AddressKind::NoHost),
        // A network with NAT64 reaches every IPv4 host in this way.
        [0x64, 0xff9b, 0, 0, 0, 0, _, _] => {
            let [high, low] = [g.to_be_bytes(), h.to_be_bytes()];
            classify_address(Ipv4Addr::new(high[0], high[1], low[0], low[1]).into())
        }
        [0xfc00..=0xfdff, ..] => Some(AddressKind::Private),
        // Link-local, and the former site-local.
        [0xfe80..=0xfeff, ..] => Some(AddressKind::LinkLocal),
        // Teredo and its neighbours, documentation, 6to4, documentation again.
        [0x2001, 0..=0x1ff, ..] | [0x2001, 0xdb8, ..] | [0x2002, ..] | [0x3fff, 0..=0xfff, ..] => {
            Some(AddressKind::Reserved)
        }
        [0x2000..=0x3fff, ..] => None,
        _ => Some(AddressKind::Reserved),
    }
}

/// Whether this machine has the address: only then can a socket be bound to it. A service that listens on all addresses is reached by the
/// public one, too.
fn is_own_address(address: IpAddr) -> bool {
    let can_bind = |address: IpAddr| UdpSocket::bind((address, 0)).is_ok();
    // With `ip_nonlocal_bind` every address can be bound, and this tells nothing.
    can_bind(address) && !can_bind(Ipv4Addr::new(192, 0, 2, 1).into())
}

#[cfg(test)]
#[path = "address_tests.rs"]
mod tests;
