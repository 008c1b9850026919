//! Several sources of names as one table whose labels are records, with inheritance, as
//! [tables of addresses](wirespeed_fib::merge) have it: each field of a name comes from the longest name that
//! has it, of all sources, among this name and those above it. Of several sources that have it at one name,
//! the first counts.
//!
//! ```
//! use wirespeed_namelookup::merge::NameMerge;
//! use wirespeed_namelookup::read::{ReadOptions, read_table_from};
//! use wirespeed_namelookup::Name;
//! use wirespeed_fib::merge::book::Texts;
//!
//! let read = |text: &str| read_table_from(text.as_bytes(), "text", &ReadOptions::default()).map(|(fib, _)| fib);
//! let mut merge = NameMerge::new();
//! merge.add(&read("example category=site,risk=1\nads.example category=ads\n")?, Texts::Fields)?;
//! merge.add(&read("x.ads.example Kiel\n")?, Texts::Values("where"))?;
//! let merged = merge.build()?;
//! let found = merged.fib.names.lookup(Name::new("/example/ads/x/y")?);
//! let label = merged.fib.labels.label(found.result).expect("a record");
//! assert_eq!(label.to_string(), "category=ads,risk=1,where=Kiel");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use wirespeed_fib::merge::book::{Book, Entry, Nested, Texts};
use wirespeed_fib::merge::{MergeError, MergeSource, Records};
use wirespeed_fib::{NextHop, NextHops};

use crate::name::NameBuf;
use crate::read::lists::recognise_list;
use crate::read::{
    Label, Labels, NameColumns, NameFib, ReadError, ReadOptions, ReadReport, Source, read_source,
};

/// The sources so far, the first one added first.
#[derive(Clone, Debug, Default)]
pub struct NameMerge {
    book: Book,
    entries: Vec<Entry<ByComponent>>,
}

/// The table of all sources.
#[derive(Clone, Debug)]
pub struct MergedNames {
    /// The names. Their labels are records as `name=value,name=value`.
    pub fib: NameFib,
    /// The records that results stand for.
    pub records: Records,
    /// The number of names without any field, which are left out.
    pub empty: u64,
}

/// The reason why a source can't be read or added.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NameSourceError {
    /// The file can't be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The file is a list of domains, whose entries have scopes and exceptions.
    #[error("{file}: a list of domains ({format}): its scopes and exceptions can't be merged with fields")]
    List {
        /// The file.
        file: String,
        /// Its format.
        format: crate::read::lists::ListFormat,
    },
    /// The names can't be merged with the others.
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

/// A name in the order of its components: those beneath a name follow it, without others between.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ByComponent(NameBuf);

impl Ord for ByComponent {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.components().cmp(other.0.components())
    }
}

impl PartialOrd for ByComponent {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl std::fmt::Display for ByComponent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl Nested for ByComponent {
    fn covers(&self, other: &Self) -> bool {
        self.0.is_prefix_of(&other.0)
    }
}

impl NameMerge {
    /// No source yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a table whose labels mean this. Numbers of lines, which a list has for labels, are no values: it
    /// is for [`Texts::Members`].
    pub fn add(&mut self, fib: &NameFib, texts: Texts<'_>) -> Result<(), MergeError> {
        let label = |result: NextHop| match fib.labels.label(result.0)? {
            Label::Word(word) => Some(word),
            Label::Line(_) => matches!(texts, Texts::Members(_)).then_some(""),
        };
        let names = fib.names.iter().map(|(name, result)| (ByComponent(name), NextHop(result)));
        self.book.source(texts, label)?.add(&mut self.entries, names)
    }

