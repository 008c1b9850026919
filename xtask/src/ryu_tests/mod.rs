//! Runs the switch tests of Ryu that os-ken ships, against our switch and, where it is installed, against
//! Open vSwitch without the kernel's datapath, and prints how many pass by category.
//!
//! The tests and their tester come from the package os_ken, with eventlet (`pip install os-ken eventlet`);
//! `run.py` drives them. Our target and tester switches are the example `two_switches` of
//! `wirespeed-openflow`. Open vSwitch is the package `openvswitch-switch` of Debian, and needs root: it gets
//! a network namespace of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde_json::Value;

use crate::step;

/// Seconds between a change of flows and a packet that Open vSwitch needs: its cache follows late.
const SETTLE: &str = "0.6";

#[derive(Args)]
pub(crate) struct Options {
    /// The Python that has os-ken
    #[arg(long, default_value = "python3")]
    python: PathBuf,
    /// Categories, apart by commas
    #[arg(long, value_name = "LIST", default_value = "match,action,group,meter")]
    only: String,
    /// Leaves Open vSwitch out
    #[arg(long)]
    alone: bool,
    /// Writes the report to a file, too
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let example = ["build", "--package", "wirespeed-openflow", "--example", "two_switches"];
    step::run("two_switches", &mut step::cargo(&example))?;
    let program = target()?.join("debug/examples/two_switches");
    let script = step::root().join("xtask/src/ryu_tests/run.py");
    let folder = tempfile::tempdir()?;
    let run = |switch: &str, mut command: Command| -> Result<Outcomes> {
        let file = folder.path().join(switch);
        command.arg(&script).args([Path::new(switch), &file]).args(["--only", &options.only]);
        match switch {
            "ovs" => command.args(["--settle", SETTLE]),
            _ => command.arg("--program").arg(&program),
        };
        step::run(switch, &mut command)?;
        let text = std::fs::read_to_string(&file).with_context(|| format!("{}", file.display()))?;
        Outcomes::read(&text)
    };
    let ours = run("wirespeed", Command::new(&options.python))?;
    let has_ovs =
        Command::new("ovs-vswitchd").arg("--version").output().is_ok_and(|ran| ran.status.success());
    let ovs = if options.alone || !has_ovs {
        eprintln!(
            "xtask: Open vSwitch is left out{}",
            if has_ovs { "" } else { ": there is no ovs-vswitchd" }
        );
        None
    } else {
        let mut unshare = Command::new("unshare");
        unshare.arg("--net").arg(&options.python);
        Some(run("ovs", unshare)?)
    };
    let report = report(&ours, ovs.as_ref());
    print!("{report}");
    if let Some(file) = &options.out {
        std::fs::write(file, report).with_context(|| format!("{}", file.display()))?;
    }
    Ok(())
}

/// The folder that cargo builds in.
fn target() -> Result<PathBuf> {
    let metadata = step::cargo(&["metadata", "--no-deps", "--format-version", "1", "--offline"]).output()?;
    let metadata: Value =
        serde_json::from_slice(&metadata.stdout).context("what cargo says of the workspace")?;
    Ok(metadata["target_directory"].as_str().context("target_directory")?.into())
}

/// The outcome of each test, by category, file and test; tests of one name are numbered.
struct Outcomes(BTreeMap<(String, String, String, usize), String>);

/// The outcome of a test that passes.
const OK: &str = "OK";

impl Outcomes {
    /// Reads lines of category, file, test and outcome, apart by tabs.
    fn read(text: &str) -> Result<Self> {
        let mut outcomes = BTreeMap::new();
        for (at, line) in text.lines().enumerate() {
            let words: Vec<&str> = line.split('\t').collect();
            let &[category, file, test, outcome] = &words[..] else {
                anyhow::bail!("line {}: {} words in place of 4", at + 1, words.len())
            };
            let key = |number| (category.to_owned(), file.to_owned(), test.to_owned(), number);
            let number = (0..).find(|&number| !outcomes.contains_key(&key(number))).unwrap_or_default();
            outcomes.insert(key(number), outcome.to_owned());
        }
        ensure!(!outcomes.is_empty(), "no test was run");
        Ok(Self(outcomes))
    }

    fn categories(&self) -> BTreeSet<&str> {
        self.0.keys().map(|(category, ..)| category.as_str()).collect()
    }

    /// Tests that pass, and all; of one category if it is given.
    fn passed(&self, category: Option<&str>) -> (usize, usize) {
        let of = || self.0.iter().filter(|((of, ..), _)| category.is_none_or(|category| of == category));
        (of().filter(|(_, outcome)| *outcome == OK).count(), of().count())
    }
}

fn report(ours: &Outcomes, ovs: Option<&Outcomes>) -> String {
    let mut text = String::new();
    let row = |name: &str, category: Option<&str>| {
        let (passed, all) = ours.passed(category);
        let beside = ovs.map_or(String::new(), |ovs| format!(" {} |", ovs.passed(category).0));
        format!("| {name} | {all} | {passed} |{beside}\n")
    };
    let (head, rule) = if ovs.is_some() { (" Open vSwitch |", "---|") } else { ("", "") };
    _ = write!(text, "| category | tests | wirespeed |{head}\n|---|---|---|{rule}\n");
    for category in ours.categories() {
        text += &row(category, Some(category));
    }
    text += &row("all", None);
    let mut failed: BTreeMap<(&str, &str, &str), Vec<&str>> = BTreeMap::new();
    for (key @ (_, file, test, _), outcome) in ours.0.iter().filter(|(_, outcome)| *outcome != OK) {
        let beside = ovs.map_or("", |ovs| ovs.0.get(key).map_or("not run", String::as_str));
        failed.entry((file, outcome, beside)).or_default().push(test);
    }
    for ((file, outcome, beside), tests) in failed {
        _ = write!(text, "\n{file}: {outcome}");
        if ovs.is_some() {
            _ = write!(text, "; Open vSwitch: {beside}");
        }
        text.push('\n');
        tests.iter().for_each(|test| _ = writeln!(text, "    {test}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_are_counted_by_category() {
        let ours =
            "match\tmatch: A\tone\tOK\nmatch\tmatch: A\tone\tReceiving timeout\naction\taction: B\ttwo\tOK\n";
        let ours = Outcomes::read(ours).unwrap();
        let ovs = ours.0.keys().map(|key| (key.clone(), OK.to_owned())).collect();
        let text = report(&ours, Some(&Outcomes(ovs)));
        assert_eq!(
            text,
            "| category | tests | wirespeed | Open vSwitch |\n|---|---|---|---|\n| action | 1 | 1 | 1 |\n\
             | match | 2 | 1 | 2 |\n| all | 3 | 2 | 3 |\n\nmatch: A: Receiving timeout; Open vSwitch: OK\n    one\n"
        );
        assert!(!report(&ours, None).contains("vSwitch"));
        assert!(Outcomes::read("match\tA\tOK\n").is_err() && Outcomes::read("").is_err());
    }
}
