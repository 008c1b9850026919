//! [`LabelCounts`]: the claims on labels, and the tables that use them.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::mem;
use std::sync::PoisonError;

use wirespeed_fib::NextHop;

use crate::sync::{Mutex, MutexGuard};

/// The uses of a set of labels.
#[derive(Default)]
pub(crate) struct LabelCounts(Mutex<Counts>);

#[derive(Default)]
struct Counts {
    /// The indexes that have a claim or a use.
    of: HashMap<NextHop, Count>,
    /// The indexes that lost their last claim or use, and have no new one.
    ended: BTreeSet<NextHop>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Count {
    /// Calls of `intern` whose index is not in a table yet.
    claims: usize,
    /// Tables with routes to the index.
    tables: usize,
}

impl LabelCounts {
    /// Keeps an index that may have no route.
    pub(crate) fn claim(&self, next_hop: NextHop) {
        self.counts().change(next_hop, |count| count.claims += 1);
    }

    /// Takes a claim back.
    pub(crate) fn release(&self, next_hop: NextHop) {
        self.counts().change(next_hop, |count| count.claims = count.claims.saturating_sub(1));
    }

    /// Whether an index has a claim or a use.
    pub(crate) fn is_used(&self, next_hop: NextHop) -> bool {
        self.counts().of.contains_key(&next_hop)
    }

    /// Takes the indexes that have ended since the last call.
    pub(crate) fn take_ended(&self) -> BTreeSet<NextHop> {
        mem::take(&mut self.counts().ended)
    }

    /// Counts the call of a table: `joined` and `left` are the indexes that got their first route there or
    /// lost their last one, `settled` those whose claims are settled.
    pub(crate) fn tell(&self, joined: &[NextHop], left: &[NextHop], settled: impl Iterator<Item = NextHop>) {
        let mut counts = self.counts();
        // Before the others: an index that moves from a claim or a route to another has not ended.
        joined.iter().for_each(|&next_hop| counts.change(next_hop, |count| count.tables += 1));
        for next_hop in settled {
            counts.change(next_hop, |count| count.claims = count.claims.saturating_sub(1));
        }
        for &next_hop in left {
            counts.change(next_hop, |count| count.tables = count.tables.saturating_sub(1));
        }
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        // No code of the user's runs under this lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counts {
    fn change(&mut self, next_hop: NextHop, change: impl FnOnce(&mut Count)) {
        match self.of.entry(next_hop) {
            Entry::Occupied(mut entry) => {
                change(entry.get_mut());
                if *entry.get() == Count::default() {
                    entry.remove();
                    self.ended.insert(next_hop);
                }
            }
            Entry::Vacant(entry) => {
                let mut count = Count::default();
                change(&mut count);
                if count != Count::default() {
                    entry.insert(count);
                    self.ended.remove(&next_hop);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::iter::empty;

    use super::*;

    const A: NextHop = NextHop(1);
    const B: NextHop = NextHop(2);

    fn ended(counts: &LabelCounts) -> Vec<NextHop> {
        counts.take_ended().into_iter().collect()
    }

    #[test]
    fn an_index_ends_with_its_last_claim_or_use() {
        let counts = LabelCounts::default();
        counts.claim(A);
        counts.claim(A);
        counts.tell(&[A], &[], [A].into_iter());
        counts.tell(&[B], &[A], empty());
        assert!(counts.is_used(A) && ended(&counts).is_empty());
        counts.release(A);
        assert_eq!((counts.is_used(A), ended(&counts)), (false, vec![A]));
        counts.release(A);
        counts.tell(&[], &[B], empty());
        assert_eq!((ended(&counts), ended(&counts)), (vec![B], vec![]));
    }

    #[test]
    fn an_index_that_is_used_again_has_not_ended() {
        let counts = LabelCounts::default();
        counts.tell(&[A, B], &[], empty());
        counts.tell(&[], &[A, B], empty());
        counts.claim(A);
        assert_eq!(ended(&counts), [B]);
        // A move in one call: from a claim to a use, and from one place to another.
        counts.tell(&[A], &[A], [A].into_iter());
        assert_eq!(ended(&counts), [A]);
        counts.claim(A);
        counts.tell(&[A], &[], [A].into_iter());
        assert!(ended(&counts).is_empty());
    }
}
