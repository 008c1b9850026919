//! Origin validation of routes by the RPKI (RFC 6811): is an AS allowed to announce a prefix?
//!
//! ```text
//! route 10.0.0.0/16 of AS 1          VRP  10.0.0.0/8  to /16  AS 1   matches: valid
//!                                    VRP  10.0.0.0/8  to /12  AS 1   covers:  invalid, it is too long
//!                                    VRP  10.0.0.0/12 to /24  AS 2   covers:  invalid, it is of another AS
//!                                    VRP  11.0.0.0/8  to /24  AS 1   nothing: not found
//! ```
//!
//! A validated ROA payload ([`Vrp`]) is a prefix, the longest length that may be announced of it, and the AS
//! that may do it. A route is valid if any VRP that covers its prefix matches, invalid if VRPs cover it and
//! none matches, and not found if no VRP covers it. A VRP of AS 0 matches no route (RFC 6483, section 4), and
//! neither does any VRP match a route whose origin is a set of ASes.
//!
//! ```
//! use wirespeed_fib::rpki::{Mismatch, Validity, Vrp, VrpSet};
//! use wirespeed_fib::V4;
//!
//! let vrps: VrpSet<V4> = [Vrp::new("10.0.0.0/8".parse()?, 16, 1)?].into_iter().collect();
//! assert_eq!(vrps.validate("10.9.0.0/16".parse()?, "AS1".parse()?), Validity::Valid);
//! assert_eq!(vrps.validate("10.9.9.0/24".parse()?, "1".parse()?), Validity::Invalid(Mismatch::Length));
//! assert_eq!(vrps.validate("11.0.0.0/8".parse()?, "1".parse()?), Validity::NotFound);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use crate::address::{Address, Family, V4, V6};
use crate::next_hop::NextHop;
use crate::prefix::Prefix;
use crate::rib::Rib;

/// A validated ROA payload: an AS may announce a prefix, and what it covers up to a length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Vrp<A: Address> {
    prefix: Prefix<A>,
    asn: u32,
    max_len: u8,
}

impl<A: Address> Vrp<A> {
    /// Makes a payload. Fails unless the longest length is from the prefix's length to the family's.
    pub fn new(prefix: Prefix<A>, max_len: u8, asn: u32) -> Result<Self, MaxLengthError> {
        if max_len < prefix.len() || max_len > A::BITS {
            return Err(MaxLengthError { max_len: max_len.into(), len: prefix.len(), family: A::FAMILY });
        }
        Ok(Self { prefix, asn, max_len })
    }

    /// The prefix.
    pub fn prefix(self) -> Prefix<A> {
        self.prefix
    }

    /// The longest length that may be announced.
    pub fn max_len(self) -> u8 {
        self.max_len
    }

    /// The AS that may announce it; 0 if none may.
    pub fn asn(self) -> u32 {
        self.asn
    }

    /// Whether the payload allows a route that it covers.
    fn allows(self, len: u8, origin: Origin) -> bool {
        self.is_of(origin) && len <= self.max_len
    }

    /// Whether the payload is of a route's origin. No route has AS 0.
    fn is_of(self, origin: Origin) -> bool {
        self.asn != 0 && origin == Origin::As(self.asn)
    }
}

/// A longest length that is shorter than its prefix, or longer than the family's addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a longest length of {max_len} is not from {len}, the prefix's, to {}, the longest for {family}", family.bits())]
pub struct MaxLengthError {
    /// The longest length.
    pub max_len: u32,
    /// The length of the prefix.
    pub len: u8,
    /// The family of the prefix.
    pub family: Family,
}

/// The AS that originates a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// An AS.
    As(u32),
    /// No single AS: the path ends in a set. Such a route is never valid.
    None,
}

impl FromStr for Origin {
    type Err = NoOrigin;

    /// Parses `13335` or `AS13335`, and `{1,2}` or `1,2`, a set of ASes.
    fn from_str(text: &str) -> Result<Self, NoOrigin> {
        if let Some(asn) = asn(text) {
            return Ok(Self::As(asn));
        }
        let inner = text.strip_prefix('{').map_or(Some(text), |text| text.strip_suffix('}'));
        let is_set = inner.is_some_and(|set| set.split(',').all(|one| asn(one).is_some()));
        if is_set { Ok(Self::None) } else { Err(NoOrigin) }
    }
}

/// An AS number, as `13335` or `AS13335`.
pub(crate) fn asn(text: &str) -> Option<u32> {
    let digits = match text.get(..2) {
        Some(start) if start.eq_ignore_ascii_case("as") => &text[2..],
        _ => text,
    };
    digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
}

/// A text that is neither an AS number nor a set of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an AS number or a set of them")]
pub struct NoOrigin;

/// The state of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Validity {
    /// A payload covers and matches it.
    Valid,
    /// Payloads cover it, and none matches.
    Invalid(Mismatch),
    /// No payload covers it.
    NotFound,
}

