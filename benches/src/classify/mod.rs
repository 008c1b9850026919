//! Packet classification: engines beside a plain linear scan and DPDK's `rte_acl`, in one run on one core.
//!
//! ```text
//! data      sets of ClassBench with their traces and right answers; made ones where there are none
//! trace     what is looked up, as tuples and as headers in network order
//! lane      how a table of rules takes part
//! lineup    who takes part: engines compiled, engines live, the scan, rte_acl with the feature `dpdk`
//! contest   lanes are checked, then timed in interleaved rounds
//! update    streams of updates, each rule that goes or changes in the set
//! ```
//!
//! `cargo xtask record classify` writes `benches/record/MACHINE/DATE-classify.csv`. Answers of every lane are
//! held against the set's truth before it is timed, and after updates against the set that had the same ones.

pub mod contest;
pub mod data;
pub mod lane;
pub mod lineup;
mod rivals;
pub mod trace;
pub mod update;

pub use rivals::Scan;
