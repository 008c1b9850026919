//! The tables that answer: read, and read anew when their files change.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use anyhow::{Context, Result, bail};
use wirespeed::engine::Addresses;
use wirespeed::image_file::ImageFile;
use wirespeed::names::NameList;
use wirespeed::names::image_file::NameImageFile;
use wirespeed::names::read::lists::{ListOptions, TableOrList, read_table_or_list};
use wirespeed::names::read::{self as names, Label};
use wirespeed::{IpReader, IpTable, NameReader, NameTable, Reloader, Table};
use wirespeed_fib::Rib;
use wirespeed_fib::read::{Columns, ReadOptions, Source, read_fib};
use wirespeed_records::Layout;

use super::values::{Encoded, Values};
use crate::busy::Busy;
use crate::source::is_image;
use crate::verbs::classify::judge::{Judge, RuleArguments};

/// The keys of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Addresses,
    /// Names, each with all names beneath it.
    Names,
    /// Entries of a list of domains, with scopes and exceptions.
    Domains,
    Rules,
}

/// A table as the command line names it.
#[derive(Clone, Debug)]
pub(super) struct Spec {
    pub(super) name: String,
    pub(super) path: OsString,
    pub(super) kind: Kind,
    /// The fields of its values. Empty for the whole value.
    pub(super) fields: Vec<String>,
    /// Whether it is a list of public suffixes.
    pub(super) of_suffixes: bool,
}

/// The way in which all tables are read.
#[derive(Clone, Debug)]
pub(super) struct Reading {
    pub(super) lenient: bool,
    /// Whether matched prefixes are asked for.
    pub(super) prefix: bool,
    /// Whether next hops of MRT and bgpdump are taken, and not origins.
    pub(super) next_hops: bool,
    /// The options for rules.
    pub(super) rules: RuleArguments,
}

/// One state of a table's file.
pub(super) struct Version {
    /// Its number, from 1.
    pub(super) number: u32,
    pub(super) lookup: Lookup,
    values: Values,
    encoded: OnceLock<Encoded>,
}

/// The tables of a block, in the order of the command line.
pub(super) type Versions = Arc<Vec<Arc<Version>>>;

/// What looks up.
pub(super) enum Lookup {
    Addresses(IpReader),
    Names(NameReader),
    Domains(NameList),
    Rules(Box<dyn Judge>),
}

impl Lookup {
    /// The keys, and whether it is a list of public suffixes.
    fn kind(&self) -> (Kind, bool) {
        match self {
            Self::Addresses(_) => (Kind::Addresses, false),
            Self::Names(_) => (Kind::Names, false),
            Self::Domains(list) => (Kind::Domains, list.is_of_suffixes()),
            Self::Rules(_) => (Kind::Rules, false),
        }
    }
}

impl Version {
    /// The values as the records need them. The first call makes them.
    pub(super) fn encoded(&self, layout: &Layout) -> &Encoded {
        self.encoded.get_or_init(|| self.values.encoded(layout))
    }
}

