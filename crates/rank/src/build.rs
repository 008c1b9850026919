//! The compilation of ranked chunks from a Rib.
//!
//! Building brings every slot up to
//! date with the Rib, from an empty table, and copies the form into an image that has room for it and more:
//! an eighth more chunks, and a quarter more runs, whose free pieces are not put together again. With an
//! eighth, the real table outgrew them once in its day of updates; with a quarter not in eight such days on
//! end.

use rustc_hash::FxHashMap;
use wirespeed_fib::{BuildError, BuildOptions, Engine, Outgrown, Prefix, Rib, Standing, V4};
use wirespeed_image::{Element, Image, Patch, SectionId};

use crate::chunks::Level;
use crate::form::Rank;
use crate::layout::{
    AFTER, Capacities, LEVEL16, LEVEL24, LEVEL32, LONG, MAX_CHUNKS_24, MAX_NEXT_HOP, MAX_RUNS, RUNS,
    RankTable, Shape, allocate,
};
use crate::refresh::Scope;
use crate::runs::Runs;
use crate::sink::Unrecorded;

impl Engine<V4> for Rank {
    const NAME: &'static str = "rank";
    const STANDING: Standing = Standing::Recommended;
    type Table = RankTable;

    fn build(rib: &Rib<V4>, options: &BuildOptions) -> Result<(Self, RankTable), BuildError> {
        let results = rib.max_next_hop().0;
        let widest = results.max(options.results);
        let limit = |what, limit: u32, found: u64| BuildError::Limit {
            engine: "rank",
            what,
            limit: limit.into(),
            found,
        };
        if widest > MAX_NEXT_HOP {
            return Err(limit("next hops", MAX_NEXT_HOP, widest.into()));
        }
        let most = MAX_RUNS - AFTER;
        // The only bound that a table can reach: there are fewer /16s and /24s than chunk ids.
        let mut rank =
            Self::form(rib, results, most).map_err(|_| limit("runs", most, u64::from(most) + 1))?;
        let capacities = rank.make_room(most, options);
        rank.shape = Shape::for_table(capacities, widest);
        let mut image = allocate(capacities, rank.shape, options.memory_cap)?;
        match rank.shape.ids {
            2 => copy::<u16>(&mut image, LEVEL16, rank.slots.iter().map(|&id| id.into()))?,
            _ => copy::<u32>(&mut image, LEVEL16, rank.slots.iter().map(|&id| id.into()))?,
        }
        for (section, level) in [(LEVEL24, &rank.level24), (LEVEL32, &rank.level32)] {
            copy::<u64>(&mut image, section, level.chunks.iter().flatten().map(|word| word.0))?;
        }
        let runs = rank.runs.values().iter().map(|&value| rank.shape.run(value));
        match rank.shape.runs {
            2 => copy::<u16>(&mut image, RUNS, runs)?,
            _ => copy::<u32>(&mut image, RUNS, runs)?,
        }
        image.set_counts(rib.len() as u64, results.into());
        Ok((rank, RankTable::new(image)))
    }

    fn patch(&mut self, _: &Self::Table, rib: &Rib<V4>, changed: &[Prefix<V4>]) -> Result<Patch, Outgrown> {
        self.patch(rib, changed)
    }

    fn memory_usage(&self) -> u64 {
        let uniform = self.uniform.capacity() * (size_of::<(u32, (u32, u32))>() + 1);
        (self.slots.capacity() * size_of::<u32>() + uniform) as u64
            + self.level24.memory_usage()
            + self.level32.memory_usage()
            + self.runs.memory_usage()
    }
}

impl Rank {
    /// The form of a Rib, with at most so many runs.
    fn form(rib: &Rib<V4>, results: u32, runs: u32) -> Result<Self, Outgrown> {
        let mut rank = Self {
            slots: vec![0; 1 << 16],
            level24: Level::new(LEVEL24, MAX_CHUNKS_24),
            level32: Level::new(LEVEL32, LONG),
            uniform: FxHashMap::default(),
            runs: Runs::new(runs),
            shape: Shape { ids: 4, runs: 4 },
            results,
        };
        rank.touch_slots(rib, Scope::All, &mut Unrecorded)?;
        Ok(rank)
    }

    /// Sets how much there is room for: what is in use, and more for updates.
    fn make_room(&mut self, most_runs: u32, options: &BuildOptions) -> Capacities {
        let more =
            |used: u32, part: u32, least: u32| used.saturating_add(options.head_room_of(used, part, least));
        let chunks = |level: &Level| u32::try_from(level.chunks.len()).unwrap_or(u32::MAX);
        // Up to 2^16 chunks their ids take two bytes; a few less head room is worth that.
        let (used, spare) = (chunks(&self.level24), more(chunks(&self.level24), 8, 32));
        let level24 = if used < 1 << 16 { spare.min(1 << 16) } else { MAX_CHUNKS_24 };
        let level32 = more(chunks(&self.level32), 8, 32).min(LONG);
        let runs = more(self.runs.used(), 4, 512).min(most_runs);
        self.level24.pool.set_capacity(level24);
        self.level32.pool.set_capacity(level32);
        self.runs.set_capacity(runs);
        Capacities { level24, level32, runs }
    }
}

/// Writes the front of a section.
fn copy<T: Element>(
    image: &mut Image,
    section: SectionId,
    values: impl Iterator<Item = u64>,
) -> Result<(), BuildError> {
    for (element, value) in image.section_mut::<T>(section)?.iter_mut().zip(values) {
        *element = T::try_from(value).ok().expect("the widths were chosen for the largest values");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use wirespeed_fib::NextHop;
    use wirespeed_image::Table;

    use super::*;

    #[test]
    fn limits_name_both_numbers() {
        let rib: Rib<V4> = [("10.0.0.0/8".parse().unwrap(), NextHop(MAX_NEXT_HOP + 1))].into_iter().collect();
        let error = Rank::build(&rib, &BuildOptions::default()).unwrap_err().to_string();
        assert_eq!(error, "rank holds 2147483647 next hops, the table has 2147483648");
    }

    #[test]
    fn room_for_runs_is_bounded() {
        // Next hops that alternate: 256 runs, as many as that takes and one less.
        let rib: Rib<V4> =
            (0..=255u8).map(|o| (format!("10.0.{o}.0/24").parse().unwrap(), NextHop(o.into()))).collect();
        assert!(Rank::form(&rib, 255, 257).is_ok());
        assert!(Rank::form(&rib, 255, 256).is_err());
    }

    #[test]
    fn equal_slots_and_words_share() {
        let text = ["0.0.0.0/0", "10.0.0.0/8", "10.7.0.0/24"];
        let rib: Rib<V4> = text.into_iter().zip(1..).map(|(p, n)| (p.parse().unwrap(), NextHop(n))).collect();
        let (rank, table) = Rank::build(&rib, &BuildOptions::default()).unwrap();
        // Chunk 0, one for each of the first two routes, and that of 10.7.
        assert_eq!(rank.level24.chunks.len(), 4);
        // No route, the first two routes, and the two runs of the one word that has several.
        assert_eq!(rank.runs.values().len(), 5);
        assert_eq!(table.image().results(), 3);
    }
}
