//! [`Table`]: what the functions look up in. The files beside this one have a kind each: arrays in, arrays
//! out, without types of DataFusion.

mod addresses;
mod names;
mod payloads;
mod place;
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

pub(crate) use place::files;
pub(crate) use rules::Packets;

use place::{Placed, sources};

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
    /// Options for reading may follow, as in `FILE?chain=FORWARD&lenient`: those that [`How::set`] has, with
    /// `+` for a comma, and `%2B`, `%26`, `%2C` and `%25` for the characters `+`, `&`, `,` and `%`. A path
    /// that has a `?` ends with another one.
    ///
    /// Fails if a file is damaged, of another kind, not understood, or is replaced while it is read.
    pub fn open<P: AsRef<Path>>(paths: &[P]) -> Result<Self, Error> {
        Self::open_as(paths, &How::default())
    }

    /// Opens a file like [`open`](Self::open), with a format or other options for reading. An image has its
    /// own.
    pub fn open_as<P: AsRef<Path>>(paths: &[P], how: &How) -> Result<Self, Error> {
        let places = Placed::all(paths, how)?;
        let files: Vec<_> = places.iter().map(|placed| placed.file.clone()).collect();
        let sources = sources(&places)?;
        unchanged(&files, |stamps| match &sources[..] {
            [] => Self::read(&places, stamps),
            sources => Self::merge(sources),
        })
    }

    /// Reads sources in order of precedence, and [merges](wirespeed::fib::merge) them to one table of
    /// addresses, whose labels are records: for `lpm_label` with a field.
    ///
    /// Fails if a source is not understood, or is replaced while it is read.
    pub fn merged(sources: &[MergeSource], how: &How) -> Result<Self, Error> {
        let files: Vec<_> = sources.iter().map(|source| PathBuf::from(&source.file)).collect();
        let sources: Vec<_> = sources.iter().map(|source| (source, how)).collect();
        unchanged(&files, |_| Self::merge(&sources))
    }

    fn merge(sources: &[(&MergeSource, &How)]) -> Result<Self, Error> {
        Ok(Self::of(wirespeed::content::merge(sources.iter().copied())?))
    }

    fn read(places: &[Placed], stamps: &[Stamp]) -> Result<Self, Error> {
        let [Placed { file: first, how, .. }, rest @ ..] = places else {
            return Err(Error::Option("a table needs a file".to_owned()));
        };
        let alone = |reason| match rest.first() {
            None => Ok(()),
            Some(second) => Err(Error::Join { path: second.file.clone(), reason }),
        };
        let content = how.content_of(first).map_err(FileError::from)?;
        match content {
            Content::Image => match ImageFile::open_all(first) {
                Ok(_) => {
                    places.iter().try_for_each(has_own_settings)?;
                    let paths: Vec<_> = places.iter().map(|placed| &*placed.file).collect();
                    Ok(Self::Addresses(AddressTable::open(&paths, stamps)?))
                }
                Err(wirespeed::Error::ImageOf { found: "names", .. }) => {
                    alone("names are one file")?;
                    has_own_settings(&places[0])?;
                    Ok(Self::Names(NameTable::open(first)?))
                }
                Err(wirespeed::Error::ImageOf { found: "rules", .. }) => {
                    Ok(Self::Rules(RuleTable::open(places)?))
                }
                Err(error) => Err(error.into()),
            },
            Content::Rules(_) => Ok(Self::Rules(RuleTable::open(places)?)),
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

/// Refuses options for an image, which has its own.
fn has_own_settings(Placed { file, how, .. }: &Placed) -> Result<(), Error> {
    Ok(how.check(Content::Image).map_err(|cause| FileError::How { path: file.clone(), cause })?)
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
