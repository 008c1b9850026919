//! [`TableFile`]: a table as a command line names it.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use wirespeed::fib::merge::MergeSource;
use wirespeed::fib::read::ReadOptions;
use wirespeed::names::read as names;
use wirespeed::names::read::lists::ListFormat;

/// A table as a command line names it.
///
/// ```
/// use wirespeed_records::TableFile;
///
/// let file = TableFile::parse("asn=rib.mrt.bz2")?;
/// assert_eq!((&*file.name, file.path.to_str()), ("asn", Some("rib.mrt.bz2")));
/// assert!(TableFile::parse("rib.mrt.bz2").is_err());
/// # Ok::<(), wirespeed_records::TableError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableFile {
    /// The name of the table and its columns: letters, digits, `-` and `_`.
    pub name: String,
    /// The file. `-` is standard input. Not heeded with sources.
    pub path: OsString,
    /// The fields of its values. Empty for the whole value.
    pub fields: Vec<String>,
    /// Sources that are merged to the table, in order of precedence, in place of a file.
    pub sources: Vec<MergeSource>,
    /// Options for reading its routes, or those of its sources.
    pub options: ReadOptions,
    /// Options for reading its names, or those of its sources.
    pub names: names::ReadOptions,
    /// The format of a list of domains.
    pub list: Option<ListFormat>,
}

/// The way in which tables are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableReading {
    /// Whether wrong lines are passed over.
    pub lenient: bool,
    /// Whether matched prefixes are asked for.
    pub prefix: bool,
    /// Whether next hops of MRT and bgpdump are taken, and not origins.
    pub next_hops: bool,
}

impl TableFile {
    /// The files that the table is made of.
    pub fn paths(&self) -> impl Iterator<Item = &OsStr> {
        let of_sources = self.sources.iter().map(|source| &*source.file);
        of_sources.chain(self.sources.is_empty().then_some(&*self.path))
    }

    /// The files, for messages.
    pub(super) fn shown(&self) -> String {
        self.paths().map(|path| Path::new(path).display().to_string()).collect::<Vec<_>>().join(", ")
    }
}
