//! [`Lookup`]: the data plane of an engine.

#[cfg(feature = "parallel")]
use rayon::prelude::*;
use wirespeed_image::Step;

use crate::domain::{Domain, Keys};

/// Lookups in a compiled table.
pub trait Lookup<D: Domain>: Send + Sync {
    /// The result of a key.
    fn lookup(&self, key: D::Key<'_>) -> D::Found;

    /// Writes the result of each key to the same index of `results`. Much faster than single lookups, because
    /// many keys are under way at once; batches of 1,000 and more are fastest.
    ///
    /// Panics when the lengths differ.
    fn lookup_batch(&self, keys: D::Keys<'_>, results: &mut [D::Result]);

    /// Writes the [`lookup`](Self::lookup) of each key to the same index of `found`.
    ///
    /// Panics when the lengths differ.
    fn match_batch(&self, keys: D::Keys<'_>, found: &mut [D::Found]) {
        assert_eq!(keys.len(), found.len(), "a match for each key");
        D::match_each(self, keys, found);
    }

    /// Looks up like [`lookup_batch`](Self::lookup_batch), on all threads of the caller's `rayon` pool.
    /// Useful from about 10,000 keys on.
    ///
    /// Panics when the lengths differ.
    #[cfg(feature = "parallel")]
    fn par_lookup_batch(&self, keys: D::Keys<'_>, results: &mut [D::Result]) {
        on_all_cores(keys, results, D::LEAST_PART, |keys, results| self.lookup_batch(keys, results));
    }

    /// The shape of the table as a line of text, if it depends on the entries.
    fn shape(&self) -> Option<String> {
        None
    }

    /// The load of the arrays that hold entries. Empty if the table has no such arrays. O(table).
    fn loads(&self) -> Vec<Load> {
        Vec::new()
    }

    /// The expected share of keys that pass a filter without matching it, by the filter's formula, on average
    /// over the filters. `None` without filters. O(table).
    fn expected_false_positives(&self) -> Option<f64> {
        None
    }

    /// The steps of one lookup as text: each element that is read, in order.
    fn explain(&self, key: D::Key<'_>) -> Vec<Step>;
}

/// The load of an array of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// The name of its elements, in the plural.
    pub what: &'static str,
    /// The number of elements.
    pub places: u64,
    /// The number of elements in use.
    pub taken: u64,
}

/// Looks up parts of a batch on the threads of the caller's `rayon` pool, each by `lookup`. Each part except
/// the last has at least `least` keys. For tables use [`Lookup::par_lookup_batch`]. Panics when the lengths
/// differ.
#[cfg(feature = "parallel")]
pub fn on_all_cores<K: Keys, R: Send>(
    keys: K,
    results: &mut [R],
    least: usize,
    lookup: impl Fn(K, &mut [R]) + Sync,
) {
    on_all_cores_by(keys, results, least, &lookup);
}

/// Looks up for [`on_all_cores`]. It is compiled once for all tables of a domain.
#[cfg(feature = "parallel")]
fn on_all_cores_by<K: Keys, R: Send>(
    keys: K,
    results: &mut [R],
    least: usize,
    lookup: &(dyn Fn(K, &mut [R]) + Sync),
) {
    assert_eq!(keys.len(), results.len(), "a result for each key");
    // A few parts for each thread balance out a slow one.
    let part = keys.len().div_ceil(4 * rayon::current_num_threads()).max(least);
    results.par_chunks_mut(part).enumerate().for_each(|(at, results)| {
        let from = at * part;
        lookup(keys.part(from..from + results.len()), results);
    });
}
