//! The prefixes of a table as bytes, kept beside its image: what a lookup answers with besides the next hop.
//!
//! One record a prefix, its address in network order and its length, in table order, so that a binary search finds a
//! prefix in the file as it is. An engine has no use for them: it was compiled to not need them.

use wirespeed_fib::{Address, Prefix, Rib};

/// The records of a table.
pub(crate) fn to_bytes<A: Address>(rib: &Rib<A>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(rib.len() * record::<A>());
    for (prefix, _) in rib {
        bytes.extend((0..A::OCTETS).map(|at| prefix.address().octet(at)));
        bytes.push(prefix.len());
    }
    bytes
}

/// The records of a table that were read from a file. In a list that [`to_bytes`] didn't make a search finds nothing,
/// or what is there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PrefixList<'a>(pub(crate) &'a [u8]);

impl PrefixList<'_> {
    /// The prefixes, in order; `None` where some record is none of family `A`.
    pub(crate) fn prefixes<A: Address>(self) -> Option<Vec<Prefix<A>>> {
        let records = self.0.chunks_exact(record::<A>());
        if records.remainder().is_empty() { records.map(parse).collect() } else { None }
    }

    /// The longest of them that contains an address. O(lengths × log prefixes).
    pub(crate) fn longest_match<A: Address>(self, address: A) -> Option<Prefix<A>> {
        (0..=A::BITS).rev().map(|len| Prefix::around(address, len)).find(|&prefix| self.contains(prefix))
    }

    fn contains<A: Address>(self, prefix: Prefix<A>) -> bool {
        let (mut from, mut to) = (0, self.0.len() / record::<A>());
        while from < to {
            let middle = from.midpoint(to);
            let at = &self.0[middle * record::<A>()..][..record::<A>()];
            match parse::<A>(at).cmp(&Some(prefix)) {
                std::cmp::Ordering::Less => from = middle + 1,
                std::cmp::Ordering::Equal => return true,
                std::cmp::Ordering::Greater => to = middle,
            }
        }
        false
    }
}

/// Bytes of a record.
const fn record<A: Address>() -> usize {
    A::OCTETS + 1
}

fn parse<A: Address>(record: &[u8]) -> Option<Prefix<A>> {
    let (&len, octets) = record.split_last()?;
    let address =
        octets.iter().enumerate().fold(A::MIN, |address, (at, &octet)| address.with_octet(at, octet));
    Prefix::new(address, len).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use wirespeed_fib::{NextHop, V4, V6};

    #[test]
    fn matches_what_the_routes_match() {
        let prefixes = ["0.0.0.0/0", "10.0.0.0/8", "10.0.0.0/24", "10.0.1.0/25", "255.255.255.255/32"];
        let rib: Rib<V4> = prefixes.iter().map(|p| (p.parse().unwrap(), NextHop(1))).collect();
        for rib in [rib.clone(), rib.iter().skip(1).collect(), Rib::new()] {
            let bytes = to_bytes(&rib);
            let list = PrefixList(&bytes);
            assert!(list.prefixes::<V4>().unwrap().into_iter().eq(rib.iter().map(|(prefix, _)| prefix)));
            for address in ["0.0.0.0", "10.0.0.1", "10.0.1.127", "10.0.1.128", "11.0.0.0", "255.255.255.255"]
            {
                let address = address.parse().unwrap();
                assert_eq!(
                    list.longest_match(address),
                    rib.longest_match(address).map(|(p, _)| p),
                    "{address}"
                );
            }
        }
    }

    #[test]
    fn takes_nothing_else() {
        for bytes in [&[10, 0, 0, 0][..], &[10, 0, 0, 0, 33], &[10, 0, 0, 1, 8], &[255; 23]] {
            assert!(PrefixList(bytes).prefixes::<V4>().is_none());
            assert_eq!(PrefixList(bytes).longest_match("10.0.0.1".parse::<V4>().unwrap()), None);
        }
        let six: Rib<V6> = [("2001:db8::/32".parse().unwrap(), NextHop(1))].into_iter().collect();
        let bytes = to_bytes(&six);
        assert!(PrefixList(&bytes).prefixes::<V4>().is_none());
        assert_eq!(PrefixList(&bytes).prefixes::<V6>().unwrap().len(), 1);
    }
}
