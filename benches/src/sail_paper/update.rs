//! Figure 11: memory accesses of an update, in windows of 500 updates.
//!
//! Each update is brought into the table by itself, so that its patch is its own. [`Accesses`] counts it, and
//! says what an access is and which memory it goes to. An update that changes nothing (a route announced as
//! it is, a route withdrawn that is not there) takes none, and counts. One after which the table has to be
//! built anew is left out, and such are counted.

use anyhow::Result;
use wirespeed_fib::{Address, BuildOptions, Engine, Rib, Update};
use wirespeed_image::Table;
use wirespeed_sail::accesses::Accesses;

use crate::report::Sheet;

/// Updates of a window, as in the paper.
pub const WINDOW: usize = 500;

/// The cost of a stream of updates.
#[derive(Clone, Debug, Default)]
pub struct Cost {
    /// Updates in all.
    pub updates: usize,
    /// Updates that changed the table.
    pub changes: usize,
    /// Updates after which the table was built anew.
    pub rebuilds: usize,
    /// Accesses of all.
    pub total: Accesses,
    /// Accesses of the worst.
    pub worst: u64,
    /// Mean accesses of an update, window by window.
    pub windows: Vec<f64>,
}

/// Plays updates to a table, one by one.
pub fn play<A: Address, E: Engine<A>>(rib: &Rib<A>, updates: &[Update<A>]) -> Result<Cost> {
    let mut rib = rib.clone();
    let (mut engine, mut table) = E::build(&rib, &BuildOptions::default())?;
    let mut cost = Cost { updates: updates.len(), ..Cost::default() };
    for window in updates.chunks(WINDOW) {
        let mut in_window = 0;
        for update in window {
            if !rib.apply(update) {
                continue;
            }
            cost.changes += 1;
            let Ok(patch) = engine.update(&table, &rib, &[update.prefix()]) else {
                (engine, table) = E::build(&rib, &BuildOptions::default())?;
                cost.rebuilds += 1;
                continue;
            };
            // Every engine that is played is one that the paper says the memories of.
            let accesses = Accesses::of(table.image(), &patch).unwrap_or_default();
            table.apply(&patch)?;
            cost.total.on_chip += accesses.on_chip;
            cost.total.off_chip += accesses.off_chip;
            cost.worst = cost.worst.max(accesses.total());
            in_window += accesses.total();
        }
        cost.windows.push(in_window as f64 / window.len() as f64);
    }
    Ok(cost)
}

/// An empty sheet of costs.
pub fn summary() -> Sheet {
    Sheet {
        title: format!(
            "Figure 11: memory accesses of an update, windows of {WINDOW} (paper, SAIL_L: mean 1.807-2.253, worst 7.88)"
        ),
        columns: &[
            "table",
            "engine",
            "updates",
            "changes",
            "rebuilds",
            "mean",
            "mean_on_chip",
            "mean_off_chip",
            "mean_of_changes",
            "worst_window",
            "worst_update",
        ],
        rows: Vec::new(),
    }
}

/// A row of [`summary`].
pub fn summary_row(table: &str, engine: &str, cost: &Cost) -> Vec<String> {
    let per = |accesses: u64, updates: usize| format!("{:.3}", accesses as f64 / updates.max(1) as f64);
    let worst_window = cost.windows.iter().copied().fold(0.0, f64::max);
    vec![
        table.to_owned(),
        engine.to_owned(),
        cost.updates.to_string(),
        cost.changes.to_string(),
        cost.rebuilds.to_string(),
        per(cost.total.total(), cost.updates),
        per(cost.total.on_chip, cost.updates),
        per(cost.total.off_chip, cost.updates),
        per(cost.total.total(), cost.changes),
        format!("{worst_window:.3}"),
        cost.worst.to_string(),
    ]
}

/// An empty sheet of SAIL_L's windows: the figure's curve.
pub fn windows() -> Sheet {
    Sheet {
        title: "Figure 11, window by window".into(),
        columns: &["table", "window", "sail_l_accesses_per_update"],
        rows: Vec::new(),
    }
}

/// Rows of [`windows`].
pub fn window_rows<'a>(table: &'a str, cost: &'a Cost) -> impl Iterator<Item = Vec<String>> + 'a {
    let row = |(at, mean): (usize, &f64)| vec![table.to_owned(), at.to_string(), format!("{mean:.3}")];
    cost.windows.iter().enumerate().map(row)
}

#[cfg(test)]
mod tests {
    use wirespeed_fib::{NextHop, V4};
    use wirespeed_sail::{SailB, SailL};

    use super::*;

    #[test]
    fn a_window_and_a_part_of_one_by_hand() {
        let rib: Rib<V4> = [("10.1.2.0/24".parse().unwrap(), NextHop(1))].into_iter().collect();
        let announce = |prefix: &str, next_hop| Update::Announce {
            prefix: prefix.parse().unwrap(),
            next_hop: Some(NextHop(next_hop)),
        };
        // As it is; then one element of bn24; then two elements of bcn16 in one word; then as it is to the
        // end.
        let mut updates = vec![announce("10.1.2.0/24", 1); WINDOW - 1];
        updates.extend([announce("10.1.2.0/24", 2), announce("10.2.0.0/15", 3)]);
        updates.extend([announce("10.2.0.0/15", 3); 3]);
        let cost = play::<V4, SailL>(&rib, &updates).unwrap();
        assert_eq!((cost.updates, cost.changes, cost.rebuilds, cost.worst), (504, 2, 0, 1));
        assert_eq!(cost.total, Accesses { on_chip: 1, off_chip: 1 });
        assert_eq!(cost.windows, [0.002, 0.25]);
        assert_eq!(window_rows("t", &cost).nth(1).unwrap(), ["t", "1", "0.250"]);
        // SAIL_B: an element of n24; a bit of b15 and an element of n15.
        let cost = play::<V4, SailB>(&rib, &updates).unwrap();
        assert_eq!((cost.total, cost.worst), (Accesses { on_chip: 1, off_chip: 2 }, 2));
        assert_eq!(
            summary_row("t", "sail-b", &cost).join(" "),
            "t sail-b 504 2 0 0.006 0.002 0.004 1.500 0.500 2"
        );
    }

    #[test]
    fn a_table_that_is_outgrown_is_built_anew() {
        // One more next hop than one byte holds, then one that the wider table takes.
        let update = |next_hop| Update::Announce {
            prefix: "10.1.2.0/24".parse().unwrap(),
            next_hop: Some(NextHop(next_hop)),
        };
        let cost = play::<V4, SailL>(&Rib::new(), &[update(300), update(301)]).unwrap();
        assert_eq!((cost.changes, cost.rebuilds, cost.total.total()), (2, 1, 1));
    }
}
