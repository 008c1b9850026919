//! Lookups that are so simple that they are obviously right. Every engine is compared with them.

use crate::address::Address;
use crate::next_hop::NextHop;
use crate::prefix::Prefix;

/// The longest match by linear scan. O(routes).
pub fn scan<A: Address>(routes: &[(Prefix<A>, NextHop)], address: A) -> NextHop {
    routes
        .iter()
        .filter(|(prefix, _)| prefix.contains(address))
        .max_by_key(|(prefix, _)| prefix.len())
        .map_or(NextHop::NONE, |&(_, next_hop)| next_hop)
}

/// The whole address space as ranges of one next hop: the first address of each range, ascending from
/// [`Address::MIN`]. Neighbours may have equal next hops. Takes routes in table order (as a
/// [`Rib`](crate::Rib) iterates) and uses neither a trie nor a lookup, so it is independent of both.
/// O(routes).
pub fn ranges<A: Address>(routes: impl IntoIterator<Item = (Prefix<A>, NextHop)>) -> Vec<(A, NextHop)> {
    let mut ranges = vec![(A::MIN, NextHop::NONE)];
    // The prefixes that cover the current address, innermost last.
    let mut open: Vec<(Prefix<A>, NextHop)> = Vec::new();
    let mut set = |first: A, next_hop: NextHop| match ranges.last_mut() {
        Some(last) if last.0 == first => last.1 = next_hop,
        _ => ranges.push((first, next_hop)),
    };
    let close = |open: &mut Vec<(Prefix<A>, NextHop)>, until: Option<A>, set: &mut dyn FnMut(A, NextHop)| {
        while let Some(&(prefix, _)) = open.last() {
            if until.is_some_and(|address| prefix.contains(address)) {
                break;
            }
            open.pop();
            if let Some(after) = prefix.last().next() {
                set(after, open.last().map_or(NextHop::NONE, |&(_, outer)| outer));
            }
        }
    };
    for (prefix, next_hop) in routes {
        close(&mut open, Some(prefix.address()), &mut set);
        set(prefix.address(), next_hop);
        open.push((prefix, next_hop));
    }
    close(&mut open, None, &mut set);
    ranges
}

/// The addresses at which an engine is most likely wrong: the ends of each prefix and their neighbours.
pub fn boundaries<A: Address>(prefixes: impl IntoIterator<Item = Prefix<A>>) -> Vec<A> {
    let mut addresses = vec![A::MIN, A::MAX];
    for prefix in prefixes {
        let (first, last) = (prefix.address(), prefix.last());
        addresses.extend([first, last]);
        addresses.extend(first.previous());
        addresses.extend(last.next());
    }
    addresses
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::address::V4;
    use crate::rib::Rib;

    #[test]
    fn ranges_of_nested_prefixes() {
        let routes = [("0.0.0.0/0", 1), ("10.0.0.0/8", 2), ("10.0.0.0/24", 3), ("255.0.0.0/8", 4)];
        let routes = routes.map(|(p, n)| (p.parse::<Prefix<V4>>().unwrap(), NextHop(n)));
        let text: Vec<_> = ranges(routes).iter().map(|(a, n)| format!("{a} {n}")).collect();
        assert_eq!(text, ["0.0.0.0 1", "10.0.0.0 3", "10.0.1.0 2", "11.0.0.0 1", "255.0.0.0 4"]);
    }

    proptest! {
        #[test]
        fn ranges_agree_with_the_scan(raw in proptest::collection::vec((any::<u32>(), 0..=32u8, 0..5u32), 0..40)) {
            let rib: Rib<V4> =
                raw.iter().map(|&(a, len, n)| (Prefix::around(V4(a & 0xf0ff_00ff), len), NextHop(n))).collect();
            let routes: Vec<_> = rib.iter().collect();
            let ranges = ranges(routes.iter().copied());
            prop_assert!(ranges.is_sorted_by_key(|r| r.0) && ranges[0].0 == V4::MIN);
            for (i, &(first, next_hop)) in ranges.iter().enumerate() {
                let last = ranges.get(i + 1).map_or(V4::MAX, |next| next.0.previous().unwrap());
                prop_assert_eq!(scan(&routes, first), next_hop);
                prop_assert_eq!(scan(&routes, last), next_hop);
            }
        }
    }
}
