//! Addresses of machines that may be reached: public ones, and those that were named.
//!
//! A server asks endpoints from within its network, where it reaches more than its clients do. So
//! an address is public only if it is known to be: of version 4 all but the special blocks (IANA
//! IPv4 Special-Purpose Address Registry), of version 6 the global unicast block without its
//! special ones. An address that holds one of version 4 (mapped, NAT64, 6to4) is what it holds.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// Blocks of version 4 that are not public: their beginning and how many bits count.
const SPECIAL_V4: [(Ipv4Addr, u8); 15] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    (Ipv4Addr::new(224, 0, 0, 0), 4),
    (Ipv4Addr::new(240, 0, 0, 0), 4),
];

/// Global unicast addresses of version 6.
const GLOBAL_V6: (Ipv6Addr, u8) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);

/// Blocks of these that are not public.
const SPECIAL_V6: [(Ipv6Addr, u8); 3] = [
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
];

/// Translated addresses, which hold one of version 4 at their end.
const NAT64: (Ipv6Addr, u8) = (Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 96);

/// Tunnelled addresses, which hold one of version 4 after their first group.
const SIX_TO_FOUR: (Ipv6Addr, u8) = (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16);

/// The address that is reached in the end.
fn effective(address: IpAddr) -> IpAddr {
    let IpAddr::V6(v6) = address else { return address };
    if let Some(v4) = v6.to_ipv4_mapped() {
        return v4.into();
    }
    let groups = v6.segments();
    let held = |high: u16, low: u16| IpAddr::from(Ipv4Addr::from((u32::from(high) << 16) | u32::from(low)));
    match () {
        () if is_in_v6(v6, NAT64) => held(groups[6], groups[7]),
        () if is_in_v6(v6, SIX_TO_FOUR) => held(groups[1], groups[2]),
        () => address,
    }
}

fn is_in_v4(address: Ipv4Addr, (base, bits): (Ipv4Addr, u8)) -> bool {
    let shift = 32 - u32::from(bits);
    (u32::from(address) ^ u32::from(base)).checked_shr(shift).unwrap_or(0) == 0
}

fn is_in_v6(address: Ipv6Addr, (base, bits): (Ipv6Addr, u8)) -> bool {
    let shift = 128 - u32::from(bits);
    (u128::from(address) ^ u128::from(base)).checked_shr(shift).unwrap_or(0) == 0
}

fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => !SPECIAL_V4.iter().any(|block| is_in_v4(v4, *block)),
        IpAddr::V6(v6) => is_in_v6(v6, GLOBAL_V6) && !SPECIAL_V6.iter().any(|block| is_in_v6(v6, *block)),
    }
}

/// An address, or all addresses with the same first bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AddressRange {
    base: IpAddr,
    bits: u8,
}

/// A text that is no range of addresses.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0} is no address: give one like 10.1.2.3, or a range like 10.0.0.0/8")]
pub struct NotARange(String);

impl FromStr for AddressRange {
    type Err = NotARange;

    fn from_str(text: &str) -> Result<Self, NotARange> {
        let wrong = || NotARange(text.to_owned());
        let (base, bits) = text.split_once('/').map_or((text, None), |(base, bits)| (base, Some(bits)));
        let base: IpAddr = base.parse().map_err(|_| wrong())?;
        let most = if base.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Ok(most), |bits| bits.parse().map_err(|_| wrong()))?;
        if bits > most { Err(wrong()) } else { Ok(Self { base, bits }) }
    }
}

impl fmt::Display for AddressRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.base, self.bits)
    }
}

impl AddressRange {
    fn has(&self, address: IpAddr) -> bool {
        match (address, self.base) {
            (IpAddr::V4(address), IpAddr::V4(base)) => is_in_v4(address, (base, self.bits)),
            (IpAddr::V6(address), IpAddr::V6(base)) => is_in_v6(address, (base, self.bits)),
            _ => false,
        }
    }
}

/// The addresses that may be reached.
#[derive(Clone, Debug, Default)]
pub(crate) struct Guard {
    named: Vec<AddressRange>,
}

impl Guard {
    pub fn new(named: Vec<AddressRange>) -> Self {
        Self { named }
    }

    /// Whether a machine that was named by a name may have this address. A prefix with an address
    /// in the place of the name has named that one.
    pub fn admits(&self, name: &str, address: IpAddr) -> bool {
        let reached = effective(address);
        let is_named = || self.named.iter().any(|range| range.has(address) || range.has(reached));
        is_public(reached) || is_named() || (name == "localhost" && reached.is_loopback())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admitted(guard: &Guard, address: &str) -> bool {
        guard.admits("e", address.parse().unwrap())
    }

    #[test]
    fn only_public_addresses_are_reached() {
        let guard = Guard::default();
        for address in [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.255.254",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.8",
            "192.168.1.1",
            "198.19.0.1",
            "224.0.0.1",
            "239.1.1.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::127.0.0.1",
            "64:ff9b::10.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b:1::1",
            "2002:7f00:1::",
            "2002:a00:1::1",
            "2001:0:1::1",
            "2001:db8::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "100::1",
        ] {
            assert!(!admitted(&guard, address), "{address} is public");
        }
        for address in [
            "8.8.8.8",
            "100.63.255.255",
            "100.128.0.0",
            "172.15.0.1",
            "172.32.0.1",
            "192.0.3.1",
            "198.20.0.1",
            "223.255.255.255",
            "2606:4700::1",
            "2a00:1450::1",
            "64:ff9b::8.8.8.8",
            "::ffff:8.8.8.8",
            "2002:808:808::1",
        ] {
            assert!(admitted(&guard, address), "{address} is not public");
        }
    }

    #[test]
    fn named_ranges_are_reached_and_no_others() {
        let named = ["10.1.0.0/16", "fd00::1", "192.168.0.7"];
        let guard = Guard::new(named.iter().map(|range| range.parse().unwrap()).collect());
        for address in ["10.1.2.3", "::ffff:10.1.2.3", "fd00::1", "192.168.0.7"] {
            assert!(admitted(&guard, address), "{address}");
        }
        for address in ["10.2.0.1", "fd00::2", "192.168.0.8", "127.0.0.1"] {
            assert!(!admitted(&guard, address), "{address}");
        }
        assert!("0.0.0.0/0".parse::<AddressRange>().is_ok_and(|all| all.has("127.0.0.1".parse().unwrap())));
        for text in ["10.0.0.0/33", "10.0.0", "e", "10.0.0.0/x", "::/129"] {
            assert!(text.parse::<AddressRange>().is_err(), "{text}");
        }
    }

    #[test]
    fn localhost_names_loopback_and_nothing_else() {
        let guard = Guard::default();
        assert!(guard.admits("localhost", "127.0.0.1".parse().unwrap()));
        assert!(guard.admits("localhost", "::1".parse().unwrap()));
        assert!(!guard.admits("localhost", "10.0.0.1".parse().unwrap()));
        assert!(!guard.admits("localhost.evil.org", "127.0.0.1".parse().unwrap()));
    }
}
