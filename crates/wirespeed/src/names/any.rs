//! [`AnyNames`]: a table of names or a list of domains, as the content of a file says.

use std::hash::Hash;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use wirespeed_fib::NextHop;
use wirespeed_namelookup::Names;
use wirespeed_namelookup::read::lists::{TableOrList, TableOrListError};

use super::builder::NameBuilder;
use super::image_file::NameImageFile;
use super::list::{NameList, NameListBuilder};
use super::reader::{NameGuard, NameReader};
use super::table::NameTable;
use crate::engine::EngineName;
use crate::error::Error;
use crate::labels::Labels;

/// A table of names, which takes updates, or a [list of domains](NameList), which takes none.
///
/// ```
/// use wirespeed::names::AnyNames;
/// use wirespeed::names::read::lists::{ListOptions, read_table_or_list};
/// use wirespeed::names::read::{ReadOptions, Source};
/// use wirespeed::prelude::*;
///
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("hosts");
/// std::fs::write(&path, "0.0.0.0 ads.example\n")?;
/// let read = read_table_or_list(&Source::Path(path), &ReadOptions::default(), &ListOptions::default())?;
/// let (names, labels) = NameTable::builder().build_read::<String>(read)?;
/// assert!(matches!(names, AnyNames::List(_)));
///
/// let asked = ["ads.example", "www.ads.example"].map(|domain| NameBuf::from_domain(domain.as_bytes()).unwrap());
/// let batch: NameBatch = asked.iter().map(|name| &**name).collect();
/// let mut found = [NextHop::NONE; 2];
/// names.reader().lookup_batch(&batch, &mut found);
/// assert_eq!(labels.get(found[0]).as_deref().map(String::as_str), Some("blocked"));
/// assert_eq!(found[1], NextHop::NONE); // hosts files name each host
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub enum AnyNames {
    /// Names, each with all names beneath it.
    Table(NameTable),
    /// Entries of a list of domains, with scopes and exceptions.
    List(Arc<NameList>),
}

impl AnyNames {
    /// Opens an image file of names or of a list, with its labels. Fails like [`NameTable::open`].
    pub fn open<T: FromStr<Err: ToString> + Eq + Hash>(
        path: impl AsRef<Path>,
    ) -> Result<(Self, Labels<T>), Error> {
        let path = path.as_ref();
        if NameImageFile::open(path)?.list()?.is_some() {
            let list = NameList::open(path)?;
            let labels = list.labels().map_err(|error| error.in_file(path))?;
            return Ok((Self::List(Arc::new(list)), labels));
        }
        let (mut table, labels) = (NameTable::open(path)?, Labels::open(path)?);
        table.attach_labels(&labels);
        Ok((Self::Table(table), labels))
    }

    /// The table, to change it. `None` for a list, which takes no changes.
    pub fn table_mut(&mut self) -> Option<&mut NameTable> {
        match self {
            Self::Table(table) => Some(table),
            Self::List(_) => None,
        }
    }

    /// The table. `None` for a list.
    #[must_use]
    pub fn table(&self) -> Option<&NameTable> {
        match self {
            Self::Table(table) => Some(table),
            Self::List(_) => None,
        }
    }

    /// The engine that looks up.
    #[must_use]
    pub fn engine(&self) -> EngineName {
        match self {
            Self::Table(table) => table.reader().engine(),
            Self::List(list) => list.engine(),
        }
    }

    /// Bytes that the table or the list holds.
    #[must_use]
    pub fn memory_usage(&self) -> u64 {
        match self {
            Self::Table(table) => table.memory_usage(),
            Self::List(list) => list.memory_usage(),
        }
    }

    /// The number of names.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Table(table) => table.len(),
            Self::List(list) => list.len(),
        }
    }

    /// Whether there is no name.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A reader. Threads share it, or clone it.
    #[must_use]
    pub fn reader(&self) -> AnyNameReader {
        match self {
            Self::Table(table) => AnyNameReader::Names(table.reader()),
            Self::List(list) => AnyNameReader::List(Arc::clone(list)),
        }
    }

    /// Saves the compiled table with its names and labels. An existing file is replaced completely or not at
    /// all. Fails like [`NameTable::save`] and [`NameList::save`].
    pub fn save<T: std::fmt::Display>(
        &self,
        path: impl AsRef<Path>,
        labels: &Labels<T>,
    ) -> Result<(), Error> {
        match self {
            Self::Table(table) => table.save_labelled(path, labels),
            Self::List(list) => list.save(path),
        }
    }
}

