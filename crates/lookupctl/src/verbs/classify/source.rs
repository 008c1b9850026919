//! Updates of a set of rules, and options for compiling it.

use std::collections::HashMap;
use std::ffi::OsStr;

use anyhow::{Context, Result, bail};
use clap::Args;
use wirespeed::engine::RuleTuple;
use wirespeed_classify::read::{ReadOptions, Source, read_updates};
use wirespeed_classify::{BuildOptions, RuleSet, RuleUpdate};
use wirespeed_commands::rules::ReadArguments;

use crate::number::counted;
use crate::refuse::Given;
use crate::source::MemoryArgument;

/// Options for reading data beside rules: the given format is the rules' format.
pub(super) fn beside(read: &ReadArguments) -> ReadOptions {
    ReadOptions { lenient: read.lenient, ..ReadOptions::default() }
}

/// Reads updates of a set, each for a number. A rule that comes after all others keeps the number that it
/// gets the first time, so that applying all updates again gives the same set.
pub(super) fn updates<T: RuleTuple>(
    read: &ReadArguments,
    from: &OsStr,
    rules: &RuleSet<T>,
) -> Result<Vec<RuleUpdate<T>>> {
    let source = Source::from_arg(from);
    let (mut updates, report) = read_updates(&source, &beside(read))?;
    if updates.is_empty() {
        bail!("{source}: no updates");
    }
    let mut last = rules.last_number();
    for update in &mut updates {
        match update {
            RuleUpdate::Insert(rule) => {
                last = last.checked_add(1).context("all rule numbers are used up")?;
                *update = RuleUpdate::Set(last, rule.clone());
            }
            RuleUpdate::Set(number, _) => last = last.max(*number),
            RuleUpdate::Remove(_) => {}
        }
    }
    let (count, absent) = (counted(updates.len(), "update"), absent(rules, &updates));
    match absent.first() {
        None => eprintln!("{source}: {count}"),
        Some(first) => eprintln!(
            "{source}: {count}, {} take out a rule that is not there and change nothing, W number={first} first",
            absent.len()
        ),
    }
    report.left_out.iter().take(10).for_each(|one| eprintln!("  left out {one}"));
    Ok(updates)
}

/// The numbers of updates that remove a rule which is not in the set at that time.
fn absent<T: RuleTuple>(rules: &RuleSet<T>, updates: &[RuleUpdate<T>]) -> Vec<u32> {
    let mut is_there = HashMap::new();
    let mut absent = Vec::new();
    for update in updates {
        match update {
            RuleUpdate::Insert(_) => {}
            RuleUpdate::Set(number, _) => {
                is_there.insert(*number, true);
            }
            RuleUpdate::Remove(number) => {
                let before = is_there.insert(*number, false);
                if !before.unwrap_or_else(|| rules.rule(*number).is_some()) {
                    absent.push(*number);
                }
            }
        }
    }
    absent
}

/// Options for compiling a set.
#[derive(Clone, Copy, Debug, Args)]
pub(super) struct BuildArguments {
    #[command(flatten)]
    memory: MemoryArgument,
}

impl BuildArguments {
    /// The option.
    pub(super) fn given(self) -> Given<'static> {
        self.memory.given()
    }

    /// Build options for a table with this number of copies.
    pub(super) fn options(self, copies: u64, seed: Option<u64>) -> BuildOptions {
        BuildOptions { memory_cap: self.memory.cap(copies), seed, ..BuildOptions::default() }
    }
}
