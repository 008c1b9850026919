//! The tables that answer: read, and read anew when their files change.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use anyhow::{Context, Result, anyhow, bail};
use wirespeed::names::{AnyNameReader, NameList};
use wirespeed::{NameReader, Reloader};
use wirespeed_fib::merge::SourceError;
use wirespeed_fib::read::{ReadError, is_built_in};
use wirespeed_records::{AddressTable, Layout, TableError, TableFile, TableReading};

use super::values::{Encoded, Values};
use crate::busy::Busy;
use crate::source::naming_the_option;
use crate::verbs::classify::judge::Judge;
use crate::verbs::classify::set_arguments::SetArguments;

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
    pub(super) file: TableFile,
    pub(super) kind: Kind,
    /// Whether it is a list of public suffixes.
    pub(super) of_suffixes: bool,
}

/// The way in which a table is read.
#[derive(Clone, Debug)]
pub(super) struct Reading {
    /// The way for tables of addresses and of names.
    pub(super) tables: TableReading,
    /// The options for rules, if it is a set of them.
    pub(super) rules: SetArguments,
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
    Addresses(AddressTable),
    Names(NameReader),
    Domains(Arc<NameList>),
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

    /// Whether it has addresses of IPv4, and of IPv6. Names are of no family.
    pub(super) fn families(&self) -> [bool; 2] {
        match self {
            Self::Addresses(table) => table.families,
            Self::Names(_) | Self::Domains(_) => [true; 2],
            Self::Rules(rules) => rules.families(),
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
    pub(super) fn new(file: TableFile, kind: Kind) -> Self {
        Self { file, kind, of_suffixes: false }
    }

    /// Whether it comes from standard input or is built in, and not from a file that may change.
    fn is_read_once(&self) -> bool {
        self.file.paths().any(|path| path == "-") || self.followed().next().is_none()
    }

    /// The files that may change.
    fn followed(&self) -> impl Iterator<Item = PathBuf> {
        let is_built_in = |path: &OsStr| self.kind == Kind::Addresses && is_built_in(path);
        self.file.paths().filter(move |path| !is_built_in(path)).map(PathBuf::from)
    }

    /// Reads the table.
    fn read(&self, number: u32, reading: &Reading) -> Result<Version> {
        let file = &self.file;
        let _busy = Busy::with(format!("reading {}", file.name));
        let mut values = Values::new(file.fields.len().max(1));
        let mut add = |text: &str| values.add(text, file);
        let (lookup, report) = match self.kind {
            Kind::Addresses => {
                let read = file.read_addresses(reading.tables, &mut add);
                let (table, report) = read.map_err(|error| match error {
                    TableError::Routes(error @ ReadError::UnknownFormat { .. }) => {
                        anyhow!("{error}; rules are named with --rules NAME=FILE")
                    }
                    TableError::Routes(error) | TableError::Sources(SourceError::Read(error)) => {
                        naming_the_option(error)
                    }
                    error => error.into(),
                })?;
                (Lookup::Addresses(table), report)
            }
            Kind::Names | Kind::Domains => match file.read_names(reading.tables, &mut add)? {
                (AnyNameReader::Names(names), report) => (Lookup::Names(names), report),
                (AnyNameReader::List(list), report) => (Lookup::Domains(list), report),
            },
            Kind::Rules => {
                let rules = reading.rules.open(&file.path, reading.tables.lenient)?;
                let actions = rules.actions();
                if actions.is_empty() {
                    bail!("{}: nothing of it was taken: no line of it is a rule", file.path.display());
                }
                actions.iter().for_each(|action| add(action));
                (Lookup::Rules(rules), None)
            }
        };
        if let Some(report) = report {
            eprintln!("{}: {report}", file.name);
        }
        if number > 1 && lookup.kind() != (self.kind, self.of_suffixes) {
            bail!("the file is of another kind now");
        }
        Ok(Version { number, lookup, values, encoded: OnceLock::new() })
    }
}

/// A table's file that is followed.
pub(super) struct Followed {
    spec: Spec,
    reading: Reading,
    /// `None` if nothing is followed.
    reloader: Option<Reloader>,
    number: u32,
    /// Whether the file was missing at the last look.
    is_lost: bool,
}

impl Followed {
    /// Reads the table for the first time.
    pub(super) fn open(spec: Spec, reading: Reading) -> Result<(Self, Arc<Version>)> {
        let reloader = Reloader::of_all(spec.followed()).filter(|_| !spec.is_read_once());
        let mut followed = Self { spec, reading, reloader, number: 0, is_lost: false };
        let version = match followed.reloader {
            None => Some(followed.spec.read(1, &followed.reading)),
            Some(_) => followed.look()?,
        };
        followed.number = 1;
        let version = version
            .context("a file that was not read yet")?
            .with_context(|| followed.spec.file.name.clone())?;
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
        match &mut self.reloader {
            None => Ok(None),
            Some(reloader) => reloader.if_changed(|_| Ok(spec.read(number, reading))),
        }
    }

    /// The next version, if the file has changed and reads. Otherwise the reason goes to stderr, once.
    pub(super) fn next(&mut self) -> Option<Arc<Version>> {
        let looked = self.look();
        let was_lost = std::mem::replace(&mut self.is_lost, looked.is_err());
        match looked {
            Ok(None) => None,
            Ok(Some(Ok(version))) => {
                self.number = version.number;
                Some(Arc::new(version))
            }
            Ok(Some(Err(error))) => {
                eprintln!("{}: version {} stays: {error:#}", self.spec.file.name, self.number);
                None
            }
            Err(error) => {
                if !was_lost {
                    eprintln!("{}: version {} stays: {error}", self.spec.file.name, self.number);
                }
                None
            }
        }
    }
}
