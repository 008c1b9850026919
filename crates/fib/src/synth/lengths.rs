//! Exact numbers of prefix lengths: the number of each length for a table size, and the adjustment that gives
//! a drawn table these numbers.

use rustc_hash::FxHashSet;

use super::rng::Rng;
use crate::address::Address;
use crate::prefix::Prefix;

/// Divides `total` in the ratio of `weights`, by largest remainder. `None` if all weights are 0 and `total`
/// is not. O(weights log weights).
pub(super) fn apportion(total: usize, weights: &[u32]) -> Option<Vec<usize>> {
    let sum: u128 = weights.iter().map(|&w| u128::from(w)).sum();
    if sum == 0 {
        return (total == 0).then(|| vec![0; weights.len()]);
    }
    let exact: Vec<(u128, u128)> = weights
        .iter()
        .map(|&w| total as u128 * u128::from(w))
        .map(|product| (product / sum, product % sum))
        .collect();
    let mut shares: Vec<usize> =
        exact.iter().map(|&(whole, _)| usize::try_from(whole).unwrap_or(total)).collect();
    let mut order: Vec<usize> = (0..weights.len()).collect();
    order.sort_by_key(|&i| std::cmp::Reverse(exact[i].1));
    let short = total - shares.iter().sum::<usize>();
    for &index in order.iter().take(short) {
        shares[index] += 1;
    }
    Some(shares)
}

/// Gives a sorted table exactly `wanted` prefixes of each length, with as few changes as possible: prefixes
/// of a length with too many are drawn at random and get the nearest length with too few, at their own place
/// or near it. The result is sorted. `wanted` must fit the address space.
pub(super) fn fit<A: Address>(rng: &mut Rng, table: &mut Vec<Prefix<A>>, wanted: &[usize]) {
    let mut have = vec![0usize; wanted.len()];
    for prefix in table.iter() {
        have[usize::from(prefix.len())] += 1;
    }
    // Draws at random for each length: among the remaining prefixes, the number that must go.
    let mut excess: Vec<usize> = have.iter().zip(wanted).map(|(h, w)| h.saturating_sub(*w)).collect();
    let mut left = have.clone();
    let mut moved: Vec<Prefix<A>> = Vec::new();
    table.retain(|&prefix| {
        let len = usize::from(prefix.len());
        let goes = rng.index(left[len]) < excess[len];
        left[len] -= 1;
        if goes {
            excess[len] -= 1;
            moved.push(prefix);
        }
        !goes
    });
    moved.sort_by_key(|p| p.len());
    let anchors = table.len();
    let mut places = moved.into_iter();
    let mut added = FxHashSet::default();
    for (len, (&have, &wanted)) in (0u8..).zip(have.iter().zip(wanted)) {
        for _ in have..wanted {
            let anchor = places.next().unwrap_or_else(|| match anchors {
                0 => Prefix::DEFAULT,
                _ => table[rng.index(anchors)],
            });
            let free = |p: Prefix<A>| !added.contains(&p) && table[..anchors].binary_search(&p).is_err();
            added.insert(place(rng, anchor, len, free));
        }
    }
    // A set has no fixed order, so the result is sorted.
    table.extend(added);
    table.sort();
}

/// A free prefix of length `len`: around or inside the anchor if there is one, otherwise farther and farther
/// from it, and at last the first free one.
fn place<A: Address>(
    rng: &mut Rng,
    anchor: Prefix<A>,
    len: u8,
    free: impl Fn(Prefix<A>) -> bool,
) -> Prefix<A> {
    let mut keep = anchor.len().min(len);
    for attempt in 0..400u32 {
        let bits = rng.bits128();
        let inside = A::from_u128_low(bits).to_u128() & !A::MAX.keep(keep).to_u128();
        let candidate = Prefix::around(A::from_u128_low(anchor.address().keep(keep).to_u128() | inside), len);
        if free(candidate) {
            return candidate;
        }
        if attempt % 4 == 3 {
            keep = keep.saturating_sub(1);
        }
    }
    let mut candidate = Prefix::around(A::MIN, len);
    while !free(candidate) {
        match candidate.last().next() {
            Some(next) => candidate = Prefix::around(next, len),
            None => break,
        }
    }
    candidate
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::V4;

    #[test]
    fn shares_add_up() {
        assert_eq!(apportion(10, &[1, 1, 1]).unwrap().iter().sum::<usize>(), 10);
        assert_eq!(apportion(7, &[0, 5, 2]), Some(vec![0, 5, 2]));
        assert_eq!(apportion(0, &[0, 0]), Some(vec![0, 0]));
        assert_eq!(apportion(1, &[0, 0]), None);
    }

    #[test]
    fn fits_even_where_a_length_is_full() {
        let mut wanted = vec![0; 33];
        (wanted[0], wanted[8], wanted[9]) = (1, 256, 512);
        let mut table: Vec<Prefix<V4>> = (0..769).map(|i| Prefix::host(V4(i * 77))).collect();
        fit(&mut Rng::new(1), &mut table, &wanted);
        assert_eq!(table.len(), 769);
        assert!(table.is_sorted_by(|a, b| a < b));
        for (len, &count) in wanted.iter().enumerate() {
            assert_eq!(table.iter().filter(|p| usize::from(p.len()) == len).count(), count);
        }
    }
}
