//! [`Table`]: what the functions look up in. The files beside this one have a kind each: arrays in, arrays
//! out, without types of DataFusion.

mod addresses;
mod names;
mod payloads;
mod rules;

use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use wirespeed::content::{Content, FileError, FileTable, How};
use wirespeed::fib::merge::MergeSource;
use wirespeed::image::Image;
use wirespeed::image_file::ImageFile;

use crate::error::Error;

pub use addresses::AddressTable;
pub use names::NameTable;
pub use payloads::PayloadTable;
pub use rules::RuleTable;

pub(crate) use rules::Packets;

/// A table that does not change, so that all of a query sees one state of it.
#[derive(Debug)]
#[non_exhaustive]
pub enum Table {
    /// Prefixes: for `lpm` and the functions whose names start so.
    Addresses(AddressTable),
    /// Names: for `name_lookup`, `name_label` and `name_registrable`.
    Names(NameTable),
    /// Packet rules: for `classify` and `classify_action`.
    Rules(RuleTable),
    /// Payloads of the RPKI: for `rov`.
    Payloads(PayloadTable),
}

impl Table {
    /// Opens a file by its content: an image, routes in any format that
    /// [`IpBuilder::file`](wirespeed::IpBuilder::file) reads, names, a list of domains, rules, or payloads of
    /// the RPKI. Two images or two files of rules, one of each family, are one table.
    ///
    /// A path may also be a [source](Self::merged) of a merged table, as `FIELD=FILE` or
    /// `FIELD:COLUMN+COLUMN=FILE`; then all paths are. A path with `=` in its first part begins with `./`.
    ///
    /// Fails if a file is damaged, of another kind, not understood, or is replaced while it is read.
    pub fn open<P: AsRef<Path>>(paths: &[P]) -> Result<Self, Error> {
        Self::open_as(paths, &How::default())
    }

    /// Opens a file like [`open`](Self::open), with a format or other options for reading. An image has its
    /// own.
    pub fn open_as<P: AsRef<Path>>(paths: &[P], how: &How) -> Result<Self, Error> {
        let paths: Vec<&Path> = paths.iter().map(AsRef::as_ref).collect();
        let sources = sources(&paths)?;
        unchanged(&files(&paths), |stamps| match &sources[..] {
            [] => Self::read(&paths, stamps, how),
            sources => Self::merge(sources, how),
        })
    }

    /// Reads sources in order of precedence, and [merges](wirespeed::fib::merge) them to one table of
    /// addresses, whose labels are records: for `lpm_label` with a field.
    ///
    /// Fails if a source is not understood, or is replaced while it is read.
    pub fn merged(sources: &[MergeSource], how: &How) -> Result<Self, Error> {
        let files: Vec<_> = sources.iter().map(|source| PathBuf::from(&source.file)).collect();
        unchanged(&files, |_| Self::merge(sources, how))
    }

    fn merge(sources: &[MergeSource], how: &How) -> Result<Self, Error> {
        Ok(Self::of(wirespeed::content::merge(sources, how)?))
    }

    fn read(paths: &[&Path], stamps: &[Stamp], how: &How) -> Result<Self, Error> {
        let [first, rest @ ..] = paths else {
            return Err(Error::Option("a table needs a file".to_owned()));
        };
        let alone = |reason| match rest.first() {
            None => Ok(()),
            Some(second) => Err(Error::Join { path: second.to_path_buf(), reason }),
        };
        let content = how.content.map_or_else(|| Content::of_file(first), Ok).map_err(FileError::from)?;
        match content {
            Content::Image => match ImageFile::open_all(first) {
                Ok(_) => Ok(Self::Addresses(AddressTable::open(paths, stamps)?)),
                Err(wirespeed::Error::ImageOf { found: "names", .. }) => {
                    alone("names are one file")?;
                    Ok(Self::Names(NameTable::open(first)?))
                }
                Err(wirespeed::Error::ImageOf { found: "rules", .. }) => {
                    Ok(Self::Rules(RuleTable::open(paths, how)?))
                }
                Err(error) => Err(error.into()),
            },
            Content::Rules(_) => Ok(Self::Rules(RuleTable::open(paths, how)?)),
            content => {
                alone(match content {
                    Content::Payloads(_) => "payloads are one file",
                    Content::Names(_) | Content::List(_) => "names are one file",
                    _ => "routes are one file: name fields to merge several, as FIELD=FILE",
                })?;
                Ok(Self::of(wirespeed::content::read(first, &How { content: Some(content), ..how.clone() })?))
            }
        }
    }

