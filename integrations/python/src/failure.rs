//! [`Failure`]: why a call fails, and the exception that Python gets for it.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard};

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use wirespeed::Error;

mod exceptions {
    //! The classes of `wirespeed.errors`, which is written in Python.
    pyo3::import_exception!(wirespeed.errors, DefectError);
    pyo3::import_exception!(wirespeed.errors, FileError);
    pyo3::import_exception!(wirespeed.errors, InputError);
    pyo3::import_exception!(wirespeed.errors, LimitError);
    pyo3::import_exception!(wirespeed.errors, StateError);
}

/// Why a call fails.
#[derive(Debug)]
pub(crate) enum Failure {
    /// An argument that no call may have: no address, a prefix with host bits, an unknown engine.
    Input(String),
    /// A file that can't be read or written.
    File(String),
    /// A limit of memory or of an engine.
    Limit(String),
    /// The state of a table that does not allow the call.
    State(String),
    /// A type that the call does not take.
    Type(String),
    /// A defect of the library.
    Defect(String),
    /// An exception of Python.
    Python(PyErr),
}

impl Failure {
    pub(crate) fn input(message: impl Into<String>) -> Self {
        Self::Input(message.into())
    }

    pub(crate) fn state(message: impl Into<String>) -> Self {
        Self::State(message.into())
    }

    /// The failure of an argument.
    pub(crate) fn of(self, argument: &str) -> Self {
        match self {
            Self::Input(message) => Self::Input(format!("{argument}: {message}")),
            Self::Type(message) => Self::Type(format!("{argument}: {message}")),
            other => other,
        }
    }

    /// The failure of an element of a batch, counted from 0.
    pub(crate) fn at(self, element: usize) -> Self {
        match self {
            Self::Input(message) => Self::Input(format!("element {element}: {message}")),
            Self::Type(message) => Self::Type(format!("element {element}: {message}")),
            other => other,
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let message = error.to_string();
        match error {
            Error::HostBits(_)
            | Error::UnknownEngine(_)
            | Error::RouteWithoutNextHop { .. }
            | Error::NameWithoutResult { .. }
            | Error::Rule(_)
            | Error::Assumption(_)
            | Error::AssumedLate { .. }
            | Error::NoChains { .. } => Self::Input(message),
            Error::Read(_)
            | Error::ReadNames(_)
            | Error::ReadRules(_)
            | Error::RulesLeftOut { .. }
            | Error::RulesInDoubt { .. }
            | Error::NoRoutesOfFamily { .. }
            | Error::Label { .. }
            | Error::LabelType { .. }
            | Error::Image { .. }
            | Error::ImageKind { .. }
            | Error::ImageOf { .. }
            | Error::ImageOfBoth { .. }
            | Error::ImageTuple { .. }
            | Error::ImageFamily { .. }
            | Error::ImageWithout { .. }
            | Error::ForPrefixLookups { .. } => Self::File(message),
            Error::MemoryCap { .. }
            | Error::DefaultMemoryCap { .. }
            | Error::Build { .. }
            | Error::TooManyLabels(_) => Self::Limit(message),
            _ => Self::State(message),
        }
    }
}

impl From<PyErr> for Failure {
    fn from(error: PyErr) -> Self {
        Self::Python(error)
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Input(message) => exceptions::InputError::new_err(message),
            Failure::File(message) => exceptions::FileError::new_err(message),
            Failure::Limit(message) => exceptions::LimitError::new_err(message),
            Failure::State(message) => exceptions::StateError::new_err(message),
            Failure::Type(message) => PyTypeError::new_err(message),
            Failure::Defect(message) => exceptions::DefectError::new_err(message),
            Failure::Python(error) => error,
        }
    }
}

/// Runs code without the interpreter's lock. A panic becomes a failure: what it may leave half done lies
/// behind a [`Mutex`], which is then poisoned.
pub(crate) fn detached<T: Send>(
    py: Python<'_>,
    code: impl FnOnce() -> Result<T, Failure> + Send,
) -> Result<T, Failure> {
    py.detach(|| {
        catch_unwind(AssertUnwindSafe(code)).unwrap_or_else(|panic| {
            Err(Failure::Defect(format!("a defect of the library: {}", said(&*panic))))
        })
    })
}

fn said(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message")
}

/// Takes a lock. Fails if a call panicked while it held the lock. Code that holds it never waits for the
/// interpreter's lock, so a thread with that one may wait for this one.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> Result<MutexGuard<'_, T>, Failure> {
    mutex.lock().map_err(|_| Failure::Defect("an earlier defect left this table in an unknown state".into()))
}
