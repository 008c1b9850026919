//! [`Table`]: a live table of addresses of both families.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use ipnet::IpNet;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyType};
use wirespeed::content::Content;
use wirespeed::fib::merge::{MergeSource, read_sources};
use wirespeed::fib::read::{Format, PrefixColumns, ReadOptions, Source, read_fib};
use wirespeed::prelude::*;
use wirespeed::{IpBuilder, Prefix};

use crate::addresses::{self, Addresses};
use crate::answers::{self, Coded};
use crate::column::{Column, Wrong};
use crate::failure::{Failure, detached};
use crate::given::{self, OfFile, Origin, keywords, with};
use crate::live::{Dictionary, Held, Live};
use crate::lookup::{BLOCK, Part, look_up, threads};
use crate::texts::Values;

/// Table of IPv4 and IPv6 prefixes, live: it changes while other threads look up.
#[pyclass(frozen, mapping, module = "wirespeed")]
pub(crate) struct Table {
    /// Takes no lock. Addresses as ::ffff:192.0.2.1 count as IPv4.
    reader: IpReader,
    pub(crate) live: Live<IpTable>,
}

/// Settings of a table that is built.
struct Settings {
    engine: Option<String>,
    memory_cap: Option<u64>,
    prefix_lookups: bool,
}

impl Settings {
    fn of(self, builder: IpBuilder) -> IpBuilder {
        let builder = with(builder, self.engine, IpBuilder::engine);
        let builder = with(builder, self.memory_cap, IpBuilder::memory_cap);
        if self.prefix_lookups { builder.prefix_lookups() } else { builder }
    }
}

#[pymethods]
impl Table {
    #[new]
    #[pyo3(signature = (routes=None, *, engine=None, prefix_lookups=false, memory_cap=None))]
    fn new(
        py: Python<'_>,
        routes: Option<&Bound<'_, PyAny>>,
        engine: Option<String>,
        prefix_lookups: bool,
        memory_cap: Option<u64>,
    ) -> Result<Self, Failure> {
        let routes =
            routes.map_or(Ok(Vec::new()), |routes| given::pairs(routes, given::prefix, given::value))?;
        let settings = Settings { engine, memory_cap, prefix_lookups };
        detached(py, || {
            let (builder, labels) = (settings.of(IpTable::builder()), Labels::new());
            let builder = match Values::of(routes)? {
                Values::Numbers(routes) => builder.routes(routes),
                Values::Labels(routes) => builder.labelled_routes(&labels, routes),
            };
            Ok(Self::made(builder.build()?, labels, Origin::Changed, Vec::new()))
        })
    }

    /// Opens an image that `save` or `lookupctl build` wrote.
    #[classmethod]
    fn open(_class: &Bound<'_, PyType>, py: Python<'_>, path: PathBuf) -> Result<Self, Failure> {
        detached(py, || {
            let file = OfFile::now(&path)?;
            let (mut table, labels) = (IpTable::open(&path)?, Labels::open(&path)?);
            table.attach_labels(&labels);
            Ok(Self::made(table, labels, Origin::Image(file), Vec::new()))
        })
    }

