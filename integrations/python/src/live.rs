//! [`Live`]: a table that changes, as a class of Python holds it.

use std::path::Path;
use std::sync::Mutex;

use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict, PyTuple};
use wirespeed::prelude::*;

use crate::answers;
use crate::failure::{Failure, detached, lock};
use crate::given::{OfFile, Origin};
use crate::texts::{Texts, Value};

/// A table of the façade, as a class holds it.
pub(crate) trait Held: Send {
    /// The table as it takes changes. Names may be a list of domains, which takes none.
    type Live;

    /// The table, to change it. Fails for a list of domains.
    fn live(&mut self) -> Result<&mut Self::Live, Failure>;
    fn load(live: &mut Self::Live, path: &Path, labels: &Labels<String>) -> Result<(), wirespeed::Error>;
    fn save(&self, path: &Path, labels: &Labels<String>) -> Result<(), wirespeed::Error>;
    fn len(&self) -> usize;
    fn memory_usage(&self) -> u64;
}

/// A table of keys with a number each, which Python sees as a dictionary.
pub(crate) trait Dictionary {
    type Key: Send + Sync + 'static;

    fn entries(&self) -> impl Iterator<Item = (String, NextHop)>;
    fn number(&self, key: &Self::Key) -> Result<Option<NextHop>, Failure>;
    fn attach_labels(&mut self, labels: &Labels<String>);

    /// Makes changes, all or none: a key gets a number, or is removed. Returns how many made a difference.
    fn apply<'c>(
        &mut self,
        changes: impl Iterator<Item = (&'c Self::Key, Option<NextHop>)>,
    ) -> Result<usize, wirespeed::Error>;
}

/// A table, its labels, and where it comes from.
pub(crate) struct Live<T> {
    labels: Labels<String>,
    /// The setting that an image is opened with, if there is one.
    of_image: Option<(&'static str, &'static str)>,
    state: Mutex<State<T>>,
}

pub(crate) struct State<T> {
    pub(crate) table: T,
    pub(crate) texts: Texts,
    pub(crate) origin: Origin,
    /// Lines that were passed over, by reason.
    skipped: Vec<(String, u64)>,
}

impl<T: Held> Live<T> {
    pub(crate) fn of(table: T, labels: Labels<String>, origin: Origin, skipped: Vec<(String, u64)>) -> Self {
        let texts = Texts::of(labels.clone());
        let state = State { table, texts, origin, skipped };
        Self { labels, of_image: None, state: Mutex::new(state) }
    }

    pub(crate) fn opened_with(self, setting: &'static str, value: &'static str) -> Self {
        Self { of_image: Some((setting, value)), ..self }
    }

    pub(crate) fn labels(&self) -> &Labels<String> {
        &self.labels
    }

    /// Runs code with the table, without the interpreter's lock.
    pub(crate) fn in_state<R: Send>(
        &self,
        py: Python<'_>,
        code: impl FnOnce(&mut State<T>) -> Result<R, Failure> + Send,
    ) -> Result<R, Failure> {
        detached(py, || code(&mut *lock(&self.state)?))
    }

    /// Runs code that changes the table, and returns how many of its changes made a difference.
    pub(crate) fn changed(
        &self,
        py: Python<'_>,
        code: impl FnOnce(&mut T, &mut Texts) -> Result<usize, Failure> + Send,
    ) -> Result<usize, Failure> {
        self.in_state(py, |State { table, texts, origin, .. }| {
            let changes = code(table, texts)?;
            if changes > 0 {
                *origin = Origin::Changed;
            }
            Ok(changes)
        })
    }

    pub(crate) fn load(&self, py: Python<'_>, path: &Path) -> Result<(), Failure> {
        self.in_state(py, |State { table, texts, origin, skipped }| {
            let is_empty = table.len() == 0;
            let live = table.live()?;
            texts.check_no_numbers(is_empty)?;
            let loaded = T::load(live, path, texts.labels());
            texts.hold_all();
            loaded?;
            (*origin, *skipped) = (Origin::Changed, Vec::new());
            Ok(())
        })
    }

    pub(crate) fn save(&self, py: Python<'_>, path: &Path) -> Result<(), Failure> {
        self.in_state(py, |State { table, texts, origin, .. }| {
            table.save(path, texts.labels())?;
            *origin = Origin::Image(OfFile::now(path)?);
            Ok(())
        })
    }

    pub(crate) fn forget_labels(&self, py: Python<'_>) -> Result<(), Failure> {
        self.in_state(py, |state| {
            state.texts.forget();
            Ok(())
        })
    }

    pub(crate) fn skipped<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyDict>, Failure> {
        answers::by_reason(py, self.in_state(py, |state| Ok(state.skipped.clone()))?)
    }

    /// What pickle calls to make a table of a class again.
    pub(crate) fn reduced<'py>(
        &self,
        class: &Bound<'py, PyAny>,
    ) -> Result<(Bound<'py, PyAny>, Bound<'py, PyTuple>), Failure> {
        let of_image = self.of_image.into_py_dict(class.py())?;
        lock(&self.state)?.origin.reduced(class, &of_image, "save it first")
    }
}

impl<D: Dictionary, T: Held<Live = D>> Live<T> {
    /// Makes changes, all or none: a key gets a value, or is removed.
    pub(crate) fn change(
        &self,
        py: Python<'_>,
        changes: Vec<(D::Key, Option<Value>)>,
    ) -> Result<usize, Failure> {
        self.changed(py, |table, texts| {
            let is_empty = table.len() == 0;
            let live = table.live()?;
            let values = changes.iter().filter_map(|(_, value)| value.clone()).collect();
            texts.with(values, is_empty, |numbers, labels| {
                if let Some(labels) = labels {
                    live.attach_labels(labels);
                }
                let mut numbers = numbers.iter();
                let mut number = || numbers.next().copied().unwrap_or_default();
                Ok(live.apply(changes.iter().map(|(key, value)| (key, value.as_ref().map(|_| number()))))?)
            })
        })
    }

    /// The value of a key itself.
    pub(crate) fn exact(&self, py: Python<'_>, key: &D::Key) -> Result<Option<Value>, Failure> {
        self.in_state(py, |State { table, texts, .. }| {
            Ok(table.live()?.number(key)?.map(|number| texts.value(number)))
        })
    }

    /// Something of every key, its number and the labels.
    pub(crate) fn entries<R: Send>(
        &self,
        py: Python<'_>,
        make: impl Fn(String, NextHop, &Texts) -> R + Sync,
    ) -> Result<Vec<R>, Failure> {
        self.in_state(py, |State { table, texts, .. }| {
            Ok(table.live()?.entries().map(|(key, number)| make(key, number, texts)).collect())
        })
    }
}
