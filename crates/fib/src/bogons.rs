//! Addresses that no packet of the Internet has: the special-purpose registries of IANA (RFC 6890 and its
//! updates), built in.
//!
//! ```text
//! SPECIAL   192.0.0.0/24  IETF Protocol Assignments  RFC 6890  not reachable
//!           192.0.0.9/32  Port Control Protocol      RFC 7723  reachable
//!             └─► bogons  192.0.0.0/29, 192.0.0.8/32, 192.0.0.11/32, … without 192.0.0.9/32
//! ```
//!
//! An address is a bogon if the longest block that holds it is not globally reachable. A block that is
//! reachable, or of which the registry says neither (6to4, Teredo), is cut out of the blocks around it.
//! Multicast is in neither registry, and not in the list. Space that no registry has given out is not,
//! either: it changes by the day, see the files of the registries
//! ([`Format::Delegated`](crate::read::Format::Delegated)).
//!
//! ```
//! use wirespeed_fib::bogons::bogons;
//!
//! let found = |address: std::net::IpAddr| bogons().find(|bogon| bogon.prefix.contains(&address));
//! assert_eq!(found("10.1.2.3".parse()?).map(|bogon| bogon.rfc), Some("RFC 1918"));
//! assert!(found("192.0.0.9".parse()?).is_none() && found("192.0.0.8".parse()?).is_some());
//! # Ok::<(), std::net::AddrParseError>(())
//! ```

use ipnet::IpNet;

use crate::address::{Address, V4, V6};
use crate::prefix::Prefix;
use crate::range::prefix_without;

/// The month of the last addition that the list holds (RFC 9665).
pub const DATE: &str = "2025-06";

/// A block of a special-purpose registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpecialPurpose {
    /// The block as `address/length`.
    pub block: &'static str,
    /// Its name in the registry.
    pub name: &'static str,
    /// The document that reserves it.
    pub rfc: &'static str,
    /// Whether packets for it are forwarded through the Internet. `None` where the registry says neither.
    pub reachable: Option<bool>,
}

/// A prefix of addresses that are not globally reachable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bogon {
    /// The prefix: a block of the registry, or a part of one.
    pub prefix: IpNet,
    /// The name of the block in the registry.
    pub name: &'static str,
    /// The document that reserves the block.
    pub rfc: &'static str,
}

/// Both registries, IPv4 and then IPv6.
pub const SPECIAL: [SpecialPurpose; 51] = [
    not("0.0.0.0/8", "This network", "RFC 791"),
    not("0.0.0.0/32", "This host on this network", "RFC 1122"),
    not("10.0.0.0/8", "Private-Use", "RFC 1918"),
    not("100.64.0.0/10", "Shared Address Space", "RFC 6598"),
    not("127.0.0.0/8", "Loopback", "RFC 1122"),
    not("169.254.0.0/16", "Link Local", "RFC 3927"),
    not("172.16.0.0/12", "Private-Use", "RFC 1918"),
    not("192.0.0.0/24", "IETF Protocol Assignments", "RFC 6890"),
    not("192.0.0.0/29", "IPv4 Service Continuity Prefix", "RFC 7335"),
    not("192.0.0.8/32", "IPv4 dummy address", "RFC 7600"),
    global("192.0.0.9/32", "Port Control Protocol Anycast", "RFC 7723"),
    global("192.0.0.10/32", "Traversal Using Relays around NAT Anycast", "RFC 8155"),
    not("192.0.0.170/32", "NAT64/DNS64 Discovery", "RFC 8880"),
    not("192.0.0.171/32", "NAT64/DNS64 Discovery", "RFC 8880"),
    not("192.0.2.0/24", "Documentation (TEST-NET-1)", "RFC 5737"),
    global("192.31.196.0/24", "AS112-v4", "RFC 7535"),
    global("192.52.193.0/24", "AMT", "RFC 7450"),
    neither("192.88.99.0/24", "Deprecated (6to4 Relay Anycast)", "RFC 7526"),
    not("192.88.99.2/32", "6a44-relay anycast address", "RFC 6751"),
    not("192.168.0.0/16", "Private-Use", "RFC 1918"),
    global("192.175.48.0/24", "Direct Delegation AS112 Service", "RFC 7534"),
    not("198.18.0.0/15", "Benchmarking", "RFC 2544"),
    not("198.51.100.0/24", "Documentation (TEST-NET-2)", "RFC 5737"),
    not("203.0.113.0/24", "Documentation (TEST-NET-3)", "RFC 5737"),
    not("240.0.0.0/4", "Reserved", "RFC 1112"),
    not("255.255.255.255/32", "Limited Broadcast", "RFC 8190"),
    not("::1/128", "Loopback Address", "RFC 4291"),
    not("::/128", "Unspecified Address", "RFC 4291"),
    not("::ffff:0:0/96", "IPv4-mapped Address", "RFC 4291"),
    global("64:ff9b::/96", "IPv4-IPv6 Translation", "RFC 6052"),
    not("64:ff9b:1::/48", "IPv4-IPv6 Translation", "RFC 8215"),
    not("100::/64", "Discard-Only Address Block", "RFC 6666"),
    not("100:0:0:1::/64", "Dummy IPv6 Prefix", "RFC 9780"),
    not("2001::/23", "IETF Protocol Assignments", "RFC 2928"),
    neither("2001::/32", "TEREDO", "RFC 4380"),
    global("2001:1::1/128", "Port Control Protocol Anycast", "RFC 7723"),
    global("2001:1::2/128", "Traversal Using Relays around NAT Anycast", "RFC 8155"),
    global("2001:1::3/128", "DNS-SD Service Registration Protocol Anycast", "RFC 9665"),
    not("2001:2::/48", "Benchmarking", "RFC 5180"),
    global("2001:3::/32", "AMT", "RFC 7450"),
    global("2001:4:112::/48", "AS112-v6", "RFC 7535"),
    neither("2001:10::/28", "Deprecated (ORCHID)", "RFC 4843"),
    global("2001:20::/28", "ORCHIDv2", "RFC 7343"),
    global("2001:30::/28", "Drone Remote ID Protocol Entity Tags", "RFC 9374"),
    not("2001:db8::/32", "Documentation", "RFC 3849"),
    neither("2002::/16", "6to4", "RFC 3056"),
    global("2620:4f:8000::/48", "Direct Delegation AS112 Service", "RFC 7534"),
    not("3fff::/20", "Documentation", "RFC 9637"),
    not("5f00::/16", "Segment Routing (SRv6) SIDs", "RFC 9602"),
    not("fc00::/7", "Unique-Local", "RFC 4193"),
    not("fe80::/10", "Link-Local Unicast", "RFC 4291"),
];

