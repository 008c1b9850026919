//! Figures 13 and 14: how many updates a second become patches, and what writing the patches takes.
//!
//! **Off-line** is what the paper's host does: the updates of a call go to the Rib, then the engine makes the
//! patch of all of them. Both are timed, and nothing is applied to a table. A call after which the table has
//! to be built anew is counted and its build is not in the rate, as building goes on beside.
//!
//! **On-line** is what the device then does. GAMT's bubbles are the writes of a patch, one each, and it loads
//! nothing. GALE works through its updates one after another and loads the lengths that it compares
//! ([`wirespeed_dir24::accesses`] says what is counted). An update that changes nothing takes neither of them
//! anything; the paper's GALE may well have written what was there already.

use std::time::{Duration, Instant};

use anyhow::Result;
use wirespeed_dir24::Dir24;
use wirespeed_dir24::accesses::Accesses;
use wirespeed_fib::{Address, BuildOptions, Engine, Prefix, Rib, Update, V4};

use super::millions;
use crate::report::Sheet;

/// Updates a call in figure 13.
pub const CALLS: [usize; 3] = [256, 4_096, 65_536];

/// The cost of a stream of updates, call by call.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Played {
    /// Updates in all.
    pub updates: usize,
    /// Updates that changed the Rib.
    pub changes: usize,
    /// Writes of all patches.
    pub writes: u64,
    /// The most that one call took.
    pub most: u64,
    /// The number of times that the table was built anew instead.
    pub rebuilds: usize,
    /// Time for Rib and patches, without the builds.
    pub spent: Duration,
}

impl Played {
    /// Updates a second.
    pub fn rate(&self) -> f64 {
        self.updates as f64 / self.spent.as_secs_f64()
    }

    /// Writes an update, of those in patches and not in builds.
    pub fn writes_per_update(&self) -> f64 {
        self.writes as f64 / self.updates.max(1) as f64
    }
}

/// An engine with its routes, which turns updates into patches that nobody applies.
pub struct Offline<A: Address, E: Engine<A>> {
    rib: Rib<A>,
    engine: E,
    /// The table that was built: patches are made and go nowhere. No engine that is played here reads it.
    table: E::Table,
    options: BuildOptions,
    changed: Vec<Prefix<A>>,
}

impl<A: Address, E: Engine<A>> Offline<A, E> {
    /// Copies the routes and builds.
    pub fn new(rib: &Rib<A>, options: &BuildOptions) -> Result<Self> {
        let (engine, table) = E::build(rib, options)?;
        Ok(Self { rib: rib.clone(), engine, table, options: options.clone(), changed: Vec::new() })
    }

    /// The routes now.
    pub fn rib(&self) -> &Rib<A> {
        &self.rib
    }

    /// The engine now.
    pub fn engine(&self) -> &E {
        &self.engine
    }

    /// One call; adds to what was played.
    pub fn call(&mut self, updates: &[Update<A>], played: &mut Played) -> Result<()> {
        let start = Instant::now();
        self.changed.clear();
        let rib = &mut self.rib;
        self.changed.extend(updates.iter().filter(|update| rib.apply(update)).map(Update::prefix));
        played.changes += self.changed.len();
        // As in a live table.
        self.changed.sort_unstable();
        self.changed.dedup();
        let patch = self.engine.update(&self.table, &self.rib, &self.changed);
        played.spent += start.elapsed();
        played.updates += updates.len();
        match patch {
            Ok(patch) => {
                let writes = patch.writes().len() as u64;
                played.writes += writes;
                played.most = played.most.max(writes);
            }
            Err(_) => {
                (self.engine, self.table) = E::build(&self.rib, &self.options)?;
                played.rebuilds += 1;
            }
        }
        Ok(())
    }
}

/// Plays all updates in calls of one size.
pub fn play<A: Address, E: Engine<A>>(
    rib: &Rib<A>,
    updates: &[Update<A>],
    call: usize,
    options: &BuildOptions,
) -> Result<Played> {
    let mut offline = Offline::<A, E>::new(rib, options)?;
    let mut played = Played::default();
    for updates in updates.chunks(call) {
        offline.call(updates, &mut played)?;
    }
    Ok(played)
}

/// An empty sheet of figure 13.
pub fn rates() -> Sheet {
    Sheet {
        title: "Figure 13: million off-line updates a second (paper: GAMT_S up to 2.7, GALE about as many, GAMT_T fewer)".into(),
        columns: &[
            "table",
            "engine",
            "updates_a_call",
            "updates",
            "changes",
            "least",
            "median",
            "most",
            "rebuilds",
        ],
        rows: Vec::new(),
    }
}

