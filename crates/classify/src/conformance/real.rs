//! Real-like sets, where they are at hand. ClassBench sets come with a trace and the right answers; OpenFlow
//! sets are held against the fast oracle.

use std::path::PathBuf;

use wirespeed_image::real_data;
use wirespeed_input::{Input, Source, open};
use wirespeed_rng::Rng;
use wirespeed_table::Engine;

use super::history::Patched;
use super::{Tally, check_batch, check_counts, probes};
use crate::oracle::{Expected, Right};
use crate::read::{ReadOptions, read_rules, read_trace};
use crate::rules::RuleSet;
use crate::tuple::{Ipv4Tuple, OpenFlowTuple};
use crate::update::RuleUpdate;

/// The sets of ClassBench, by what the names of their files start with.
pub const CLASSBENCH: [&str; 5] = ["acl1", "acl3", "fw1", "fw2", "ipc1"];
/// Their sizes, by what follows in these names.
pub const SIZES: [&str; 3] = ["1k", "10k", "100k"];
/// The OpenFlow sets.
pub const OPENFLOW: [&str; 2] = ["openflow-of1.txt.zst", "openflow-of2.txt.zst"];

/// The folder of rule sets, if it is there.
pub fn folder() -> Option<PathBuf> {
    real_data("rules")
}

/// A set with its trace and, for each tuple, the number that is right.
#[derive(Clone, Debug)]
pub struct RealSet {
    /// The rules.
    pub rules: RuleSet<Ipv4Tuple>,
    /// The trace.
    pub trace: Vec<Ipv4Tuple>,
    /// The right answers.
    pub right: Vec<u32>,
}

/// Reads a set of ClassBench by its name, such as `acl1_10k`; `None` where it isn't there.
pub fn classbench_set(name: &str) -> Option<RealSet> {
    use std::io::Read as _;
    let dir = folder()?;
    let source = |what: &str| Source::Path(dir.join(format!("{name}.{what}.zst")));
    let (file, _) = read_rules(&source("rules"), &ReadOptions::default()).expect("the filters are read");
    let (trace, _) = read_trace(&source("trace"), &ReadOptions::default()).expect("the trace is read");
    let mut truth = Vec::new();
    let mut input: Input<'_> = open(&source("truth-u32le")).expect("the right answers are opened");
    input.read_to_end(&mut truth).expect("the right answers are read");
    // The file counts filters from 0.
    let right =
        truth.chunks_exact(4).map(|n| 1 + u32::from_le_bytes(n.try_into().expect("4 bytes"))).collect();
    Some(RealSet { rules: file.rules, trace, right })
}

/// Reads an OpenFlow set by the name of its file; `None` where it isn't there.
pub fn openflow_set(file: &str) -> Option<RuleSet<OpenFlowTuple>> {
    let source = Source::Path(folder()?.join(file));
    Some(read_rules(&source, &ReadOptions::default()).expect("the flows are read").0.rules)
}

/// Every ClassBench set with its trace and its right answers: built whole, and patched with a tenth of its
/// rules gone and back. Of the largest traces a part, as an engine may look at every rule.
pub fn real_classbench<E: Engine<Ipv4Tuple>>(sizes: &[&str]) {
    let tally = Tally::<Ipv4Tuple, E>::new("real_classbench");
    let mut there = false;
    for name in sizes.iter().flat_map(|size| CLASSBENCH.map(|set| format!("{set}_{size}"))) {
        let Some(RealSet { rules, trace, right }) = classbench_set(&name) else { return };
        there = true;
        assert_eq!(trace.len(), right.len(), "{name}: an answer for each tuple");
        // A product of rules and tuples that a scan has time for.
        let every = (rules.len() * trace.len() / 200_000_000).max(1);
        let trace: Vec<_> = trace.into_iter().step_by(every).collect();
        let right: Vec<_> = right.into_iter().step_by(every).collect();
        let some: Vec<u32> = rules.sorted().iter().step_by(10).map(|(number, _)| number.get()).collect();
        let Some(mut patched) = Patched::<_, E>::new(&tally, rules.clone(), &name) else { continue };
        check_batch(&patched.table, &right, &trace, &name);
        check_counts::<_, E>(&patched.table, &rules, &name);
        let removes: Vec<_> = some.iter().map(|&number| RuleUpdate::Remove(number)).collect();
        let back = |&number: &u32| RuleUpdate::Set(number, rules.rule(number).expect("it was there").clone());
        let backs: Vec<_> = some.iter().map(back).collect();
        for updates in removes.chunks(1_000) {
            if patched.apply(updates, &name).is_none() {
                return tally.finish();
            }
        }
        let part = &trace[..trace.len().min(2_000)];
        let expected = Expected::of(&patched.model);
        let without: Vec<_> = part.iter().map(|tuple| expected.right(tuple)).collect();
        check_batch(&patched.table, &without, part, &name);
        for updates in backs.chunks(1_000) {
            if patched.apply(updates, &name).is_none() {
                return tally.finish();
            }
        }
        check_batch(&patched.table, &right, &trace, &name);
    }
    if there {
        tally.finish();
    }
}

/// The OpenFlow sets: tuples around their flows.
pub fn real_openflow<E: Engine<OpenFlowTuple>>() {
    let tally = Tally::<OpenFlowTuple, E>::new("real_openflow");
    for file in OPENFLOW {
        let Some(rules) = openflow_set(file) else { return };
        assert!(rules.len() > 50_000, "{file}: {} flows", rules.len());
        let Some((_, table)) = tally.build(&rules, file) else { continue };
        let expected = Expected::of(&rules);
        let mut rng = Rng::new(3);
        let mut tuples = probes::around(&rules, 300);
        rng.shuffle(&mut tuples);
        let right: Vec<_> = tuples.iter().map(|tuple| expected.right(tuple)).collect();
        assert!(right.iter().filter(|&&number| number > 0).count() > 300, "{file}: few are found");
        check_batch(&table, &right, &tuples, file);
        check_counts::<_, E>(&table, &rules, file);
    }
    tally.finish();
}
