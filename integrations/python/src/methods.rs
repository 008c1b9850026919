//! Methods that several classes have: of tables that change, and of those that are dictionaries. Python needs
//! them at each class.

use std::path::PathBuf;

use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyIterator, PyList, PyTuple};

use crate::answers;
use crate::failure::Failure;
use crate::given;
use crate::live::Held;
use crate::names::NameTable;
use crate::rules::Classifier;
use crate::table::Table;

/// Methods of every class with a field `live`: those that are listed come with their docs.
macro_rules! live_methods {
    (
        $class:ident:
        $(#[$load:meta])* load;
        $(#[$save:meta])* save;
        $(#[$labels:meta])* labels;
        $(#[$label:meta])* label($number:ident);
        $(#[$forget:meta])* forget_labels;
        $(#[$memory:meta])* memory_usage;
    ) => {
        #[pymethods]
        impl $class {
            $(#[$load])*
            fn load(&self, py: Python<'_>, path: PathBuf) -> Result<(), Failure> {
                self.live.load(py, &path)
            }

            $(#[$save])*
            fn save(&self, py: Python<'_>, path: PathBuf) -> Result<(), Failure> {
                self.live.save(py, &path)
            }

            $(#[$labels])*
            #[getter]
            fn labels<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyDict>, Failure> {
                answers::labels(py, self.live.labels())
            }

            $(#[$label])*
            fn label(&self, $number: u32) -> Option<String> {
                answers::label(self.live.labels(), $number)
            }

            $(#[$forget])*
            fn forget_labels(&self, py: Python<'_>) -> Result<(), Failure> {
                self.live.forget_labels(py)
            }

            $(#[$memory])*
            #[getter]
            fn memory_usage(&self, py: Python<'_>) -> Result<u64, Failure> {
                self.live.in_state(py, |state| Ok(Held::memory_usage(&state.table)))
            }

            fn __reduce__<'py>(
                slf: &Bound<'py, Self>,
            ) -> Result<(Bound<'py, PyAny>, Bound<'py, PyTuple>), Failure> {
                slf.get().live.reduced(slf.get_type().as_any())
            }

            fn __len__(&self, py: Python<'_>) -> Result<usize, Failure> {
                self.live.in_state(py, |state| Ok(Held::len(&state.table)))
            }
        }
    };
}

/// Methods of every class that is a dictionary. It has a field `live`, and a method `key` that reads a key.
/// Python calls a key as the first argument says. The methods that are listed come with their docs.
macro_rules! dictionary_methods {
    ($class:ident of $key:ident: $(#[$keys:meta])* keys; $(#[$items:meta])* items;) => {
        #[pymethods]
        impl $class {
            #[doc = concat!("Inserts a ", stringify!($key), ", or replaces the value of an equal one.")]
            fn insert(&self, $key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> Result<(), Failure> {
                let change = (self.key($key)?, Some(given::value(value)?));
                self.live.change($key.py(), vec![change]).map(drop)
            }

            #[doc = concat!("Removes a ", stringify!($key), ". Says whether it was there.")]
            fn withdraw(&self, $key: &Bound<'_, PyAny>) -> Result<bool, Failure> {
                Ok(self.live.change($key.py(), vec![(self.key($key)?, None)])? > 0)
            }

            #[doc = concat!("Makes many changes, in order, all or none: pairs of a ", stringify!($key), " and a value, or None")]
            /// to remove it. Returns the number of changes that made a difference.
            fn apply(&self, changes: &Bound<'_, PyAny>) -> Result<usize, Failure> {
                let changed = given::pairs(changes, |key| self.key(key), given::value_or_none)?;
                self.live.change(changes.py(), changed)
            }

            /// Numbers of lines that were passed over, by reason.
            #[getter]
            fn skipped<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyDict>, Failure> {
                self.live.skipped(py)
            }

            #[doc = concat!("The value of a ", stringify!($key), " itself, or another object if it is not there.")]
            #[pyo3(signature = ($key, default=None))]
            fn get<'py>(
                &self,
                $key: &Bound<'py, PyAny>,
                default: Option<Bound<'py, PyAny>>,
            ) -> Result<Bound<'py, PyAny>, Failure> {
                let py = $key.py();
                match self.live.exact(py, &self.key($key)?)? {
                    Some(value) => Ok(value.into_pyobject(py)?),
                    None => Ok(default.unwrap_or_else(|| py.None().into_bound(py))),
                }
            }

            $(#[$keys])*
            fn keys<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyList>, Failure> {
                Ok(PyList::new(py, self.live.entries(py, |key, _, _| key)?)?)
            }

            /// The values, in the order of `keys`.
            fn values<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyList>, Failure> {
                Ok(PyList::new(py, self.live.entries(py, |_, number, texts| texts.value(number))?)?)
            }

            $(#[$items])*
            fn items<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyList>, Failure> {
                Ok(PyList::new(py, self.live.entries(py, |key, number, texts| (key, texts.value(number)))?)?)
            }

            fn __contains__(&self, $key: &Bound<'_, PyAny>) -> Result<bool, Failure> {
                Ok(self.live.exact($key.py(), &self.key($key)?)?.is_some())
            }

            fn __getitem__<'py>(&self, $key: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>, Failure> {
                let found = self.live.exact($key.py(), &self.key($key)?)?;
                Ok(found.ok_or_else(|| missing($key))?.into_pyobject($key.py())?)
            }

            fn __setitem__(&self, $key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> Result<(), Failure> {
                self.insert($key, value)
            }

            fn __delitem__(&self, $key: &Bound<'_, PyAny>) -> Result<(), Failure> {
                if self.withdraw($key)? { Ok(()) } else { Err(missing($key).into()) }
            }

            fn __iter__<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyIterator>, Failure> {
                Ok(self.keys(py)?.try_iter()?)
            }
        }
    };
}

fn missing(key: &Bound<'_, PyAny>) -> PyErr {
    PyKeyError::new_err(key.clone().unbind())
}

live_methods! {
    Table:
    /// Replaces all prefixes by those of a file or an image, in one step for the readers of a family.
    load;
    /// Saves the table as an image, with its prefixes and labels. An existing file is replaced as a whole or
    /// not at all.
    save;
    /// The labels by number.
    labels;
    /// The label of a number, or None.
    label(number);
    /// Lets labels end that no prefix leads to: their numbers may be given to other labels.
    forget_labels;
    /// Bytes that the table holds.
    memory_usage;
}

dictionary_methods! {
    Table of prefix:
    /// The prefixes, IPv4 first, each family in order.
    keys;
    /// The prefixes with their values, in the order of `keys`.
    items;
}

live_methods! {
    NameTable:
    /// Replaces all names by those of a file or an image, in one step.
    load;
    /// Saves the table as an image, with its names and labels. An existing file is replaced as a whole or not
    /// at all.
    save;
    /// The labels by number.
    labels;
    /// The label of a number, or None.
    label(number);
    /// Lets labels end that no name leads to: their numbers may be given to other labels.
    forget_labels;
    /// Bytes that the table holds.
    memory_usage;
}

dictionary_methods! {
    NameTable of name:
    /// The names in the form of components, such as /com/example. Each call that takes a name takes this
    /// form, too.
    keys;
    /// The names with their values, in the order of `keys`.
    items;
}

live_methods! {
    Classifier:
    /// Replaces all rules by those of a file or an image, in one step for readers. A file is read with the
    /// facts and the chain of `from_file`.
    load;
    /// Saves the rules as an image, with their labels. An existing file is replaced as a whole or not at all.
    save;
    /// The labels of actions by number.
    labels;
    /// The label of an action, or None.
    label(action);
    /// Lets labels end that no rule has: their numbers may be given to other labels.
    forget_labels;
    /// Bytes that the rules hold.
    memory_usage;
}
