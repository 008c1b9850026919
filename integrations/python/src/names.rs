//! [`NameTable`]: a live table of names, such as domains and URLs.

use std::path::{Path, PathBuf};

use pyo3::prelude::*;
use pyo3::types::PyType;
use wirespeed::content::Content;
use wirespeed::names::read::lists::{
    ListFormat, ListOptions, TableOrList, read_table_or_list, recognise_list,
};
use wirespeed::names::read::{Former, NameFormat, ReadOptions, Source};
use wirespeed::names::{AnyNameReader, AnyNames, NameBuilder};
use wirespeed::prelude::*;

use crate::answers::{self, Coded};
use crate::column::Wrong;
use crate::failure::{Failure, detached};
use crate::given::{self, OfFile, Origin, keywords, with};
use crate::live::{Dictionary, Held, Live};
use crate::lookup::{BLOCK, Part, look_up, threads};
use crate::text_column::{NAMES, TextColumn};
use crate::texts::Values;

/// Table of names, live. The longest prefix of components wins. A list of domains has scopes and exceptions,
/// and takes no changes.
#[pyclass(frozen, mapping, module = "wirespeed")]
pub(crate) struct NameTable {
    reader: AnyNameReader,
    /// The form that names are written in.
    form: NameFormat,
    pub(crate) live: Live<AnyNames>,
}

#[pymethods]
impl NameTable {
    #[new]
    #[pyo3(signature = (names=None, *, form="domains", engine=None, memory_cap=None))]
    fn new(
        py: Python<'_>,
        names: Option<&Bound<'_, PyAny>>,
        form: &str,
        engine: Option<String>,
        memory_cap: Option<u64>,
    ) -> Result<Self, Failure> {
        let form = form_of(form)?;
        let names = names
            .map_or(Ok(Vec::new()), |names| given::pairs(names, |name| parsed(name, form), given::value))?;
        detached(py, || {
            let (builder, labels) = (builder(engine, memory_cap), Labels::new());
            let builder = match Values::of(names)? {
                Values::Numbers(names) => builder.names(names),
                Values::Labels(names) => builder.labelled_names(&labels, names),
            };
            Ok(Self::made(AnyNames::Table(builder.build()?), labels, form, Origin::Changed, Vec::new()))
        })
    }

    /// Opens an image that `save` or `lookupctl names build` wrote.
    #[classmethod]
    #[pyo3(signature = (path, *, form="domains"))]
    fn open(_class: &Bound<'_, PyType>, py: Python<'_>, path: PathBuf, form: &str) -> Result<Self, Failure> {
        let form = form_of(form)?;
        detached(py, || {
            let file = OfFile::now(&path)?;
            let (names, labels) = AnyNames::open(&path)?;
            check_form(&names, form)?;
            Ok(Self::made(names, labels, form, Origin::Image(file), Vec::new()))
        })
    }

