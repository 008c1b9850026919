//! [`Suite`]: what the shared tests have to know of a domain.

use wirespeed_image::rounds;

use crate::domain::Domain;
use crate::engine::Engine;
use crate::lookup::Lookup;
use crate::options::BuildOptions;

/// A domain under test. It is a trait of a marker, so that one marker does for all types of tuples.
pub trait Suite<D: Domain> {
    /// The name of what is built, in the plural.
    const TABLES: &'static str;
    /// Bytes of copies of one image that tests of damaged ones make, and how many they make, at most.
    const DAMAGED: (u64, u64);
    /// Whether no engine can do with a byte less than it takes without a cap.
    const IS_EXACT: bool = false;
    /// Whether one image may have a section in elements of one width, another one in those of another.
    const WIDTHS_VARY: bool = false;
    /// Whether elements that no lookup reads may be what a patch must not touch, and an image may have
    /// otherwise: the shape of its table.
    const SHAPES_VARY: bool = false;

    /// Whether a lookup finds more than a result.
    const FINDS_MORE: bool = false;
    /// A value that no lookup finds.
    const UNWRITTEN: D::Found;
    /// Sizes of batches that all keys are looked up in.
    const SHORT: &'static [usize] = &[15, 33];
    /// Keys of a table that are looked up step by step.
    const EXPLAINED: usize = 200;
    /// Words before a result in the last step of a lookup, and those for none.
    const SAYS: (&str, &str) = ("result ", "no match");

    /// Keys of a batch.
    type Batch: Sync;

    /// The keys of a batch.
    fn keys(batch: &Self::Batch) -> D::Keys<'_>;

    /// One key of a batch.
    fn key<'k>(keys: D::Keys<'k>, at: usize) -> D::Key<'k>;

    /// A key in words.
    fn show(key: D::Key<'_>) -> String;

    /// Whether the last step of a lookup says that the result is this one.
    fn is_said(meaning: &str, right: D::Result) -> bool {
        let says = match meaning.split_once(Self::SAYS.0) {
            Some((_, result)) => {
                result.split(|c: char| !c.is_ascii_digit()).next().and_then(|n| n.parse().ok())
            }
            None if meaning.contains(Self::SAYS.1) => Some(0),
            None => None,
        };
        says == Some(Self::number(right))
    }

    /// Says a result in as few words.
    fn say(result: D::Result) -> String {
        match Self::number(result) {
            0 => Self::SAYS.1.to_owned(),
            number => format!("{}{number}", Self::SAYS.0),
        }
    }

    /// The result of what was found.
    fn result(found: D::Found) -> D::Result;

    /// A result as a number.
    fn number(result: D::Result) -> u64;

    /// Whether any table could say this of a key.
    fn is_possible(key: D::Key<'_>, found: D::Found) -> bool {
        let _ = (key, found);
        true
    }

    /// Tables that were picked by hand, with their names.
    fn hand_picked() -> Vec<(&'static str, D::Source)>;

    /// A table of some entries.
    fn few() -> D::Source;

    /// Keys around a few entries of a table.
    fn around(source: &D::Source) -> Self::Batch;

    /// Whether a table that was picked by hand, at this place among them, is small enough to be damaged.
    fn is_damaged(at: usize, source: &D::Source) -> bool {
        let _ = (at, source);
        true
    }

    /// Holds a table against what it was made of.
    fn check_all(table: &dyn Lookup<D>, source: &D::Source, what: &str);

    /// The size of a table in words, if every engine has to hold it.
    fn small(source: &D::Source) -> Option<String>;

    /// Options to build with.
    fn options() -> BuildOptions {
        options()
    }
}

/// The options that suites build with: a seed, so that every run is the same.
pub fn options() -> BuildOptions {
    BuildOptions { seed: Some(1), ..BuildOptions::default() }
}

/// The step from one hand-picked table to the next that an engine is tested on.
pub fn table_step<D: Domain, E: Engine<D>>() -> usize {
    rounds::table_step(E::STANDING.is_paper())
}

/// The number of rounds for an engine whose image of an empty table has `bytes` bytes: fewer for engines that
/// are there for a paper, unless all are asked for.
pub fn affordable<D: Domain, E: Engine<D>>(rounds: u32, bytes: u64) -> u32 {
    let step = u32::try_from(table_step::<D, E>()).expect("small");
    rounds::affordable(rounds, bytes).div_ceil(step)
}
