//! `prefix-trie`: a tree bitmap of five-bit strides.

use prefix_trie::{Prefix, PrefixMap};
use wirespeed_fib::{NextHop, Rib, Update};

use super::{Native, index, or_none};
use crate::table::{Contestant, one_by_one};

/// `PrefixMap` with the integer and length as prefix.
pub struct PrefixTrie<A: Native>(PrefixMap<(A::Int, u8), u32>)
where
    (A::Int, u8): Prefix;

impl<A: Native> PrefixTrie<A>
where
    (A::Int, u8): Prefix,
{
    /// Inserts all routes.
    pub fn build(rib: &Rib<A>) -> Self {
        Self(
            rib.iter()
                .map(|(prefix, next_hop)| ((prefix.address().int(), prefix.len()), next_hop.0))
                .collect(),
        )
    }
}

impl<A: Native> Contestant<A> for PrefixTrie<A>
where
    (A::Int, u8): Prefix,
{
    one_by_one!(A);

    #[inline]
    fn one(&self, key: A) -> NextHop {
        or_none(self.0.get_lpm(&(key.int(), A::BITS)).map(|(_, value)| value))
    }

    fn update(&mut self, updates: &[Update<A>]) -> bool {
        for update in updates {
            let prefix = update.prefix();
            let prefix = (prefix.address().int(), prefix.len());
            match update {
                Update::Announce { next_hop, .. } => self.0.insert(prefix, index(*next_hop)),
                Update::Withdraw { .. } => self.0.remove(&prefix),
            };
        }
        true
    }
}
