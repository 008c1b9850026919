//! Answers for Python, of the kind of the question.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::types::UInt32Type;
use arrow_array::{DictionaryArray, PrimitiveArray, StringArray, UInt8Array, UInt32Array};
use arrow_buffer::{BooleanBuffer, NullBuffer, ScalarBuffer};
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};
use wirespeed::fib::read::ReadReport;
use wirespeed::fib::read::parts::Reason;
use wirespeed::fib::read::record;
use wirespeed::{Labels, LabelsGuard, NextHop};

use crate::arrow::Array;
use crate::column::Kind;
use crate::failure::{Failure, detached};

/// Results as numbers: 0 where numpy has no null, null or `None` elsewhere.
pub(crate) fn numbers(py: Python<'_>, kind: Kind, numbers: Vec<u32>) -> PyResult<Bound<'_, PyAny>> {
    match kind {
        Kind::Numpy => Ok(PyArray1::from_vec(py, numbers).into_any()),
        Kind::Arrow => {
            let nulls = nulls(&numbers);
            array(py, Arc::new(UInt32Array::new(ScalarBuffer::from(numbers), nulls)))
        }
        Kind::List => Ok(PyList::new(py, numbers.into_iter().map(some))?.into_any()),
        Kind::One => Ok(numbers.first().copied().and_then(some).into_pyobject(py)?),
    }
}

/// Lengths of matched prefixes: null or `None` where the number is 0, and 0 in numpy.
pub(crate) fn lengths<'py>(
    py: Python<'py>,
    kind: Kind,
    numbers: &[u32],
    lengths: Vec<u32>,
) -> PyResult<Bound<'py, PyAny>> {
    // A length has 128 bits at most.
    let lengths: Vec<u8> = lengths.into_iter().map(|len| u8::try_from(len).unwrap_or(u8::MAX)).collect();
    let found = |(&number, &len): (&u32, &u8)| (number != 0).then_some(len);
    match kind {
        Kind::Numpy => Ok(PyArray1::from_vec(py, lengths).into_any()),
        Kind::Arrow => array(py, Arc::new(UInt8Array::new(ScalarBuffer::from(lengths), nulls(numbers)))),
        Kind::List => {
            Ok(PyList::new(py, numbers.iter().zip(&lengths).map(found).collect::<Vec<_>>())?.into_any())
        }
        Kind::One => Ok(numbers.iter().zip(&lengths).next().and_then(found).into_pyobject(py)?),
    }
}

fn some(number: u32) -> Option<u32> {
    (number != 0).then_some(number)
}

/// The nulls of numbers that may be 0.
fn nulls(numbers: &[u32]) -> Option<NullBuffer> {
    let has_null = numbers.contains(&0);
    has_null.then(|| NullBuffer::new(BooleanBuffer::collect_bool(numbers.len(), |at| numbers[at] != 0)))
}