    /// Builds a table of a file in any format that `lookupctl` reads.
    #[classmethod]
    #[pyo3(signature = (path, format=None, *, columns=None, prefix_columns=None, range_columns=None,
        address_numbers=None, peer=None, vrf=None, set=None, origins=false, mask_host_bits=false, lenient=false,
        engine=None, prefix_lookups=false, memory_cap=None))]
    #[allow(clippy::too_many_arguments)] // keywords of Python
    fn from_file(
        _class: &Bound<'_, PyType>,
        py: Python<'_>,
        path: PathBuf,
        format: Option<&str>,
        columns: Option<Vec<String>>,
        prefix_columns: Option<&Bound<'_, PyAny>>,
        range_columns: Option<(String, String)>,
        address_numbers: Option<u8>,
        peer: Option<&Bound<'_, PyAny>>,
        vrf: Option<&str>,
        set: Option<&str>,
        origins: bool,
        mask_host_bits: bool,
        lenient: bool,
        engine: Option<String>,
        prefix_lookups: bool,
        memory_cap: Option<u64>,
    ) -> Result<Self, Failure> {
        let again = keywords!(
            py,
            format,
            columns,
            prefix_columns,
            range_columns,
            address_numbers,
            peer,
            vrf,
            set,
            origins,
            mask_host_bits,
            lenient,
            engine,
            prefix_lookups,
            memory_cap
        );
        // A number, an address of the module ipaddress, or text.
        let peer = peer.map(PyAnyMethods::str).transpose()?;
        let mut how = given::how([
            ("address_numbers", address_numbers.map(|family| family.to_string()).as_deref()),
            ("peer", peer.as_ref().map(|peer| peer.to_str()).transpose()?),
            ("vrf", vrf),
            ("set", set),
        ])?;
        how.routes.columns.prefix = of_prefix(prefix_columns, range_columns)?;
        how.routes.columns.values = columns.unwrap_or_default();
        (how.routes.origins, how.routes.mask_host_bits, how.routes.lenient) =
            (origins, mask_host_bits, lenient);
        how.routes.format = format.map(|name| name.parse().map_err(|_| no_format(name))).transpose()?;
        let settings = Settings { engine, memory_cap, prefix_lookups };
        detached(py, || {
            let file = OfFile::now(&path)?;
            let read = read_fib(&Source::Path(path.clone()), &how.routes);
            let ((fib, report), labels) =
                (read.map_err(|error| Failure::File(error.to_string()))?, Labels::new());
            given::check(&how, &path, Content::Routes(report.format))?;
            let table = settings.of(IpTable::builder().fib(fib, &labels)).build()?;
            Ok(Self::made(table, labels, Origin::File(file, again), answers::skipped(&report)))
        })
    }

    /// Builds a table of several files, merged with inheritance: names of fields with files. Each field of an
    /// address comes from the longest prefix that has it, of all files, and where several have it at one
    /// prefix, from the first of them. A file is a path, or a pair of a path and the columns to take.
    #[classmethod]
    #[pyo3(signature = (sources, *, origins=false, mask_host_bits=false, lenient=false, engine=None,
        prefix_lookups=false, memory_cap=None))]
    #[allow(clippy::too_many_arguments)] // keywords of Python
    fn from_files(
        _class: &Bound<'_, PyType>,
        py: Python<'_>,
        sources: &Bound<'_, PyAny>,
        origins: bool,
        mask_host_bits: bool,
        lenient: bool,
        engine: Option<String>,
        prefix_lookups: bool,
        memory_cap: Option<u64>,
    ) -> Result<Self, Failure> {
        let sources = given::pairs(sources, |name| given::text(name, "name of a field"), given::of_file)?;
        let sources: Vec<_> = sources
            .into_iter()
            .map(|(name, (path, columns))| MergeSource { name, columns, file: path.into_os_string() })
            .collect();
        if sources.is_empty() {
            return Err(Failure::input("a merged table needs a file"));
        }
        let options = ReadOptions { lenient, mask_host_bits, origins, ..ReadOptions::default() };
        let settings = Settings { engine, memory_cap, prefix_lookups };
        detached(py, || {
            let merged = read_sources(&sources, &options);
            let (merged, reports) = merged.map_err(|error| Failure::File(error.to_string()))?;
            let labels = Labels::new();
            let table = settings.of(IpTable::builder().fib(merged.fib, &labels)).build()?;
            let mut skipped: Vec<(String, u64)> = Vec::new();
            for one in reports.iter().flat_map(|report| &report.skipped) {
                let reason = one.reason.to_string();
                match skipped.iter_mut().find(|(known, _)| *known == reason) {
                    Some((_, count)) => *count += one.count,
                    None => skipped.push((reason, one.count)),
                }
            }
            Ok(Self::made(table, labels, Origin::Changed, skipped))
        })
    }

    /// Looks up addresses: the number of the longest prefix's value for each.
    #[pyo3(signature = (addresses, *, threads=1, errors="raise"))]
    fn lookup<'py>(
        &self,
        addresses: &Bound<'py, PyAny>,
        threads: usize,
        errors: &str,
    ) -> Result<Bound<'py, PyAny>, Failure> {
        let py = addresses.py();
        let wrong = Wrong::of(errors)?;
        let addresses = Addresses::of(addresses, wrong)?;
        let columns = addresses.columns(wrong)?;
        let numbers = self.looked_up(py, &columns, (threads, false), |numbers, _| Ok(numbers))?;
        Ok(answers::numbers(py, addresses.kind(), numbers)?)
    }

    /// Looks up addresses: the label of the longest prefix for each, or a field of it where labels are
    /// records.
    #[pyo3(signature = (addresses, *, field=None, threads=1, errors="raise"))]
    fn lookup_labels<'py>(
        &self,
        addresses: &Bound<'py, PyAny>,
        field: Option<&str>,
        threads: usize,
        errors: &str,
    ) -> Result<Bound<'py, PyAny>, Failure> {
        let py = addresses.py();
        let wrong = Wrong::of(errors)?;
        let addresses = Addresses::of(addresses, wrong)?;
        let columns = addresses.columns(wrong)?;
        let of_threads = self::threads(threads)?;
        let (reader, labels) = (&self.reader, self.live.labels());
        let coded = detached(py, || {
            // Entered before the lookup: then what it finds resolves.
            let known = labels.enter();
            let (numbers, _) = look_up(&columns, of_threads, false, || worker(reader))?;
            Coded::labels(numbers, &known, field)
        })?;
        Ok(coded.answer(py, addresses.kind())?)
    }

    /// Looks up addresses: the number and the length of the longest prefix for each.
    #[pyo3(signature = (addresses, *, threads=1, errors="raise"))]
    fn lookup_lengths<'py>(
        &self,
        addresses: &Bound<'py, PyAny>,
        threads: usize,
        errors: &str,
    ) -> Result<(Bound<'py, PyAny>, Bound<'py, PyAny>), Failure> {
        let py = addresses.py();
        let wrong = Wrong::of(errors)?;
        let addresses = Addresses::of(addresses, wrong)?;
        let columns = addresses.columns(wrong)?;
        let both = |numbers, lengths| Ok((numbers, lengths));
        let (numbers, lengths) = self.looked_up(py, &columns, (threads, true), both)?;
        let kind = addresses.kind();
        let lengths = answers::lengths(py, kind, &numbers, lengths)?;
        Ok((answers::numbers(py, kind, numbers)?, lengths))
    }

    /// Looks up addresses: the longest prefix for each, as text.
    #[pyo3(signature = (addresses, *, threads=1, errors="raise"))]
    fn lookup_prefix<'py>(
        &self,
        addresses: &Bound<'py, PyAny>,
        threads: usize,
        errors: &str,
    ) -> Result<Bound<'py, PyAny>, Failure> {
        let py = addresses.py();
        let wrong = Wrong::of(errors)?;
        let addresses = Addresses::of(addresses, wrong)?;
        let columns = addresses.columns(wrong)?;
        let texts = self.looked_up(py, &columns, (threads, true), |numbers, lengths| {
            let (mut texts, mut key) = (Vec::with_capacity(numbers.len()), [None]);
            let places = columns.iter().flat_map(|column| (0..column.len()).map(move |at| (column, at)));
            for ((column, at), (number, len)) in places.zip(numbers.into_iter().zip(lengths)) {
                if number == 0 {
                    texts.push(None);
                    continue;
                }
                column.read(at, &mut key).map_err(|(at, why)| Failure::Input(why).at(at))?;
                texts.push(key[0].and_then(|address| around(address, len)).map(|prefix| prefix.to_string()));
            }
            Ok(texts)
        })?;
        Ok(answers::texts(py, addresses.kind(), texts)?)
    }

    /// Every prefix that contains an address, with its value, shortest first.
    fn lookup_all<'py>(&self, address: &Bound<'py, PyAny>) -> Result<Bound<'py, PyList>, Failure> {
        let py = address.py();
        let address = addresses::parse(&given::text(address, "address")?).map_err(Failure::Input)?;
        let all = self.live.in_state(py, |state| {
            let all = state.table.lookup_all(address.to_canonical());
            Ok(all
                .into_iter()
                .map(|(prefix, number)| (prefix.to_string(), state.texts.value(number)))
                .collect::<Vec<_>>())
        })?;
        Ok(PyList::new(py, all)?)
    }

    /// The engines of IPv4 and IPv6.
    #[getter]
    fn engines(&self) -> (&'static str, &'static str) {
        (self.reader.v4().engine().as_str(), self.reader.v6().engine().as_str())
    }

    fn __repr__(&self, py: Python<'_>) -> Result<String, Failure> {
        let (v4, v6) =
            self.live.in_state(py, |state| Ok((state.table.v4().len(), state.table.v6().len())))?;
        Ok(format!("<wirespeed.Table of {v4} IPv4 and {v6} IPv6 prefixes>"))
    }
}

