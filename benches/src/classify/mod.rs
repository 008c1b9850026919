//! Packet classification: engines beside a plain linear scan and DPDK's `rte_acl`, in one run on one core.
//!
//! ```text
//! data      sets of ClassBench with their traces and right answers; made ones where there are none
//! trace     what is looked up, as tuples and as headers in network order
//! lineup    who takes part: engines compiled, engines live, the scan, rte_acl with the feature `dpdk`
//! contest   lanes are checked, then timed in interleaved rounds
//! update    streams of updates, each rule that goes or changes in the set
//! ```
//!
//! `cargo xtask record classify` writes `benches/record/MACHINE/DATE-classify.csv`. Answers of every lane are
//! held against the set's truth before it is timed, and after updates against the set that had the same ones.

pub mod contest;
pub mod data;
pub mod lineup;
pub(crate) mod rivals;
pub mod trace;
pub mod update;

pub use rivals::Scan;

use wirespeed_classify::{Ipv4Tuple, RuleSet, RuleUpdate};
use wirespeed_table::Domain;

use crate::engines::Ours;
use crate::table::{Contested, Mode};
use trace::Tuples;

/// Contests of rules. Results are numbers of rules, 0 where none matches.
#[derive(Clone, Copy, Debug)]
pub enum OfRules {}

impl Contested for OfRules {
    type Source = RuleSet<Ipv4Tuple>;
    type Update = RuleUpdate<Ipv4Tuple>;
    type Key<'k> = Tuples<'k>;
    type Keys<'k> = Tuples<'k>;
    type Result = u32;

    fn number(number: u32) -> u32 {
        number
    }

    fn stretch(lane: &str, mode: Mode) -> usize {
        // A scan of many rules takes as long for one batch as others for the whole slice.
        match (mode, lineup::is_scan(lane)) {
            (Mode::Single, true) => 64,
            (Mode::Batch(batch), true) => batch,
            (_, false) => 1 << 12,
        }
    }
}

impl Ours for OfRules {
    type Domain = Ipv4Tuple;

    fn key<'k>(tuple: <Self as Contested>::Key<'k>) -> <Ipv4Tuple as Domain>::Key<'k> {
        &tuple.tuples[0]
    }

    fn keys<'k>(tuples: <Self as Contested>::Keys<'k>) -> <Ipv4Tuple as Domain>::Keys<'k> {
        tuples.tuples
    }

    fn found(number: u32) -> u32 {
        number
    }
}
