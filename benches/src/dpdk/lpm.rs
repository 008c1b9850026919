//! `rte_lpm` in bulk: DIR-24-8 too, with 4-byte entries and a rule table that makes building slow.

use anyhow::{Result, ensure};
use wirespeed_fib::{NextHop, Rib, V4};

use super::{ffi, groups, refused, routes, unique_name};
use crate::table::Contestant;
use crate::trace::Keys;

/// Set in a result where there is a route.
const FOUND: u32 = 0x0100_0000;

/// An `rte_lpm`.
pub(super) struct Lookup {
    lpm: *mut ffi::RteLpm,
    bytes: u64,
}

impl Lookup {
    pub(super) fn build(rib: &Rib<V4>) -> Result<Self> {
        let largest = rib.max_next_hop().0;
        ensure!(largest < FOUND, "rte_lpm holds next hops below {FOUND}, the table has {largest}");
        let before = ffi::ws_dpdk_memory();
        let (name, rules) = (unique_name(), u32::try_from(routes(rib)?)?);
        // SAFETY: the name is a C string that DPDK copies; the rest are numbers.
        let lpm = unsafe { ffi::ws_lpm_create(name.as_ptr(), rules, u32::try_from(groups(rib) + 4096)?) };
        ensure!(!lpm.is_null(), refused("rte_lpm_create"));
        let mut table = Self { lpm, bytes: 0 };
        for (prefix, next_hop) in rib {
            // SAFETY: the table is live until `drop`, and only this thread uses it.
            let error = unsafe { ffi::rte_lpm_add(table.lpm, prefix.address().0, prefix.len(), next_hop.0) };
            ensure!(error == 0, "rte_lpm_add refuses {prefix}");
        }
        table.bytes = ffi::ws_dpdk_memory().saturating_sub(before) as u64;
        Ok(table)
    }

    fn bulk(&self, keys: &[V4], answers: &mut [u32]) {
        assert_eq!(keys.len(), answers.len());
        let n = u32::try_from(keys.len()).expect("a batch is small");
        // SAFETY: both slices have n elements; `V4` is a transparent u32 in host order, which is what DPDK
        // reads; it writes nothing but the n answers.
        unsafe { ffi::ws_lpm_lookup_bulk(self.lpm, keys.as_ptr().cast(), answers.as_mut_ptr(), n) };
    }
}

impl Drop for Lookup {
    fn drop(&mut self) {
        // SAFETY: made by `rte_lpm_create`, freed once.
        unsafe { ffi::rte_lpm_free(self.lpm) };
    }
}

impl Contestant<V4> for Lookup {
    type Answer = u32;

    fn result(answer: u32) -> NextHop {
        if answer & FOUND == 0 { NextHop::NONE } else { NextHop(answer & (FOUND - 1)) }
    }

    fn many(&self, keys: Keys<'_, V4>, answers: &mut [u32]) {
        self.bulk(keys.host, answers);
    }

    fn one(&self, key: V4) -> NextHop {
        let mut answer = [0];
        self.bulk(&[key], &mut answer);
        Self::result(answer[0])
    }

    fn memory(&self) -> Option<u64> {
        Some(self.bytes)
    }
}
