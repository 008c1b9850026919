//! DPDK's tables as rivals: `rte_fib` (DIR-24-8) and `rte_lpm` for IPv4, `rte_fib6` (a trie) for IPv6,
//! `rte_acl` for rules.
//!
//! Sizes that DPDK wants in advance are computed from the routes. A next-hop width that can't hold a table
//! (DPDK keeps one bit of an entry to itself, and numbers its 256-entry groups in what is left) is left out
//! with a message.
#![allow(unsafe_code)]

pub(crate) mod acl;
mod ffi;
pub(crate) mod fib;
pub(crate) mod fib6;
mod lpm;

use std::collections::HashSet;
use std::ffi::CString;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result, bail, ensure};
use wirespeed_fib::{Address, Rib};

/// Memory for tables, all of which DPDK clears when it starts: a million routes take about 400 MB for each
/// next-hop width, nearly all of it for the routes themselves, and four widths are in use at once.
const HEAP_BYTES: usize = 3 << 30;

/// Starts DPDK on the core that this thread is pinned to. Later calls do nothing.
pub fn start(core: usize) -> Result<()> {
    static STARTED: OnceLock<i32> = OnceLock::new();
    let core = u32::try_from(core).context("core number")?;
    // SAFETY: called once, by `OnceLock`; the shim takes plain numbers and no pointer.
    let error = *STARTED.get_or_init(|| unsafe { ffi::ws_dpdk_start(core, HEAP_BYTES) });
    ensure!(error == 0, "DPDK does not start: {}", std::io::Error::from_raw_os_error(error));
    Ok(())
}

/// A name that no other table of this process has.
fn unique_name() -> CString {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    CString::new(format!("table{number}")).expect("no zero byte")
}

/// DPDK's widths, by the logarithm of their bytes.
#[derive(Clone, Copy)]
struct Width(u8);

impl Width {
    fn bytes(self) -> u32 {
        1 << self.0
    }

    /// One past the largest next hop or group number that an entry can hold.
    fn limit(self) -> u64 {
        1 << (8 * self.bytes() - 1)
    }

    /// The groups to ask for: half as many again as needed plus room for updates, within what the width can
    /// number.
    fn groups<A: Address>(self, rib: &Rib<A>) -> Result<u32> {
        let (needed, largest) = (groups(rib) as u64, u64::from(rib.max_next_hop().0));
        let limit = self.limit();
        if needed >= limit || largest >= limit {
            let bytes = self.bytes();
            bail!(
                "{bytes}-byte entries hold {limit} next hops and groups, the table has {largest} and {needed}"
            );
        }
        Ok(u32::try_from((needed + needed / 2 + 4096).min(limit - 1))?)
    }
}

/// 256-entry groups that a 24-8-8-... split needs: distinct octet-aligned prefixes of 24 bits and more with
/// something longer inside.
fn groups<A: Address>(rib: &Rib<A>) -> usize {
    let mut groups = HashSet::new();
    for (prefix, _) in rib {
        for len in (24..prefix.len()).step_by(8) {
            groups.insert((prefix.address().keep(len), len));
        }
    }
    groups.len()
}

/// Room for routes: what there is and what updates may bring.
fn routes<A: Address>(rib: &Rib<A>) -> Result<i32> {
    Ok(i32::try_from(rib.len() + rib.len() / 4 + 1024)?)
}

/// An error with DPDK's reason.
fn refused(what: &str) -> anyhow::Error {
    anyhow::anyhow!("{what}: {}", std::io::Error::from_raw_os_error(ffi::ws_dpdk_errno()))
}
