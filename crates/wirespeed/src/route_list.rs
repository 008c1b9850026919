//! The routes of a table as bytes, stored beside its image. A lookup in an image takes the matched prefix
//! from them, and a table that takes updates starts from them.
//!
//! There is one record for each prefix: the address in network order, the length, and the next hop (4 bytes,
//! little-endian). Records are sorted in table order, so a binary search finds a prefix in the file's bytes.
//! Engines don't read them.

use wirespeed_fib::{Address, NextHop, Prefix, Rib, V6};

/// The records of a table.
pub(crate) fn to_bytes<A: Address>(routes: impl Iterator<Item = (Prefix<A>, NextHop)>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(routes.size_hint().0 * record::<A>());
    for (prefix, next_hop) in routes {
        bytes.extend(key(prefix));
        bytes.extend(next_hop.0.to_le_bytes());
    }
    bytes
}

/// The records of a table that were read from a file. In a damaged list a search finds nothing or an existing
/// record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RouteList<'a>(pub(crate) &'a [u8]);

impl RouteList<'_> {
    /// The routes. `None` if a record is not valid for family `A` or has no next hop, or if a prefix comes
    /// twice.
    pub(crate) fn routes<A: Address>(self) -> Option<Rib<A>> {
        let mut records = self.0.chunks_exact(record::<A>());
        let mut rib = Rib::new();
        for record in &mut records {
            let (prefix, next_hop) = parse(record)?;
            if !next_hop.is_some() || rib.insert(prefix, next_hop).is_some() {
                return None;
            }
        }
        records.remainder().is_empty().then_some(rib)
    }

    /// The longest prefix that contains an address. O(nested prefixes × log routes), mostly one or two
    /// searches.
    pub(crate) fn longest_match<A: Address>(self, address: A) -> Option<Prefix<A>> {
        let mut most = Prefix::host(address);
        loop {
            // A prefix of the address that is no longer than `most` is not after `most`, and so not after
            // `last`. The address of `last` lies within it, so it has no more bits than both share.
            let (last, _) = self.last_up_to(most)?;
            if last.contains(address) {
                return Some(last);
            }
            most = Prefix::around(address, last.address().common_bits(address));
        }
    }

    /// Every prefix that contains an address, with its next hop, shortest first. O(lengths × log routes).
    pub(crate) fn covering<A: Address>(self, address: A) -> impl Iterator<Item = (Prefix<A>, NextHop)> {
        let prefixes = (0..=A::BITS).map(move |len| Prefix::around(address, len));
        prefixes.filter_map(move |prefix| self.last_up_to(prefix).filter(|&(last, _)| last == prefix))
    }

    /// The last route in table order whose prefix is not after this one.
    fn last_up_to<A: Address>(self, prefix: Prefix<A>) -> Option<(Prefix<A>, NextHop)> {
        let mut most = [0; MOST_OCTETS + 1];
        let most = &mut most[..=A::OCTETS];
        most.iter_mut().zip(key(prefix)).for_each(|(byte, of_prefix)| *byte = of_prefix);
        let record_at = |at: usize| &self.0[at * record::<A>()..][..record::<A>()];
        let (mut from, mut to) = (0, self.0.len() / record::<A>());
        while from < to {
            let middle = from.midpoint(to);
            // Prefixes in table order are in the order of their bytes, too.
            let is_after = record_at(middle)[..=A::OCTETS] > *most;
            if is_after { to = middle } else { from = middle + 1 }
        }
        parse(record_at(from.checked_sub(1)?))
    }
}

/// The octets of the longest address.
const MOST_OCTETS: usize = V6::OCTETS;

/// The bytes of a record before its next hop.
fn key<A: Address>(prefix: Prefix<A>) -> impl Iterator<Item = u8> {
    (0..A::OCTETS).map(move |at| prefix.address().octet(at)).chain([prefix.len()])
}

/// Bytes of a record.
const fn record<A: Address>() -> usize {
    A::OCTETS + 1 + size_of::<NextHop>()
}