/// The reason why payloads that cover a route do not match it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mismatch {
    /// None is of the route's origin.
    Origin,
    /// One is of the route's origin, and the route is longer than it allows.
    Length,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Origin => "origin",
            Self::Length => "length",
        })
    }
}

/// The payloads of one family, by prefix.
#[derive(Clone, Debug)]
pub struct VrpSet<A: Address> {
    /// All payloads, ascending by prefix, each once.
    all: Vec<Vrp<A>>,
    /// The index of the group of a prefix, plus one, since no route has the next hop 0.
    by_prefix: Rib<A>,
    groups: Vec<Range<usize>>,
}

impl<A: Address> Default for VrpSet<A> {
    fn default() -> Self {
        Self::from_iter([])
    }
}

impl<A: Address> FromIterator<Vrp<A>> for VrpSet<A> {
    fn from_iter<I: IntoIterator<Item = Vrp<A>>>(vrps: I) -> Self {
        let mut all: Vec<_> = vrps.into_iter().collect();
        all.sort_unstable();
        all.dedup();
        let (mut by_prefix, mut groups) = (Rib::new(), Vec::new());
        let mut start = 0;
        for group in all.chunk_by(|one, other| one.prefix == other.prefix) {
            groups.push(start..start + group.len());
            start += group.len();
            // 2^32 distinct prefixes with their payloads do not fit in memory.
            let index = u32::try_from(groups.len()).expect("fewer than 2^32 prefixes");
            by_prefix.insert(group[0].prefix, NextHop(index));
        }
        Self { all, by_prefix, groups }
    }
}

impl<A: Address> VrpSet<A> {
    /// The number of distinct payloads.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// All payloads, by prefix.
    pub fn iter(&self) -> impl Iterator<Item = Vrp<A>> + '_ {
        self.all.iter().copied()
    }

    /// The payloads whose prefix covers a prefix.
    pub fn covering(&self, prefix: Prefix<A>) -> impl Iterator<Item = Vrp<A>> + '_ {
        self.by_prefix.covering(prefix).flat_map(|(_, NextHop(index))| {
            // The table holds the indexes of groups plus one, and u32 fits in usize on all targets.
            let group = self.groups[index as usize - 1].clone();
            self.all[group].iter().copied()
        })
    }

    /// The state of a route by RFC 6811. O(payloads that cover it).
    pub fn validate(&self, prefix: Prefix<A>, origin: Origin) -> Validity {
        let mut state = Validity::NotFound;
        for vrp in self.covering(prefix) {
            if vrp.allows(prefix.len(), origin) {
                return Validity::Valid;
            }
            state = match state {
                Validity::Invalid(Mismatch::Length) => state,
                _ if vrp.is_of(origin) => Validity::Invalid(Mismatch::Length),
                _ => Validity::Invalid(Mismatch::Origin),
            };
        }
        state
    }
}

/// The payloads of both families.
#[derive(Clone, Debug, Default)]
pub struct Vrps {
    /// IPv4.
    pub v4: VrpSet<V4>,
    /// IPv6.
    pub v6: VrpSet<V6>,
    /// The trust anchors of the payloads, as far as they are known. A validation does not ask for them.
    pub anchors: TrustAnchors,
}

/// The trust anchors that payloads come from: `apnic`, `ripe`. A payload may come from several.
#[derive(Clone, Debug, Default)]
pub struct TrustAnchors {
    names: Vec<String>,
    v4: Vec<(Vrp<V4>, usize)>,
    v6: Vec<(Vrp<V6>, usize)>,
}

impl TrustAnchors {
    /// Makes the anchors of payloads by their names' places.
    #[cfg(feature = "text")]
    pub(crate) fn new(
        names: Vec<String>,
        mut v4: Vec<(Vrp<V4>, usize)>,
        mut v6: Vec<(Vrp<V6>, usize)>,
    ) -> Self {
        let by_name = |one: usize, other: usize| names[one].cmp(&names[other]);
        v4.sort_unstable_by(|one, other| one.0.cmp(&other.0).then_with(|| by_name(one.1, other.1)));
        v6.sort_unstable_by(|one, other| one.0.cmp(&other.0).then_with(|| by_name(one.1, other.1)));
        v4.dedup();
        v6.dedup();
        Self { names, v4, v6 }
    }

    /// The anchors of a payload of IPv4, in alphabetical order. None if none is known.
    pub fn of_v4(&self, vrp: Vrp<V4>) -> impl Iterator<Item = &str> {
        Self::of(&self.v4, vrp).map(|&(_, name)| &*self.names[name])
    }

    /// The anchors of a payload of IPv6, like [`of_v4`](Self::of_v4).
    pub fn of_v6(&self, vrp: Vrp<V6>) -> impl Iterator<Item = &str> {
        Self::of(&self.v6, vrp).map(|&(_, name)| &*self.names[name])
    }

