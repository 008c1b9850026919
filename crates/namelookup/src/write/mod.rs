//! Writers of tables, traces and updates in the plain form that [`read`](crate::read) reads, of domains, and
//! of lists of domains.
//!
//! A table from a file is written so that it reads back equal: entries are sorted by result, then by name, so
//! that results get the same numbers again if each is in use.
//!
//! A line can't hold every name: names with a blank, a tab or an end of line, and names that are too long for
//! a line, are errors here, and nothing is written for them. So are results without a label that is a word.
//!
//! ```
//! use wirespeed_namelookup::read::{ReadOptions, read_table_from};
//! use wirespeed_namelookup::write::write_table;
//!
//! let table = "/com/parc/www 192.0.2.1\n/com/parc core\n/org core\n";
//! let (fib, _) = read_table_from(table.as_bytes(), "table", &ReadOptions::default())?;
//! let mut text = Vec::new();
//! write_table(&fib.names, &fib.labels, &mut text)?;
//! assert_eq!(text, table.as_bytes());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod lists;
#[cfg(test)]
mod tests;

use std::io::{self, Write};

use crate::list::Scope;
use crate::name::Name;
use crate::names::Names;
use crate::read::lists::ListFormat;
use crate::read::{Input, Label, Labels, TimedUpdate};
use crate::table::{NameTable, NodeId};
use crate::update::NameUpdate;

pub use lists::{write_domains, write_list, write_table_as_list};

/// The reason why a name or table could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// An error of the operating system.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A name that a line can't hold.
    #[error("a line can't hold the name {name:?}: it contains a blank or an end of line")]
    Name {
        /// The name.
        name: String,
    },
    /// A name that is too long for a line.
    #[error("a name of {found} bytes, a line holds {limit}")]
    TooLong {
        /// Bytes of the name.
        found: usize,
        /// The most bytes of a name in a line.
        limit: usize,
    },
    /// A result without a label, or with a label that is not a word.
    #[error("{name} has result {result}, which has no label that is a word")]
    Label {
        /// The name.
        name: String,
        /// Its result.
        result: u32,
    },
    /// An entry that a format of lists does not have.
    #[error("{format} can't say what the list says of {name} ({scope}, {})", value.as_deref().unwrap_or("an exception"))]
    Entry {
        /// The format.
        format: ListFormat,
        /// The domain.
        name: String,
        /// The names that the entry covers.
        scope: Scope,
        /// Its value. `None` for an exception.
        value: Option<String>,
    },
    /// A list whose entries win over others than those of the format would.
    #[error("{format} would answer otherwise for {name} or for names beneath it")]
    Differs {
        /// The format.
        format: ListFormat,
        /// The domain.
        name: String,
    },
    /// A name that is no domain, or another one once it is read.
    #[error("{name} is no domain as lists have them")]
    Domain {
        /// The name.
        name: String,
    },
    /// A list that can't be read again.
    #[error("what is written could not be read again: {what}")]
    Unreadable {
        /// The error of the reader.
        what: String,
    },
}

/// Bytes of a line that a name may take: a time, a kind and a result may be beside it.
const LONGEST_NAME: usize = Input::LONGEST_LINE - 8_192;

/// Writes a table, by result and name. If the results are the lines of a list, each used once, it writes a
/// list without results again. `out` gets small pieces: pass a buffered writer. O(n log n).
pub fn write_table(names: &NameTable, labels: &Labels, out: &mut dyn Write) -> Result<(), WriteError> {
    each_line(names, labels, |name, label| {
        out.write_all(text_of(name)?)?;
        Ok(write_end(label, out)?)
    })
}

