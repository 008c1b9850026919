//! The tables that answer: read, and read anew when their files change.

use std::ffi::OsStr;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use wirespeed::names::{AnyNameReader, NameList};
use wirespeed::{NameReader, Reloader};
use wirespeed_fib::merge::SourceError;
use wirespeed_fib::read::{ReadError, is_built_in};
use wirespeed_records::{AddressTable, TableError, TableFile, TableReading};

use crate::busy::Busy;
use crate::routes::naming_the_option;
use crate::rules::{Judge, SetArguments};

/// The keys of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Addresses of both families.
    Addresses,
    /// Names, each with all names beneath it.
    Names,
    /// Entries of a list of domains, with scopes and exceptions.
    Domains,
    /// Flows: 5-tuples.
    Rules,
}

/// A table as the command line names it.
#[derive(Clone, Debug)]
pub struct Spec {
    /// Its name, its file, and the options for reading it.
    pub file: TableFile,
    /// Its keys. For names, the content of the file says which, once it is read.
    pub kind: Kind,
    /// Whether it is a list of public suffixes.
    pub of_suffixes: bool,
    /// The options for reading it, if it is a set of rules.
    pub rules: SetArguments,
}

/// The texts that a table has for its indexes, in the form that a program needs them in.
pub trait Values: Send + Sync + 'static {
    /// Begins without texts, for so many fields. The index 0 stands for no match, and has no text.
    fn new(fields: usize) -> Self;

    /// Adds the fields of the next index.
    fn add(&mut self, text: &str, file: &TableFile);

    /// Says that all texts were added.
    fn finish(&mut self) {}
}

/// One state of a table's file.
#[derive(Debug)]
pub struct Version<V> {
    /// Its number, from 1.
    pub number: u32,
    /// The table itself.
    pub lookup: Lookup,
    /// The texts of each index.
    pub values: V,
}

/// The current state of each table, in the order of the command line.
pub type Versions<V> = Arc<Vec<Arc<Version<V>>>>;

/// A table that looks up.
pub enum Lookup {
    /// Addresses of both families.
    Addresses(AddressTable),
    /// Names, each with all names beneath it.
    Names(NameReader),
    /// A list of domains.
    Domains(Arc<NameList>),
    /// Rules of flows.
    Rules(Box<dyn Judge>),
}

impl fmt::Debug for Lookup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.kind().0)
    }
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
    pub fn families(&self) -> [bool; 2] {
        match self {
            Self::Addresses(table) => table.families,
            Self::Names(_) | Self::Domains(_) => [true; 2],
            Self::Rules(rules) => rules.families(),
        }
    }
}

impl Spec {
    /// A table of these keys, without options for rules.
    #[must_use]
    pub fn new(file: TableFile, kind: Kind) -> Self {
        Self { file, kind, of_suffixes: false, rules: SetArguments::default() }
    }

    /// The files that it is read from.
    pub fn paths(&self) -> impl Iterator<Item = &OsStr> {
        self.file.paths().chain(self.rules.ipset())
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
    fn read<V: Values>(&self, number: u32, reading: TableReading) -> Result<Version<V>> {
        let file = &self.file;
        let _busy = Busy::with(format!("reading {}", file.name));
        let mut values = V::new(file.fields.len().max(1));
        let mut add = |text: &str| values.add(text, file);
        let (lookup, report) = match self.kind {
            Kind::Addresses => {
                let read = file.read_addresses(reading, &mut add);
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
            Kind::Names | Kind::Domains => match file.read_names(reading, &mut add)? {
                (AnyNameReader::Names(names), report) => (Lookup::Names(names), report),
                (AnyNameReader::List(list), report) => (Lookup::Domains(list), report),
            },
            Kind::Rules => {
                let rules = self.rules.open(&file.path, reading.lenient)?;
                let actions = rules.actions();
                if actions.is_empty() {
                    bail!("{}: nothing of it was taken: no line of it is a rule", file.path.display());
                }
                actions.iter().for_each(|action| add(action));
                (Lookup::Rules(rules), None)
            }
        };
        if let Some(report) = report {
            tell!("{}: {report}", file.name);
        }
        if number > 1 && lookup.kind() != (self.kind, self.of_suffixes) {
            bail!("the file is of another kind now");
        }
        values.finish();
        Ok(Version { number, lookup, values })
    }
}

/// A table's file that is followed.
#[derive(Debug)]
pub struct Followed<V> {
    spec: Spec,
    reading: TableReading,
    /// `None` if nothing is followed.
    reloader: Option<Reloader>,
    number: u32,
    /// Whether the file was missing at the last look.
    is_lost: bool,
    values: std::marker::PhantomData<fn() -> V>,
}

impl<V: Values> Followed<V> {
    /// Reads the table for the first time.
    pub fn open(spec: Spec, reading: TableReading) -> Result<(Self, Arc<Version<V>>)> {
        let reloader = Reloader::of_all(spec.followed()).filter(|_| !spec.is_read_once());
        let mut followed =
            Self { spec, reading, reloader, number: 0, is_lost: false, values: std::marker::PhantomData };
        let version = match followed.reloader {
            None => Some(followed.spec.read(1, followed.reading)),
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
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// Reads the file if it has changed. `None` if it has not.
    fn look(&mut self) -> Result<Option<Result<Version<V>>>, wirespeed::Error> {
        let (spec, reading, number) = (&self.spec, self.reading, self.number + 1);
        // A file that does not read counts as seen: it is read again when it changes again.
        match &mut self.reloader {
            None => Ok(None),
            Some(reloader) => reloader.if_changed(|_| Ok(spec.read(number, reading))),
        }
    }

    /// The next version, if the file has changed and reads. Otherwise the reason goes to stderr, once.
    pub(super) fn next(&mut self) -> Option<Arc<Version<V>>> {
        let looked = self.look();
        let was_lost = std::mem::replace(&mut self.is_lost, looked.is_err());
        match looked {
            Ok(None) => None,
            Ok(Some(Ok(version))) => {
                self.number = version.number;
                Some(Arc::new(version))
            }
            Ok(Some(Err(error))) => {
                tell!("{}: version {} stays: {error:#}", self.spec.file.name, self.number);
                None
            }
            Err(error) => {
                if !was_lost {
                    tell!("{}: version {} stays: {error}", self.spec.file.name, self.number);
                }
                None
            }
        }
    }
}
