//! [`Description`]: what a choice of strides comes to, for people.

use std::fmt::{self, Display, Formatter};

use super::narrowest::transactions;
use super::{Objective, Profile, Units, levels};

/// A choice of strides on a table: its sizes and what a lookup is expected to cost. Head room is not in them.
#[derive(Clone, Debug, PartialEq)]
pub struct Description {
    /// The strides, from the first bit on.
    pub strides: Vec<u8>,
    /// The levels, in the same order.
    pub levels: Vec<Level>,
    /// Prefixes of the table.
    pub prefixes: u64,
    /// Units of all levels.
    pub units: u64,
    /// Bytes of all levels.
    pub bytes: u64,
    /// Units of the widest level, the paper's array width.
    pub array_width: u64,
    /// Bytes a prefix: of all levels, each as wide as it is.
    pub bytes_per_prefix: f64,
    /// Bytes a prefix as the paper counts them (footnote 9): levels × array width, its array having two
    /// dimensions.
    pub paper_bytes_per_prefix: f64,
    /// Bytes of a memory transaction.
    pub transaction_bytes: u32,
    /// Memory transactions, of all levels (the paper's footnote 7).
    pub transactions: u64,
    /// Levels that a lookup is expected to read, in the objective's mixture of traffic.
    pub reads: f64,
    /// Nanoseconds that a lookup in a batch is expected to take, by the objective's costs.
    pub nanoseconds: f64,
}

/// A level of a [`Description`].
#[derive(Clone, Debug, PartialEq)]
pub struct Level {
    /// The first bit.
    pub start: u8,
    /// The bits that it takes.
    pub stride: u8,
    /// Tables of 2^stride units.
    pub nodes: u64,
    /// Units.
    pub units: u64,
    /// Bytes of a unit.
    pub unit_bytes: u32,
    /// Bytes.
    pub bytes: u64,
    /// The probability that a lookup of a random address reads it.
    pub reach_random: f64,
    /// The probability that a lookup of an address drawn from a prefix reads it.
    pub reach_prefix: f64,
    /// Nanoseconds that it is expected to take of a lookup.
    pub nanoseconds: f64,
}

impl Description {
    /// Describes strides on a table whose largest next-hop index (or whatever its leaves hold) is known.
    pub fn of(
        profile: &Profile,
        strides: &[u8],
        unit: Units,
        largest_leaf: u32,
        transaction_bytes: u32,
        objective: &Objective,
    ) -> Self {
        let levels: Vec<Level> = levels(strides)
            .zip(unit.bytes(profile, strides, largest_leaf))
            .map(|((start, stride), unit_bytes)| {
                let units = profile.units(start, stride);
                let bytes = units.saturating_mul(unit_bytes.into());
                Level {
                    start,
                    stride,
                    nodes: profile.nodes(start),
                    units,
                    unit_bytes,
                    bytes,
                    reach_random: profile.reach_random(start),
                    reach_prefix: profile.reach_prefix(start),
                    nanoseconds: objective.nanoseconds(profile, start, bytes),
                }
            })
            .collect();
        let sum = |of: fn(&Level) -> u64| levels.iter().map(of).fold(0, u64::saturating_add);
        let (units, bytes) = (sum(|level| level.units), sum(|level| level.bytes));
        let array_width = levels.iter().map(|level| level.units).max().unwrap_or(0);
        let widest_unit = levels.iter().map(|level| level.unit_bytes).max().unwrap_or(0);
        let array = array_width.saturating_mul(levels.len() as u64).saturating_mul(widest_unit.into());
        let per_prefix = |bytes: u64| bytes as f64 / profile.prefixes().max(1) as f64;
        Self {
            strides: strides.to_vec(),
            prefixes: profile.prefixes(),
            units,
            bytes,
            array_width,
            bytes_per_prefix: per_prefix(bytes),
            paper_bytes_per_prefix: per_prefix(array),
            transaction_bytes,
            transactions: levels
                .iter()
                .map(|level| transactions(level.units, transaction_bytes, level.unit_bytes))
                .fold(0, u64::saturating_add),
            reads: levels.iter().map(|level| profile.reach(level.start, objective.prefix_traffic)).sum(),
            nanoseconds: levels.iter().map(|level| level.nanoseconds).sum(),
            levels,
        }
    }
}

impl Display for Description {
    /// One line: `14,4,3,3: 0.07 + 0.62 + 2.51 + 4.90 MB, units of 4,4,4,4 bytes, 8.2 bytes a prefix, …`.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let megabytes = |bytes: u64| format!("{:.2}", bytes as f64 / f64::from(1 << 20));
        let list = |numbers: Vec<String>, between: &str| numbers.join(between);
        write!(
            f,
            "{}: {} MB, units of {} bytes, {:.1} bytes a prefix, {} transactions of {} bytes, {:.2} reads, {:.2} ns",
            list(self.strides.iter().map(u8::to_string).collect(), ","),
            list(self.levels.iter().map(|level| megabytes(level.bytes)).collect(), " + "),
            list(self.levels.iter().map(|level| level.unit_bytes.to_string()).collect(), ","),
            self.bytes_per_prefix,
            self.transactions,
            self.transaction_bytes,
            self.reads,
            self.nanoseconds,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::Costs;
    use super::*;

    #[test]
    fn a_choice_by_hand() {
        let profile =
            Profile::from_parts(10, vec![1, 2, 3, 4], vec![1.0, 0.8, 0.6, 0.2], vec![1.0, 0.9, 0.8, 0.6]);
        let costs = Costs::new([(0, 1.0), (1, 2.0)]).unwrap();
        let objective = Objective { costs, step: 0.0, prefix_traffic: 0.5, ..Objective::default() };
        let described = Description::of(&profile, &[2, 1, 1], Units::Paper, 7, 32, &objective);
        let units: Vec<u64> = described.levels.iter().map(|level| level.units).collect();
        assert_eq!(units, [4, 6, 8]);
        assert_eq!((described.units, described.bytes, described.array_width), (18, 72, 8));
        assert_eq!((described.bytes_per_prefix, described.paper_bytes_per_prefix), (7.2, 9.6));
        assert_eq!(described.transactions, 1 + 1 + 1);
        assert!((described.reads - (1.0 + 0.7 + 0.4)).abs() < 1e-12);
        assert!((described.nanoseconds - described.reads).abs() < 1e-12);
        assert_eq!(
            described.to_string(),
            "2,1,1: 0.00 + 0.00 + 0.00 MB, units of 4,4,4 bytes, 7.2 bytes a prefix, 3 transactions of 32 bytes, 2.10 reads, 2.10 ns"
        );
        let wide = Description::of(&profile, &[2, 1, 1], Units::Paper, 1 << 24, 32, &objective);
        assert_eq!((wide.levels[0].unit_bytes, wide.bytes, wide.transactions), (8, 144, 1 + 2 + 2));
        let narrow = Description::of(&profile, &[2, 1, 1], Units::Narrow, 7, 32, &objective);
        assert_eq!(
            (narrow.bytes, narrow.paper_bytes_per_prefix),
            (4 * 2 + 6 * 2 + 8, 3.0 * 8.0 * 2.0 / 10.0)
        );
    }

    #[test]
    fn levels_past_the_deepest_prefix_are_empty() {
        let profile = Profile::from_parts(1, vec![1, 1], vec![1.0; 2], vec![1.0; 2]);
        let described = Description::of(&profile, &[2, 8], Units::Paper, 1, 128, &Objective::default());
        assert_eq!((described.levels[1].units, described.levels[1].nanoseconds), (0, 0.0));
        assert_eq!((described.units, described.transactions), (4, 1));
    }
}
