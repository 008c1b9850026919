//! Sets of rules to measure on, with traces and the answers that are right.
//!
//! Real ones are those of ClassBench by the names of their files (`acl1_10k`). Their headers come in bursts,
//! as ClassBench draws them, so that each trace is measured in its order and shuffled. Where a set is not at
//! hand one is made in its place, and its name says so.

use std::io::Read as _;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use rayon::prelude::*;
use wirespeed_classify::generate::{self, Kind};
use wirespeed_classify::oracle::{Expected, Right};
use wirespeed_classify::read::{ReadOptions, Source, open, read_rules, read_trace};
use wirespeed_classify::{Ipv4Tuple, RuleSet, Tuple};
use wirespeed_fib::synth::rng::Rng;

use crate::data::directory;
use crate::report::Setting;

/// A set, what is looked up in it, and the right answers.
#[derive(Clone, Debug)]
pub struct Set {
    /// The name in records.
    pub name: String,
    /// The rules.
    pub rules: RuleSet<Ipv4Tuple>,
    /// The tuples that are looked up, in the order of their file.
    pub trace: Vec<Ipv4Tuple>,
    /// The number of each one's rule.
    pub right: Vec<u32>,
}

impl Set {
    /// The set without a trace, for the rows of a record: rules stand where prefixes do, and masks where next
    /// hops do.
    pub fn setting(&self) -> Setting {
        Setting::of_table(&self.name, self.rules.len(), self.rules.classes().len())
    }
}

/// Seed of sets that are made.
const SEED: u64 = 1;
/// How often in a row a made tuple comes, on average: as the traces of ClassBench have it.
const BURST: f64 = 3.0;
/// Tuples of the trace of a set that is made.
const TRACE: usize = 100_000;

/// A set by the name of its files, such as `fw1_10k`: the real one where it is, else one that is made.
pub fn set(name: &str) -> Result<Set> {
    let file = |what: &str| directory().join("rules").join(format!("{name}.{what}.zst"));
    if file("rules").is_file() { real(name, file) } else { made(name, TRACE) }
}

fn real(name: &str, file: impl Fn(&str) -> PathBuf) -> Result<Set> {
    let source = |what: &str| Source::Path(file(what));
    let (rules, _) = read_rules::<Ipv4Tuple>(&source("rules"), &ReadOptions::default())?;
    let (trace, _) = read_trace::<Ipv4Tuple>(&source("trace"), &ReadOptions::default())?;
    let mut truth = Vec::new();
    open(&source("truth-u32le"))?.read_to_end(&mut truth)?;
    // The file counts rules from 0.
    let right: Vec<u32> =
        truth.as_chunks().0.iter().map(|&bytes| u32::from_le_bytes(bytes).wrapping_add(1)).collect();
    ensure!(trace.len() == right.len(), "{name}: {} tuples, {} answers", trace.len(), right.len());
    Ok(Set { name: name.to_owned(), rules: rules.rules, trace, right })
}

/// A set of the kind and the size that a name says, with a trace of so many tuples.
pub(super) fn made(name: &str, tuples: usize) -> Result<Set> {
    let (kind, size) = name.split_once('_').with_context(|| format!("{name} is not as acl1_10k"))?;
    let kind: Kind =
        kind.trim_end_matches(|c: char| c.is_ascii_digit()).parse().map_err(anyhow::Error::msg)?;
    let thousands: usize =
        size.strip_suffix('k').with_context(|| format!("{size} is not as 10k"))?.parse()?;
    let rules = generate::classbench::<Ipv4Tuple>(kind, 1_000 * thousands, SEED);
    let trace = generate::tuples(&rules, tuples, BURST, SEED);
    let right = right(&rules, &trace);
    eprintln!("{name} is not in {}: a made set stands for it", directory().join("rules").display());
    Ok(Set { name: format!("made-{}_{size}", kind.name()), rules, trace, right })
}

/// The oracle's answers, found on all cores.
pub fn right<T: Tuple>(rules: &RuleSet<T>, trace: &[T]) -> Vec<u32> {
    let expected = Expected::of(rules);
    trace.par_iter().map(|tuple| expected.right(tuple)).collect()
}

impl Set {
    /// The tuples and their answers, shuffled.
    pub fn shuffled(&self, seed: u64) -> (Vec<Ipv4Tuple>, Vec<u32>) {
        let mut both: Vec<_> = self.trace.iter().copied().zip(self.right.iter().copied()).collect();
        Rng::new(seed).shuffle(&mut both);
        both.into_iter().unzip()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn made_sets_are_what_their_names_say() {
        let set = made("fw1_1k", 1_500).unwrap();
        assert_eq!((set.name.as_str(), set.rules.len(), set.trace.len()), ("made-fw_1k", 1_000, 1_500));
        assert!(set.right.iter().all(|&number| number > 0));
        let (trace, right) = set.shuffled(7);
        assert_ne!(trace, set.trace);
        let expected = Expected::of(&set.rules);
        let pairs = || trace.iter().zip(&right).step_by(50);
        assert!(pairs().all(|(tuple, &number)| expected.right(tuple) == number));
        for wrong in ["fw1", "nat1_1k", "fw1_1m", "fw1_k"] {
            assert!(made(wrong, 1).is_err(), "{wrong}");
        }
    }
}