/// Gives each name of a table with its label to `write`, by result and name; without labels, if the results
/// are the lines of a list, each used once.
fn each_line(
    names: &NameTable,
    labels: &Labels,
    mut write: impl FnMut(&Name, Option<Label<'_>>) -> Result<(), WriteError>,
) -> Result<(), WriteError> {
    let entries = by_result(names);
    let is_list = labels.lines() > 0
        && (1..).zip(&entries).all(|(line, &(result, _))| result == line && line <= labels.lines());
    for (result, id) in entries {
        let name = names.node(id).name();
        // A name that no line can hold is told before its label.
        text_of(&name)?;
        let label = if is_list { None } else { Some(label_of(&name, result, labels)?) };
        write(&name, label)?;
    }
    Ok(())
}

/// Writes a trace, one name on each line.
///
/// ```
/// use wirespeed_namelookup::{Name, NameBatch, write::write_trace};
///
/// let trace: NameBatch = [Name::new("/com/parc")?, Name::ROOT].into_iter().collect();
/// let mut text = Vec::new();
/// write_trace(trace.names(), &mut text)?;
/// assert_eq!(text, b"/com/parc\n/\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write_trace(names: Names<'_>, out: &mut dyn Write) -> Result<(), WriteError> {
    for name in names.iter() {
        out.write_all(text_of(name)?)?;
        write_end(None, out)?;
    }
    Ok(())
}

/// Writes updates, one on each line.
///
/// ```
/// use wirespeed_namelookup::read::{Labels, ReadOptions, Source, TimedUpdate};
/// use wirespeed_namelookup::{NameBuf, NameUpdate, write::write_updates};
///
/// let mut labels = Labels::new();
/// let update = NameUpdate::Insert(NameBuf::new("/com/parc")?, labels.intern("core")?);
/// let mut text = Vec::new();
/// write_updates(&[TimedUpdate { time: None, update }], &labels, &mut text)?;
/// assert_eq!(text, b"A /com/parc core\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write_updates<'u>(
    updates: impl IntoIterator<Item = &'u TimedUpdate>,
    labels: &Labels,
    out: &mut dyn Write,
) -> Result<(), WriteError> {
    for TimedUpdate { time, update } in updates {
        let (kind, name, label) = match update {
            NameUpdate::Insert(name, result) => (b"A ", name, Some(label_of(name, *result, labels)?)),
            NameUpdate::Remove(name) => (b"W ", name, None),
        };
        let text = text_of(name)?;
        if let Some(time) = time {
            write_time(*time, out)?;
        }
        out.write_all(kind)?;
        out.write_all(text)?;
        write_end(label, out)?;
    }
    Ok(())
}

/// All entries, by result and then by name.
fn by_result(names: &NameTable) -> Vec<(u32, NodeId)> {
    let mut entries = Vec::with_capacity(names.len());
    let all = names.children();
    let mut stack = vec![NodeId::ROOT];
    while let Some(id) = stack.pop() {
        let node = names.node(id);
        if node.result() != 0 {
            entries.push((node.result(), id));
        }
        let children = stack.len();
        stack.extend(all.of_node(node).map(|child| child.id()));
        // The last one is popped first.
        stack[children..].sort_unstable_by(|&a, &b| names.node(b).component().cmp(names.node(a).component()));
    }
    entries.sort_by_key(|&(result, _)| result);
    entries
}

/// A name as a line holds it.
fn text_of(name: &Name) -> Result<&[u8], WriteError> {
    if name.len() > LONGEST_NAME {
        return Err(WriteError::TooLong { found: name.len(), limit: LONGEST_NAME });
    }
    if name.as_bytes().iter().any(u8::is_ascii_whitespace) {
        return Err(WriteError::Name { name: name.to_string() });
    }
    Ok(if name.is_empty() { b"/" } else { name.as_bytes() })
}

/// The label of a name's result, if a line can hold it.
fn label_of<'l>(name: &Name, result: u32, labels: &'l Labels) -> Result<Label<'l>, WriteError> {
    let no_label = || WriteError::Label { name: name.to_string(), result };
    let label = labels.label(result).ok_or_else(no_label)?;
    if let Label::Word(word) = label
        && wirespeed_fib::read::parts::next_hop(word.as_bytes()).is_err()
    {
        return Err(no_label());
    }
    Ok(label)
}

/// Ends a line, with a label if there is one.
fn write_end(label: Option<Label<'_>>, out: &mut dyn Write) -> io::Result<()> {
    match label {
        None => out.write_all(b"\n"),
        Some(label) => writeln!(out, " {label}"),
    }
}

fn write_time(time: std::time::Duration, out: &mut dyn Write) -> io::Result<()> {
    match time.subsec_nanos() {
        0 => write!(out, "{} ", time.as_secs()),
        nanos => {
            let fraction = format!("{nanos:09}");
            write!(out, "{}.{} ", time.as_secs(), fraction.trim_end_matches('0'))
        }
    }
}
