//! [`MergeSource`]: a source of a merged table as a command line names it, and its reading.

use std::ffi::OsString;
use std::fmt;
use std::path::Path;
use std::str::FromStr;

use super::book::Texts;
use super::{Merge, MergeError, Merged};
use crate::fib::Fib;
use crate::read::{Columns, FieldTypes, Format, ReadError, ReadOptions, ReadReport, Source, read_fib};

/// A source: a file, the name of its field, and the columns to take.
///
/// The text form is `NAME=FILE` or `NAME:COLUMN,COLUMN=FILE`.
///
/// ```
/// use wirespeed_fib::merge::MergeSource;
///
/// let source: MergeSource = "geo:country.iso_code,city.names.en=geo.mmdb".parse()?;
/// assert_eq!((&*source.name, source.columns.len()), ("geo", 2));
/// assert!("geo.mmdb".parse::<MergeSource>().is_err());
/// # Ok::<(), wirespeed_fib::merge::BadSource>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MergeSource {
    /// The field of values without a name, and of lists.
    pub name: String,
    /// The columns to take; all if there are none.
    pub columns: Vec<String>,
    /// The file. `-` is standard input.
    pub file: OsString,
}

/// A text that names no source.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadSource(&'static str);

/// The reason why a source can't be read or added.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// The file can't be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// Columns are named, and the format has none.
    #[error("{file}: {format} has no columns: name the source without them")]
    NoColumns {
        /// The file.
        file: String,
        /// Its format.
        format: Format,
    },
    /// The routes can't be merged with the others.
    #[error("{file}: {cause}")]
    Merge {
        /// The file.
        file: String,
        /// The reason.
        cause: MergeError,
    },
    /// The table of all sources can't be made.
    #[error(transparent)]
    Build(#[from] MergeError),
}

impl FromStr for MergeSource {
    type Err = BadSource;

    fn from_str(text: &str) -> Result<Self, BadSource> {
        let (before, file) =
            text.split_once('=').ok_or(BadSource("a source is NAME=FILE or NAME:COLUMN,COLUMN=FILE"))?;
        let (name, columns) = match before.split_once(':') {
            Some((name, columns)) => (name, columns.split(',').map(str::to_owned).collect()),
            None => (before, Vec::new()),
        };
        if name.is_empty() || file.is_empty() || columns.iter().any(String::is_empty) {
            return Err(BadSource("a source has a name, a file, and columns with names"));
        }
        Ok(Self { name: name.to_owned(), columns, file: file.into() })
    }
}

impl MergeSource {
    /// The meaning of the source's texts, by what its reader says of them: whether it is a list, whether its
    /// texts name fields, and whether its format has fields, of which this is one then.
    pub fn texts<'t>(
        &self,
        is_list: bool,
        names_fields: bool,
        has_fields: bool,
        labels: impl Iterator<Item = &'t str>,
    ) -> Texts<'_> {
        match (is_list, names_fields, has_fields) {
            (true, ..) => Texts::Members(&self.name),
            (_, true, _) => Texts::Fields,
            // One column alone: the source names it.
            (_, _, true) => Texts::Values(&self.name),
            _ => Texts::of_table(labels, &self.name),
        }
    }

    /// Options for reading the source: those given, with its own columns if it has some.
    pub fn options(&self, options: &ReadOptions) -> ReadOptions {
        let mut options = options.clone();
        if !self.columns.is_empty() {
            options.columns = Columns { values: self.columns.clone(), ..options.columns };
        }
        options
    }
}

/// The types of the fields of merged sources, which were read with these reports.
pub fn field_types(sources: &[MergeSource], reports: &[ReadReport]) -> FieldTypes {
    let mut types = FieldTypes::default();
    for (source, report) in sources.iter().zip(reports) {
        // One column alone: the source names it.
        let name = |field: &str| if report.names_fields { field } else { &source.name }.to_owned();
        types.add(&report.field_types, name);
    }
    types
}