/// A reader of names, or a list of domains.
#[derive(Clone, Debug)]
pub enum AnyNameReader {
    /// Names, each with all names beneath it.
    Names(NameReader),
    /// Entries of a list of domains, with scopes and exceptions.
    List(Arc<NameList>),
}

impl AnyNameReader {
    /// Opens an image file of names or of a list, for lookups alone.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        Ok(match NameImageFile::open(path)?.list()? {
            Some(_) => Self::List(Arc::new(NameList::open(path)?)),
            None => Self::Names(NameReader::open(path)?),
        })
    }

    /// The labels of an image file, by the numbers that lookups in it give.
    pub fn labels_of<T: FromStr<Err: ToString> + Eq + Hash>(
        &self,
        path: impl AsRef<Path>,
    ) -> Result<Labels<T>, Error> {
        match self {
            Self::Names(_) => Labels::open(path),
            Self::List(list) => list.labels().map_err(|error| error.in_file(path.as_ref())),
        }
    }

    /// The list of public suffixes, for [registrable domains](NameList::registrable).
    ///
    /// Fails for a table of names and for another list.
    pub fn suffixes(&self) -> Result<&NameList, Error> {
        match self {
            Self::List(list) if list.is_of_suffixes() => Ok(list),
            _ => Err(Error::NoSuffixes),
        }
    }

    /// Looks up names, all in one state of the table: the number of each result's label,
    /// [`NextHop::NONE`] for no match. An exception of a list has no number, either.
    ///
    /// Panics when the lengths differ.
    pub fn lookup_batch<'b>(&self, names: impl Into<Names<'b>>, next_hops: &mut [NextHop]) {
        match self {
            Self::Names(reader) => reader.lookup_batch(names, next_hops),
            Self::List(list) => list.lookup_values(names, next_hops),
        }
    }

    /// Enters the state that the table has now, for several lookups in it.
    #[must_use]
    pub fn enter(&self) -> AnyNameGuard<'_> {
        match self {
            Self::Names(reader) => AnyNameGuard::Names(reader.enter()),
            Self::List(list) => AnyNameGuard::List(list),
        }
    }
}

/// One state of a table of names, or a list, which has one state only.
#[derive(Debug)]
pub enum AnyNameGuard<'r> {
    /// A state of a table.
    Names(NameGuard<'r>),
    /// A list.
    List(&'r NameList),
}

impl AnyNameGuard<'_> {
    /// Looks up names: [`AnyNameReader::lookup_batch`].
    pub fn lookup_batch<'b>(&self, names: impl Into<Names<'b>>, next_hops: &mut [NextHop]) {
        match self {
            Self::Names(state) => state.lookup_batch(names, next_hops),
            Self::List(list) => list.lookup_values(names, next_hops),
        }
    }
}

impl NameBuilder {
    /// Builds what was read, with the settings of this builder: a table with the names that were added
    /// before, or a list. The texts of results are parsed into labels.
    ///
    /// Fails like [`build`](Self::build), and for a list if names were added before.
    pub fn build_read<T: FromStr<Err: ToString> + Eq + Hash>(
        self,
        read: TableOrList,
    ) -> Result<(AnyNames, Labels<T>), Error> {
        match read {
            TableOrList::Table(fib, _) => {
                let labels = Labels::new();
                let table = self.fib(fib, &labels).build()?;
                Ok((AnyNames::Table(table), labels))
            }
            TableOrList::List(read, report) => {
                let list = NameListBuilder::of(self.alone(&report.name)?, read).build()?;
                let labels = list.labels()?;
                Ok((AnyNames::List(Arc::new(list)), labels))
            }
        }
    }
}

