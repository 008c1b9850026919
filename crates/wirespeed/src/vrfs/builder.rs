//! [`VrfsBuilder`]: collects VRFs and settings.

use std::sync::Arc;

use ipnet::IpNet;
use wirespeed_fib::{BuildOptions, InFib, NextHop};
use wirespeed_forest::{FibId as VrfId, Fibs, InFibs, LiveFibs};

use super::{Tables, VrfUpdate, Vrfs, of_fibs};
use crate::error::Error;
use crate::labels::Labels;
use crate::match_ids::MatchIds;
use crate::memory::Cap;
use crate::uses::{Claims, TableUses};

/// Collects VRFs, and builds their tables. If a VRF is added twice, the last routes stay.
#[derive(Debug, Default)]
#[must_use = "a builder makes nothing until `build`"]
pub struct VrfsBuilder {
    vrfs: Vec<VrfUpdate>,
    claims: Claims,
    memory_cap: Option<u64>,
    results: u32,
    prefix_lookups: bool,
    error: Option<Error>,
}

impl VrfsBuilder {
    /// Adds a VRF with its routes. [`build`](Self::build) refuses a route to [`NextHop::NONE`], and a prefix
    /// with host bits.
    pub fn vrf<P: Into<IpNet>>(mut self, vrf: VrfId, routes: impl IntoIterator<Item = (P, NextHop)>) -> Self {
        match VrfUpdate::set(vrf, routes) {
            Ok(set) => self.vrfs.push(set),
            Err(error) => _ = self.error.get_or_insert(error.into()),
        }
        self
    }

    /// Attaches labels: their values end with the last route that uses them, as described at
    /// [`Labels`](Labels#labels-that-end).
    pub fn labels<T>(mut self, labels: &Labels<T>) -> Self {
        self.claims.attach(labels.counts());
        self
    }

    /// Limits the bytes that both copies of the compiled tables of each family may take together, like
    /// [`Builder::memory_cap`](crate::Builder::memory_cap). The default is half of the machine's memory.
    pub fn memory_cap(mut self, bytes: u64) -> Self {
        self.memory_cap = Some(bytes);
        self
    }

    /// Leaves head room for next hops up to this index:
    /// [`Builder::next_hops`](crate::Builder::next_hops).
    pub fn next_hops(mut self, largest: u32) -> Self {
        self.results = largest;
        self
    }

    /// Makes lookups give the matched prefix, too:
    /// [`Builder::prefix_lookups`](crate::Builder::prefix_lookups).
    pub fn prefix_lookups(mut self) -> Self {
        self.prefix_lookups = true;
        self
    }

    /// Builds the tables. Fails for the same reasons as [`Vrfs::apply`].
    pub fn build(self) -> Result<Vrfs, Error> {
        let Self { vrfs, claims, memory_cap, results, prefix_lookups, error } = self;
        error.map_or(Ok(()), Err)?;
        let cap = memory_cap.map_or(Cap::Named, Cap::Stated);
        let ids = prefix_lookups.then(|| Arc::new(MatchIds::new()));
        let options = BuildOptions { results, ..cap.options() };
        let (v4, v6) = (none(&options, ids.as_ref(), cap)?, none(&options, ids.as_ref(), cap)?);
        let mut built = Vrfs { v4, v6, ids, cap, refused: 0 };
        for labels in claims.labels() {
            built.v4.uses.attach::<InFibs<_>>(labels, built.v4.live.model());
            built.v6.uses.attach::<InFibs<_>>(labels, built.v6.live.model());
        }
        built.apply(vrfs)?;
        Ok(built)
    }
}

/// Tables of no VRF.
fn none<A: InFib>(options: &BuildOptions, ids: Option<&Arc<MatchIds>>, cap: Cap) -> Result<Tables<A>, Error> {
    let live = LiveFibs::new(Fibs::new(), options.clone()).map_err(|error| of_fibs(error.into(), cap))?;
    Ok(Tables { live, uses: Arc::new(TableUses::of_pairs(ids.cloned())) })
}
