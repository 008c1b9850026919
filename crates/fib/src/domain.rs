//! Addresses as a [`Domain`]: the types [`V4`] and [`V6`] are the domains, and a [`Rib`] is their model.

use std::ops::Range;

use wirespeed_table::{BuildError, Domain, Live, Lookup, Model, Undone};

use crate::address::{Address, V4, V6};
use crate::next_hop::NextHop;
use crate::prefix::Prefix;
use crate::rib::Rib;
use crate::update::Update;

/// A routing table that takes updates while any number of readers look up.
pub type LiveTable<A, E> = Live<A, E>;

macro_rules! domain {
    ($address:ty) => {
        impl Domain for $address {
            type Key<'k> = Self;
            type Keys<'k> = &'k [Self];
            type Found = NextHop;
            type Result = NextHop;
            type Source = Rib<Self>;
            type Model = Rib<Self>;
            type Update = Update<Self>;
            type Change = Prefix<Self>;
            type Error = BuildError;

            const LEAST_PART: usize = 2_048;

            fn match_each<L: Lookup<Self> + ?Sized>(table: &L, keys: &[Self], found: &mut [NextHop]) {
                table.lookup_batch(keys, found);
            }
        }
    };
}

domain!(V4);
domain!(V6);

/// Engines get a prefix that changed several times only once. They get prefixes in order, which uses the
/// caches better.
impl<A: Address> Model<A> for Rib<A> {
    fn source(&self) -> &Self {
        self
    }

    fn len(&self) -> usize {
        Self::len(self)
    }

    fn memory_usage(&self) -> u64 {
        Self::memory_usage(self) as u64
    }

    fn start(&mut self) {
        self.shrink_to_fit();
    }

    fn apply(&mut self, updates: &[&Update<A>], range: Range<usize>) -> usize {
        self.apply_noted(&updates[range])
    }

    fn take_changed(&mut self, changed: &mut Vec<Prefix<A>>) {
        changed.extend(self.noted());
        changed.sort_unstable();
        changed.dedup();
    }

    fn settle(&mut self) {
        self.forget();
    }

    fn undo(&mut self, _: &mut Vec<Prefix<A>>) -> Undone {
        self.undo_noted();
        Undone::Retold
    }

    fn reach(&self) -> u8 {
        let longest = self.by_length().iter().rposition(|&count| count > 0).unwrap_or(0);
        u8::try_from(longest).expect("a length")
    }

    fn reach_of(changed: &[Prefix<A>]) -> u8 {
        changed.iter().map(|prefix| prefix.len()).max().unwrap_or(0)
    }
}
