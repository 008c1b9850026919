//! The right answers of the suite, held against the oracle.

use wirespeed_fib::conformance::run;
use wirespeed_namelookup::NameTable;
use wirespeed_namelookup::conformance::{Expected, Right, probes, tables};
use wirespeed_namelookup::oracle::Oracle;

/// The fast right answers are those of the simple oracle, on every table that the suite is run on.
#[test]
fn expected_is_the_oracle() {
    let agree = |names: &NameTable, what: &str| {
        let (expected, oracle) = (Expected::of_table(names), names.iter().collect::<Oracle>());
        let entries: Vec<_> = names.iter().map(|(name, _)| name).collect();
        let around = probes::around(entries.iter().step_by(1 + entries.len() / 300));
        let scattered = probes::scattered(&entries, 300);
        let all = around.names().iter().chain(scattered.names().iter());
        let mut found = 0;
        for name in all.filter(|name| name.components().count() < 1_000) {
            let right = oracle.lookup(name);
            assert_eq!(expected.right(name), right, "{what}: {name}");
            found += usize::from(right.is_some());
        }
        assert!(found > 0 || names.is_empty(), "{what}: nothing was found");
    };
    for (what, names) in tables::hand_picked() {
        agree(&names, what);
    }
    run(64, &tables::random(0..200), |names| agree(&names, "a random table"));
}
