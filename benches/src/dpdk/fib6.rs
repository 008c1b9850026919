//! `rte_fib6`: a trie of 24-8-8-... bits with each of DPDK's lookup functions over one table per next-hop
//! width.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Instant;

use anyhow::{Result, bail, ensure};
use wirespeed_fib::{NextHop, Prefix, Rib, Update, V6};

use super::{Width, ffi, refused, routes, unique_name};
use crate::lineup::Entry;
use crate::table::{Contestant, lane};
use crate::trace::Keys;

/// DPDK's lookup functions by its own numbers.
const LOOKUPS: [(&str, i32); 2] = [("scalar", 1), ("avx512", 2)];

/// Every width with every lookup function.
pub(crate) fn lookups(_slow: bool) -> Vec<Entry<V6>> {
    let mut entries = Vec::new();
    for width in [1, 2, 3].map(Width) {
        // All lookup functions of a width share a table, built by whichever comes first.
        let shared: Shared = Rc::default();
        for (name, kind) in LOOKUPS {
            entries.push(entry(
                format!("rte_fib6-{}B-{name}", width.bytes()),
                width,
                kind,
                Rc::clone(&shared),
            ));
        }
    }
    entries
}

/// One table per width.
pub(crate) fn updates() -> Vec<Entry<V6>> {
    [1, 2]
        .map(Width)
        .map(|width| entry(format!("rte_fib6-{}B", width.bytes()), width, 2, Rc::default()))
        .into()
}

type Shared = Rc<RefCell<Option<Rc<Table>>>>;

fn entry(name: String, width: Width, kind: i32, shared: Shared) -> Entry<V6> {
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

/// An `rte_fib6` with one of its lookup functions.
struct Fib {
    table: Rc<Table>,
    kind: i32,
}

struct Table {
    fib: *mut ffi::RteFib6,
    bytes: u64,
    build_seconds: f64,
}

impl Table {
    /// Asks for more groups until the routes fit: DPDK reserves groups for each route by how deep it lies
    /// below the route that covers it, which for today's table is several times what ends up in use.
    fn build(rib: &Rib<V6>, width: Width) -> Result<Self> {
        let mut groups = width.groups(rib)?;
        loop {
            match Self::try_build(rib, width, groups)? {
                Some(table) => return Ok(table),
                None => groups = groups.saturating_mul(2),
            }
            let bytes = width.bytes();
            ensure!(
                u64::from(groups) < width.limit(),
                "{bytes}-byte entries can't number the {groups} groups it reserves"
            );
        }
    }

    /// `None` where the groups don't suffice.
    fn try_build(rib: &Rib<V6>, width: Width, groups: u32) -> Result<Option<Self>> {
        let (before, start) = (ffi::ws_dpdk_memory(), Instant::now());
        let (name, routes) = (unique_name(), routes(rib)?);
        // SAFETY: the name is a C string that DPDK copies; the rest are numbers.
        let fib = unsafe { ffi::ws_fib6_create(name.as_ptr(), routes, i32::from(width.0), groups) };
        ensure!(!fib.is_null(), refused("rte_fib6_create"));
        let mut table = Self { fib, bytes: 0, build_seconds: 0.0 };
        for (prefix, next_hop) in rib {
            match table.add(prefix, next_hop) {
                0 => {}
                error if error == -libc::ENOSPC => return Ok(None),
                error => {
                    bail!("rte_fib6_add refuses {prefix}: {}", std::io::Error::from_raw_os_error(-error))
                }
            }
        }
        table.build_seconds = start.elapsed().as_secs_f64();
        table.bytes = ffi::ws_dpdk_memory().saturating_sub(before) as u64;
        Ok(Some(table))
    }

    /// 0, or a negative error number.
    fn add(&self, prefix: Prefix<V6>, next_hop: NextHop) -> i32 {
        let address = prefix.address().0.to_be_bytes();
        // SAFETY: the address has 16 bytes; the table is live until `drop`, and only this thread uses it.
        unsafe { ffi::rte_fib6_add(self.fib, address.as_ptr(), prefix.len(), u64::from(next_hop.0)) }
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        // SAFETY: made by `rte_fib6_create`, freed once.
        unsafe { ffi::rte_fib6_free(self.fib) };
    }
}

impl Fib {
    fn selects(&self) -> bool {
        // SAFETY: the table is live, and no lookup is under way: only this thread uses it.
        unsafe { ffi::rte_fib6_select_lookup(self.table.fib, self.kind) == 0 }
    }

    fn bulk(&self, keys: &[[u8; 16]], answers: &mut [u64]) {
        assert_eq!(keys.len(), answers.len());
        let n = i32::try_from(keys.len()).expect("a batch is small");
        // SAFETY: both slices have n elements; DPDK reads nothing but the keys and writes nothing but the n
        // answers.
        unsafe { ffi::rte_fib6_lookup_bulk(self.table.fib, keys.as_ptr(), answers.as_mut_ptr(), n) };
    }
}

impl Contestant<V6> for Fib {
    type Answer = u64;

    fn result(answer: u64) -> NextHop {
        NextHop(u32::try_from(answer).unwrap_or(u32::MAX))
    }

    fn many(&self, keys: Keys<'_, V6>, answers: &mut [u64]) {
        self.bulk(keys.network, answers);
    }

    fn one(&self, key: V6) -> NextHop {
        let mut answer = [0];
        self.bulk(&[key.0.to_be_bytes()], &mut answer);
        Self::result(answer[0])
    }

    fn select(&self) {
        assert!(self.selects(), "it was selected when the lane was built");
    }

    fn update(&mut self, updates: &[Update<V6>]) -> bool {
        for update in updates {
            let prefix = update.prefix();
            match update {
                Update::Announce { next_hop, .. } => {
                    if self.table.add(prefix, next_hop.unwrap_or(NextHop(1))) != 0 {
                        return false;
                    }
                }
                Update::Withdraw { .. } => {
                    let address = prefix.address().0.to_be_bytes();
                    // Withdrawing what is not there is an error to DPDK and nothing to us.
                    // SAFETY: as in `Table::add`.
                    unsafe { ffi::rte_fib6_delete(self.table.fib, address.as_ptr(), prefix.len()) };
                }
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
