//! [`Table`]: what the functions look up in. The files beside this one have a kind each: arrays in, arrays
//! out, without types of DataFusion.

mod addresses;
mod names;
mod payloads;
mod rules;

use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

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
    /// Names: for `name_lookup` and `name_label`.
    Names(NameTable),
    /// Packet rules: for `classify` and `classify_action`.
    Rules(RuleTable),
    /// Payloads of the RPKI: for `rov`.
    Payloads(PayloadTable),
}

impl Table {
    /// Opens a file: an image of addresses, names or rules, or RPKI payloads in a format that
    /// [`read_vrps`](wirespeed::fib::read::read_vrps) knows. Two images, one of each family, are one table.
    ///
    /// Fails if a file is damaged, of another kind, or is replaced while it is read.
    pub fn open<P: AsRef<Path>>(paths: &[P]) -> Result<Self, Error> {
        let paths: Vec<&Path> = paths.iter().map(AsRef::as_ref).collect();
        let before = Stamp::of_all(&paths)?;
        let table = Self::read(&paths, &before)?;
        match before
            .iter()
            .zip(Stamp::of_all(&paths)?)
            .zip(&paths)
            .find(|((before, after), _)| *before != after)
        {
            None => Ok(table),
            Some((_, path)) => Err(Error::Changed { path: path.to_path_buf() }),
        }
    }

    fn read(paths: &[&Path], stamps: &[Stamp]) -> Result<Self, Error> {
        let [first, rest @ ..] = paths else {
            return Err(Error::Option("a table needs a file".to_owned()));
        };
        if !is_image(first)? {
            return match rest {
                [] => Ok(Self::Payloads(PayloadTable::open(first)?)),
                [second, ..] => {
                    Err(Error::Join { path: second.to_path_buf(), reason: "payloads are one file" })
                }
            };
        }
        match ImageFile::open_all(first) {
            Ok(_) => Ok(Self::Addresses(AddressTable::open(paths, stamps)?)),
            Err(wirespeed::Error::ImageOf { found: "names", .. }) => match rest {
                [] => Ok(Self::Names(NameTable::open(first)?)),
                [second, ..] => Err(Error::Join { path: second.to_path_buf(), reason: "names are one file" }),
            },
            Err(wirespeed::Error::ImageOf { found: "rules", .. }) => Ok(Self::Rules(RuleTable::open(paths)?)),
            Err(error) => Err(error.into()),
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

/// Tells one state of a file from another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    len: u64,
    modified: Option<SystemTime>,
    inode: Option<u64>,
}

impl Stamp {
    pub(crate) fn of(path: &Path) -> Result<Self, Error> {
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