    fn of<A: Address>(all: &[(Vrp<A>, usize)], vrp: Vrp<A>) -> impl Iterator<Item = &(Vrp<A>, usize)> {
        let first = all.partition_point(|(other, _)| *other < vrp);
        all[first..].iter().take_while(move |(other, _)| *other == vrp)
    }
}

impl Vrps {
    /// The number of distinct payloads.
    pub fn len(&self) -> usize {
        self.v4.len() + self.v6.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of payloads whose trust anchor is not known.
    pub fn without_anchor(&self) -> usize {
        let v4 = self.v4.iter().filter(|&vrp| self.anchors.of_v4(vrp).next().is_none()).count();
        v4 + self.v6.iter().filter(|&vrp| self.anchors.of_v6(vrp).next().is_none()).count()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn set(vrps: &[(&str, u8, u32)]) -> VrpSet<V4> {
        vrps.iter().map(|&(prefix, max, asn)| Vrp::new(prefix.parse().unwrap(), max, asn).unwrap()).collect()
    }

    #[test]
    fn states_by_the_rfc() {
        let vrps = set(&[
            ("10.0.0.0/8", 16, 1),
            ("10.0.0.0/8", 8, 2),
            ("10.1.0.0/16", 24, 3),
            ("10.0.0.0/8", 16, 1),
            ("192.0.2.0/24", 32, 0),
            ("198.51.100.0/24", 24, 0),
            ("198.51.100.0/24", 24, 7),
        ]);
        assert_eq!(vrps.len(), 6);
        let (wrong, long) = (Validity::Invalid(Mismatch::Origin), Validity::Invalid(Mismatch::Length));
        for (prefix, origin, state) in [
            ("10.0.0.0/8", "1", Validity::Valid),
            ("10.0.0.0/8", "AS2", Validity::Valid),
            ("10.0.0.0/8", "3", wrong),
            ("10.2.0.0/16", "1", Validity::Valid),
            ("10.2.0.0/17", "1", long),
            ("10.2.0.0/16", "2", long),
            ("10.1.2.0/24", "3", Validity::Valid),
            ("10.1.2.0/24", "1", long),
            ("10.1.2.0/24", "9", wrong),
            ("10.0.0.0/7", "1", Validity::NotFound),
            ("11.0.0.0/8", "1", Validity::NotFound),
            ("192.0.2.0/24", "0", wrong),
            ("192.0.2.0/24", "5", wrong),
            ("198.51.100.0/24", "7", Validity::Valid),
            ("10.0.0.0/8", "{1,2}", wrong),
            ("11.0.0.0/8", "1,2", Validity::NotFound),
        ] {
            let (route, origin) = (prefix.parse().unwrap(), origin.parse().unwrap());
            assert_eq!(vrps.validate(route, origin), state, "{prefix} {origin:?}");
        }
    }

    #[test]
    fn lengths_and_origins_are_checked() {
        let prefix: Prefix<V4> = "10.0.0.0/8".parse().unwrap();
        assert!(Vrp::new(prefix, 7, 1).is_err() && Vrp::new(prefix, 33, 1).is_err());
        assert_eq!(
            Vrp::new(prefix, 7, 1).unwrap_err().to_string(),
            "a longest length of 7 is not from 8, the prefix's, to 32, the longest for IPv4"
        );
        for (text, origin) in [("as1", Some(Origin::As(1))), ("4294967295", Some(Origin::As(u32::MAX)))] {
            assert_eq!(text.parse().ok(), origin);
        }
        for bad in ["", "AS", "4294967296", "-1", "+1", "{1", "1,", "192.0.2.1", "\u{e9}1"] {
            assert_eq!(bad.parse::<Origin>(), Err(NoOrigin), "{bad}");
        }
    }

    proptest! {
        /// Holds the set against the definition, payload by payload.
        #[test]
        fn agrees_with_the_definition(
            vrps in prop::collection::vec((0u32..8, 0u8..=3, 0u8..=3, 0u32..3), 0..12),
            bits in 0u32..8, len in 0u8..=5, origin in 0u32..3,
        ) {
            let vrps: Vec<Vrp<V4>> = vrps
                .into_iter()
                .map(|(bits, len, more, asn)| Vrp::new(Prefix::around(V4(bits << 29), len), len + more, asn).unwrap())
                .collect();
            let route = Prefix::around(V4(bits << 29), len);
            let covering: Vec<_> = vrps.iter().filter(|vrp| vrp.prefix.covers(route)).collect();
            let matches = |vrp: &&Vrp<V4>| vrp.asn == origin && origin != 0 && len <= vrp.max_len;
            let found = vrps.iter().copied().collect::<VrpSet<V4>>().validate(route, Origin::As(origin));
            prop_assert_eq!(found == Validity::NotFound, covering.is_empty());
            prop_assert_eq!(found == Validity::Valid, covering.into_iter().any(|vrp| matches(&vrp)));
        }
    }
}