    /// Builds a table of a file with a name and its value on each line, of CSV, or of a list of domains: a
    /// hosts file, an Adblock list, a configuration of dnsmasq, a response policy zone or the Public Suffix
    /// List.
    #[classmethod]
    #[pyo3(signature = (path, format=None, *, form="domains", columns=None, name_column=None, icann=false,
        lenient=false, engine=None, memory_cap=None))]
    #[allow(clippy::too_many_arguments)] // keywords of Python
    fn from_file(
        _class: &Bound<'_, PyType>,
        py: Python<'_>,
        path: PathBuf,
        format: Option<&str>,
        form: &str,
        columns: Option<Vec<String>>,
        name_column: Option<String>,
        icann: bool,
        lenient: bool,
        engine: Option<String>,
        memory_cap: Option<u64>,
    ) -> Result<Self, Failure> {
        let again = keywords!(py, format, form, columns, name_column, icann, lenient, engine, memory_cap);
        let form = form_of(form)?;
        let format = format.map(str::parse::<ListFormat>);
        let format = format.transpose().map_err(|error| Failure::input(error.to_string()))?;
        let mut how = given::how([("name_column", name_column.as_deref())])?;
        how.names.columns.values = columns.unwrap_or_default();
        how.icann_only = icann;
        detached(py, || {
            let failed = |error: &dyn std::fmt::Display| Failure::File(error.to_string());
            let (file, source) = (OfFile::now(&path)?, Source::Path(path.clone()));
            // Other forms than that of domains are no lists.
            let format = match format {
                None if form == NameFormat::Domains && !how.names.columns.is_given() => {
                    recognise_list(&source).map_err(|error| failed(&error))?
                }
                given => given,
            };
            let form_of_names = format.is_none().then_some(form);
            let names = ReadOptions { format: form_of_names, lenient, ..how.names.clone() };
            let list = ListOptions { format, lenient, icann_only: icann };
            let read = read_table_or_list(&source, &names, &list).map_err(|error| failed(&error))?;
            let (skipped, content) = match &read {
                TableOrList::Table(_, report) => (answers::skipped(report), Content::Names(report.format)),
                TableOrList::List(_, report) => (answers::skipped(report), Content::List(report.format)),
            };
            given::check(&how, &path, content)?;
            let (names, labels) = builder(engine, memory_cap).build_read(read)?;
            check_form(&names, form)?;
            Ok(Self::made(names, labels, form, Origin::File(file, again), skipped))
        })
    }

    /// Looks up names: the number of the longest prefix's value for each.
    #[pyo3(signature = (names, *, threads=1, errors="raise"))]
    fn lookup<'py>(
        &self,
        names: &Bound<'py, PyAny>,
        threads: usize,
        errors: &str,
    ) -> Result<Bound<'py, PyAny>, Failure> {
        let py = names.py();
        let (of_threads, names) = (self::threads(threads)?, TextColumn::of(names, NAMES)?);
        let wrong = Wrong::of(errors)?;
        let numbers = detached(py, || {
            let columns = names.columns(wrong)?;
            Ok(look_up(&columns, of_threads, false, || self.worker(wrong))?.0)
        })?;
        Ok(answers::numbers(py, names.kind(), numbers)?)
    }

    /// Looks up names: the label of the longest prefix for each, or a field of it where labels are records.
    #[pyo3(signature = (names, *, field=None, threads=1, errors="raise"))]
    fn lookup_labels<'py>(
        &self,
        names: &Bound<'py, PyAny>,
        field: Option<&str>,
        threads: usize,
        errors: &str,
    ) -> Result<Bound<'py, PyAny>, Failure> {
        let py = names.py();
        let (of_threads, names) = (self::threads(threads)?, TextColumn::of(names, NAMES)?);
        let wrong = Wrong::of(errors)?;
        let coded = detached(py, || {
            let columns = names.columns(wrong)?;
            // Entered before the lookup: then what it finds resolves.
            let known = self.live.labels().enter();
            let (numbers, _) = look_up(&columns, of_threads, false, || self.worker(wrong))?;
            Coded::labels(numbers, &known, field)
        })?;
        Ok(coded.answer(py, names.kind())?)
    }

    /// The registrable domain of each domain, by a table of the Public Suffix List: example.co.uk of
    /// www.example.co.uk. None for a public suffix itself, and for an IP address.
    #[pyo3(signature = (domains, *, errors="raise"))]
    fn registrable<'py>(
        &self,
        domains: &Bound<'py, PyAny>,
        errors: &str,
    ) -> Result<Bound<'py, PyAny>, Failure> {
        let py = domains.py();
        let (column, wrong) = (TextColumn::of(domains, NAMES)?, Wrong::of(errors)?);
        let found = detached(py, || {
            let (suffixes, mut former, mut found) = (self.reader.suffixes()?, Former::default(), Vec::new());
            for (at, domain) in column.all(wrong)?.into_iter().enumerate() {
                let mut text = String::new();
                let is_found = match &domain {
                    None => false,
                    Some(domain) => match (suffixes.registrable(domain, &mut former, &mut text), wrong) {
                        (Ok(is_found), _) => is_found,
                        (Err(_), Wrong::Null) => false,
                        (Err(why), Wrong::Raise) => {
                            return Err(Failure::Input(format!("{domain:?}: {why}")).at(at));
                        }
                    },
                };
                found.push(is_found.then_some(text));
            }
            Ok(found)
        })?;
        Ok(answers::texts(py, column.kind(), found)?)
    }

    /// The form that names are written in.
    #[getter]
    fn form(&self) -> &'static str {
        self.form.name()
    }

    /// The engine.
    #[getter]
    fn engine(&self, py: Python<'_>) -> Result<&'static str, Failure> {
        self.live.in_state(py, |state| Ok(state.table.engine().as_str()))
    }

    fn __repr__(&self, py: Python<'_>) -> Result<String, Failure> {
        let len = self.live.in_state(py, |state| Ok(state.table.len()))?;
        Ok(format!("<wirespeed.NameTable of {len} names, form {}>", self.form.name()))
    }
}

impl NameTable {
    fn made(
        names: AnyNames,
        labels: Labels<String>,
        form: NameFormat,
        origin: Origin,
        skipped: Vec<(String, u64)>,
    ) -> Self {
        let reader = names.reader();
        let live = Live::of(names, labels, origin, skipped).opened_with("form", form.name());
        Self { reader, form, live }
    }

    pub(crate) fn key(&self, name: &Bound<'_, PyAny>) -> Result<NameBuf, Failure> {
        parsed(name, self.form)
    }