/// Reads sources in order of precedence, and merges them. Returns the report of each, too.
///
/// ```
/// use wirespeed_fib::merge::{MergeSource, read_sources};
/// use wirespeed_fib::read::ReadOptions;
///
/// # let dir = tempfile::tempdir()?;
/// # let (asn, own) = (dir.path().join("asn.txt"), dir.path().join("own.csv"));
/// std::fs::write(&asn, "10.0.0.0/8 64500\n")?;
/// std::fs::write(&own, "prefix,site\n10.1.0.0/16,Kiel\n")?;
/// let source = |name: &str, file| MergeSource { name: name.to_owned(), columns: Vec::new(), file };
/// let sources = [source("own", own.into()), source("asn", asn.into())];
/// let fib = read_sources(&sources, &ReadOptions::default())?.0.fib;
/// let (_, label) = fib.v4.longest_match("10.1.2.3".parse()?).expect("a match");
/// assert_eq!(fib.next_hops.text(label), Some("own=Kiel,asn=64500"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read_sources(
    sources: &[MergeSource],
    options: &ReadOptions,
) -> Result<(Merged, Vec<ReadReport>), SourceError> {
    let mut merge = Merge::new();
    let mut reports = Vec::with_capacity(sources.len());
    for source in sources {
        let (fib, report) = read_fib(&Source::from_arg(&source.file), &source.options(options))?;
        merge.add_read(source, &fib, &report)?;
        reports.push(report);
    }
    Ok((merge.build()?, reports))
}

impl fmt::Display for MergeSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", Path::new(&self.file).display())
    }
}

impl Merge {
    /// Adds the routes of a source that were read with its [`options`](MergeSource::options), after those
    /// before.
    pub fn add_read(
        &mut self,
        source: &MergeSource,
        fib: &Fib,
        report: &ReadReport,
    ) -> Result<(), SourceError> {
        let file = || source.to_string();
        if !source.columns.is_empty() && !report.format.has_fields() {
            return Err(SourceError::NoColumns { file: file(), format: report.format });
        }
        let has_fields = report.format.has_fields();
        let labels = fib.next_hops.iter().map(|(_, text)| text);
        let added =
            self.add_texts(fib, source.texts(report.is_list, report.names_fields, has_fields, labels));
        added.map_err(|cause| SourceError::Merge { file: file(), cause })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_parsed_or_refused() {
        let source: MergeSource = "a:b,c=d=e".parse().unwrap();
        let columns = vec!["b".to_owned(), "c".to_owned()];
        assert_eq!(source, MergeSource { name: "a".into(), columns, file: "d=e".into() });
        for wrong in ["a", "=b", "a=", ":b=c", "a:=c", "a:b,=c"] {
            assert!(wrong.parse::<MergeSource>().is_err(), "{wrong}");
        }
        let own = ReadOptions {
            columns: Columns { values: vec!["x".into()], ..Columns::default() },
            ..ReadOptions::default()
        };
        assert_eq!(source.options(&own).columns.values, ["b", "c"]);
        assert_eq!("a=b".parse::<MergeSource>().unwrap().options(&own).columns.values, ["x"]);
    }

    #[test]
    fn columns_of_a_format_without_them_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("plain.txt");
        std::fs::write(&path, "10.0.0.0/8 1\n").unwrap();
        let source = MergeSource { name: "a".into(), columns: vec!["b".into()], file: path.clone().into() };
        let options = ReadOptions { format: Some(Format::Plain), ..ReadOptions::default() };
        let error = read_sources(std::slice::from_ref(&source), &options).unwrap_err().to_string();
        assert!(error.contains("plain.txt") && error.contains("plain has no columns"), "{error}");
        std::fs::write(&path, "10.0.0.0/8 1\n10.0.0.0/33 1\n").unwrap();
        let source = MergeSource { columns: Vec::new(), ..source };
        let error = read_sources(&[source], &ReadOptions::default()).unwrap_err().to_string();
        assert!(error.contains("plain.txt:2"), "{error}");
    }
}
