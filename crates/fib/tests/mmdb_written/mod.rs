//! Tables as MaxMind DB files: what the crate `maxminddb` reads of them is what the routes say.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use maxminddb::Reader;
use serde_json::{Value, json};
use wirespeed_fib::read::{Format, ReadOptions, read_fib_from};
use wirespeed_fib::write::write_fib;
use wirespeed_fib::{Fib, V4, V6};

/// Reads bytes as lines of routes, writes them, and looks the ends of each route and their neighbours up.
pub(crate) fn check(bytes: &[u8]) {
    let options = ReadOptions { format: Some(Format::Plain), lenient: true, ..ReadOptions::default() };
    let Ok((fib, _)) = read_fib_from(bytes, "routes", &options) else { return };
    let mut file = Vec::new();
    // Some texts of next hops have no fields.
    if write_fib(&fib, Format::Mmdb, &mut file).is_err() {
        return;
    }
    let reader = Reader::from_source(&file[..]).expect("a file that was written opens");
    let has_v6 = !fib.v6.is_empty();
    let mut values = HashMap::new();
    for address in addresses(&fib) {
        // A tree of IPv4 has no IPv6.
        if address.is_ipv6() && !has_v6 {
            continue;
        }
        let found = reader.lookup(address).and_then(|found| found.decode::<Value>()).expect("a valid file");
        let expected = expected(&fib, address);
        assert_eq!(found.is_some(), expected.is_some(), "{address}");
        let (Some(found), Some(expected)) = (found, expected) else { continue };
        if expected.bytes().all(|byte| byte.is_ascii_lowercase()) && !matches!(expected, "true" | "false") {
            assert_eq!(found, json!({ "value": expected }), "{address}");
        }
        // A text has one value, wherever it is.
        assert_eq!(values.entry(expected).or_insert_with(|| found.clone()), &found, "{address}");
    }
}

/// The text of the longest prefix. All of `::/96` is IPv4, whatever routes of IPv6 say.
fn expected(fib: &Fib, address: IpAddr) -> Option<&str> {
    let v4 = match address {
        IpAddr::V4(address) => Some(address.to_bits()),
        IpAddr::V6(address) => u32::try_from(address.to_bits()).ok(),
    };
    let found = match (v4, address) {
        (None, IpAddr::V6(address)) => fib.v6.longest_match(V6(address.to_bits())).map(|(_, found)| found),
        (v4, _) => fib.v4.longest_match(V4(v4?)).map(|(_, found)| found),
    };
    found.and_then(|next_hop| fib.next_hops.text(next_hop))
}

fn addresses(fib: &Fib) -> Vec<IpAddr> {
    let mut all = Vec::new();
    for (prefix, _) in fib.v4.iter() {
        let (first, last) = (prefix.address().0, prefix.last().0);
        let ends = [first, last, first.wrapping_sub(1), last.wrapping_add(1)];
        all.extend(ends.map(|address| IpAddr::V4(Ipv4Addr::from_bits(address))));
        all.extend(ends.map(|address| IpAddr::V6(Ipv6Addr::from_bits(address.into()))));
    }
    for (prefix, _) in fib.v6.iter() {
        let (first, last) = (prefix.address().0, prefix.last().0);
        let ends = [first, last, first.wrapping_sub(1), last.wrapping_add(1)];
        all.extend(ends.map(|address| IpAddr::V6(Ipv6Addr::from_bits(address))));
    }
    all
}
