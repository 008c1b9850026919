//! [`Vrps`]: validated payloads of the RPKI, and origin validation of routes by them (RFC 6811).

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple, PyType};
use wirespeed::Prefix;
use wirespeed::fib::read::{ReadOptions, Source, read_vrps};
use wirespeed::fib::rpki::{self, Origin as Asn, Validity, Vrp, VrpSet};
use wirespeed::prelude::*;

use crate::answers::{self, Coded};
use crate::arrow;
use crate::column::Wrong;
use crate::failure::{Failure, detached};
use crate::given::{self, OfFile, Origin, keywords};
use crate::numbers::{field, int, no_int, of_chunks};
use crate::text_column::{ORIGINS, PREFIXES, TextColumn};

/// Validated payloads of the RPKI: which AS may announce which prefixes. They stay as they are.
#[pyclass(frozen, module = "wirespeed")]
pub(crate) struct Vrps {
    vrps: rpki::Vrps,
    origin: Origin,
    /// Records that were passed over, by reason.
    skipped: Vec<(String, u64)>,
}

/// The states of routes, in the order of their codes from 1.
const STATES: [&str; 3] = ["valid", "invalid", "not-found"];

#[pymethods]
impl Vrps {
    #[new]
    #[pyo3(signature = (vrps=None))]
    fn new(vrps: Option<&Bound<'_, PyAny>>) -> Result<Self, Failure> {
        let (mut v4, mut v6) = (Vec::new(), Vec::new());
        for (at, vrp) in vrps.map(PyAnyMethods::try_iter).transpose()?.into_iter().flatten().enumerate() {
            payload(&vrp?, &mut v4, &mut v6).map_err(|failure| failure.at(at))?;
        }
        let vrps =
            rpki::Vrps { v4: VrpSet::from_iter(v4), v6: VrpSet::from_iter(v6), ..rpki::Vrps::default() };
        Ok(Self { vrps, origin: Origin::Changed, skipped: Vec::new() })
    }

    /// Reads a file of rpki-client or Routinator: JSON or CSV, plain or compressed.
    #[classmethod]
    #[pyo3(signature = (path, *, lenient=false))]
    fn from_file(
        _class: &Bound<'_, PyType>,
        py: Python<'_>,
        path: PathBuf,
        lenient: bool,
    ) -> Result<Self, Failure> {
        let again = keywords!(py, lenient);
        detached(py, || {
            let options = ReadOptions { lenient, ..ReadOptions::default() };
            let file = OfFile::now(&path)?;
            let read = read_vrps(&Source::Path(path), &options);
            let (vrps, report) = read.map_err(|error| Failure::File(error.to_string()))?;
            Ok(Self { vrps, origin: Origin::File(file, again), skipped: answers::skipped(&report) })
        })
    }

    /// Validates routes, each a prefix and the AS that announces it: "valid", "invalid" or "not-found".
    #[pyo3(signature = (prefixes, origins, *, errors="raise"))]
    fn rov<'py>(
        &self,
        prefixes: &Bound<'py, PyAny>,
        origins: &Bound<'py, PyAny>,
        errors: &str,
    ) -> Result<Bound<'py, PyAny>, Failure> {
        let (py, wrong) = (prefixes.py(), Wrong::of(errors)?);
        let of_prefixes = TextColumn::of(prefixes, PREFIXES).map_err(|failure| failure.of("prefixes"))?;
        let kind = of_prefixes.kind();
        let prefixes = of_prefixes.all(Wrong::Raise).map_err(|failure| failure.of("prefixes"))?;
        let origins = self::origins(origins, wrong).map_err(|failure| failure.of("origins"))?;
        if prefixes.len() != origins.len() {
            let lens = [prefixes.len(), origins.len()];
            return Err(Failure::input(format!("prefixes and origins have {lens:?} elements")));
        }
        let codes = detached(py, || {
            let code = |(at, (prefix, origin)): (usize, (&Option<String>, Option<Asn>))| {
                let state = match (prefix, origin) {
                    (Some(prefix), Some(origin)) => self.validated(prefix, origin).map(Some),
                    (Some(prefix), None) => self.validated(prefix, Asn::None).map(|_| None),
                    (None, _) => Ok(None),
                };
                let state = wrong.or_null(state);
                let state = state.map_err(|why| Failure::Input(why).at(at).of("prefixes"))?;
                Ok(state.map_or(0, code))
            };
            prefixes.iter().zip(origins).enumerate().map(code).collect::<Result<Vec<u32>, Failure>>()
        })?;
        Ok(Coded::of(codes, STATES.map(str::to_owned).to_vec()).answer(py, kind)?)
    }

    /// Numbers of records that were passed over, by reason.
    #[getter]
    fn skipped<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyDict>, Failure> {
        answers::by_reason(py, self.skipped.clone())
    }

    fn __len__(&self) -> usize {
        self.vrps.len()
    }

    fn __repr__(&self) -> String {
        let rpki::Vrps { v4, v6, .. } = &self.vrps;
        format!("<wirespeed.Vrps of {} IPv4 and {} IPv6 payloads>", v4.len(), v6.len())
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> Result<(Bound<'py, PyAny>, Bound<'py, PyTuple>), Failure> {
        slf.get().origin.reduced(slf.get_type().as_any(), &PyDict::new(slf.py()), "read a file")
    }
}