/// A row of figure 13: the same stream played several times.
pub fn rates_row(table: &str, engine: &str, call: usize, rounds: &[Played]) -> Vec<String> {
    let rates: Vec<f64> = rounds.iter().map(Played::rate).collect();
    let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
    let most = rates.iter().copied().fold(0.0, f64::max);
    let first = rounds.first().copied().unwrap_or_default();
    vec![
        table.to_owned(),
        engine.to_owned(),
        call.to_string(),
        first.updates.to_string(),
        first.changes.to_string(),
        format!("{:.2}", if rates.is_empty() { 0.0 } else { least } / 1e6),
        millions(&rates),
        format!("{:.2}", most / 1e6),
        first.rebuilds.to_string(),
    ]
}

/// An empty sheet of figure 14.
pub fn accesses() -> Sheet {
    Sheet {
        title: "Figure 14: memory accesses an update on the device (paper: GAMT_T 94.7-96.6 % fewer than GALE, 90.3-92.5 % without \
                GALE's loads; GAMT_S a further 78.7-88.2 % fewer)"
            .into(),
        columns: &[
            "table",
            "engine",
            "updates_a_call",
            "loads",
            "writes",
            "accesses",
            "most_writes_a_call",
            "fewer_than_gale_percent",
            "fewer_than_its_writes_percent",
            "fewer_than_gamt_t_percent",
            "rebuilds",
        ],
        rows: Vec::new(),
    }
}

/// The cost of an update for an engine.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct OnLine {
    /// Loads an update.
    pub loads: f64,
    /// Writes an update.
    pub writes: f64,
}

/// The cost of an update for GALE: each by itself.
pub fn gale(rib: &Rib<V4>, updates: &[Update<V4>]) -> Result<OnLine> {
    let mut rib = rib.clone();
    let (mut engine, mut table) = Dir24::build(&rib, &BuildOptions::default())?;
    let mut total = Accesses::default();
    for update in updates {
        if !rib.apply(update) {
            continue;
        }
        let prefix = update.prefix();
        let accesses = Accesses::of(&engine, &rib, prefix);
        total.loads += accesses.loads;
        total.writes += accesses.writes;
        if engine.update(&table, &rib, &[prefix]).is_err() {
            (engine, table) = Dir24::build(&rib, &BuildOptions::default())?;
        }
    }
    let per_update = |accesses: u64| accesses as f64 / updates.len().max(1) as f64;
    Ok(OnLine { loads: per_update(total.loads), writes: per_update(total.writes) })
}

/// A row of figure 14, beside GALE's and GAMT_T's where there are such to compare with.
pub fn accesses_row(
    table: &str,
    engine: &str,
    call: usize,
    played: &Played,
    gale: Option<OnLine>,
    gamt_t: Option<&Played>,
) -> Vec<String> {
    let writes = played.writes_per_update();
    let fewer = |than: Option<f64>| {
        than.filter(|&than| than > 0.0)
            .map_or_else(String::new, |than| format!("{:.1}", 100.0 * (1.0 - writes / than)))
    };
    vec![
        table.to_owned(),
        engine.to_owned(),
        call.to_string(),
        "0.000".to_owned(),
        format!("{writes:.3}"),
        format!("{writes:.3}"),
        played.most.to_string(),
        fewer(gale.map(|gale| gale.loads + gale.writes)),
        fewer(gale.map(|gale| gale.writes)),
        fewer(gamt_t.map(Played::writes_per_update)),
        played.rebuilds.to_string(),
    ]
}

/// GALE's own row of figure 14.
pub fn gale_row(table: &str, gale: OnLine) -> Vec<String> {
    let mut row = vec![table.to_owned(), "gale".to_owned(), "1".to_owned()];
    row.extend([gale.loads, gale.writes, gale.loads + gale.writes].map(|number| format!("{number:.3}")));
    row.extend(std::iter::repeat_n(String::new(), 5));
    row
}

/// Plays a stream.
pub type Play<A> = fn(&Rib<A>, &[Update<A>], usize, &BuildOptions) -> Result<Played>;

