//! The order of the workspace's crates.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::step;

/// The crates, lowest first. A crate may depend on those of earlier rows only: `gpu` on no engine, and no
/// engine on `gpu`. Those in `integrations` are a workspace of their own, above all of these.
const ROWS: &[&[&str]] = &[
    &["wirespeed-checksum", "wirespeed-kernels", "wirespeed-netns", "wirespeed-rng"],
    &["wirespeed-image", "wirespeed-input"],
    &["wirespeed-table"],
    &["wirespeed-fib", "wirespeed-classify"],
    &["wirespeed-namelookup"],
    &[
        "wirespeed-dir24",
        "wirespeed-fold",
        "wirespeed-forest",
        "wirespeed-gamt",
        "wirespeed-gpu",
        "wirespeed-rank",
        "wirespeed-sail",
        "wirespeed-waldvogel",
    ],
    &["wirespeed-kernels-host"],
    &["wirespeed"],
    &["wirespeed-capi", "wirespeed-esp", "wirespeed-feeds", "wirespeed-records"],
    &["wirespeed-commands", "wirespeed-router"],
    &["wirespeed-openflow"],
    &["lookupctl"],
    &["wirespeed-benches", "wirespeed-fuzz-replay"],
    &["xtask"],
];

/// What is wrong with the order; empty where nothing is.
fn wrong() -> Result<Vec<String>> {
    let metadata = step::cargo(&["metadata", "--no-deps", "--format-version", "1", "--offline"]).output()?;
    let metadata: Value =
        serde_json::from_slice(&metadata.stdout).context("what cargo says of the workspace")?;
    let packages = metadata["packages"].as_array().context("packages")?;
    let row = |name: &str| ROWS.iter().position(|row| row.contains(&name));
    let mut wrong = Vec::new();
    let mut seen = BTreeSet::new();
    for package in packages {
        let name = package["name"].as_str().context("a name")?;
        seen.insert(name);
        let Some(own) = row(name) else {
            wrong.push(format!("{name} is in no row"));
            continue;
        };
        for dependency in package["dependencies"].as_array().context("dependencies")? {
            // Tests may look up.
            let is_normal = dependency["kind"].is_null();
            let on = dependency["name"].as_str().context("a name")?;
            if let Some(other) = row(on).filter(|&other| is_normal && other >= own) {
                wrong.push(format!("{name} (row {own}) depends on {on} (row {other})"));
            }
        }
    }
    wrong.extend(
        ROWS.concat()
            .into_iter()
            .filter(|name| !seen.contains(name))
            .map(|name| format!("there is no {name}")),
    );
    Ok(wrong)
}

#[test]
fn crates_depend_on_crates_beneath_them() {
    assert_eq!(wrong().unwrap(), [""; 0]);
}