impl Table {
    fn made(table: IpTable, labels: Labels<String>, origin: Origin, skipped: Vec<(String, u64)>) -> Self {
        let reader = table.reader().mapped_as_v4(true);
        Self { reader, live: Live::of(table, labels, origin, skipped) }
    }

    pub(crate) fn key(&self, prefix: &Bound<'_, PyAny>) -> Result<IpNet, Failure> {
        given::prefix(prefix)
    }

    /// Looks up addresses, and makes something of the numbers and, if they are wanted, of the lengths.
    fn looked_up<T: Send>(
        &self,
        py: Python<'_>,
        columns: &[Box<dyn Column<IpAddr> + '_>],
        (of_threads, has_lengths): (usize, bool),
        make: impl FnOnce(Vec<u32>, Vec<u32>) -> Result<T, Failure> + Send,
    ) -> Result<T, Failure> {
        let of_threads = threads(of_threads)?;
        let reader = &self.reader;
        detached(py, || {
            if has_lengths && !(reader.v4().has_prefix_lookups() && reader.v6().has_prefix_lookups()) {
                return Err(wirespeed::Error::NoPrefixLookups.into());
            }
            let (numbers, lengths) = look_up(columns, of_threads, has_lengths, || worker(reader))?;
            make(numbers, lengths)
        })
    }
}

impl Held for IpTable {
    type Live = Self;

