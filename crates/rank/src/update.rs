//! Updates as patches.
//!
//! Only those elements are set that a changed prefix covers, to what the Rib says after all changes, so the
//! order of changes does not matter. Where the runs of a word start at the same elements as before, their
//! values change in place; otherwise the word gets another piece of the section of runs. What is no longer
//! needed is unreachable and left as it is.

use wirespeed_fib::{NextHop, Outgrown, Prefix, Rib, V4};
use wirespeed_image::{Patch, PatchBuilder, SectionId};

use crate::form::Rank;
use crate::layout::{LEVEL16, LONG, RUNS, Shape, Word};
use crate::refresh::Scope;
use crate::sink::Sink;

impl Rank {
    pub(crate) fn patch(&mut self, rib: &Rib<V4>, changed: &[Prefix<V4>]) -> Result<Patch, Outgrown> {
        let mut sink = Patcher { patch: PatchBuilder::new(), shape: self.shape, results: self.results };
        let mut changed = changed.to_vec();
        changed.sort_unstable();
        changed.dedup();
        for prefix in changed {
            self.touch_slots(rib, Scope::Of(prefix), &mut sink)?;
        }
        if sink.results > self.shape.largest() {
            return Err(Outgrown("entry width"));
        }
        self.results = sink.results;
        Ok(sink.patch.finish(Some((rib.len() as u64, u64::from(self.results)))))
    }

    /// Brings the slots in scope up to date.
    pub(crate) fn touch_slots(
        &mut self,
        rib: &Rib<V4>,
        scope: Scope,
        sink: &mut impl Sink,
    ) -> Result<(), Outgrown> {
        let root = rib.cursor();
        for first in scope.octets(0) {
            let best = root.best(first);
            if scope.leaves(best) {
                continue;
            }
            let inherited = best.map_or(NextHop::NONE, |(_, next_hop)| next_hop);
            let beneath = root.child(first);
            for second in scope.octets(1) {
                let best = beneath.and_then(|cursor| cursor.best(second));
                if scope.leaves(best) {
                    continue;
                }
                let inherited = best.map_or(inherited, |(_, next_hop)| next_hop);
                let cursor = beneath.and_then(|cursor| cursor.child(second));
                self.touch(u16::from_be_bytes([first, second]), cursor, inherited, scope, sink)?;
            }
        }
        Ok(())
    }
}

/// Collects the elements of a patch.
struct Patcher {
    patch: PatchBuilder,
    shape: Shape,
    /// The largest next hop that was ever written: what no run holds no lookup can return.
    results: u32,
}

impl Sink for Patcher {
    fn slot(&mut self, slot: u16, chunk: u32) {
        self.patch.set(LEVEL16, slot.into(), chunk.into());
    }

    fn word(&mut self, level: SectionId, index: u64, word: Word) {
        self.patch.set(level, index, word.0);
    }

    fn run(&mut self, run: u32, value: u32) {
        if value & LONG == 0 {
            self.results = self.results.max(value);
        }
        self.patch.set(RUNS, run.into(), self.shape.run(value));
    }
}

#[cfg(test)]
mod tests {
    use wirespeed_fib::{BuildOptions, Engine, Lookup};
    use wirespeed_image::Table;

    use super::*;

    fn prefix(text: &str) -> Prefix<V4> {
        text.parse().unwrap()
    }

    /// Runs in use and chunks of both levels in use.
    fn in_use(rank: &Rank) -> (u32, u32) {
        (rank.level24.pool.in_use(), rank.level32.pool.in_use())
    }

    #[test]
    fn a_value_changes_in_place_where_the_runs_stay() {
        let mut rib: Rib<V4> = [("10.0.1.0/24", 1), ("10.0.2.0/24", 2)]
            .map(|(p, n)| (prefix(p), NextHop(n)))
            .into_iter()
            .collect();
        let (mut rank, mut table) = Rank::build(&rib, &BuildOptions::default()).unwrap();
        rib.insert(prefix("10.0.1.0/24"), NextHop(9));
        let patch = rank.patch(&rib, &[prefix("10.0.1.0/24")]).unwrap();
        let sections: Vec<_> = patch.writes().iter().map(|write| (write.section(), write.value)).collect();
        assert_eq!(sections, [(RUNS, 9)]);
        table.apply(&patch).unwrap();
        assert_eq!(table.lookup("10.0.1.77".parse().unwrap()), NextHop(9));
    }

    #[test]
    fn a_next_hop_wider_than_a_run_is_refused() {
        let routes = ["0.0.0.0/0", "10.0.0.0/9", "10.1.0.0/16", "10.1.2.0/24", "10.1.3.0/25", "10.2.0.0/20"];
        for (route, wide) in routes.iter().flat_map(|r| [(r, 0x8000), (r, 1 << 31), (r, u32::MAX)]) {
            let mut rib: Rib<V4> = routes.into_iter().map(|r| (prefix(r), NextHop(1))).collect();
            let (mut rank, _) = Rank::build(&rib, &BuildOptions::default()).unwrap();
            rib.insert(prefix(route), NextHop(wide));
            assert_eq!(rank.patch(&rib, &[prefix(route)]), Err(Outgrown("entry width")), "{route} {wide}");
        }
    }

    #[test]
    fn what_is_withdrawn_is_free_again() {
        let routes =
            ["0.0.0.0/0", "10.0.0.0/8", "10.1.0.0/16", "10.1.2.0/23", "10.1.2.128/25", "10.1.3.7/32"];
        let mut rib = Rib::new();
        let (mut rank, _) = Rank::build(&rib, &BuildOptions::default()).unwrap();
        rank.level24.pool.set_capacity(100);
        rank.level32.pool.set_capacity(100);
        let mut used = None;
        for _ in 0..3 {
            for (route, n) in routes.into_iter().zip(1..) {
                rib.insert(prefix(route), NextHop(n));
                rank.patch(&rib, &[prefix(route)]).unwrap();
            }
            // One for the default route, one for 10/8, one of its own for 10.1; two for the longer ones.
            assert_eq!(in_use(&rank), (3, 2));
            for route in routes {
                rib.remove(prefix(route));
                rank.patch(&rib, &[prefix(route)]).unwrap();
            }
            assert_eq!(in_use(&rank), (0, 0));
            // Every round finds what the one before it left.
            assert_eq!(*used.get_or_insert(rank.runs.used()), rank.runs.used());
        }
    }
}
