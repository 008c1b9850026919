//! Counts of a set of rules: the fields that rules test and how, the prefixes that make up their ranges, and
//! their classes.

use std::collections::BTreeSet;

use anyhow::Result;
use serde::Serialize;
use wirespeed::engine::RuleTuple;
use wirespeed_classify::tuple::{Field, FieldMatch};
use wirespeed_classify::{Rule, RuleSet};

use crate::number::{Bytes, counted, counted_u64, grouped, share};
use crate::output::Output;

/// Counts of a set.
#[derive(Debug, Serialize)]
pub(super) struct Census {
    rules: usize,
    /// The patterns after ranges are split into prefixes.
    patterns: u64,
    priorities: usize,
    actions: usize,
    fields: Vec<FieldCensus>,
    /// Rules with ranges that are not prefixes.
    with_ranges: usize,
    /// The patterns of these rules.
    patterns_of_ranges: u64,
    most_patterns: usize,
    classes: Classes,
    /// Bytes held for updates.
    rules_bytes: u64,
}

/// The tests of a field.
#[derive(Debug, Serialize)]
struct FieldCensus {
    field: &'static str,
    any: usize,
    exact: usize,
    prefix: usize,
    /// Rules with a mask that is not a prefix.
    mask: usize,
    range: usize,
    /// Prefixes that make up the ranges.
    #[serde(skip_serializing_if = "is_zero")]
    range_prefixes: usize,
    #[serde(skip_serializing_if = "is_zero")]
    most_range_prefixes: usize,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // as serde calls it
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// Patterns grouped by mask.
#[derive(Debug, Serialize)]
struct Classes {
    count: usize,
    largest: usize,
    median: usize,
    /// Numbers of classes with 1 pattern, 2 and 3, 4 to 7, and so on.
    by_size: Vec<usize>,
}

impl Census {
    /// Counts a set.
    pub(super) fn of<T: RuleTuple>(rules: &RuleSet<T>) -> Self {
        let distinct =
            |of: fn(&Rule<T>) -> u32| rules.iter().map(|(_, rule)| of(rule)).collect::<BTreeSet<_>>().len();
        let ranged = || rules.iter().map(|(_, rule)| rule).filter(|rule| !rule.ranges().is_empty());
        Self {
            rules: rules.len(),
            patterns: rules.entries_len(),
            priorities: distinct(Rule::priority),
            actions: distinct(Rule::action),
            fields: T::FIELDS.iter().map(|field| FieldCensus::of(rules, field)).collect(),
            with_ranges: ranged().count(),
            patterns_of_ranges: ranged().map(|rule| rule.patterns_len() as u64).sum(),
            most_patterns: ranged().map(Rule::patterns_len).max().unwrap_or(0),
            classes: Classes::of(rules),
            rules_bytes: rules.memory_usage(),
        }
    }

    pub(super) fn print(&self, output: &mut Output) -> Result<()> {
        let Self { rules, patterns, priorities, actions, classes, .. } = self;
        output.line("")?;
        output.line(format_args!(
            "{}, {}, {}; held for updates: {}",
            counted(*rules, "rule"),
            counted(*priorities, "priority"),
            counted(*actions, "action"),
            Bytes(self.rules_bytes)
        ))?;
        self.fields.iter().try_for_each(|field| field.print(*rules, output))?;
        if self.with_ranges > 0 {
            output.line(format_args!(
                "{} {} ranges that are no prefixes, and {} of them, the most of one rule {}",
                counted(self.with_ranges, "rule"),
                if self.with_ranges == 1 { "has" } else { "have" },
                counted_u64(self.patterns_of_ranges, "pattern"),
                grouped(self.most_patterns)
            ))?;
        }
        let Classes { count, largest, median, by_size } = classes;
        output.line(format_args!(
            "{} in {}; the largest has {}, the median {}",
            counted_u64(*patterns, "pattern"),
            counted(*count, "class"),
            grouped(*largest),
            grouped(*median)
        ))?;
        let size = |(log, &classes): (usize, &usize)| {
            let (from, to) = (1usize << log, (2usize << log) - 1);
            let sizes =
                if from == to { format!("{from}") } else { format!("{}-{}", grouped(from), grouped(to)) };
            (classes > 0).then(|| format!("{sizes}: {}", grouped(classes)))
        };
        let sizes: Vec<_> = by_size.iter().enumerate().filter_map(size).collect();
        output.line(format_args!("  classes by number of patterns: {}", sizes.join(", ")))
    }
}

impl FieldCensus {
    fn of<T: RuleTuple>(rules: &RuleSet<T>, field: &'static Field) -> Self {
        let (field, mut census) = (field, Self::new(field.name));
        let is_prefix =
            |mask: u128| u16::try_from(mask.count_ones()).is_ok_and(|ones| mask == field.prefix(ones));
        for (_, rule) in rules.iter() {
            match rule.field(field) {
                FieldMatch::Masked { mask: 0, .. } => census.any += 1,
                FieldMatch::Masked { mask, .. } if mask == field.all() => census.exact += 1,
                FieldMatch::Masked { mask, .. } if is_prefix(mask) => census.prefix += 1,
                FieldMatch::Masked { .. } => census.mask += 1,
                FieldMatch::Range(..) => {
                    let of_field = rule.ranges().iter().find(|range| range.field() == *field);
                    let prefixes = of_field.map_or(0, |range| range.prefixes().count());
                    census.range += 1;
                    census.range_prefixes += prefixes;
                    census.most_range_prefixes = census.most_range_prefixes.max(prefixes);
                }
            }
        }
        census
    }

    const fn new(field: &'static str) -> Self {
        let (any, exact, prefix, mask, range, range_prefixes, most_range_prefixes) = (0, 0, 0, 0, 0, 0, 0);
        Self { field, any, exact, prefix, mask, range, range_prefixes, most_range_prefixes }
    }

    fn print(&self, rules: usize, output: &mut Output) -> Result<()> {
        let part = |count: usize, what: &str| {
            let share = 100.0 * share(count as u64, rules as u64);
            (count > 0).then(|| format!("{what} {share:.1} %"))
        };
        let ranges = match self.range {
            0 => None,
            ranges => Some(format!(
                "{} of {} (one of {})",
                counted(ranges, "range"),
                counted(self.range_prefixes, "prefix"),
                grouped(self.most_range_prefixes)
            )),
        };
        let parts = [
            part(self.any, "any"),
            part(self.exact, "one value"),
            part(self.prefix, "a prefix"),
            part(self.mask, "a mask"),
            ranges,
        ];
        let parts: Vec<_> = parts.into_iter().flatten().collect();
        output.line(format_args!("  {:<11} {}", self.field, parts.join(", ")))
    }
}

impl Classes {
    fn of<T: RuleTuple>(rules: &RuleSet<T>) -> Self {
        let sizes = wirespeed_classify::Classes::sizes(rules);
        let mut sizes: Vec<_> =
            sizes.into_iter().map(|size| usize::try_from(size).unwrap_or(usize::MAX)).collect();
        sizes.sort_unstable();
        let mut by_size = Vec::new();
        for size in &sizes {
            let log = size.ilog2() as usize;
            by_size.resize(by_size.len().max(log + 1), 0);
            by_size[log] += 1;
        }
        let largest = sizes.last().copied().unwrap_or(0);
        Self {
            count: sizes.len(),
            largest,
            median: sizes.get(sizes.len() / 2).copied().unwrap_or(0),
            by_size,
        }
    }
}