    /// The table of a file that was read.
    fn of(table: FileTable) -> Self {
        match table {
            FileTable::Addresses(table, labels) => Self::Addresses(AddressTable::new(table, &labels)),
            FileTable::Names(names, labels) => Self::Names(NameTable::of(&names, &labels)),
            FileTable::Ipv4Rules(rules, labels) => Self::Rules(RuleTable::new(Some(rules), None, &labels)),
            FileTable::Ipv6Rules(rules, labels) => Self::Rules(RuleTable::new(None, Some(rules), &labels)),
            FileTable::Payloads(payloads) => Self::Payloads(PayloadTable::new(*payloads)),
        }
    }

    /// What the table holds, in words.
    pub(crate) fn holds(&self) -> &'static str {
        match self {
            Self::Addresses(_) => "addresses",
            Self::Names(_) => "names",
            Self::Rules(_) => "rules",
            Self::Payloads(_) => "RPKI payloads",
        }
    }
}

/// Reads files, and fails if one of them is replaced meanwhile.
fn unchanged(files: &[PathBuf], read: impl FnOnce(&[Stamp]) -> Result<Table, Error>) -> Result<Table, Error> {
    let before = Stamp::of_all(files)?;
    let table = read(&before)?;
    match before.iter().zip(Stamp::of_all(files)?).zip(files).find(|((before, after), _)| *before != after) {
        None => Ok(table),
        Some((_, path)) => Err(Error::Changed { path: path.clone() }),
    }
}

/// The source of a merged table that a place is: `FIELD=FILE` or `FIELD:COLUMN+COLUMN=FILE`. `None` for a
/// path.
fn source(place: &Path) -> Option<MergeSource> {
    let (before, file) = place.to_str()?.split_once('=')?;
    let (name, columns) = match before.split_once(':') {
        Some((name, columns)) => (name, columns.split('+').map(str::to_owned).collect()),
        None => (before, Vec::new()),
    };
    let is_source = !before.contains(['/', '\\']) && !name.is_empty() && !file.is_empty();
    let source = MergeSource { name: name.to_owned(), columns, file: file.into() };
    (is_source && !source.columns.iter().any(String::is_empty)).then_some(source)
}

/// The sources that all places are. None if no place is one.
fn sources(places: &[&Path]) -> Result<Vec<MergeSource>, Error> {
    let sources: Vec<_> = places.iter().filter_map(|place| source(place)).collect();
    match places.iter().find(|place| source(place).is_none()) {
        Some(path) if !sources.is_empty() => {
            let reason = "the table is merged of sources, and this one has no field: name it FIELD=FILE";
            Err(Error::Join { path: path.to_path_buf(), reason })
        }
        _ => Ok(sources),
    }
}

/// The files of places.
pub(crate) fn files<P: AsRef<Path>>(places: &[P]) -> Vec<PathBuf> {
    let file = |place: &Path| source(place).map_or_else(|| place.to_owned(), |source| source.file.into());
    places.iter().map(|place| file(place.as_ref())).collect()
}

/// Tells one state of a file from another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    len: u64,
    modified: Option<SystemTime>,
    inode: Option<u64>,
}

impl Stamp {
    pub(crate) fn of(path: &Path) -> Result<Self, Error> {
        if wirespeed::fib::read::is_built_in(path) {
            return Ok(Self { len: 0, modified: None, inode: None });
        }
        let metadata =
            std::fs::metadata(path).map_err(|source| Error::Io { path: path.to_owned(), source })?;
        let (len, modified) = (metadata.len(), metadata.modified().ok());
        Ok(Self { len, modified, inode: inode(&metadata) })
    }

    pub(crate) fn of_all<P: AsRef<Path>>(paths: &[P]) -> Result<Vec<Self>, Error> {
        paths.iter().map(|path| Self::of(path.as_ref())).collect()
    }
}

#[cfg(unix)]
#[expect(clippy::unnecessary_wraps, reason = "other systems have none")]
fn inode(metadata: &Metadata) -> Option<u64> {
    Some(std::os::unix::fs::MetadataExt::ino(metadata))
}

#[cfg(not(unix))]
fn inode(_: &Metadata) -> Option<u64> {
    None
}

fn is_image(path: &Path) -> Result<bool, Error> {
    Image::is_at(path).map_err(|source| Error::Io { path: path.to_owned(), source })
}

/// A file, in one state of it.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    pub(crate) path: PathBuf,
    pub(crate) stamp: Stamp,
}

impl Kept {
    /// Fails if the file is in another state now.
    pub(crate) fn check(&self) -> Result<(), Error> {
        match Stamp::of(&self.path)? == self.stamp {
            true => Ok(()),
            false => Err(Error::Changed { path: self.path.clone() }),
        }
    }
}
