//! The Arrow C data interface: arrays taken from Python by PyCapsules without a copy, and given to it.
//!
//! An object that is given has `__arrow_c_array__` (one array) or `__arrow_c_stream__` (chunks of one type).
//! <https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html> names the capsules.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_int};
use std::ptr::NonNull;

use arrow_array::cast::AsArray;
use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi, to_ffi};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{Array as _, ArrayRef, make_array};
use arrow_schema::{ArrowError, DataType};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyList, PyTuple};

use crate::failure::Failure;

const ARRAY: &CStr = c"arrow_array";
const SCHEMA: &CStr = c"arrow_schema";
const STREAM: &CStr = c"arrow_array_stream";

/// Takes the arrays of an object. `None` if it speaks no Arrow.
pub(crate) fn taken(object: &Bound<'_, PyAny>) -> Result<Option<Vec<ArrayRef>>, Failure> {
    if let Some(of_array) = object.getattr_opt("__arrow_c_array__")? {
        let capsules = of_array.call0()?;
        let capsules = capsules.cast::<PyTuple>().map_err(PyErr::from)?;
        let (schema, array) = (capsules.get_item(0)?, capsules.get_item(1)?);
        return Ok(Some(vec![array_of(&schema, &array)?]));
    }
    match object.getattr_opt("__arrow_c_stream__")? {
        Some(of_stream) => Ok(Some(stream_of(&of_stream.call0()?)?)),
        None => Ok(None),
    }
}

/// The pointer in a capsule of this name.
fn pointer<T>(capsule: &Bound<'_, PyAny>, name: &CStr) -> Result<NonNull<T>, Failure> {
    let capsule = capsule.cast::<PyCapsule>().map_err(PyErr::from)?;
    Ok(capsule.pointer_checked(Some(name))?.cast())
}

fn array_of(schema: &Bound<'_, PyAny>, array: &Bound<'_, PyAny>) -> Result<ArrayRef, Failure> {
    let schema = pointer::<FFI_ArrowSchema>(schema, SCHEMA)?;
    let array = pointer::<FFI_ArrowArray>(array, ARRAY)?;
    // SAFETY: by the interface a capsule of this name leads to an array, which is valid and is moved out
    // here: `from_raw` leaves a released one, so the capsule's destructor frees nothing. The interpreter's
    // lock is held, so nobody else moves it.
    let array = unsafe { FFI_ArrowArray::from_raw(array.as_ptr()) };
    // SAFETY: by the interface a capsule of this name leads to a schema, which the capsule frees later.
    imported(array, unsafe { schema.as_ref() })
}

fn imported(array: FFI_ArrowArray, schema: &FFI_ArrowSchema) -> Result<ArrayRef, Failure> {
    if array.is_released() {
        return Err(Failure::input("an Arrow array that was taken before"));
    }
    // SAFETY: by the interface the producer vouches that the array is of this schema and its buffers valid
    // until it is released, which happens with the last array that shares them.
    let mut data = unsafe { from_ffi(array, schema) }.map_err(of_arrow)?;
    // Files may hold buffers at any address.
    data.align_buffers();
    Ok(make_array(data))
}

fn stream_of(capsule: &Bound<'_, PyAny>) -> Result<Vec<ArrayRef>, Failure> {
    let stream = pointer::<FFI_ArrowArrayStream>(capsule, STREAM)?;
    // SAFETY: as for an array: a valid stream, moved out, and released when it is dropped.
    let mut stream = unsafe { FFI_ArrowArrayStream::from_raw(stream.as_ptr()) };
    let (Some(get_schema), Some(get_next)) = (stream.get_schema, stream.get_next) else {
        return Err(Failure::input("an Arrow stream that was taken before"));
    };
    let mut schema = FFI_ArrowSchema::empty();
    // SAFETY: the stream is valid and not released, and the schema is a place for one.
    let code = unsafe { get_schema(&raw mut stream, &raw mut schema) };
    checked(&mut stream, code)?;
    let mut chunks = Vec::new();
    loop {
        let mut array = FFI_ArrowArray::empty();
        // SAFETY: the stream is valid and not released, and the array is a place for one.
        let code = unsafe { get_next(&raw mut stream, &raw mut array) };
        checked(&mut stream, code)?;
        if array.is_released() {
            return Ok(chunks);
        }
        chunks.push(imported(array, &schema)?);
    }
}

/// The error of a stream, by the code that it returned.
fn checked(stream: &mut FFI_ArrowArrayStream, code: c_int) -> Result<(), Failure> {
    if code == 0 {
        return Ok(());
    }
    let last = stream.get_last_error.and_then(|last| {
        // SAFETY: the stream is valid, and the last call on it failed. The text is valid until the next one.
        let text = NonNull::new(unsafe { last(&raw mut *stream) }.cast_mut())?;
        // SAFETY: by the interface the text ends with a zero byte.
        Some(unsafe { CStr::from_ptr(text.as_ptr()) }.to_string_lossy().into_owned())
    });
    let last = last.unwrap_or_else(|| format!("code {code}"));
    Err(Failure::input(format!("the Arrow stream failed: {last}")))
}

fn of_arrow(error: ArrowError) -> Failure {
    Failure::input(format!("no valid Arrow array: {error}"))
}

/// Array of Arrow: `pyarrow.array`, `polars.Series` and others take it without a copy.
#[pyclass(frozen, module = "wirespeed")]
pub(crate) struct Array(pub(crate) ArrayRef);

#[pymethods]
impl Array {
    /// The schema's capsule.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.0.data_type()).map_err(of_arrow)?;
        PyCapsule::new_with_value(py, schema, SCHEMA)
    }

    /// The capsules of the schema and of the array. Another schema may be asked for, and is not given.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        drop(requested_schema);
        let (array, schema) = to_ffi(&self.0.to_data()).map_err(of_arrow)?;
        Ok((PyCapsule::new_with_value(py, schema, SCHEMA)?, PyCapsule::new_with_value(py, array, ARRAY)?))
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    fn __repr__(&self) -> String {
        format!(
            "<wirespeed.Array of {}: {} values, {} null>",
            self.0.data_type(),
            self.0.len(),
            self.0.null_count()
        )
    }

    /// The values as a list, `None` for null.
    fn to_pylist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        use arrow_array::types::{UInt8Type, UInt32Type};

        let array = &*self.0;
        match array.data_type() {
            DataType::UInt32 => {
                PyList::new(py, array.as_primitive::<UInt32Type>().iter().collect::<Vec<_>>())
            }
            DataType::UInt8 => PyList::new(py, array.as_primitive::<UInt8Type>().iter().collect::<Vec<_>>()),
            DataType::Utf8 => PyList::new(py, array.as_string::<i32>().iter().collect::<Vec<_>>()),
            _ => {
                let coded = array.as_dictionary::<UInt32Type>();
                let texts = coded.values().as_string::<i32>();
                let texts: Vec<_> =
                    texts.iter().map(|text| text.map(|text| pyo3::types::PyString::new(py, text))).collect();
                PyList::new(py, coded.keys_iter().map(|key| texts[key?].clone()).collect::<Vec<_>>())
            }
        }
    }
}
