//! Sets of cargo features: that each compiles without a warning, that what a build leaves out is refused, and
//! how little the smallest one needs.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};

use crate::step;

/// The crates that have features, and sets of them: none, some alone, what is on by default, all.
const SETS: &[(&str, &[&str])] = &[
    ("wirespeed-table", &[""]),
    ("wirespeed-input", &["", "gzip"]),
    ("wirespeed-fib", &["", "capture,synth", "mrt", "text"]),
    ("wirespeed-namelookup", &["", "papers", "text"]),
    ("wirespeed-classify", &["", "papers", "text"]),
    ("wirespeed-gpu", &["", "names", "rules"]),
    ("wirespeed-records", &["", "tables"]),
    ("wirespeed-esp", &["", "gpu"]),
    ("wirespeed-router", &["", "metrics"]),
    // It passes the feature on to the two crates above.
    ("lookupctl", &["aws-lc"]),
    (
        "wirespeed",
        &["", "names", "rules", "serde", "gpu,names", "gpu,names,papers", "rules,text", "default", "full"],
    ),
];

/// Checks all sets, and runs what is there for builds without features.
pub(crate) fn check() -> Result<()> {
    for (package, sets) in SETS {
        for features in *sets {
            let title =
                format!("features of {package}: {}", if features.is_empty() { "none" } else { features });
            let check =
                ["clippy", "--quiet", "--no-default-features", "--package", package, "--features", features];
            step::run(&title, step::cargo(&check).args(["--", "-D", "warnings"]))?;
        }
    }
    let left_out = ["test", "--quiet", "--no-default-features", "--package", "wirespeed-input", "--lib"];
    step::run("what wirespeed-input leaves out", step::cargo(&left_out).arg("leaves_out"))?;
    let program = ["run", "--quiet", "--locked", "--manifest-path", "crates/wirespeed/smallest/Cargo.toml"];
    for features in ["", "text"] {
        let title = format!("the smallest program: {}", if features.is_empty() { "none" } else { features });
        step::run(
            &title,
            step::cargo(&program).args(["--target-dir", "target/smallest", "--features", features]),
        )?;
    }
    Ok(())
}

/// The packages that a build of `wirespeed` without its default features but with others compiles, with their
/// build scripts' own.
pub(crate) fn packages(features: &str) -> Result<BTreeSet<String>> {
    let tree = ["tree", "--package", "wirespeed", "--edges", "normal,build", "--no-default-features"];
    let mut tree = step::cargo(&tree);
    tree.args(["--features", features, "--prefix", "none", "--no-dedupe", "--offline", "--locked"]);
    let said = tree.output()?;
    ensure!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    let text = String::from_utf8(said.stdout)?;
    Ok(text.lines().filter_map(|line| line.split(' ').next()).map(ToOwned::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_build_needs_few_packages_no_c_compiler_and_no_cuda() {
        let all = packages("").unwrap();
        assert!(all.contains("wirespeed-fib"), "{all:?}");
        assert_eq!(all.len(), 27, "the README and the façade's docs say how many: {all:?}");
        let heavy = ["cc", "cudarc", "zstd", "wirespeed-gpu", "wirespeed-kernels"];
        let found: Vec<_> =
            all.iter().filter(|name| heavy.contains(&&***name) || name.ends_with("-sys")).collect();
        assert!(found.is_empty(), "{found:?}");
    }

    /// The crates of addresses, names and rules that are built with their generators.
    fn with_generators(features: &str) -> BTreeSet<String> {
        let tree = ["tree", "--package", "wirespeed", "--edges", "normal", "--no-default-features"];
        let mut tree = step::cargo(&tree);
        let format = ["--prefix", "none", "--format", "{p} features {f}", "--offline", "--locked"];
        let said = tree.args(["--features", features]).args(format).output().unwrap();
        assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
        let text = String::from_utf8(said.stdout).unwrap();
        let with = text.lines().filter_map(|line| line.split_once(" features "));
        let with = with.filter(|(_, features)| features.split([',', ' ']).any(|one| one == "synth"));
        let with = with.filter_map(|(package, _)| package.split(' ').next());
        with.filter(|name| name.starts_with("wirespeed-")).map(ToOwned::to_owned).collect()
    }

    #[test]
    fn generators_are_built_with_synth_alone() {
        assert_eq!(with_generators("default,compression,mrt,papers"), BTreeSet::new());
        assert_eq!(with_generators("synth"), BTreeSet::from(["wirespeed-fib".to_owned()]), "adds no domain");
        let all = ["wirespeed-classify", "wirespeed-fib", "wirespeed-namelookup"].map(ToOwned::to_owned);
        assert_eq!(with_generators("names,rules,synth"), BTreeSet::from(all));
    }

    #[test]
    fn only_zstd_needs_a_c_compiler() {
        assert!(!packages("default,bzip2,capture,gzip,mrt,papers,synth").unwrap().contains("cc"));
        assert!(packages("zstd").unwrap().contains("cc"));
        assert!(packages("full").unwrap().contains("wirespeed-sail"));
        assert!(!packages("default").unwrap().contains("wirespeed-sail"));
    }
}