    /// What looks up parts of a batch on one thread, in one state of the table.
    fn worker(&self, wrong: Wrong) -> impl FnMut(Part<'_, String>) -> Result<(), (usize, String)> {
        let (state, form) = (self.reader.enter(), self.form);
        let (mut former, mut batch, mut found) =
            (Former::default(), NameBatch::new(), [NextHop::NONE; BLOCK]);
        move |part| {
            let Part { column, from, place, numbers, .. } = part;
            let mut read = vec![None; BLOCK];
            for (block, numbers) in numbers.chunks_mut(BLOCK).enumerate() {
                let (at, read) = (from + block * BLOCK, &mut read[..numbers.len()]);
                column.read(at, read).map_err(|(at, why)| (place + at - from, why))?;
                batch.clear();
                for (nth, text) in read.iter_mut().enumerate() {
                    let Some(name) = &*text else { continue };
                    let why = match former.form(name.as_bytes(), form_for(name.as_bytes(), form)) {
                        Ok(formed) => batch.push(formed).err().map(|why| why.to_string()),
                        Err(why) => Some(format!("{name:?}: {why}")),
                    };
                    match (why, wrong) {
                        (None, _) => {}
                        (Some(_), Wrong::Null) => *text = None,
                        (Some(why), Wrong::Raise) => return Err((place + block * BLOCK + nth, why)),
                    }
                }
                let found = &mut found[..batch.names().len()];
                state.lookup_batch(&batch, found);
                let mut found = found.iter();
                for (number, text) in numbers.iter_mut().zip(&*read) {
                    *number = if text.is_some() { found.next().map_or(0, |found| found.0) } else { 0 };
                }
            }
            Ok(())
        }
    }
}

impl Held for AnyNames {
    type Live = wirespeed::NameTable;

    fn live(&mut self) -> Result<&mut wirespeed::NameTable, Failure> {
        self.table_mut().ok_or_else(|| {
            Failure::state(
                "a list of domains has scopes and exceptions: it is looked up, and not a dictionary",
            )
        })
    }

    fn load(
        live: &mut wirespeed::NameTable,
        path: &Path,
        labels: &Labels<String>,
    ) -> Result<(), wirespeed::Error> {
        live.load(path, labels).map(drop)
    }

    fn save(&self, path: &Path, labels: &Labels<String>) -> Result<(), wirespeed::Error> {
        self.save(path, labels)
    }

    fn len(&self) -> usize {
        self.len()
    }

    fn memory_usage(&self) -> u64 {
        self.memory_usage()
    }
}

impl Dictionary for wirespeed::NameTable {
    type Key = NameBuf;

    fn entries(&self) -> impl Iterator<Item = (String, NextHop)> {
        self.entries().iter().map(|(name, number)| (name.to_string(), NextHop(number)))
    }

    fn number(&self, name: &NameBuf) -> Result<Option<NextHop>, Failure> {
        let number = NextHop(self.entries().result(name));
        Ok(number.is_some().then_some(number))
    }

    fn attach_labels(&mut self, labels: &Labels<String>) {
        self.attach_labels(labels);
    }

    fn apply<'c>(
        &mut self,
        changes: impl Iterator<Item = (&'c NameBuf, Option<NextHop>)>,
    ) -> Result<usize, wirespeed::Error> {
        let updates = changes.map(|(name, number)| match number {
            None => NameUpdate::remove(name),
            Some(number) => NameUpdate::insert(name, number),
        });
        Ok(self.apply(&updates.collect::<Vec<_>>())?.changes)
    }
}

fn builder(engine: Option<String>, memory_cap: Option<u64>) -> NameBuilder {
    let builder = with(wirespeed::NameTable::builder(), engine, NameBuilder::engine);
    with(builder, memory_cap, NameBuilder::memory_cap)
}

/// Refuses other forms than that of domains for a list of these.
fn check_form(names: &AnyNames, form: NameFormat) -> Result<(), Failure> {
    match names {
        AnyNames::List(_) if form != NameFormat::Domains => {
            Err(Failure::input(format!("a list of domains has the form \"domains\", not {:?}", form.name())))
        }
        _ => Ok(()),
    }
}

fn form_of(form: &str) -> Result<NameFormat, Failure> {
    NameFormat::ALL.into_iter().find(|known| known.name() == form).ok_or_else(|| {
        Failure::input(format!(
            "{form:?} is no form of names: {}",
            NameFormat::ALL.map(NameFormat::name).join(", ")
        ))
    })
}

/// The form of a text in a table of this form. What begins with a slash is no domain and no URL: it is a name
/// of components, as `keys` gives them.
fn form_for(text: &[u8], form: NameFormat) -> NameFormat {
    match form {
        NameFormat::Domains | NameFormat::Urls if text.first() == Some(&b'/') => NameFormat::Names,
        form => form,
    }
}

fn parsed(name: &Bound<'_, PyAny>, form: NameFormat) -> Result<NameBuf, Failure> {
    let text = given::text(name, "name")?;
    form_for(text.as_bytes(), form)
        .parse(text.as_bytes())
        .map_err(|why| Failure::input(format!("{text:?}: {why}")))
}