    fn live(&mut self) -> Result<&mut Self, Failure> {
        Ok(self)
    }

    fn load(live: &mut Self, path: &Path, labels: &Labels<String>) -> Result<(), wirespeed::Error> {
        live.load(path, labels).map(drop)
    }

    fn save(&self, path: &Path, labels: &Labels<String>) -> Result<(), wirespeed::Error> {
        self.save_labelled(path, labels)
    }

    fn len(&self) -> usize {
        self.len()
    }

    fn memory_usage(&self) -> u64 {
        self.memory_usage()
    }
}

impl Dictionary for IpTable {
    type Key = IpNet;

    fn entries(&self) -> impl Iterator<Item = (String, NextHop)> {
        self.routes().map(|(prefix, next_hop)| (prefix.to_string(), next_hop))
    }

    fn number(&self, prefix: &IpNet) -> Result<Option<NextHop>, Failure> {
        Ok(match *prefix {
            IpNet::V4(net) => {
                let prefix = Prefix::<V4>::try_from(net).map_err(wirespeed::Error::from)?;
                self.v4().routes().get(prefix)
            }
            IpNet::V6(net) => {
                let prefix = Prefix::<V6>::try_from(net).map_err(wirespeed::Error::from)?;
                self.v6().routes().get(prefix)
            }
        })
    }

    fn attach_labels(&mut self, labels: &Labels<String>) {
        self.attach_labels(labels);
    }

    fn apply<'c>(
        &mut self,
        changes: impl Iterator<Item = (&'c IpNet, Option<NextHop>)>,
    ) -> Result<usize, wirespeed::Error> {
        let updates = changes.map(|(&prefix, next_hop)| match next_hop {
            None => AnyUpdate::withdraw(prefix),
            Some(next_hop) => AnyUpdate::announce(prefix, next_hop),
        });
        Ok(self.apply(&updates.collect::<Result<Vec<_>, _>>()?)?.changes)
    }
}

/// What looks up parts of a batch on one thread, in one state of each family.
fn worker(reader: &IpReader) -> impl FnMut(Part<'_, IpAddr>) -> Result<(), (usize, String)> {
    let (both, v4) = (reader.enter(), reader.v4().enter());
    let mut lens = [0; BLOCK];
    move |part| {
        if let Some(hosts) = part.column.as_v4().filter(|_| part.beside.is_empty()) {
            let len = part.numbers.len();
            v4.lookup_batch(&hosts[part.from..][..len], bytemuck::cast_slice_mut(part.numbers));
            part.column.clear_nulls(part.from, part.numbers);
            return Ok(());
        }
        part.each_block(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |keys, numbers, lengths| {
            let next_hops = bytemuck::cast_slice_mut(numbers);
            if lengths.is_empty() {
                both.lookup_batch(keys, next_hops);
                return;
            }
            let lens = &mut lens[..keys.len()];
            // Checked before: the table gives lengths.
            if both.lookup_prefixes(keys, next_hops, lens).is_ok() {
                lengths.iter_mut().zip(lens).for_each(|(length, len)| *length = u32::from(*len));
            }
        })
    }
}

/// The prefix of a length around an address.
fn around(address: IpAddr, len: u32) -> Option<IpNet> {
    Some(IpNet::new(address.to_canonical(), u8::try_from(len).ok()?).ok()?.trunc())
}

fn no_format(name: &str) -> Failure {
    let all = Format::ALL.map(Format::name).join(", ");
    Failure::input(format!("{name:?} is no format of a file: {all}"))
}

/// The columns of the prefix.
fn of_prefix(
    prefix: Option<&Bound<'_, PyAny>>,
    range: Option<(String, String)>,
) -> Result<Option<PrefixColumns>, Failure> {
    match (prefix, range) {
        (Some(_), Some(_)) => Err(Failure::input("prefix_columns and range_columns: give one of them")),
        (None, range) => Ok(range.map(|(first, last)| PrefixColumns::Range(first, last))),
        (Some(prefix), None) => match prefix.extract::<String>() {
            Ok(column) => Ok(Some(PrefixColumns::Prefix(column))),
            Err(_) => {
                let (address, len) = prefix.extract()?;
                Ok(Some(PrefixColumns::Length(address, len)))
            }
        },
    }
}