impl From<TableOrListError> for Error {
    fn from(error: TableOrListError) -> Self {
        match error {
            TableOrListError::Table(error) => Self::ReadNames(error),
            TableOrListError::List(error) => Self::ReadList(Box::new(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use wirespeed_namelookup::read::lists::{ListOptions, read_table_or_list_from};
    use wirespeed_namelookup::read::{Former, ReadOptions};
    use wirespeed_namelookup::{NameBatch, NameBuf};

    use super::*;

    fn read(text: &str) -> TableOrList {
        read_table_or_list_from(text.as_bytes(), "file", &ReadOptions::default(), &ListOptions::default())
            .unwrap()
    }

    fn found(reader: &AnyNameReader, labels: &Labels<String>) -> Vec<Option<String>> {
        let domains = ["ads.example", "www.ads.example", "good.ads.example", "example"];
        let names = domains.map(|domain| NameBuf::from_domain(domain.as_bytes()).unwrap());
        let batch: NameBatch = names.iter().map(|name| &**name).collect();
        let (mut one, mut other) = ([NextHop(9); 4], [NextHop(9); 4]);
        reader.lookup_batch(&batch, &mut one);
        reader.enter().lookup_batch(&batch, &mut other);
        assert_eq!(one, other);
        one.iter().map(|&number| labels.get(number).map(|text| text.clone())).collect()
    }

    #[test]
    fn tables_and_lists_by_content_and_their_images() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("names.img");
        let some = |text: &str| Some(text.to_owned());
        for (text, is_list, right) in [
            ("ads.example shop\n", false, [some("shop"), some("shop"), some("shop"), None]),
            ("||ads.example^\n@@||good.ads.example^\n", true, [some("blocked"), some("blocked"), None, None]),
            ("192.0.2.1 ads.example\n", true, [some("192.0.2.1"), None, None, None]),
        ] {
            let (names, labels) = NameTable::builder().build_read::<String>(read(text)).unwrap();
            assert_eq!(matches!(names, AnyNames::List(_)), is_list, "{text}");
            assert_eq!(found(&names.reader(), &labels), right, "{text}");
            names.save(&path, &labels).unwrap();
            let (opened, labels) = AnyNames::open::<String>(&path).unwrap();
            assert_eq!(found(&opened.reader(), &labels), right, "{text}");
            assert_eq!((opened.len(), opened.table().is_some()), (names.len(), !is_list), "{text}");
            let reader = AnyNameReader::open(&path).unwrap();
            assert_eq!(found(&reader, &reader.labels_of(&path).unwrap()), right, "{text}");
        }
        // Registrable domains are of a list of public suffixes alone.
        let (names, _) = NameTable::builder().build_read::<String>(read("ads.example\n")).unwrap();
        let error = names.reader().suffixes().unwrap_err().to_string();
        assert!(error.contains("no list of public suffixes"), "{error}");
        let psl = "// ===BEGIN ICANN DOMAINS===\nuk\nco.uk\n*.ck\n!www.ck\n// ===END ICANN DOMAINS===\n";
        let (names, labels) = NameTable::builder().build_read::<String>(read(psl)).unwrap();
        names.save(&path, &labels).unwrap();
        for reader in [names.reader(), AnyNameReader::open(&path).unwrap()] {
            let (suffixes, mut former) = (reader.suffixes().unwrap(), Former::default());
            for (domain, right) in [
                ("www.example.co.uk", "example.co.uk"),
                ("WWW.Example.CO.UK.", "example.co.uk"),
                ("example.co.uk", "example.co.uk"),
                ("co.uk", ""),
                ("a.b.shop.ck", "b.shop.ck"),
                ("shop.ck", ""),
                ("a.www.ck", "www.ck"),
                ("www.ck", "www.ck"),
                // The rule * counts where none is listed.
                ("a.b.example", "b.example"),
                ("example", ""),
                ("192.0.2.1", ""),
                ("2001:db8::1", ""),
            ] {
                let mut text = String::new();
                let is_found = suffixes.registrable(domain, &mut former, &mut text).unwrap();
                assert_eq!((text.as_str(), is_found), (right, !right.is_empty()), "{domain}");
            }
            assert!(suffixes.registrable("a..uk", &mut former, &mut String::new()).is_err());
        }
        // A list has scopes, and a table none: they are not one.
        let builder = NameTable::builder().names([(NameBuf::new("/a").unwrap(), NextHop(1))]);
        let error = builder.build_read::<String>(read("||ads.example^\n")).unwrap_err().to_string();
        assert!(error.contains("file") && error.contains("list of domains"), "{error}");
    }
}