fn array(py: Python<'_>, array: arrow_array::ArrayRef) -> PyResult<Bound<'_, PyAny>> {
    Ok(Bound::new(py, Array(array))?.into_any())
}

/// Texts of a batch, each once: a code for each element, 0 for none, 1 for the first text.
pub(crate) struct Coded {
    codes: Vec<u32>,
    texts: Vec<String>,
}

impl Coded {
    /// Texts by their codes from 1.
    pub(crate) fn of(codes: Vec<u32>, texts: Vec<String>) -> Self {
        Self { codes, texts }
    }

    /// The labels of numbers, or a field of each, where labels are records: none of a label that lacks it.
    /// The labels were entered before the numbers were looked up. Fails if no label has the field.
    pub(crate) fn labels(
        numbers: Vec<u32>,
        known: &LabelsGuard<'_, String>,
        field: Option<&str>,
    ) -> Result<Self, Failure> {
        let (mut codes, mut texts) = (HashMap::new(), Texts::default());
        let mut coded = numbers;
        // Neighbours are often equal.
        let (mut last, mut code_of_last) = (0, 0);
        for number in &mut coded {
            if *number == 0 {
                continue;
            }
            if *number != last {
                last = *number;
                code_of_last = match codes.get(&last) {
                    Some(&code) => code,
                    None => {
                        let text = known.get(NextHop(last)).ok_or_else(no_label)?;
                        let code = match field {
                            None => texts.code(text.as_str().into())?,
                            Some(field) => {
                                record::field(text, field).map_or(Ok(0), |value| texts.code(value))?
                            }
                        };
                        codes.insert(last, code);
                        code
                    }
                };
            }
            *number = code_of_last;
        }
        if let Some(field) = field
            && texts.texts.is_empty()
        {
            let check = record::check_field(|| known.iter().map(|(_, text)| text.as_str()), field);
            check.map_err(|error| Failure::input(error.to_string()))?;
        }
        Ok(Self { codes: coded, texts: texts.texts })
    }

    /// The texts as Python has them: a dictionary of Arrow, an array of objects, a list, or one.
    pub(crate) fn answer(self, py: Python<'_>, kind: Kind) -> PyResult<Bound<'_, PyAny>> {
        let Self { codes, texts } = self;
        if kind == Kind::Arrow {
            let nulls = nulls(&codes);
            let keys: Vec<u32> = codes.into_iter().map(|code| code.saturating_sub(1)).collect();
            let keys = PrimitiveArray::<UInt32Type>::new(ScalarBuffer::from(keys), nulls);
            let texts = StringArray::from_iter_values(texts);
            let coded = DictionaryArray::try_new(keys, Arc::new(texts));
            return array(py, Arc::new(coded.map_err(|error| Failure::Defect(error.to_string()))?));
        }
        let none = py.None().into_bound(py);
        let texts = texts.iter().map(|text| PyString::new(py, text).into_any());
        let texts: Vec<_> = std::iter::once(none).chain(texts).collect();
        let mut answers = codes.into_iter().map(|code| texts[code as usize].clone());
        match kind {
            Kind::One => answers.next().map_or_else(|| Ok(py.None().into_bound(py)), Ok),
            _ => list_or_array(py, kind, PyList::new(py, answers.collect::<Vec<_>>())?),
        }
    }
}

/// Texts, each once, with codes from 1.
#[derive(Default)]
struct Texts {
    texts: Vec<String>,
    codes: HashMap<String, u32>,
}

impl Texts {
    fn code(&mut self, text: Cow<'_, str>) -> Result<u32, Failure> {
        if let Some(&code) = self.codes.get(&*text) {
            return Ok(code);
        }
        self.texts.push(text.clone().into_owned());
        let code = u32::try_from(self.texts.len()).map_err(|_| no_label())?;
        self.codes.insert(text.into_owned(), code);
        Ok(code)
    }
}

fn no_label() -> Failure {
    Failure::state("this table has numbers of the caller's own, and no labels")
}

/// The label of a number, if it has one.
pub(crate) fn label(labels: &Labels<String>, number: u32) -> Option<String> {
    labels.get(NextHop(number)).map(|text| text.clone())
}

/// The lines that were passed over, by reason.
pub(crate) fn skipped<F, R: Reason>(report: &ReadReport<F, R>) -> Vec<(String, u64)> {
    report.skipped.iter().map(|one| (one.reason.to_string(), one.count)).collect()
}

/// Counts by reason.
pub(crate) fn by_reason<'py>(
    py: Python<'py>,
    counts: Vec<(String, u64)>,
) -> Result<Bound<'py, PyDict>, Failure> {
    let by_reason = PyDict::new(py);
    counts.into_iter().try_for_each(|(reason, count)| by_reason.set_item(reason, count))?;
    Ok(by_reason)
}

/// All labels by number.
pub(crate) fn labels<'py>(py: Python<'py>, labels: &Labels<String>) -> Result<Bound<'py, PyDict>, Failure> {
    let all = detached(py, || {
        let known = labels.enter();
        Ok(known.iter().map(|(number, text)| (number.0, text.clone())).collect::<Vec<_>>())
    })?;
    let by_number = PyDict::new(py);
    all.into_iter().try_for_each(|(number, text)| by_number.set_item(number, text))?;
    Ok(by_number)
}

/// Texts as Python has them.
pub(crate) fn texts(py: Python<'_>, kind: Kind, texts: Vec<Option<String>>) -> PyResult<Bound<'_, PyAny>> {
    match kind {
        Kind::Arrow => {
            let texts: StringArray = texts.into_iter().collect();
            array(py, Arc::new(texts))
        }
        Kind::One => Ok(texts.into_iter().next().flatten().into_pyobject(py)?),
        _ => list_or_array(py, kind, PyList::new(py, texts)?),
    }
}

/// A list, or an array of objects with its elements.
fn list_or_array<'py>(py: Python<'py>, kind: Kind, list: Bound<'py, PyList>) -> PyResult<Bound<'py, PyAny>> {
    if kind != Kind::Numpy {
        return Ok(list.into_any());
    }
    let numpy = py.import("numpy")?;
    let array = numpy.call_method1("empty", (list.len(), "object"))?;
    array.set_item(pyo3::types::PySlice::full(py), list)?;
    Ok(array)
}
