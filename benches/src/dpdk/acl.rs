//! `rte_acl`: tries over the bytes of a header, with each of DPDK's classify functions over one table. It
//! takes prefixes of addresses and ranges of ports as they are, and no updates once it is built.
//!
//! A limit of its memory (`max_size`), which has DPDK try fewer and larger tries first, came to the same
//! tables on the sets of ClassBench here: there is none.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use wirespeed_classify::tuple::{Field, FieldMatch};
use wirespeed_classify::{Ipv4Tuple, Rank, Rule, RuleNumber, RuleSet};

use super::{ffi, refused, unique_name};
use crate::classify::OfRules;
use crate::classify::lineup::Entry;
use crate::classify::rivals::alone;
use crate::classify::trace::Tuples;
use crate::table::{Contestant, answers_are_results};

/// DPDK's classify functions by its own numbers.
const ALGORITHMS: [(&str, i32); 4] = [("scalar", 1), ("avx2", 3), ("avx512x16", 6), ("avx512x32", 7)];

/// The classify functions, which share a table that is built by whichever comes first.
pub(crate) fn lookups() -> Vec<Entry> {
    let shared: Rc<RefCell<Option<Rc<Table>>>> = Rc::default();
    let entry = |(name, algorithm)| {
        let shared = Rc::clone(&shared);
        Entry::of(format!("rte_acl-{name}"), move |rules| {
            let known = shared.borrow().clone();
            let table = match known {
                Some(table) => table,
                None => Rc::new(Table::build(rules)?),
            };
            shared.replace(Some(Rc::clone(&table)));
            ensure!(table.has(algorithm), "this CPU or DPDK does not have the classify function");
            Ok(Acl { table, algorithm })
        })
    };
    ALGORITHMS.map(entry).into()
}

/// An `rte_acl` with one of its classify functions.
struct Acl {
    table: Rc<Table>,
    algorithm: i32,
}

struct Table {
    acl: *mut ffi::RteAcl,
    bytes: u64,
    build_seconds: f64,
}

impl Table {
    fn build(rules: &RuleSet<Ipv4Tuple>) -> Result<Self> {
        // The worst first: its priorities count up.
        let mut ranked: Vec<_> = rules.iter().collect();
        ranked.sort_unstable_by_key(|&(number, rule)| Rank::new(rule.priority(), number));
        let ranked = (1..).zip(ranked).map(|(priority, (number, rule))| plain(number, priority, rule));
        let ranked: Vec<ffi::AclRule> = ranked.collect::<Result<_>>()?;
        let (before, start) = (ffi::ws_dpdk_memory(), Instant::now());
        let (name, most) = (unique_name(), u32::try_from(ranked.len())?);
        // SAFETY: the name is a C string that DPDK copies; the other is a number.
        let acl = unsafe { ffi::ws_acl_create(name.as_ptr(), most) };
        ensure!(!acl.is_null(), refused("rte_acl_create"));
        let mut table = Self { acl, bytes: 0, build_seconds: 0.0 };
        for rule in &ranked {
            // SAFETY: the table is live until `drop`, and only this thread uses it; the rule is copied.
            let error = unsafe { ffi::ws_acl_add(table.acl, rule) };
            ensure!(error == 0, "rte_acl_add_rules: {}", std::io::Error::from_raw_os_error(-error));
        }
        // SAFETY: as above.
        let error = unsafe { ffi::ws_acl_build(table.acl) };
        ensure!(error == 0, "rte_acl_build: {}", std::io::Error::from_raw_os_error(-error));
        table.build_seconds = start.elapsed().as_secs_f64();
        table.bytes = ffi::ws_dpdk_memory().saturating_sub(before) as u64;
        Ok(table)
    }

    /// Whether there is a classify function here.
    fn has(&self, algorithm: i32) -> bool {
        // SAFETY: the table is live, and no lookup is under way: only this thread uses it.
        unsafe { ffi::rte_acl_set_ctx_classify(self.acl, algorithm) == 0 }
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        // SAFETY: made by `rte_acl_create`, freed once.
        unsafe { ffi::rte_acl_free(self.acl) };
    }
}

impl Contestant<OfRules> for Acl {
    answers_are_results!(u32);

    fn many(&self, tuples: Tuples<'_>, numbers: &mut [u32]) {
        assert_eq!(tuples.tuples.len(), numbers.len());
        let n = u32::try_from(numbers.len()).expect("a batch is small");
        let headers = tuples.headers.as_ptr().cast();
        // SAFETY: there are n pointers, each to a header of 16 bytes that lives as long as the trace, of
        // which DPDK reads what the fields of `ws_acl_build` say; it writes one number for each. The function
        // was seen to be there when the lane was built.
        let error = unsafe {
            ffi::rte_acl_classify_alg(self.table.acl, headers, numbers.as_mut_ptr(), n, 1, self.algorithm)
        };
        assert_eq!(error, 0, "rte_acl_classify refuses what it is asked");
    }

    fn one(&self, tuple: Tuples<'_>) -> u32 {
        alone(self, tuple)
    }

    fn memory(&self) -> Option<u64> {
        Some(self.table.bytes)
    }

    fn build_seconds(&self) -> Option<f64> {
        Some(self.table.build_seconds)
    }
}

/// A rule as the shim takes it; an error where DPDK has no field for what it says.
fn plain(number: RuleNumber, priority: u32, rule: &Rule<Ipv4Tuple>) -> Result<ffi::AclRule> {
    let refused = |field: &Field| format!("rte_acl has no field for the {} of rule {number}", field.name);
    let prefix = |field: &Field| -> Result<(u32, u8)> {
        let FieldMatch::Masked { value, mask } = rule.field(field) else { anyhow::bail!(refused(field)) };
        let len = u16::try_from(mask.count_ones())?;
        ensure!(mask == field.prefix(len), refused(field));
        Ok((u32::try_from(value)?, u8::try_from(len)?))
    };
    let ports = |field: &Field| -> Result<[u16; 2]> {
        let (from, to) = match rule.field(field) {
            FieldMatch::Range(from, to) => (from, to),
            FieldMatch::Masked { value, mask } => {
                let rest = field.all() & !mask;
                ensure!((rest + 1).is_power_of_two(), refused(field));
                (value, value | rest)
            }
        };
        Ok([u16::try_from(from)?, u16::try_from(to)?])
    };
    let FieldMatch::Masked { value, mask } = rule.field(&Ipv4Tuple::PROTO) else {
        anyhow::bail!(refused(&Ipv4Tuple::PROTO))
    };
    let ((src, src_len), (dst, dst_len)) = (prefix(&Ipv4Tuple::SRC)?, prefix(&Ipv4Tuple::DST)?);
    Ok(ffi::AclRule {
        number: number.get(),
        priority,
        src,
        dst,
        sport: ports(&Ipv4Tuple::SPORT)?,
        dport: ports(&Ipv4Tuple::DPORT)?,
        src_len,
        dst_len,
        proto: u8::try_from(value).context("a protocol")?,
        proto_mask: u8::try_from(mask).context("a mask of a protocol")?,
    })
}