const fn not(block: &'static str, name: &'static str, rfc: &'static str) -> SpecialPurpose {
    SpecialPurpose { block, name, rfc, reachable: Some(false) }
}

const fn global(block: &'static str, name: &'static str, rfc: &'static str) -> SpecialPurpose {
    SpecialPurpose { block, name, rfc, reachable: Some(true) }
}

const fn neither(block: &'static str, name: &'static str, rfc: &'static str) -> SpecialPurpose {
    SpecialPurpose { block, name, rfc, reachable: None }
}

/// The prefixes of all addresses that are not globally reachable, IPv4 and then IPv6, in the order of the
/// registries. A longer one has the name of the longer block.
pub fn bogons() -> impl Iterator<Item = Bogon> {
    of_family::<V4>().into_iter().chain(of_family::<V6>())
}

/// The bogons as CSV with the columns `prefix`, `name` and `rfc`, for
/// [`read_fib_from`](crate::read::read_fib_from).
pub fn csv() -> String {
    let line = |Bogon { prefix, name, rfc }| format!("{prefix},{name},{rfc}\n");
    std::iter::once("prefix,name,rfc\n".to_owned()).chain(bogons().map(line)).collect()
}

fn of_family<A: Address>() -> Vec<Bogon>
where
    Prefix<A>: Into<IpNet>,
{
    // Blocks of the other family are no prefixes of this one.
    let block = |special: &'static SpecialPurpose| Some((special.block.parse::<Prefix<A>>().ok()?, special));
    let blocks: Vec<_> = SPECIAL.iter().filter_map(block).collect();
    let is_bogon = |special: &SpecialPurpose| special.reachable == Some(false);
    let mut holes: Vec<_> =
        blocks.iter().filter(|(_, special)| !is_bogon(special)).map(|(prefix, _)| *prefix).collect();
    holes.sort_unstable();
    let mut bogons = Vec::new();
    for &(prefix, special) in blocks.iter().filter(|(_, special)| is_bogon(special)) {
        prefix_without(prefix, &holes, &mut |part| {
            // A longer block may be just what is left beside a hole.
            if part != prefix && blocks.iter().any(|(block, _)| *block == part) {
                return;
            }
            bogons.push(Bogon { prefix: part.into(), name: special.name, rfc: special.rfc });
        });
    }
    bogons
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::{ReadOptions, read_fib_from};

    /// What the longest block that holds an address says.
    fn longest(address: std::net::IpAddr) -> Option<&'static SpecialPurpose> {
        let net = |special: &SpecialPurpose| special.block.parse::<IpNet>().unwrap();
        let blocks = SPECIAL.iter().filter(|special| net(special).contains(&address));
        blocks.max_by_key(|special| net(special).prefix_len())
    }

    #[test]
    fn an_address_is_a_bogon_if_its_longest_block_is_not_reachable() {
        let table: Vec<Bogon> = bogons().collect();
        for special in &SPECIAL {
            let net: IpNet = special.block.parse().unwrap();
            assert_eq!(net, net.trunc(), "{special:?}");
            assert!(special.rfc.strip_prefix("RFC ").is_some_and(|number| number.parse::<u16>().is_ok()));
            // Both ends of the block, and the addresses beside it.
            let beside = |address: std::net::IpAddr, by: i8| -> std::net::IpAddr {
                match address {
                    std::net::IpAddr::V4(v4) => {
                        std::net::Ipv4Addr::from(v4.to_bits().saturating_add_signed(by.into())).into()
                    }
                    std::net::IpAddr::V6(v6) => {
                        std::net::Ipv6Addr::from(v6.to_bits().saturating_add_signed(by.into())).into()
                    }
                }
            };
            for address in
                [net.network(), net.broadcast(), beside(net.network(), -1), beside(net.broadcast(), 1)]
            {
                let found = table.iter().filter(|bogon| bogon.prefix.contains(&address));
                let found = found.max_by_key(|bogon| bogon.prefix.prefix_len());
                let expected = longest(address).filter(|special| special.reachable == Some(false));
                assert_eq!(
                    found.map(|bogon| (bogon.name, bogon.rfc)),
                    expected.map(|special| (special.name, special.rfc)),
                    "{address}"
                );
            }
        }
    }

    #[test]
    fn the_csv_reads_as_a_table_of_all_bogons() {
        let (fib, report) = read_fib_from(csv().as_bytes(), "bogons", &ReadOptions::default()).unwrap();
        assert_eq!((fib.v4.len() + fib.v6.len(), report.repeated), (bogons().count(), 0));
        assert!(fib.next_hops.find("name=Documentation%20(TEST-NET-1),rfc=RFC%205737").is_some());
    }
}
