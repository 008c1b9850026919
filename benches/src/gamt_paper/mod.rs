//! The figures of the GAMT paper (Li et al., "GAMT: A Fast and Scalable IP Lookup Engine for GPU-based
//! Software Routers", ANCS 2013) that a CPU can show, measured or computed anew, each with the paper's own
//! figures beside it.
//!
//! | here | in the paper |
//! |---|---|
//! | [`lookup`] | Figures 9 and 10: lookup rates by batch size, and by table and traffic |
//! | [`levels`] | Figures 11 and 15: rate and bytes a prefix by the number of levels, IPv4 and IPv6 |
//! | [`update`] | Figures 13 and 14: off-line update rate; bubbles, and GALE's loads and writes |
//! | [`memory`] | Figure 19 and section 5.4.5: memory, and its growth over a day of updates |
//!
//! ```text
//! cargo xtask gamt-paper                          all, in five to ten minutes; writes benches/record/MACHINE/DATE-gamt-paper-….csv
//! cargo xtask gamt-paper -- --dry                 prints, and writes nothing
//! cargo xtask gamt-paper -- --figures updates     one of batches, tables, levels, updates, memory
//! ```
//!
//! What stands for whom: `gamt` is GAMT_T and `gamt-s` is GAMT_S, walked by one core; with `-all` they are
//! walked by all cores, which is the paper's MAMT (there 6 cores and 12 threads, without vectors). `dir24`
//! has GALE's layout and GALE's updates. Random traffic is the paper's *Random*, traffic by prefix its
//! *Table*.
//!
//! Figures 12 and 16 to 18 are about a GPU alone and are not here.

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Result, anyhow};
use wirespeed_fib::{Address, BuildOptions, Engine, Lookup, NextHop, Rib};
use wirespeed_image::Table;

use crate::contest;
use crate::table::{Contestant, Lane, Mode, answers_are_results, lane};
use crate::trace::{Keys, Trace};

pub mod levels;
pub mod lookup;
pub mod memory;
pub mod update;

/// What the name of a lane ends with that all cores walk.
const ALL: &str = "-all";

/// A table that one core walks, and the same one walked by all cores.
fn lanes<A: Address, E: Engine<A>>(
    name: &str,
    rib: &Rib<A>,
    options: &BuildOptions,
) -> Result<[Box<dyn Lane<A>>; 2]> {
    let start = Instant::now();
    let (_, table) = E::build(rib, options)?;
    let (table, build_seconds) = (Arc::new(table), start.elapsed().as_secs_f64());
    let walk = |name: String, all_cores: bool| {
        let table = Arc::clone(&table);
        lane(name, rib, move |_| Ok(Walked::<A, E> { table, all_cores, build_seconds }))
    };
    Ok([walk(name.to_owned(), false)?, walk(format!("{name}{ALL}"), true)?])
}

/// A compiled table, and who walks it.
struct Walked<A: Address, E: Engine<A>> {
    table: Arc<E::Table>,
    all_cores: bool,
    build_seconds: f64,
}

impl<A: Address, E: Engine<A>> Contestant<A> for Walked<A, E> {
    answers_are_results!(NextHop);

    fn many(&self, keys: Keys<'_, A>, answers: &mut [NextHop]) {
        match self.all_cores {
            true => self.table.par_lookup_batch(keys.host, answers),
            false => self.table.lookup_batch(keys.host, answers),
        }
    }

    fn one(&self, key: A) -> NextHop {
        self.table.lookup(key)
    }

    fn memory(&self) -> Option<u64> {
        Some(self.table.image().bytes())
    }

    fn build_seconds(&self) -> Option<f64> {
        Some(self.build_seconds)
    }
}

/// Fails where a lane gives one wrong answer.
fn check<A: Address>(
    lanes: &mut [Box<dyn Lane<A>>],
    batch: usize,
    trace: &Trace<A>,
    expected: &[NextHop],
) -> Result<()> {
    for lane in lanes {
        contest::check(lane.as_ref(), Mode::Batch(batch), trace, expected)
            .map_err(|wrong| anyhow!("{wrong}"))?;
    }
    Ok(())
}

/// A rate in millions a second.
fn millions(rates: &[f64]) -> String {
    format!("{:.2}", crate::report::median(rates) / 1e6)
}
