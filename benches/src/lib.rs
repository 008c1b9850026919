//! Every engine beside its rivals and the hardware's ceiling, in one run.
//!
//! ```text
//! data ──► Rib ──build──► Lane (one per engine, crate, DPDK variant, bare gather)     lineup
//!            └─► trace ──► expected next hops ──check──► lanes that are right          contest
//!                             rounds  A B C … A B C … A B C …  ──► min, median, max    contest
//!                                                               ──► table on screen, CSV   report
//! ```
//!
//! Machines that are shared drift by a factor of two within minutes, so nothing here is measured in one
//! piece: each lane runs for a few tens of milliseconds, then the next one does, round after round, and what
//! is compared is what ran side by side. A lane whose answers differ from the Rib's is reported and never
//! timed.
//!
//! The criterion benches and the binaries stand on this; see [`table::Contestant`] for how a table joins.
//!
//! ```text
//! cargo xtask record        every engine and rival on every table    ──► record/MACHINE/DATE.csv
//! cargo xtask sail-paper    the SAIL paper's figures (sail_paper)    ──► record/MACHINE/DATE-sail-paper-….csv
//! cargo xtask gamt-paper    the GAMT paper's figures (gamt_paper)    ──► record/MACHINE/DATE-gamt-paper-….csv
//! cargo xtask record names      engines of names and rivals         ──► record/MACHINE/DATE-names.csv
//! cargo xtask record classify   engines of rules, a scan, rte_acl    ──► record/MACHINE/DATE-classify.csv
//! cargo xtask record replay     lookupctl replay on CPU and GPU (replay) ──► record/GPU/DATE-TABLE-replay….csv
//! cargo xtask router-bench      routers side by side (router)        ──► record/MACHINE/DATE-router.csv
//! cargo xtask gswitch-paper     the GSwitch paper's figures (gswitch_paper) ──► record/MACHINE/DATE-gswitch-paper-….csv
//! cargo xtask mata-paper        the MATA paper's figures (mata_paper) ──► record/MACHINE/DATE-mata-paper-….csv
//! cargo run --release -p wirespeed-benches --features programs --bin sail-m              ──► screen: its figure 12, against the number of FIBs
//! ```

pub mod batch;
pub mod beside;
pub mod classify;
pub mod contest;
pub mod data;
#[cfg(feature = "dpdk")]
pub mod dpdk;
pub mod engines;
pub mod gamt_paper;
pub mod gather;
pub mod gpu;
pub mod gswitch_paper;
pub mod lineup;
pub mod machine;
pub mod mata_paper;
pub mod names;
pub mod pages;
pub mod replay;
pub mod report;
pub mod rivals;
pub mod router;
pub mod sail_paper;
pub mod session;
pub mod table;
pub mod trace;
