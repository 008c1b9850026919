//! [`TextColumn`]: texts as Python gives them: a str, a list, or arrays of Arrow.

use arrow_array::ArrayRef;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};

use crate::addresses::of_ipaddress;
use crate::arrow;
use crate::column::{Column, Kind, Read, Wrong, each, no_keys, of_dictionary, of_texts};
use crate::failure::Failure;

/// What the texts are, for messages.
#[derive(Clone, Copy)]
pub(crate) struct What {
    one: &'static str,
    all: &'static str,
    /// Whether objects of the module `ipaddress` stand for texts, too.
    takes_networks: bool,
}

pub(crate) const NAMES: What = What { one: "name", all: "names", takes_networks: false };
pub(crate) const PREFIXES: What = What { one: "prefix", all: "prefixes", takes_networks: true };
pub(crate) const ORIGINS: What = What { one: "origin", all: "origins", takes_networks: false };

/// Texts of a call.
pub(crate) enum TextColumn {
    /// Chunks of one type.
    Arrow(What, Vec<ArrayRef>),
    Texts(Kind, Vec<Option<String>>),
}

impl TextColumn {
    pub(crate) fn of(object: &Bound<'_, PyAny>, what: What) -> Result<Self, Failure> {
        if let Some(text) = what.text(object)? {
            return Ok(Self::Texts(Kind::One, vec![Some(text)]));
        }
        if let Ok(list) = object.cast::<PyList>() {
            return Ok(Self::Texts(Kind::List, what.texts(list.iter())?));
        }
        if let Ok(tuple) = object.cast::<PyTuple>() {
            return Ok(Self::Texts(Kind::List, what.texts(tuple.iter())?));
        }
        match arrow::taken(object)? {
            Some(chunks) => Ok(Self::Arrow(what, chunks)),
            None => {
                let (found, all) = (object.get_type().name()?, what.all);
                Err(Failure::Type(format!("no {all} in {found}: give a str, a list, or an array of Arrow")))
            }
        }
    }

    pub(crate) fn kind(&self) -> Kind {
        match self {
            Self::Arrow(..) => Kind::Arrow,
            Self::Texts(kind, _) => *kind,
        }
    }

    pub(crate) fn columns(&self, wrong: Wrong) -> Result<Vec<Box<dyn Column<String> + '_>>, Failure> {
        match self {
            Self::Arrow(what, chunks) => chunks.iter().map(|chunk| column(&**chunk, wrong, *what)).collect(),
            Self::Texts(_, texts) => Ok(vec![Box::new(Read(texts.clone()))]),
        }
    }

    /// All texts, in order.
    pub(crate) fn all(&self, wrong: Wrong) -> Result<Vec<Option<String>>, Failure> {
        let mut all = Vec::new();
        for column in self.columns(wrong)? {
            let from = all.len();
            all.resize(from + column.len(), None);
            let read = column.read(0, &mut all[from..]);
            read.map_err(|(at, why)| Failure::Input(why).at(from + at))?;
        }
        Ok(all)
    }
}

impl What {
    /// The text of an object that is one.
    fn text(self, object: &Bound<'_, PyAny>) -> Result<Option<String>, Failure> {
        match object.cast::<PyString>() {
            Ok(text) => Ok(Some(text.to_str()?.to_owned())),
            Err(_) if self.takes_networks => Ok(of_ipaddress(object)),
            Err(_) => Ok(None),
        }
    }

    fn texts<'py>(
        self,
        objects: impl Iterator<Item = Bound<'py, PyAny>>,
    ) -> Result<Vec<Option<String>>, Failure> {
        let text = |(at, object): (usize, Bound<'_, PyAny>)| match self.text(&object)? {
            Some(text) => Ok(Some(text)),
            None if object.is_none() => Ok(None),
            None => {
                let found = object.get_type().name()?;
                Err(Failure::Type(format!("a {found} is no {}: give a str or None", self.one)).at(at))
            }
        };
        objects.enumerate().map(text).collect()
    }
}

fn column<'a>(
    array: &'a dyn arrow_array::Array,
    wrong: Wrong,
    What { all, .. }: What,
) -> Result<Box<dyn Column<String> + 'a>, Failure> {
    let no_texts = |found: &dyn arrow_array::Array| {
        no_keys(all, found.data_type(), &format!("{all} are text, or a dictionary of texts"))
    };
    if let Some(texts) = of_texts(array, wrong, |text| Ok(text.to_owned())) {
        return Ok(texts);
    }
    let of_values =
        |values: &dyn arrow_array::Array| match of_texts(values, wrong, |text| Ok(text.to_owned())) {
            Some(texts) => Ok(each(&*texts)),
            None => Err(no_texts(values)),
        };
    of_dictionary(array, wrong, of_values)?.ok_or_else(|| no_texts(array))
}
