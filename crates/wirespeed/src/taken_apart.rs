//! [`TakenApart`]: the table of an image for prefix lookups, as one that gives next hops.

use wirespeed_fib::NextHop;
use wirespeed_image::{Image, Step};
use wirespeed_table::{Load, Lookup};

use crate::engine::{Addresses, AnyTable, KeyHint};
use crate::gpu::GpuError;
use crate::gpu::runtime::Fleet;
use crate::match_ids::MatchIds;

/// A table whose results are taken apart.
pub(crate) struct TakenApart<A: Addresses> {
    pub(crate) table: Box<dyn AnyTable<A>>,
    pub(crate) ids: MatchIds,
}

impl<A: Addresses> Lookup<A> for TakenApart<A> {
    fn lookup(&self, address: A) -> NextHop {
        self.ids.pairs().pair(self.table.lookup(address)).0
    }

    fn lookup_batch(&self, addresses: &[A], next_hops: &mut [NextHop]) {
        self.table.lookup_batch(addresses, next_hops);
        self.ids.pairs().next_hops(next_hops);
    }

    fn shape(&self) -> Option<String> {
        self.table.shape()
    }

    fn loads(&self) -> Vec<Load> {
        self.table.loads()
    }

    fn explain(&self, address: A) -> Vec<Step> {
        self.table.explain(address)
    }
}

impl<A: Addresses> AnyTable<A> for TakenApart<A> {
    fn image(&self) -> &Image {
        self.table.image()
    }

    fn upload(&self, _: &Fleet, _: KeyHint<'_, A>) -> Result<A::Remote, GpuError> {
        #[cfg(feature = "gpu")]
        return Err(GpuError::Unsupported("images for prefix lookups".to_owned()));
        #[cfg(not(feature = "gpu"))]
        Err(GpuError)
    }
}
