//! Sets of cargo features that have to compile, each without a warning.

use anyhow::Result;

use crate::step;

/// The crates that have features, and sets of them: none, one alone, all.
const SETS: &[(&str, &[&str])] = &[
    ("wirespeed-table", &[""]),
    ("wirespeed-input", &["", "gzip"]),
    ("wirespeed-fib", &["", "capture,synth", "mrt", "text"]),
    ("wirespeed-namelookup", &["", "text"]),
    ("wirespeed-classify", &["", "text"]),
    ("wirespeed-gpu", &["", "names", "rules"]),
];

/// Checks all sets.
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
    Ok(())
}
