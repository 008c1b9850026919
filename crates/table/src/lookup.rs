//! [`Lookup`]: the data plane of an engine.

#[cfg(feature = "parallel")]
use rayon::prelude::*;
use wirespeed_image::Step;

use crate::domain::{Domain, Keys};

/// Lookups in a compiled table.
pub trait Lookup<D: Domain>: Send + Sync {
    /// What the table has for a key.
    fn lookup(&self, key: D::Key<'_>) -> D::Found;

    /// The result of each key's [`lookup`](Self::lookup) into the same place of `results`. Much faster than
    /// one by one, as many keys are under way at once; batches of 1,000 and more get the most out of it.
    ///
    /// Panics when the lengths differ.
    fn lookup_batch(&self, keys: D::Keys<'_>, results: &mut [D::Result]);

    /// What each key's [`lookup`](Self::lookup) finds, into the same place of `found`.
    ///
    /// Panics when the lengths differ.
    fn match_batch(&self, keys: D::Keys<'_>, found: &mut [D::Found]) {
        assert_eq!(keys.len(), found.len(), "a match for each key");
        D::match_each(self, keys, found);
    }

    /// [`lookup_batch`](Self::lookup_batch) on every core: parts of the batch on the threads of the `rayon`
    /// pool that the caller is in. Worth it from some ten thousand keys on; results are in order as ever.
    ///
    /// Panics when the lengths differ.
    #[cfg(feature = "parallel")]
    fn par_lookup_batch(&self, keys: D::Keys<'_>, results: &mut [D::Result]) {
        on_all_cores(keys, results, D::LEAST_PART, |keys, results| self.lookup_batch(keys, results));
    }

    /// The shape of the table, in a line for people, if it depends on the entries.
    fn shape(&self) -> Option<String> {
        None
    }

    /// The arrays that entries lie in; none where there is nothing like it. O(table).
    fn loads(&self) -> Vec<Load> {
        Vec::new()
    }

    /// The share of keys that get past a filter which they don't match, as its formula has it, on average
    /// over the filters. `None` without filters. O(table).
    fn expected_false_positives(&self) -> Option<f64> {
        None
    }

    /// The steps of one lookup, for people: each element that is read, in order.
    fn explain(&self, key: D::Key<'_>) -> Vec<Step>;
}

/// How full an array of a table is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// The name of its places, in the plural.
    pub what: &'static str,
    /// Places that there are.
    pub places: u64,
    /// Places that are taken.
    pub taken: u64,
}

/// Looks up parts of a batch on the threads of the `rayon` pool that the caller is in, each by `lookup`; none
/// has fewer than `least` keys but the last. A table does it by [`Lookup::par_lookup_batch`]. Panics when the
/// lengths differ.
#[cfg(feature = "parallel")]
pub fn on_all_cores<K: Keys, R: Send>(
    keys: K,
    results: &mut [R],
    least: usize,
    lookup: impl Fn(K, &mut [R]) + Sync,
) {
    assert_eq!(keys.len(), results.len(), "a result for each key");
    // A few parts a thread even out what slows one of them down.
    let part = keys.len().div_ceil(4 * rayon::current_num_threads()).max(least);
    results.par_chunks_mut(part).enumerate().for_each(|(at, results)| {
        let from = at * part;
        lookup(keys.part(from..from + results.len()), results);
    });
}