/// Plays a stream as often as there are rounds, all engines in turn: what came out, by engine.
pub fn rounds<A: Address>(
    rounds: usize,
    engines: &[(&'static str, Play<A>)],
    rib: &Rib<A>,
    updates: &[Update<A>],
    call: usize,
) -> Result<Vec<Vec<Played>>> {
    let mut played = vec![Vec::new(); engines.len()];
    for _ in 0..rounds {
        for (played, (_, play)) in played.iter_mut().zip(engines) {
            played.push(play(rib, updates, call, &BuildOptions::default())?);
        }
    }
    Ok(played)
}

#[cfg(test)]
mod tests {
    use wirespeed_dir24::Dir24;
    use wirespeed_fib::{NextHop, Strides, V4};
    use wirespeed_gamt::{GamtS, GamtT};

    use super::*;

    fn announce(prefix: &str, next_hop: u32) -> Update<V4> {
        Update::Announce { prefix: prefix.parse().unwrap(), next_hop: Some(NextHop(next_hop)) }
    }

    fn table() -> Rib<V4> {
        [("10.0.0.0/8", 1), ("10.1.0.0/16", 2)]
            .into_iter()
            .map(|(prefix, next_hop)| (prefix.parse().unwrap(), NextHop(next_hop)))
            .collect()
    }

    /// Levels of 8 bits.
    fn options() -> BuildOptions {
        BuildOptions { strides: Strides::Given(vec![8, 8]), ..BuildOptions::default() }
    }

    #[test]
    fn bubbles_by_hand() {
        // All of 10/8 but 10.1/16; as it is; 10.1/16, twice.
        let updates = [
            announce("10.0.0.0/8", 3),
            announce("10.0.0.0/8", 3),
            announce("10.1.0.0/16", 4),
            announce("10.1.0.0/16", 5),
        ];
        let gamt_t = play::<V4, GamtT<V4>>(&table(), &updates, 1, &options()).unwrap();
        assert_eq!((gamt_t.updates, gamt_t.changes, gamt_t.writes, gamt_t.most), (4, 3, 255 + 1 + 1, 255));
        assert_eq!(gamt_t.writes_per_update(), 64.25);
        // Together the last two are one bubble.
        let gamt_t = play::<V4, GamtT<V4>>(&table(), &updates, 4, &options()).unwrap();
        assert_eq!((gamt_t.changes, gamt_t.writes, gamt_t.most), (3, 256, 256));
        // One word a prefix, wherever its leaves are.
        let gamt_s = play::<V4, GamtS<V4>>(&table(), &updates, 1, &options()).unwrap();
        assert_eq!((gamt_s.changes, gamt_s.writes, gamt_s.most), (3, 3, 1));
    }

    #[test]
    fn a_table_that_is_outgrown_is_built_anew_and_goes_on() {
        // Longer than two levels of 8 bits reach; the strides that were given can't hold it either.
        let deeper = [announce("10.1.2.0/24", 1)];
        assert!(play::<V4, GamtT<V4>>(&table(), &deeper, 1, &options()).is_err());
        let by_levels = BuildOptions {
            strides: Strides::Levels { levels: 2, transaction: 128 },
            ..BuildOptions::default()
        };
        let updates = [announce("10.1.2.0/24", 1), announce("10.1.2.0/24", 2)];
        let played = play::<V4, GamtT<V4>>(&table(), &updates, 1, &by_levels).unwrap();
        assert_eq!((played.updates, played.rebuilds, played.writes), (2, 1, 1));
    }

    #[test]
    fn gale_loads_the_length_of_each_slot_and_writes_two() {
        // 2^16 slots of which 2^8 are another prefix's; as it is; 2^8 slots.
        let updates = [announce("10.0.0.0/8", 3), announce("10.0.0.0/8", 3), announce("10.1.0.0/16", 4)];
        let gale = gale(&table(), &updates).unwrap();
        assert_eq!(gale.loads, f64::from(65_536 + 256) / 3.0);
        assert_eq!(gale.writes, f64::from(2 * (65_536 - 256) + 2 * 256) / 3.0);
    }

    #[test]
    fn rows_say_how_many_fewer() {
        let played = |writes| Played { updates: 100, changes: 90, writes, most: 7, ..Played::default() };
        let gale = OnLine { loads: 2.0, writes: 1.0 };
        let row = accesses_row("t", "gamt-s", 256, &played(25), Some(gale), Some(&played(50)));
        assert_eq!(row.join(" "), "t gamt-s 256 0.000 0.250 0.250 7 91.7 75.0 50.0 0");
        let row = accesses_row("t", "gamt", 256, &played(0), None, Some(&played(0)));
        assert_eq!(row[7..].join("|"), "|||0");
        assert_eq!(gale_row("t", gale).len(), accesses().columns.len());
    }

    #[test]
    fn rounds_are_of_all_engines() {
        let engines: [(&str, Play<V4>); 2] = [("gamt", play::<V4, GamtT<V4>>), ("dir24", play::<V4, Dir24>)];
        let updates = [announce("10.0.0.0/8", 3)];
        let played = rounds(3, &engines, &table(), &updates, 256).unwrap();
        assert_eq!(played.iter().map(Vec::len).collect::<Vec<_>>(), [3, 3]);
        let row = rates_row("t", "gamt", 256, &played[0]);
        assert_eq!((row.len(), &row[..5].join(" ")), (rates().columns.len(), &"t gamt 256 1 1".to_owned()));
        assert!(row[6].parse::<f64>().unwrap() > 0.0);
    }
}
