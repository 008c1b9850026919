//! Arguments of calls: prefixes, values, paths and settings.

use std::io;
use std::path::{Path, PathBuf};

use ipnet::IpNet;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyInt, PyMapping, PyString, PyTuple};

use crate::addresses::of_ipaddress;
use crate::failure::Failure;
use crate::texts::Value;
use wirespeed::content::{Content, How};
use wirespeed::fib::read::is_built_in;

/// A text that is given, or an object of the module `ipaddress`.
pub(crate) fn text(object: &Bound<'_, PyAny>, what: &str) -> Result<String, Failure> {
    if let Ok(text) = object.cast::<PyString>() {
        return Ok(text.to_str()?.to_owned());
    }
    match of_ipaddress(object) {
        Some(text) => Ok(text),
        None => Err(Failure::Type(format!("a {} is no {what}: give a str", object.get_type().name()?))),
    }
}

/// A prefix with its length.
pub(crate) fn prefix(object: &Bound<'_, PyAny>) -> Result<IpNet, Failure> {
    let text = text(object, "prefix")?;
    text.parse().map_err(|_| Failure::input(format!("{text:?} is no prefix such as 10.0.0.0/8")))
}

/// A value: a number from 1, or a label.
pub(crate) fn value(object: &Bound<'_, PyAny>) -> Result<Value, Failure> {
    if let Ok(label) = object.cast::<PyString>() {
        return Ok(Value::Label(label.to_str()?.to_owned()));
    }
    if object.is_instance_of::<PyInt>() && !object.is_instance_of::<PyBool>() {
        return match object.extract::<u32>() {
            Ok(number @ 1..) => Ok(Value::Number(number)),
            _ => Err(Failure::input(format!("{object} is no value: numbers are from 1 to {}", u32::MAX))),
        };
    }
    let found = object.get_type().name()?;
    Err(Failure::Type(format!("a {found} is no value: give an int from 1, or a str as label")))
}

/// A value, or `None` to remove an entry.
pub(crate) fn value_or_none(object: &Bound<'_, PyAny>) -> Result<Option<Value>, Failure> {
    if object.is_none() { Ok(None) } else { value(object).map(Some) }
}

/// A file, with the columns to take: a path, or a pair of a path and columns.
pub(crate) fn of_file(object: &Bound<'_, PyAny>) -> Result<(PathBuf, Vec<String>), Failure> {
    if let Ok(path) = object.extract::<PathBuf>() {
        return Ok((path, Vec::new()));
    }
    let found = object.get_type().name()?;
    object.extract().map_err(|_| {
        Failure::Type(format!("a {found} is no file: give a path, or a path and a list of columns"))
    })
}

/// The keywords of a call as a dictionary, so that pickle can make the call again.
macro_rules! keywords {
    ($py:expr, $($keyword:ident),+ $(,)?) => {{
        let keywords = ::pyo3::types::PyDict::new($py);
        $(keywords.set_item(stringify!($keyword), &$keyword)?;)+
        keywords.unbind()
    }};
}

pub(crate) use keywords;

/// Options for reading, by the names of keywords. `None` is not given.
pub(crate) fn how<const N: usize>(options: [(&str, Option<&str>); N]) -> Result<How, Failure> {
    let mut how = How::default();
    for (keyword, value) in options {
        let set = value.map_or(Ok(()), |value| how.set(&keyword.replace('_', "-"), value));
        set.map_err(|error| Failure::input(format!("{keyword}: {error}")))?;
    }
    Ok(how)
}

/// A builder with a setting, if it is given.
pub(crate) fn with<B, V>(builder: B, setting: Option<V>, set: impl FnOnce(B, V) -> B) -> B {
    match setting {
        Some(setting) => set(builder, setting),
        None => builder,
    }
}

/// Refuses options for reading that a file of this content has no use for.
pub(crate) fn check(how: &How, path: &Path, content: Content) -> Result<(), Failure> {
    how.check(content).map_err(|error| Failure::input(format!("{}: {error}", path.display())))
}

