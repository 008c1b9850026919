//! Numbers as Python gives them: an int, a list, or an array of numpy or Arrow.

use arrow_array::cast::AsArray;
use arrow_array::types::{Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type};
use arrow_array::{Array as _, ArrayRef};
use arrow_schema::DataType;
use numpy::{PyArrayDescrMethods, PyReadonlyArray1, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyInt, PyList, PyTuple};

use crate::arrow;
use crate::column::{Wrong, not_masked};
use crate::failure::Failure;

/// The numbers of a field, each from 0 to `most`.
pub(crate) fn field(object: &Bound<'_, PyAny>, most: i64, wrong: Wrong) -> Result<Vec<Option<i64>>, Failure> {
    let numbers = if let Some(number) = int(object) {
        vec![Some(number?)]
    } else if let Ok(array) = object.cast::<PyUntypedArray>() {
        of_numpy(array)?
    } else if object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() {
        let number = |(at, object): (usize, PyResult<Bound<'_, PyAny>>)| {
            let object = object?;
            match int(&object) {
                Some(number) => Ok(Some(number?)),
                None if object.is_none() => Ok(None),
                None => Err(no_int(&object)?.at(at)),
            }
        };
        object.try_iter()?.enumerate().map(number).collect::<Result<_, Failure>>()?
    } else {
        let Some(chunks) = arrow::taken(object)? else { return Err(no_int(object)?) };
        of_chunks(&chunks)?
    };
    let checked = |(at, number): (usize, Option<i64>)| {
        let is_wrong = number.is_some_and(|number| !(0..=most).contains(&number));
        let number = if is_wrong {
            Err(format!("{} is not from 0 to {most}", number.unwrap_or(0)))
        } else {
            Ok(number)
        };
        wrong.or_null(number).map_err(|why| Failure::Input(why).at(at))
    };
    numbers.into_iter().enumerate().map(checked).collect()
}

/// A number of Python; `None` for another object.
pub(crate) fn int(object: &Bound<'_, PyAny>) -> Option<Result<i64, Failure>> {
    if !object.is_instance_of::<PyInt>() || object.is_instance_of::<PyBool>() {
        return None;
    }
    Some(object.extract().map_err(|_| Failure::input(format!("{object} is too large"))))
}

pub(crate) fn no_int(object: &Bound<'_, PyAny>) -> Result<Failure, Failure> {
    let found = object.get_type().name()?;
    Ok(Failure::Type(format!("no numbers in {found}: give an int, a list, or an array of numpy or Arrow")))
}

fn of_numpy(array: &Bound<'_, PyUntypedArray>) -> Result<Vec<Option<i64>>, Failure> {
    not_masked(array)?;
    let dtype = array.dtype();
    if !matches!(dtype.kind(), b'i' | b'u') || array.ndim() != 1 {
        return Err(Failure::Type(format!(
            "no numbers in a numpy array of {dtype}: give one dimension of integers"
        )));
    }
    let wide = array.call_method1("astype", ("int64",))?.extract::<PyReadonlyArray1<'_, i64>>()?;
    Ok(wide.as_array().iter().copied().map(Some).collect())
}

/// The numbers of arrays of Arrow.
pub(crate) fn of_chunks(chunks: &[ArrayRef]) -> Result<Vec<Option<i64>>, Failure> {
    let mut numbers = Vec::new();
    chunks.iter().try_for_each(|chunk| of_arrow(chunk, &mut numbers))?;
    Ok(numbers)
}

fn of_arrow(array: &ArrayRef, numbers: &mut Vec<Option<i64>>) -> Result<(), Failure> {
    macro_rules! of {
        ($type:ty) => {
            numbers.extend(array.as_primitive::<$type>().iter().map(|number| number.map(i64::from)))
        };
    }
    match array.data_type() {
        DataType::UInt8 => of!(UInt8Type),
        DataType::UInt16 => of!(UInt16Type),
        DataType::UInt32 => of!(UInt32Type),
        DataType::Int16 => of!(Int16Type),
        DataType::Int32 => of!(Int32Type),
        DataType::Int64 => of!(Int64Type),
        other => {
            return Err(Failure::Type(format!("no numbers in an Arrow array of {other}: give integers")));
        }
    }
    Ok(())
}