fn parse<A: Address>(record: &[u8]) -> Option<(Prefix<A>, NextHop)> {
    let (prefix, next_hop) = record.split_last_chunk::<4>()?;
    let (&len, octets) = prefix.split_last()?;
    let address =
        octets.iter().enumerate().fold(A::MIN, |address, (at, &octet)| address.with_octet(at, octet));
    Some((Prefix::new(address, len).ok()?, NextHop(u32::from_le_bytes(*next_hop))))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use wirespeed_fib::V4;

    #[test]
    fn matches_what_the_routes_match() {
        let prefixes = ["0.0.0.0/0", "10.0.0.0/8", "10.0.0.0/24", "10.0.1.0/25", "255.255.255.255/32"];
        let rib: Rib<V4> = prefixes.iter().zip(1..).map(|(p, n)| (p.parse().unwrap(), NextHop(n))).collect();
        for rib in [rib.clone(), rib.iter().skip(1).collect(), Rib::new()] {
            let bytes = to_bytes(rib.iter());
            let list = RouteList(&bytes);
            assert!(list.routes::<V4>().unwrap().iter().eq(rib.iter()));
            for address in ["0.0.0.0", "10.0.0.1", "10.0.1.127", "10.0.1.128", "11.0.0.0", "255.255.255.255"]
            {
                let address = address.parse().unwrap();
                assert_eq!(
                    list.longest_match(address),
                    rib.longest_match(address).map(|(p, _)| p),
                    "{address}"
                );
                assert!(list.covering(address).eq(rib.covering(Prefix::host(address))), "{address}");
            }
        }
    }

    #[test]
    fn takes_nothing_else() {
        let ten = [10, 0, 0, 0, 8, 1, 0, 0, 0];
        assert!(RouteList(&ten).routes::<V4>().is_some());
        let (twice, nowhere) = ([ten, ten].concat(), [10, 0, 0, 0, 8, 0, 0, 0, 0]);
        let bad = [
            &ten[..8],
            &[10, 0, 0, 0, 33, 1, 0, 0, 0],
            &[10, 0, 0, 1, 8, 1, 0, 0, 0],
            &[255; 23],
            &twice,
            &nowhere,
        ];
        for bytes in bad {
            assert!(RouteList(bytes).routes::<V4>().is_none(), "{bytes:?}");
        }
        for bytes in &bad[..4] {
            assert_eq!(RouteList(bytes).longest_match("10.0.0.1".parse::<V4>().unwrap()), None);
        }
        let six: Rib<V6> = [("2001:db8::/32".parse().unwrap(), NextHop(1))].into_iter().collect();
        let bytes = to_bytes(six.iter());
        assert!(RouteList(&bytes).routes::<V4>().is_none());
        assert_eq!(RouteList(&bytes).routes::<V6>().unwrap().len(), 1);
    }

    proptest! {
        #[test]
        fn the_longest_match_is_that_of_the_routes(
            prefixes in proptest::collection::vec((0..4_u32, 0..4_u32, 0..=32_u8), 0..40),
            addresses in proptest::collection::vec((0..4_u32, 0..4_u32), 20),
        ) {
            // Few addresses, so that prefixes nest and addresses lie behind prefixes of others.
            let address = |(high, low): (u32, u32)| V4(high << 30 | low);
            let prefixes = prefixes.into_iter().map(|(high, low, len)| Prefix::around(address((high, low)), len));
            let rib: Rib<V4> = prefixes.zip((1..).map(NextHop)).collect();
            let bytes = to_bytes(rib.iter());
            for address in addresses.into_iter().map(address) {
                let expected = rib.longest_match(address).map(|(prefix, _)| prefix);
                prop_assert_eq!(RouteList(&bytes).longest_match(address), expected);
            }
        }

        #[test]
        fn any_bytes_are_routes_or_refused(
            bytes in proptest::collection::vec(prop_oneof![Just(0), Just(8), any::<u8>()], 0..64),
            address in any::<u32>(),
        ) {
            let list = RouteList(&bytes);
            list.longest_match(V4(address));
            list.longest_match(V6(address.into()));
            if let Some(rib) = list.routes::<V4>() {
                prop_assert_eq!(to_bytes(rib.iter()).len(), bytes.len());
            }
            if let Some(rib) = list.routes::<V6>() {
                prop_assert_eq!(to_bytes(rib.iter()).len(), bytes.len());
            }
        }
    }
}
