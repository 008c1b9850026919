//! `rte_fib`: DIR-24-8 with each of DPDK's lookup functions over one table per next-hop width.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Instant;

use anyhow::{Result, ensure};
use wirespeed_fib::{NextHop, Rib, Update, V4};

use super::{Width, ffi, lpm, refused, routes, unique_name};
use crate::lineup::Entry;
use crate::table::{Contestant, lane};
use crate::trace::Keys;

/// DPDK's lookup functions by its own numbers, the fastest scalar one and the vector one first.
const LOOKUPS: [(&str, i32); 4] = [("macro", 1), ("avx512", 4), ("inline", 2), ("uni", 3)];

/// Every width with the best lookup functions, the two-byte one with all of them; with `slow` also `rte_lpm`,
/// which takes minutes to build.
pub(crate) fn lookups(slow: bool) -> Vec<Entry<V4>> {
    let mut entries = Vec::new();
    for width in [0, 1, 2, 3].map(Width) {
        // All lookup functions of a width share a table, built by whichever comes first.
        let shared: Shared = Rc::default();
        let kinds = if width.bytes() == 2 { LOOKUPS.len() } else { 2 };
        for &(name, kind) in &LOOKUPS[..kinds] {
            entries.push(entry(
                format!("rte_fib-{}B-{name}", width.bytes()),
                width,
                kind,
                Rc::clone(&shared),
            ));
        }
    }
    if slow {
        entries.push(Entry::new("rte_lpm", |rib| lane("rte_lpm", rib, lpm::Lookup::build)));
    }
    entries
}

/// One table per width.
pub(crate) fn updates() -> Vec<Entry<V4>> {
    [1, 2]
        .map(Width)
        .map(|width| entry(format!("rte_fib-{}B", width.bytes()), width, 4, Rc::default()))
        .into()
}

type Shared = Rc<RefCell<Option<Rc<Table>>>>;

fn entry(name: String, width: Width, kind: i32, shared: Shared) -> Entry<V4> {
    Entry::new(name.clone(), move |rib| {
        lane(name.clone(), rib, |rib| {
            let known = shared.borrow().clone();
            let table = match known {
                Some(table) => table,
                None => Rc::new(Table::build(rib, width)?),
            };
            shared.replace(Some(Rc::clone(&table)));
            let fib = Fib { table, kind };
            ensure!(fib.selects(), "this CPU or DPDK does not have the lookup function");
            Ok(fib)
        })
    })
}

/// An `rte_fib` with one of its lookup functions.
struct Fib {
    table: Rc<Table>,
    kind: i32,
}

struct Table {
    fib: *mut ffi::RteFib,
    bytes: u64,
    build_seconds: f64,
}

impl Table {
    fn build(rib: &Rib<V4>, width: Width) -> Result<Self> {
        let (before, start) = (ffi::ws_dpdk_memory(), Instant::now());
        let (name, routes, groups) = (unique_name(), routes(rib)?, width.groups(rib)?);
        // SAFETY: the name is a C string that DPDK copies; the rest are numbers.
        let fib = unsafe { ffi::ws_fib_create(name.as_ptr(), routes, i32::from(width.0), groups) };
        ensure!(!fib.is_null(), refused("rte_fib_create"));
        let mut table = Self { fib, bytes: 0, build_seconds: 0.0 };
        for (prefix, next_hop) in rib {
            ensure!(table.add(prefix.address().0, prefix.len(), next_hop), "rte_fib_add refuses {prefix}");
        }
        table.build_seconds = start.elapsed().as_secs_f64();
        table.bytes = ffi::ws_dpdk_memory().saturating_sub(before) as u64;
        Ok(table)
    }

    fn add(&self, address: u32, len: u8, next_hop: NextHop) -> bool {
        // SAFETY: the table is live until `drop`, and only this thread uses it.
        unsafe { ffi::rte_fib_add(self.fib, address, len, u64::from(next_hop.0)) == 0 }
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        // SAFETY: made by `rte_fib_create`, freed once.
        unsafe { ffi::rte_fib_free(self.fib) };
    }
}

impl Fib {
    fn selects(&self) -> bool {
        // SAFETY: the table is live, and no lookup is under way: only this thread uses it.
        unsafe { ffi::rte_fib_select_lookup(self.table.fib, self.kind) == 0 }
    }

    fn bulk(&self, keys: &[V4], answers: &mut [u64]) {
        assert_eq!(keys.len(), answers.len());
        let n = i32::try_from(keys.len()).expect("a batch is small");
        // SAFETY: both slices have n elements; `V4` is a transparent u32 in host order, which is what DPDK
        // reads; it writes nothing but the n answers.
        unsafe { ffi::rte_fib_lookup_bulk(self.table.fib, keys.as_ptr().cast(), answers.as_mut_ptr(), n) };
    }
}

impl Contestant<V4> for Fib {
    type Answer = u64;

    fn result(answer: u64) -> NextHop {
        NextHop(u32::try_from(answer).unwrap_or(u32::MAX))
    }

    fn many(&self, keys: Keys<'_, V4>, answers: &mut [u64]) {
        self.bulk(keys.host, answers);
    }

    fn one(&self, key: V4) -> NextHop {
        let mut answer = [0];
        self.bulk(&[key], &mut answer);
        Self::result(answer[0])
    }

    fn select(&self) {
        assert!(self.selects(), "it was selected when the lane was built");
    }

    fn update(&mut self, updates: &[Update<V4>]) -> bool {
        for update in updates {
            let (address, len) = (update.prefix().address().0, update.prefix().len());
            match update {
                Update::Announce { next_hop, .. } => {
                    if !self.table.add(address, len, next_hop.unwrap_or(NextHop(1))) {
                        return false;
                    }
                }
                // Withdrawing what is not there is an error to DPDK and nothing to us.
                // SAFETY: as in `Table::add`.
                Update::Withdraw { .. } => unsafe {
                    ffi::rte_fib_delete(self.table.fib, address, len);
                },
            }
        }
        true
    }

    fn memory(&self) -> Option<u64> {
        Some(self.table.bytes)
    }

    fn build_seconds(&self) -> Option<f64> {
        Some(self.table.build_seconds)
    }
}
