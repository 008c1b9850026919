//! `poptrie`: six-bit strides with population counts.

use poptrie::Address as Bits;
use wirespeed_fib::{NextHop, Rib, Update};

use super::{Native, index, or_none};
use crate::table::{Contestant, one_by_one};

/// `poptrie::Poptrie` with the integer and length as prefix.
pub struct Poptrie<A: Native>(poptrie::Poptrie<(A::Int, u8), u32>)
where
    A::Int: Bits;

impl<A: Native> Poptrie<A>
where
    A::Int: Bits,
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

impl<A: Native> Contestant<A> for Poptrie<A>
where
    A::Int: Bits,
{
    one_by_one!(A);

    #[inline]
    fn one(&self, key: A) -> NextHop {
        or_none(self.0.lookup(key.int()))
    }

    fn update(&mut self, updates: &[Update<A>]) -> bool {
        for update in updates {
            let prefix = update.prefix();
            let prefix = (prefix.address().int(), prefix.len());
            match update {
                Update::Announce { next_hop, .. } => self.0.insert(prefix, index(*next_hop)),
                Update::Withdraw { .. } => self.0.remove(prefix),
            };
        }
        true
    }
}
