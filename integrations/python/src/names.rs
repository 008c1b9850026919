//! [`NameTable`]: a live table of names, such as domains and URLs.

use std::path::PathBuf;
use std::sync::Mutex;

use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyIterator, PyList, PyTuple, PyType};
use wirespeed::content::Content;
use wirespeed::names::read::lists::{
    ListFormat, ListOptions, TableOrList, read_table_or_list, recognise_list,
};
use wirespeed::names::read::{Former, NameFormat, ReadOptions, Source};
use wirespeed::names::{AnyNameReader, AnyNames, NameBuilder};
use wirespeed::prelude::*;

use crate::answers::{self, Coded};
use crate::column::Wrong;
use crate::failure::{Failure, detached, lock};
use crate::given::{self, OfFile, Origin, keywords};
use crate::lookup::{BLOCK, Part, look_up, threads};
use crate::text_column::{NAMES, TextColumn};
use crate::texts::{Texts, Value, Values};

/// Table of names, live. The longest prefix of components wins. A list of domains has scopes and exceptions,
/// and takes no changes.
#[pyclass(frozen, mapping, module = "wirespeed")]
pub(crate) struct NameTable {
    reader: AnyNameReader,
    labels: Labels<String>,
    /// The form that names are written in.
    form: NameFormat,
    state: Mutex<State>,
}

struct State {
    names: AnyNames,
    texts: Texts,
    origin: Origin,
    /// Lines that were passed over, by reason.
    skipped: Vec<(String, u64)>,
}

/// What a call changes.
struct Live<'s> {
    table: &'s mut wirespeed::NameTable,
    texts: &'s mut Texts,
    origin: &'s mut Origin,
    skipped: &'s mut Vec<(String, u64)>,
}