/// Entries of a mapping, or pairs of an iterable.
pub(crate) fn pairs<K, V>(
    object: &Bound<'_, PyAny>,
    key: impl Fn(&Bound<'_, PyAny>) -> Result<K, Failure>,
    value: impl Fn(&Bound<'_, PyAny>) -> Result<V, Failure>,
) -> Result<Vec<(K, V)>, Failure> {
    let items = match object.cast::<PyMapping>() {
        Ok(mapping) => mapping.items()?.into_any(),
        Err(_) => object.clone(),
    };
    let mut pairs = Vec::new();
    for (at, pair) in items.try_iter()?.enumerate() {
        let pair = pair?;
        let of_two = pair.cast::<PyTuple>().ok().filter(|pair| pair.len() == 2);
        let Some(of_two) = of_two else {
            return Err(Failure::Type("give pairs of a key and a value".into()).at(at));
        };
        let read = || Ok((key(&of_two.get_item(0)?)?, value(&of_two.get_item(1)?)?));
        pairs.push(read().map_err(|failure: Failure| failure.at(at))?);
    }
    Ok(pairs)
}

/// A file that a table is made of, and its size and time of change then: in another process or later the path
/// may lead to other content.
pub(crate) struct OfFile {
    /// A path that another process finds, too.
    path: PathBuf,
    stamp: Option<(u64, u128)>,
}

impl OfFile {
    /// The file as it is now: ask before it is read, or after it is written.
    pub(crate) fn now(path: &Path) -> Result<Self, Failure> {
        // What is built in has its name in every process, and no file.
        if is_built_in(path) {
            return Ok(Self { path: path.to_owned(), stamp: None });
        }
        let path = std::path::absolute(path).map_err(|error| in_file(path, &error))?;
        Ok(Self { stamp: stamp(&path), path })
    }
}

/// The size of a file and the nanoseconds from 1970 to its last change; `None` if they are not known.
fn stamp(path: &Path) -> Option<(u64, u128)> {
    let metadata = std::fs::metadata(path).ok()?;
    let changed = metadata.modified().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
    Some((metadata.len(), changed.as_nanos()))
}

fn in_file(path: &Path, error: &io::Error) -> Failure {
    Failure::File(format!("{}: {error}", path.display()))
}

/// Where a table comes from, so that another process can make it again.
#[derive(Default)]
pub(crate) enum Origin {
    /// Memory, or a file and changes.
    #[default]
    Changed,
    /// An image.
    Image(OfFile),
    /// Another file, and the settings that it was read with.
    File(OfFile, Py<PyDict>),
}

impl Origin {
    /// What pickle calls to make the table again: a function and its arguments. `of_image` are the settings
    /// that an image is opened with. Fails if the table is not what a file holds; `advice` says what helps.
    pub(crate) fn reduced<'py>(
        &self,
        class: &Bound<'py, PyAny>,
        of_image: &Bound<'py, PyDict>,
        advice: &str,
    ) -> Result<(Bound<'py, PyAny>, Bound<'py, PyTuple>), Failure> {
        let py = class.py();
        let (call, OfFile { path, stamp: was }, settings) = match self {
            Self::Changed => {
                return Err(Failure::state(format!(
                    "pickle keeps the path of a file, and this is not what a file holds: {advice}"
                )));
            }
            Self::Image(file) => ("_open", file, of_image),
            Self::File(file, settings) => ("_from_file", file, settings.bind(py)),
        };
        if stamp(path) != *was {
            let path = path.display();
            return Err(Failure::state(format!(
                "pickle keeps the path of a file, and {path} has changed since it was read: {advice}"
            )));
        }
        let call = py.import("wirespeed")?.getattr(call)?;
        Ok((call, (class, path.as_os_str(), settings, *was).into_pyobject(py)?))
    }
}
