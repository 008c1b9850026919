//! Writing rule sets, traces and updates in the forms that [`read`](crate::read) reads.
//!
//! ```
//! use wirespeed_classify::{Ipv4Tuple, read, write};
//!
//! let text = "src=10.0.0.0/8 dport=1024-65535 proto=tcp priority=10 action=3\npriority=0 action=1\n";
//! let (file, _) = read::read_rules_from::<Ipv4Tuple>(text.as_bytes(), "rules", &read::ReadOptions::default())?;
//! let mut written = Vec::new();
//! write::write_rules(&file.rules, &mut written)?;
//! assert_eq!(written, text.as_bytes());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::io::{self, Write};

use wirespeed_table::sort_by_number;

use crate::rank::RuleNumber;
use crate::rule::Rule;
use crate::rules::RuleSet;
use crate::tuple::{Field, FieldMatch, Kind, Tuple};
use crate::update::RuleUpdate;

/// The reason why a write failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The operating system refused.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A rule that a filter of ClassBench can't express.
    #[error("rule {number} can't be a filter of ClassBench: its {field} is {wanted}")]
    NotAFilter {
        /// The number of the rule.
        number: RuleNumber,
        /// The field.
        field: &'static str,
        /// The condition on the field.
        wanted: String,
    },
}

/// Writes a set in the plain form, by number. It writes numbers that aren't consecutive from 1 on, so that a
/// reader gets the same set. Writes are small: give it a buffered `out`.
pub fn write_rules<T: Tuple>(rules: &RuleSet<T>, out: &mut dyn Write) -> Result<(), WriteError> {
    for (next, (number, rule)) in (1..).zip(rules.sorted()) {
        // Reading goes on from the largest number.
        if number.get() != next {
            write!(out, "number={number} ")?;
        }
        writeln!(out, "{rule}")?;
    }
    Ok(())
}

/// Writes a set of 5-tuples as filters of ClassBench, best first, as the first filter that matches wins.
/// Priorities, actions and numbers are lost. An error if a filter can't express a rule: an address or ports
/// under a mask that is not a prefix.
pub fn write_classbench<T: Tuple>(rules: &RuleSet<T>, out: &mut dyn Write) -> Result<(), WriteError> {
    let mut ranked = rules.sorted();
    sort_by_number(&mut ranked, |(_, rule)| (!rule.priority()).into());
    for (number, rule) in ranked {
        writeln!(out, "@{}", filter(number, rule)?.join("\t"))?;
    }
    Ok(())
}

fn filter<T: Tuple>(number: RuleNumber, rule: &Rule<T>) -> Result<Vec<String>, WriteError> {
    let is_wanted = |field: &&Field| !matches!(rule.field(field), FieldMatch::Masked { mask: 0, .. });
    let names = ["src", "dst", "sport", "dport", "proto"];
    let refused = |field: &Field| {
        let wanted = field.show_match(rule.field(field));
        WriteError::NotAFilter { number, field: field.name, wanted }
    };
    if let Some(other) =
        T::FIELDS.iter().filter(is_wanted).find(|f| !names.iter().any(|name| f.is_called(name)))
    {
        return Err(refused(other));
    }
    let fields = names.iter().filter_map(|name| T::field_of(name));
    fields.map(|field| column(rule, field).ok_or_else(|| refused(field))).collect()
}

/// A field as a column of a filter; `None` if a filter can't express it.
fn column<T: Tuple>(rule: &Rule<T>, field: &Field) -> Option<String> {
    let range = |from: u128, to: u128| format!("{from} : {to}");
    match (field.kind, rule.field(field)) {
        (Kind::Number, FieldMatch::Range(from, to)) => Some(range(from, to)),
        (_, FieldMatch::Range(..)) => None,
        (kind, FieldMatch::Masked { value, mask }) => {
            let len = u16::try_from(mask.count_ones()).ok()?;
            let is_prefix = mask == field.prefix(len);
            match kind {
                Kind::Number => is_prefix.then(|| range(value, value | field.all() & !mask)),
                Kind::Protocol => Some(format!("0x{value:02x}/0x{mask:02X}")),
                _ => is_prefix.then(|| format!("{}/{len}", field.show(value))),
            }
        }
    }
}

/// Writes a trace, a tuple as text on each line.
pub fn write_trace<T: Tuple>(tuples: &[T], out: &mut dyn Write) -> io::Result<()> {
    tuples.iter().try_for_each(|tuple| writeln!(out, "{tuple}"))
}

/// Writes updates, one on each line.
pub fn write_updates<T: Tuple>(updates: &[RuleUpdate<T>], out: &mut dyn Write) -> io::Result<()> {
    updates.iter().try_for_each(|update| match update {
        RuleUpdate::Insert(rule) => writeln!(out, "A {rule}"),
        RuleUpdate::Set(number, rule) => writeln!(out, "A number={number} {rule}"),
        RuleUpdate::Remove(number) => writeln!(out, "W number={number}"),
    })
}
