//! [`Routes`]: the routes of a table, to look at.

use wirespeed_fib::{Address, NextHop, Prefix, Rib};

use crate::key::Key;
use crate::match_ids::{MatchIds, Pairs};

/// The routes of a table: exact and longest match with the prefix that matched, the prefixes that cover a
/// prefix or that it covers, and iteration in order.
///
/// Methods take a [`Prefix`] or a network of `ipnet`. One with host bits, such as `10.1.2.3/8`, is no prefix:
/// nothing is found for it. `trunc` of `ipnet` clears them.
///
/// ```
/// use wirespeed::prelude::*;
///
/// let routes = [("10.0.0.0/8", 1), ("10.1.0.0/16", 2)].map(|(p, n)| (p.parse::<Ipv4Net>().unwrap(), NextHop(n)));
/// let table = Ipv4Table::builder().routes(routes).build()?;
/// let all: Vec<_> = table.routes().lookup_all(Ipv4Addr::new(10, 1, 2, 3)).collect();
/// assert_eq!(all, [("10.0.0.0/8".parse()?, NextHop(1)), ("10.1.0.0/16".parse()?, NextHop(2))]);
/// assert_eq!(table.routes().get("10.1.0.0/16".parse::<Ipv4Net>()?), Some(NextHop(2)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Routes<'a, A: Address> {
    rib: &'a Rib<A>,
    ids: Option<&'a MatchIds>,
}

impl<'a, A: Address> From<&'a Rib<A>> for Routes<'a, A> {
    fn from(rib: &'a Rib<A>) -> Self {
        Self { rib, ids: None }
    }
}

impl<'a, A: Address> Routes<'a, A> {
    /// The routes of a model, whose next hops may be numbers of pairs.
    pub(crate) fn of(rib: &'a Rib<A>, ids: Option<&'a MatchIds>) -> Self {
        Self { rib, ids }
    }

    /// The pairs that the model's next hops stand for, if they are numbers of pairs.
    pub(crate) fn ids(self) -> Option<&'a MatchIds> {
        self.ids
    }

    /// Number of prefixes.
    #[must_use]
    pub fn len(self) -> usize {
        self.rib.len()
    }

    /// Whether there is no prefix.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.rib.is_empty()
    }

    /// Number of prefixes of each length.
    #[must_use]
    pub fn by_length(self) -> &'a [usize] {
        self.rib.by_length()
    }

    /// The next hop of a prefix itself.
    #[must_use]
    pub fn get(self, prefix: impl TryInto<Prefix<A>>) -> Option<NextHop> {
        let next_hop = self.rib.get(prefix.try_into().ok()?)?;
        Some(self.next_hop(next_hop))
    }

    /// The longest prefix that contains the address, with its next hop.
    #[must_use]
    pub fn longest_match(self, address: impl Key<A>) -> Option<(Prefix<A>, NextHop)> {
        self.rib.longest_match(address.address()).map(|route| self.route(route))
    }

    /// Every prefix that contains the address, with its next hop, shortest first. The last one is the
    /// longest match.
    pub fn lookup_all(self, address: impl Key<A>) -> impl Iterator<Item = (Prefix<A>, NextHop)> + 'a {
        self.covering(Prefix::around(address.address(), A::BITS))
    }

    /// The longest other prefix that covers `prefix`, with its next hop.
    #[must_use]
    pub fn cover(self, prefix: impl TryInto<Prefix<A>>) -> Option<(Prefix<A>, NextHop)> {
        self.rib.cover(prefix.try_into().ok()?).map(|route| self.route(route))
    }

    /// The routes that cover `prefix`, shortest first, its own route included.
    pub fn covering(
        self,
        prefix: impl TryInto<Prefix<A>>,
    ) -> impl Iterator<Item = (Prefix<A>, NextHop)> + 'a {
        let prefix = prefix.try_into().ok();
        prefix
            .into_iter()
            .flat_map(move |prefix| self.rib.covering(prefix))
            .map(move |route| self.route(route))
    }

    /// The routes that `prefix` covers, in order, its own route included.
    pub fn covered(self, prefix: impl TryInto<Prefix<A>>) -> impl Iterator<Item = (Prefix<A>, NextHop)> + 'a {
        let prefix = prefix.try_into().ok();
        prefix
            .into_iter()
            .flat_map(move |prefix| self.rib.covered(prefix))
            .map(move |route| self.route(route))
    }

    /// All routes in order: by address, a shorter prefix before those that it covers.
    pub fn iter(self) -> impl Iterator<Item = (Prefix<A>, NextHop)> + 'a {
        self.rib.iter().map(move |route| self.route(route))
    }

    /// A copy of the routes. O(prefixes).
    #[must_use]
    pub fn to_rib(self) -> Rib<A> {
        match self.ids {
            None => self.rib.clone(),
            Some(_) => self.iter().collect(),
        }
    }

    fn pairs(self) -> Option<Pairs<'a>> {
        self.ids.map(MatchIds::pairs)
    }

    fn next_hop(self, found: NextHop) -> NextHop {
        self.pairs().map_or(found, |pairs| pairs.pair(found).0)
    }

    fn route(self, (prefix, found): (Prefix<A>, NextHop)) -> (Prefix<A>, NextHop) {
        (prefix, self.next_hop(found))
    }
}