impl State {
    /// The table, for calls that a list of domains does not allow.
    fn live(&mut self) -> Result<Live<'_>, Failure> {
        let Self { names, texts, origin, skipped } = self;
        let table = names.table_mut().ok_or_else(|| {
            Failure::state(
                "a list of domains has scopes and exceptions: it is looked up, and not a dictionary",
            )
        })?;
        Ok(Live { table, texts, origin, skipped })
    }
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
            let (builder, labels) =
                (with_settings(wirespeed::NameTable::builder(), engine, memory_cap), Labels::new());
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
            let builder = with_settings(wirespeed::NameTable::builder(), engine, memory_cap);
            let (names, labels) = builder.build_read(read)?;
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
            let known = self.labels.enter();
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

    /// Inserts a name, or replaces the value of an equal one.
    fn insert(&self, name: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> Result<(), Failure> {
        let changes = vec![(parsed(name, self.form)?, Some(given::value(value)?))];
        self.change(name.py(), changes).map(drop)
    }

    /// Removes a name. Says whether it was there.
    fn withdraw(&self, name: &Bound<'_, PyAny>) -> Result<bool, Failure> {
        Ok(self.change(name.py(), vec![(parsed(name, self.form)?, None)])? > 0)
    }

    /// Makes many changes, in order, all or none: pairs of a name and a value, or None to remove it. Returns
    /// the number of changes that made a difference.
    fn apply(&self, changes: &Bound<'_, PyAny>) -> Result<usize, Failure> {
        let changed = given::pairs(changes, |name| parsed(name, self.form), given::value_or_none)?;
        self.change(changes.py(), changed)
    }

    /// Replaces all names by those of a file or an image, in one step.
    fn load(&self, py: Python<'_>, path: PathBuf) -> Result<(), Failure> {
        self.in_state(py, |state| {
            let Live { table, texts, origin, skipped } = state.live()?;
            texts.check_no_numbers(table.is_empty())?;
            let loaded = table.load(&path, texts.labels());
            texts.hold_all();
            loaded?;
            (*origin, *skipped) = (Origin::Changed, Vec::new());
            Ok(())
        })
    }

    /// Saves the table as an image, with its names and labels. An existing file is replaced as a whole or not
    /// at all.
    fn save(&self, py: Python<'_>, path: PathBuf) -> Result<(), Failure> {
        self.in_state(py, |State { names, texts, origin, .. }| {
            names.save(&path, texts.labels())?;
            *origin = Origin::Image(OfFile::now(&path)?);
            Ok(())
        })
    }

    /// The labels by number.
    #[getter]
    fn labels<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyDict>, Failure> {
        answers::labels(py, &self.labels)
    }

    /// The label of a number, or None.
    fn label(&self, number: u32) -> Option<String> {
        answers::label(&self.labels, number)
    }

    /// Lets labels end that no name leads to: their numbers may be given to other labels.
    fn forget_labels(&self, py: Python<'_>) -> Result<(), Failure> {
        self.in_state(py, |state| {
            state.texts.forget();
            Ok(())
        })
    }

    /// Numbers of lines that were passed over, by reason.
    #[getter]
    fn skipped<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyDict>, Failure> {
        answers::by_reason(py, self.in_state(py, |state| Ok(state.skipped.clone()))?)
    }

    /// The form that names are written in.
    #[getter]
    fn form(&self) -> &'static str {
        self.form.name()
    }

    /// The engine.
    #[getter]
    fn engine(&self, py: Python<'_>) -> Result<&'static str, Failure> {
        self.in_state(py, |state| Ok(state.names.engine().as_str()))
    }

    /// Bytes that the table holds.
    #[getter]
    fn memory_usage(&self, py: Python<'_>) -> Result<u64, Failure> {
        self.in_state(py, |state| Ok(state.names.memory_usage()))
    }

    /// The value of a name itself, or another object if it is not there.
    #[pyo3(signature = (name, default=None))]
    fn get<'py>(
        &self,
        name: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
    ) -> Result<Bound<'py, PyAny>, Failure> {
        let py = name.py();
        match self.exact(name)? {
            Some(value) => Ok(value.into_pyobject(py)?),
            None => Ok(default.unwrap_or_else(|| py.None().into_bound(py))),
        }
    }

    /// The names in the form of components, such as /com/example. Each call that takes a name takes this
    /// form, too.
    fn keys<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyList>, Failure> {
        Ok(PyList::new(py, self.entries(py, |name, _, _| name)?)?)
    }

    /// The values, in the order of `keys`.
    fn values<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyList>, Failure> {
        Ok(PyList::new(py, self.entries(py, |_, number, texts| texts.value(number))?)?)
    }

    /// The names with their values, in the order of `keys`.
    fn items<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyList>, Failure> {
        Ok(PyList::new(py, self.entries(py, |name, number, texts| (name, texts.value(number)))?)?)
    }

    fn __len__(&self, py: Python<'_>) -> Result<usize, Failure> {
        self.in_state(py, |state| Ok(state.names.len()))
    }

    fn __contains__(&self, name: &Bound<'_, PyAny>) -> Result<bool, Failure> {
        Ok(self.exact(name)?.is_some())
    }

    fn __getitem__<'py>(&self, name: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>, Failure> {
        let missing = || PyKeyError::new_err(name.clone().unbind());
        Ok(self.exact(name)?.ok_or_else(missing)?.into_pyobject(name.py())?)
    }

    fn __setitem__(&self, name: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> Result<(), Failure> {
        self.insert(name, value)
    }

    fn __delitem__(&self, name: &Bound<'_, PyAny>) -> Result<(), Failure> {
        match self.withdraw(name)? {
            true => Ok(()),
            false => Err(PyKeyError::new_err(name.clone().unbind()).into()),
        }
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyIterator>, Failure> {
        Ok(self.keys(py)?.try_iter()?)
    }

    fn __repr__(&self, py: Python<'_>) -> Result<String, Failure> {
        Ok(format!("<wirespeed.NameTable of {} names, form {}>", self.__len__(py)?, self.form.name()))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> Result<(Bound<'py, PyAny>, Bound<'py, PyTuple>), Failure> {
        let settings = PyDict::new(slf.py());
        settings.set_item("form", slf.get().form.name())?;
        lock(&slf.get().state)?.origin.reduced(slf.get_type().as_any(), &settings, "save it first")
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
        let (reader, texts) = (names.reader(), Texts::of(labels.clone()));
        Self { reader, labels, form, state: Mutex::new(State { names, texts, origin, skipped }) }
    }

    /// Runs code with the table, without the interpreter's lock.
    fn in_state<T: Send>(
        &self,
        py: Python<'_>,
        code: impl FnOnce(&mut State) -> Result<T, Failure> + Send,
    ) -> Result<T, Failure> {
        detached(py, || code(&mut *lock(&self.state)?))
    }

    fn change(&self, py: Python<'_>, changes: Vec<(NameBuf, Option<Value>)>) -> Result<usize, Failure> {
        self.in_state(py, |state| {
            let Live { table, texts, origin, .. } = state.live()?;
            let values = changes.iter().filter_map(|(_, value)| value.clone()).collect();
            let applied = texts.with(values, table.is_empty(), |numbers, labels| {
                if let Some(labels) = labels {
                    table.attach_labels(labels);
                }
                let mut numbers = numbers.iter();
                let updates = changes.iter().map(|(name, value)| match value {
                    None => NameUpdate::remove(name),
                    Some(_) => NameUpdate::insert(name, numbers.next().copied().unwrap_or_default()),
                });
                Ok(table.apply(&updates.collect::<Vec<_>>())?)
            })?;
            if applied.changes > 0 {
                *origin = Origin::Changed;
            }
            Ok(applied.changes)
        })
    }

    /// Something of every name, its number and the labels.
    fn entries<T: Send>(
        &self,
        py: Python<'_>,
        make: impl Fn(String, NextHop, &Texts) -> T + Sync,
    ) -> Result<Vec<T>, Failure> {
        self.in_state(py, |state| {
            let Live { table, texts, .. } = state.live()?;
            let entries = table.entries().iter();
            Ok(entries.map(|(name, number)| make(name.to_string(), NextHop(number), texts)).collect())
        })
    }

    /// The value of a name itself.
    fn exact(&self, name: &Bound<'_, PyAny>) -> Result<Option<Value>, Failure> {
        let of_name = parsed(name, self.form)?;
        self.in_state(name.py(), |state| {
            let Live { table, texts, .. } = state.live()?;
            let number = NextHop(table.entries().result(&of_name));
            Ok(number.is_some().then(|| texts.value(number)))
        })
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

fn with_settings(mut builder: NameBuilder, engine: Option<String>, memory_cap: Option<u64>) -> NameBuilder {
    if let Some(engine) = engine {
        builder = builder.engine(engine);
    }
    if let Some(cap) = memory_cap { builder.memory_cap(cap) } else { builder }
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