impl Spec {
    /// Parses `NAME=FILE`.
    pub(super) fn parse(text: &str, kind: Kind) -> Result<Self> {
        let (name, path) =
            text.split_once('=')
                .filter(|(name, path)| !name.is_empty() && !path.is_empty())
                .with_context(|| format!("{text:?}: a table is named NAME=FILE, such as asn=rib.mrt"))?;
        if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')) {
            bail!("{name:?}: the name of a table has letters, digits, - and _ only");
        }
        Ok(Self { name: name.to_owned(), path: path.into(), kind, fields: Vec::new(), of_suffixes: false })
    }

    /// Reads the table.
    fn read(&self, number: u32, reading: &Reading) -> Result<Version> {
        let _busy = Busy::with(format!("reading {}", Path::new(&self.path).display()));
        let mut values = Values::new(self.fields.len().max(1));
        let lookup = match self.kind {
            Kind::Addresses => {
                Lookup::Addresses(self.read_addresses(&mut values, reading)?.mapped_as_v4(true))
            }
            Kind::Names | Kind::Domains => self.read_names(&mut values, reading)?,
            Kind::Rules => {
                let rules = reading.rules.open(&self.path, reading.lenient)?;
                rules.actions().iter().for_each(|action| values.add(action, &[]));
                Lookup::Rules(rules)
            }
        };
        if number > 1 && lookup.kind() != (self.kind, self.of_suffixes) {
            bail!("the file is of another kind now");
        }
        Ok(Version { number, lookup, values, encoded: OnceLock::new() })
    }

    fn read_addresses(&self, values: &mut Values, reading: &Reading) -> Result<IpReader> {
        let path = Path::new(&self.path);
        if is_image(&self.path) {
            let files = ImageFile::open_all(path)?;
            let lacks = files.iter().any(|file| !file.has_prefix_lookups());
            if reading.prefix && lacks {
                bail!(
                    "{}: an image that gives no prefixes: name the routes, not an image, for --prefix",
                    path.display()
                );
            }
            let texts = files.first().map(ImageFile::next_hops).transpose()?.unwrap_or_default();
            if texts.is_empty() {
                bail!("{}: the image has no texts of its next hops", path.display());
            }
            texts.iter().for_each(|(_, text)| values.add(text, &self.fields));
            return Ok(IpReader::open(path)?);
        }
        let options = ReadOptions {
            lenient: reading.lenient,
            origins: !reading.next_hops,
            columns: Columns { values: self.fields.clone(), ..Columns::default() },
            ..ReadOptions::default()
        };
        let read = read_fib(&Source::from_arg(&self.path), &options);
        let (fib, report) = match &*self.fields {
            [] => read?,
            // The reader takes any text for CSV if columns are named.
            _ => read.with_context(|| format!("--fields {}=... is for CSV and MaxMind DB", self.name))?,
        };
        eprintln!("{}: {report}", self.name);
        fib.next_hops.iter().for_each(|(_, text)| values.add(text, &self.fields));
        let (v4, v6) = (table(fib.v4, reading.prefix)?, table(fib.v6, reading.prefix)?);
        Ok(IpTable::new(v4, v6).reader())
    }

    fn read_names(&self, values: &mut Values, reading: &Reading) -> Result<Lookup> {
        let path = Path::new(&self.path);
        let mut add = |_: u32, label: Label<'_>| match label {
            // A list without results, like routes without next hops.
            Label::Line(_) => values.add("member", &[]),
            Label::Word(word) => values.add(word, &[]),
        };
        if is_image(&self.path) {
            let image = NameImageFile::open(path)?;
            image.labels()?.iter().for_each(|(at, label)| add(at, label));
            return Ok(match image.list()? {
                Some(_) => Lookup::Domains(NameList::open(path)?),
                None => Lookup::Names(NameReader::open(path)?),
            });
        }
        let lenient = reading.lenient;
        let options = names::ReadOptions { lenient, ..names::ReadOptions::default() };
        let of_list = ListOptions { lenient, ..ListOptions::default() };
        match read_table_or_list(&names::Source::from_arg(&self.path), &options, &of_list)? {
            TableOrList::Table(fib, report) => {
                eprintln!("{}: {report}", self.name);
                fib.labels.iter().for_each(|(at, label)| add(at, label));
                Ok(Lookup::Names(NameTable::builder().rib(fib.names).build()?.reader()))
            }
            TableOrList::List(read, report) => {
                eprintln!("{}: {report}", self.name);
                read.labels.iter().for_each(|(at, label)| add(at, label));
                Ok(Lookup::Domains(NameList::builder().read(read).build()?))
            }
        }
    }
}

fn table<A: Addresses>(routes: Rib<A>, prefix: bool) -> Result<Table<A>, wirespeed::Error> {
    let builder = Table::<A>::builder().rib(routes);
    if prefix { builder.prefix_lookups() } else { builder }.build()
}

/// A table's file that is followed.
pub(super) struct Followed {
    spec: Spec,
    reading: Reading,
    reloader: Reloader,
    number: u32,
    /// Whether the file was missing at the last look.
    is_lost: bool,
}

impl Followed {
    /// Reads the table for the first time.
    pub(super) fn open(spec: Spec, reading: Reading) -> Result<(Self, Arc<Version>)> {
        let reloader = Reloader::new(PathBuf::from(&spec.path));
        let mut followed = Self { spec, reading, reloader, number: 0, is_lost: false };
        let version = match followed.spec.path == "-" {
            true => Some(followed.spec.read(1, &followed.reading)),
            false => followed.look()?,
        };
        followed.number = 1;
        let version =
            version.context("a file that was not read yet")?.with_context(|| followed.spec.name.clone())?;
        // The content says whether it is a table of names or a list.
        (followed.spec.kind, followed.spec.of_suffixes) = version.lookup.kind();
        Ok((followed, Arc::new(version)))
    }

    /// The table as it was read.
    pub(super) fn spec(&self) -> &Spec {
        &self.spec
    }

    /// Reads the file if it has changed. `None` if it has not.
    fn look(&mut self) -> Result<Option<Result<Version>>, wirespeed::Error> {
        let (spec, reading, number) = (&self.spec, &self.reading, self.number + 1);
        // A file that does not read counts as seen: it is read again when it changes again.
        self.reloader.if_changed(|_| Ok(spec.read(number, reading)))
    }

    /// The next version, if the file has changed and reads. Otherwise the reason goes to stderr, once.
    pub(super) fn next(&mut self) -> Option<Arc<Version>> {
        if self.spec.path == "-" {
            return None;
        }
        let looked = self.look();
        let was_lost = std::mem::replace(&mut self.is_lost, looked.is_err());
        match looked {
            Ok(None) => None,
            Ok(Some(Ok(version))) => {
                self.number = version.number;
                Some(Arc::new(version))
            }
            Ok(Some(Err(error))) => {
                eprintln!("{}: version {} stays: {error:#}", self.spec.name, self.number);
                None
            }
            Err(error) => {
                if !was_lost {
                    eprintln!("{}: version {} stays: {error}", self.spec.name, self.number);
                }
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_tables() {
        let spec = Spec::parse("asn=a=b", Kind::Addresses).unwrap();
        assert_eq!((&*spec.name, &*spec.path), ("asn", std::ffi::OsStr::new("a=b")));
        for wrong in ["asn", "=a", "asn=", "a.b=c", "a b=c"] {
            assert!(Spec::parse(wrong, Kind::Names).is_err(), "{wrong}");
        }
    }
}