    /// The number of names of all sources, equal ones counted for each source.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether no source has a name.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Makes the table of all sources. O(n log n) for n names.
    pub fn build(self) -> Result<MergedNames, MergeError> {
        let (mut names, mut words) = (crate::NameTable::new(), NextHops::new());
        let mut merging = self.book.merging();
        merging.sweep(self.entries, &mut words, |ByComponent(name), NextHop(result)| {
            names.insert(&name, result);
        })?;
        let (records, empty) = merging.finish();
        Ok(MergedNames { fib: NameFib { names, labels: Labels::of_words(words) }, records, empty })
    }
}

/// Reads sources in order of precedence, and merges them. Returns the report of each, too.
///
/// A source is a table of names, in lines or in CSV. Lists of domains are refused.
pub fn read_sources(
    sources: &[MergeSource],
    options: &ReadOptions,
) -> Result<(MergedNames, Vec<ReadReport>), NameSourceError> {
    let mut merge = NameMerge::new();
    let mut reports = Vec::with_capacity(sources.len());
    for source in sources {
        let file = Source::from_arg(&source.file);
        let columns = match &*source.columns {
            [] => options.columns.clone(),
            values => NameColumns { values: values.to_vec(), ..options.columns.clone() },
        };
        // Standard input is read once: what is no table there is refused by its first line.
        let is_file = matches!(file, Source::Path(_)) && options.format.is_none() && !columns.is_given();
        if is_file && let Some(format) = recognise_list(&file).map_err(ReadError::from)? {
            return Err(NameSourceError::List { file: source.to_string(), format });
        }
        let (fib, report, is_csv) = read_source(&file, &ReadOptions { columns, ..options.clone() })?;
        let labels = fib.labels.iter().filter_map(|(_, label)| match label {
            Label::Word(word) => Some(word),
            Label::Line(_) => None,
        });
        let texts = source.texts(fib.labels.lines() > 0, report.names_fields, is_csv, labels);
        let added = merge.add(&fib, texts);
        added.map_err(|cause| NameSourceError::Merge { file: source.to_string(), cause })?;
        reports.push(report);
    }
    Ok((merge.build()?, reports))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::name::Name;

    type Told = Vec<(String, BTreeMap<String, String>)>;

    fn fib(told: &Told) -> NameFib {
        let mut fib = NameFib::default();
        for (name, fields) in told {
            let text: Vec<_> = fields.iter().map(|(name, value)| format!("{name}={value}")).collect();
            let text = if text.is_empty() { "-".to_owned() } else { text.join(",") };
            let result = fib.labels.intern(&text).unwrap();
            fib.names.insert(Name::new(name).unwrap(), result);
        }
        fib
    }

    /// The definition: each name asks every name above it, longest first, of every source, first first.
    fn oracle(sources: &[Told]) -> BTreeMap<String, BTreeMap<String, String>> {
        let mut all = BTreeMap::new();
        for (name, _) in sources.iter().flatten() {
            let mut record = BTreeMap::new();
            let mut above = Some(Name::new(name).unwrap());
            while let Some(at) = above {
                for source in sources {
                    let own = source.iter().rev().find(|(known, _)| Name::new(known).unwrap() == at);
                    for (field, value) in own.into_iter().flat_map(|(_, fields)| fields) {
                        record.entry(field.clone()).or_insert_with(|| value.clone());
                    }
                }
                above = at.parent();
            }
            if !record.is_empty() {
                all.insert(Name::new(name).unwrap().to_string(), record);
            }
        }
        all
    }

    fn source() -> impl Strategy<Value = Told> {
        // A byte below the slash parts the order of bytes from that of components.
        let name = proptest::collection::vec(prop_oneof!["a", "a-b", "b"], 0..4)
            .prop_map(|parts| if parts.is_empty() { "/".into() } else { format!("/{}", parts.join("/")) });
        let fields = proptest::collection::btree_map("[xyz]", "[12]", 0..3);
        proptest::collection::vec((name, fields), 0..10)
    }

    proptest! {
        #[test]
        fn every_name_has_what_the_definition_says(sources in proptest::collection::vec(source(), 1..4)) {
            let mut merge = NameMerge::new();
            for source in &sources {
                merge.add(&fib(source), Texts::Fields).unwrap();
            }
            let merged = merge.build().unwrap();
            let all: BTreeMap<_, BTreeMap<_, _>> = merged.fib.names.iter().map(|(name, result)| {
                let record = merged.records.get(NextHop(result)).unwrap();
                let fields = record.fields().map(|(name, value)| (name.to_owned(), value.to_owned()));
                (name.to_string(), fields.collect())
            }).collect();
            prop_assert_eq!(all, oracle(&sources));
        }
    }

    #[test]
    fn sources_of_files() {
        let dir = tempfile::tempdir().unwrap();
        let source = |text: &str, name: &str, content: &str| {
            std::fs::write(dir.path().join(name), content).unwrap();
            format!("{text}={}", dir.path().join(name).display()).parse::<MergeSource>().unwrap()
        };
        let own = source("own:site", "own.csv", "domain,site,rack\nads.example,a=b,7\n");
        let list = source("blocked", "list", "bad.ads.example\n");
        let risk = source("risk", "risk", "example 3\n");
        let read = |sources: &[MergeSource]| {
            let merged = read_sources(sources, &ReadOptions::default()).map_err(|error| error.to_string())?;
            let fib = merged.0.fib;
            let mut all: Vec<_> = fib
                .names
                .iter()
                .map(|(name, result)| format!("{name} {}", fib.labels.label(result).unwrap()))
                .collect();
            all.sort();
            Ok::<_, String>(all)
        };
        assert_eq!(
            read(&[own, list.clone(), risk.clone()]).unwrap(),
            [
                "/example risk=3",
                "/example/ads own=a%3Db,risk=3",
                "/example/ads/bad own=a%3Db,blocked=true,risk=3"
            ]
        );
        let hosts = source("h", "hosts", "0.0.0.0 ads.example\n");
        assert!(read(&[list, hosts]).unwrap_err().contains("hosts: a list of domains (hosts)"));
        let wrong = source("w", "wrong", "a.b 1\na..b 2\n");
        assert!(read(&[risk, wrong]).unwrap_err().contains("wrong:2: a label is empty"));
    }
}
