//! Lookups on a CPU, alone and in batches: those of `v4`, split at bit 16. Hot blocks are for GPUs: where
//! chunks lie in a cache, an element is one read and a block would be one, too.

use wirespeed_fib::{Lookup, NextHop, Step, V4, VectorLevel};
use wirespeed_image::Table;

use super::layout::{At16, FoldHotTable};
use crate::v4::lookup::{batch, explain, lookup, with_widths};

impl Lookup<V4> for FoldHotTable {
    #[inline]
    fn lookup(&self, address: V4) -> NextHop {
        with_widths!(self, At16, lookup(self.image(), &self.upper, address))
    }

    fn lookup_batch(&self, addresses: &[V4], next_hops: &mut [NextHop]) {
        assert_eq!(addresses.len(), next_hops.len(), "a result for each key");
        with_widths!(self, At16, batch(VectorLevel::best(), self.image(), self.base(), addresses, next_hops));
    }

    fn shape(&self) -> Option<String> {
        Some(format!("{} hot blocks", self.hot()))
    }

    fn explain(&self, address: V4) -> Vec<Step> {
        with_widths!(self, At16, explain(self.image(), self.base(), address))
    }
}