impl Vrps {
    /// The state of a route. Fails if the prefix is none.
    fn validated(&self, prefix: &str, origin: Asn) -> Result<Validity, String> {
        let no_prefix = || format!("{prefix:?} is no prefix such as 10.0.0.0/8");
        if prefix.contains(':') {
            let prefix = prefix.parse::<Prefix<V6>>().map_err(|_| no_prefix())?;
            return Ok(self.vrps.v6.validate(prefix, origin));
        }
        let prefix = prefix.parse::<Prefix<V4>>().map_err(|_| no_prefix())?;
        Ok(self.vrps.v4.validate(prefix, origin))
    }
}

/// The code of a state: its place among [`STATES`], from 1.
fn code(state: Validity) -> u32 {
    match state {
        Validity::Valid => 1,
        Validity::Invalid(_) => 2,
        Validity::NotFound => 3,
    }
}

/// Adds a payload: a prefix, the longest length or None for the prefix's own, and the AS.
fn payload(vrp: &Bound<'_, PyAny>, v4: &mut Vec<Vrp<V4>>, v6: &mut Vec<Vrp<V6>>) -> Result<(), Failure> {
    let of_three = vrp.cast::<PyTuple>().ok().filter(|vrp| vrp.len() == 3);
    let Some(of_three) = of_three else {
        return Err(Failure::Type("give tuples of a prefix, a longest length and an AS number".into()));
    };
    let (prefix, longest) = (given::prefix(&of_three.get_item(0)?)?, of_three.get_item(1)?);
    let longest = if longest.is_none() { prefix.prefix_len() } else { number(&longest, "longest length")? };
    let asn = number(&of_three.get_item(2)?, "AS number")?;
    let (text, no_payload) = (prefix.to_string(), |why: String| Failure::Input(format!("{prefix}: {why}")));
    if text.contains(':') {
        let prefix = text.parse().map_err(|_| no_payload("host bits are set".into()))?;
        v6.push(Vrp::new(prefix, longest, asn).map_err(|why| no_payload(why.to_string()))?);
    } else {
        let prefix = text.parse().map_err(|_| no_payload("host bits are set".into()))?;
        v4.push(Vrp::new(prefix, longest, asn).map_err(|why| no_payload(why.to_string()))?);
    }
    Ok(())
}

fn number<T: TryFrom<i64>>(object: &Bound<'_, PyAny>, what: &str) -> Result<T, Failure> {
    let number = match int(object) {
        Some(number) => number?,
        None => return Err(no_int(object)?),
    };
    T::try_from(number).map_err(|_| Failure::input(format!("{number} is no {what}")))
}

/// Origins: numbers, or texts such as AS13335 and {1,2}.
fn origins(object: &Bound<'_, PyAny>, wrong: Wrong) -> Result<Vec<Option<Asn>>, Failure> {
    let origins: Vec<Option<Result<Asn, String>>> =
        if object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() {
            let one = |(at, one): (usize, PyResult<_>)| of_object(&one?).map_err(|failure| failure.at(at));
            object.try_iter()?.enumerate().map(one).collect::<Result<_, _>>()?
        } else if object.is_instance_of::<PyString>() || int(object).is_some() {
            vec![of_object(object)?]
        } else {
            // A stream of Arrow is taken once.
            let of_numbers =
                |numbers: Vec<Option<i64>>| numbers.into_iter().map(|one| one.map(of_number)).collect();
            match arrow::taken(object)? {
                None => of_numbers(field(object, i64::MAX, Wrong::Raise)?),
                Some(chunks) if chunks.iter().all(|chunk| chunk.data_type().is_integer()) => {
                    of_numbers(of_chunks(&chunks)?)
                }
                Some(chunks) => {
                    let texts = TextColumn::Arrow(ORIGINS, chunks).all(Wrong::Raise)?;
                    texts.into_iter().map(|text| text.as_deref().map(of_text)).collect()
                }
            }
        };
    let checked = |(at, origin): (usize, Option<Result<Asn, String>>)| {
        wrong.or_null(origin.transpose()).map_err(|why| Failure::Input(why).at(at))
    };
    origins.into_iter().enumerate().map(checked).collect()
}

/// The origin of an object: a number, a text or None.
fn of_object(object: &Bound<'_, PyAny>) -> Result<Option<Result<Asn, String>>, Failure> {
    if let Ok(text) = object.cast::<PyString>() {
        return Ok(Some(of_text(text.to_str()?)));
    }
    match int(object) {
        Some(number) => Ok(Some(of_number(number?))),
        None if object.is_none() => Ok(None),
        None => Err(no_int(object)?),
    }
}

fn of_number(number: i64) -> Result<Asn, String> {
    u32::try_from(number).map(Asn::As).map_err(|_| format!("{number} is not from 0 to {}", u32::MAX))
}

fn of_text(text: &str) -> Result<Asn, String> {
    text.parse().map_err(|why| format!("{text:?} is {why}"))
}
