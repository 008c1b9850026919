//! Ranges of addresses as prefixes.
//!
//! ```text
//! 10.0.0.5 – 10.0.0.16  =  10.0.0.5/32 │ 10.0.0.6/31 │ 10.0.0.8/29 │ 10.0.0.16/32
//! ```
//!
//! Each step takes the largest prefix that starts at the first address left and does not reach past the last
//! one. The prefixes are the maximal ones inside the range. So a range inside another has prefixes inside the
//! other's: longest-prefix match then finds the inner one.

use std::iter::FusedIterator;

use crate::address::Address;
use crate::prefix::Prefix;

/// The fewest prefixes that cover the addresses from `first` to `last`, both included, and no other address.
/// They are disjoint and ascending, at most twice the family's width less two. None if `last` is before
/// `first`.
///
/// ```
/// use wirespeed_fib::{V4, prefixes_of_range};
///
/// let prefixes: Vec<String> = prefixes_of_range::<V4>("10.0.0.5".parse()?, "10.0.0.16".parse()?)
///     .map(|prefix| prefix.to_string())
///     .collect();
/// assert_eq!(prefixes, ["10.0.0.5/32", "10.0.0.6/31", "10.0.0.8/29", "10.0.0.16/32"]);
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
pub fn prefixes_of_range<A: Address>(first: A, last: A) -> PrefixesOfRange<A> {
    PrefixesOfRange { left: (first <= last).then_some((first, last)) }
}

/// Gives the fewest prefixes that cover a prefix without the holes inside it, ascending. The holes are
/// sorted; others than those inside don't matter. Gives nothing if the prefix is a hole itself. O(k·b) for k
/// holes inside and b bits.
#[cfg(feature = "text")]
pub(crate) fn prefix_without<A: Address>(
    prefix: Prefix<A>,
    holes: &[Prefix<A>],
    give: &mut impl FnMut(Prefix<A>),
) {
    let start = holes.partition_point(|&hole| hole < prefix);
    let len = holes[start..].partition_point(|hole| hole.address() <= prefix.last());
    let inside = &holes[start..start + len];
    match inside.first() {
        None => give(prefix),
        Some(&first) if first == prefix => {}
        Some(_) => {
            let lower = Prefix::around(prefix.address(), prefix.len() + 1);
            prefix_without(lower, inside, give);
            prefix_without(lower.sibling().expect("a half has another"), inside, give);
        }
    }
}

/// The prefixes of a range, made by [`prefixes_of_range`].
#[derive(Clone, Debug)]
pub struct PrefixesOfRange<A> {
    /// The first and the last address that no prefix covers so far.
    left: Option<(A, A)>,
}

impl<A: Address> Iterator for PrefixesOfRange<A> {
    type Item = Prefix<A>;

    fn next(&mut self) -> Option<Prefix<A>> {
        let (first, last) = self.left?;
        let first_bits = first.to_u128();
        // An address of `zeros` zero bits at its end starts prefixes with up to that many host bits.
        let zeros = first_bits.trailing_zeros().min(u32::from(A::BITS));
        // 2^128 addresses do not fit in a u128: the number of them less one does.
        let more = last.to_u128() - first_bits;
        let fitting = more.checked_add(1).map_or(u128::BITS, u128::ilog2);
        let host_bits = u8::try_from(zeros.min(fitting)).expect("at most 128 bits");
        let prefix = Prefix::around(first, A::BITS - host_bits);
        self.left = prefix.last().next().filter(|&next| next <= last).map(|next| (next, last));
        Some(prefix)
    }
}

impl<A: Address> FusedIterator for PrefixesOfRange<A> {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::address::{V4, V6};

    /// Checks the promises: exact, ascending, disjoint, and no two prefixes that one would replace.
    fn check<A: Address>(first: A, last: A) {
        let prefixes: Vec<_> = prefixes_of_range(first, last).collect();
        if last < first {
            assert!(prefixes.is_empty());
            return;
        }
        assert_eq!(prefixes[0].address(), first);
        assert_eq!(prefixes[prefixes.len() - 1].last(), last);
        for pair in prefixes.windows(2) {
            assert_eq!(pair[0].last().next(), Some(pair[1].address()));
        }
        for prefix in &prefixes {
            let is_whole =
                prefix.parent().is_some_and(|parent| first <= parent.address() && parent.last() <= last);
            assert!(!is_whole, "{prefix} could be shorter");
        }
        assert!(prefixes.len() <= (2 * usize::from(A::BITS) - 2).max(1));
    }

    proptest! {
        #[test]
        fn ranges_are_covered_exactly(
            v4: [u32; 2], v6: [u128; 2], near in 0u32..70_000, shift in 0u32..128,
        ) {
            check(V4(v4[0]), V4(v4[1]));
            check(V4(v4[0]), V4(v4[0].saturating_add(near)));
            check(V6(v6[0]), V6(v6[1]));
            check(V6(v6[0] >> shift << shift), V6(v6[0] | ((1 << shift) - 1)));
        }
    }

    #[test]
    fn the_ends_of_the_address_space() {
        check(V4(0), V4(u32::MAX));
        check(V6(0), V6(u128::MAX));
        check(V4(1), V4(u32::MAX - 1));
        check(V6(1), V6(u128::MAX - 1));
        check(V6(1), V6(u128::MAX));
        check(V4(u32::MAX), V4(u32::MAX));
        check(V4(5), V4(4));
        assert_eq!(prefixes_of_range(V6(1), V6(u128::MAX - 1)).count(), 254);
        assert!(prefixes_of_range(V4(0), V4(u32::MAX)).eq([Prefix::DEFAULT]));
    }
}
