//! Addresses as Python gives them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt32Type};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use numpy::{PyReadonlyArray1, PyReadonlyArray2, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};

use crate::arrow;
use crate::column::{By, Column, Kind, Read, Wrong, each, no_keys, not_masked, of_dictionary, of_texts};
use crate::failure::Failure;

/// The forms of Arrow that hold addresses.
const FORMS: &str = "addresses are uint32 (IPv4 in host order), int64 of that range, text, or binary of 4 or 16 bytes \
                     in network order, or a dictionary of these";

/// Addresses of a call.
pub(crate) enum Addresses<'py> {
    /// IPv4 in host order.
    V4(PyReadonlyArray1<'py, u32>),
    /// IPv6 in network order, 16 bytes each.
    V6(PyReadonlyArray2<'py, u8>),
    /// Chunks of one type.
    Arrow(Vec<ArrayRef>),
    /// Addresses that were parsed.
    Parsed(Kind, Vec<Option<IpAddr>>),
}

impl<'py> Addresses<'py> {
    /// Takes the addresses of an object.
    pub(crate) fn of(object: &Bound<'py, PyAny>, wrong: Wrong) -> Result<Self, Failure> {
        if let Some(address) = one(object) {
            return Ok(Self::Parsed(
                Kind::One,
                vec![wrong.or_null(address.map(Some)).map_err(Failure::Input)?],
            ));
        }
        if let Ok(array) = object.cast::<PyUntypedArray>() {
            return of_numpy(array);
        }
        if let Ok(list) = object.cast::<PyList>() {
            return Ok(Self::Parsed(Kind::List, parsed(list.iter(), wrong)?));
        }
        if let Ok(tuple) = object.cast::<PyTuple>() {
            return Ok(Self::Parsed(Kind::List, parsed(tuple.iter(), wrong)?));
        }
        match arrow::taken(object)? {
            Some(chunks) => Ok(Self::Arrow(chunks)),
            None => Err(Failure::Type(format!(
                "no addresses in {}: give a str, a list, an array of numpy (uint32, or (n, 16) uint8) or of Arrow",
                object.get_type().name()?
            ))),
        }
    }

    /// The kind of the object.
    pub(crate) fn kind(&self) -> Kind {
        match self {
            Self::V4(_) | Self::V6(_) => Kind::Numpy,
            Self::Arrow(_) => Kind::Arrow,
            Self::Parsed(kind, _) => *kind,
        }
    }

    /// The columns, in order.
    pub(crate) fn columns(&self, wrong: Wrong) -> Result<Vec<Box<dyn Column<IpAddr> + '_>>, Failure> {
        Ok(match self {
            Self::V4(array) => vec![Box::new(Hosts(array.as_slice().map_err(PyErr::from)?))],
            Self::V6(array) => {
                let (rows, _) = array.as_slice().map_err(PyErr::from)?.as_chunks::<16>();
                let key = |at: usize| Ok(Some(IpAddr::from(rows[at])));
                vec![Box::new(By { len: rows.len(), wrong, key })]
            }
            Self::Arrow(chunks) => {
                chunks.iter().map(|chunk| column(&**chunk, wrong)).collect::<Result<_, _>>()?
            }
            Self::Parsed(_, addresses) => vec![Box::new(Read(addresses.clone()))],
        })
    }
}

/// One address: a text, or an address of the module `ipaddress`. `None` for another object.
fn one(object: &Bound<'_, PyAny>) -> Option<Result<IpAddr, String>> {
    if let Ok(text) = object.cast::<PyString>() {
        return Some(text.to_str().map_err(|error| error.to_string()).and_then(parse));
    }
    let text = of_ipaddress(object)?;
    Some(parse(&text))
}

/// The text of an object of the module `ipaddress`. `None` for another object.
pub(crate) fn of_ipaddress(object: &Bound<'_, PyAny>) -> Option<String> {
    let module = object.get_type().module().ok()?;
    if module != "ipaddress" {
        return None;
    }
    Some(object.str().ok()?.to_string_lossy().into_owned())
}

/// Parses an address.
pub(crate) fn parse(text: &str) -> Result<IpAddr, String> {
    text.parse().map_err(|_| format!("{text:?} is no address"))
}

fn parsed<'py>(
    objects: impl ExactSizeIterator<Item = Bound<'py, PyAny>>,
    wrong: Wrong,
) -> Result<Vec<Option<IpAddr>>, Failure> {
    let mut addresses = Vec::with_capacity(objects.len());
    for (at, object) in objects.enumerate() {
        let address = match one(&object) {
            Some(address) => address.map(Some),
            None if object.is_none() => Ok(None),
            None => {
                let found = object.get_type().name()?;
                return Err(Failure::Type(format!("a {found} is no address: give a str or None")).at(at));
            }
        };
        addresses.push(wrong.or_null(address).map_err(|why| Failure::Input(why).at(at))?);
    }
    Ok(addresses)
}

fn of_numpy<'py>(array: &Bound<'py, PyUntypedArray>) -> Result<Addresses<'py>, Failure> {
    not_masked(array)?;
    // Rows of a slice with steps lie apart: such an array is copied.
    let array = if array.is_c_contiguous() {
        array.as_any().clone()
    } else {
        array.py().import("numpy")?.call_method1("ascontiguousarray", (array,))?
    };
    if let Ok(hosts) = array.extract::<PyReadonlyArray1<'_, u32>>() {
        return Ok(Addresses::V4(hosts));
    }
    match array.extract::<PyReadonlyArray2<'_, u8>>() {
        Ok(rows) if rows.shape()[1] == 16 => Ok(Addresses::V6(rows)),
        _ => {
            let (dtype, shape) = (array.getattr("dtype")?, array.getattr("shape")?);
            Err(Failure::Type(format!(
                "no addresses in a numpy array of {dtype} and shape {shape}: give uint32 (IPv4 in host order), or uint8 of \
                 shape (n, 16) (IPv6 in network order)"
            )))
        }
    }
}

/// IPv4 addresses in host order.
struct Hosts<'a>(&'a [u32]);

impl Column<IpAddr> for Hosts<'_> {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn read(&self, from: usize, keys: &mut [Option<IpAddr>]) -> Result<(), (usize, String)> {
        for (key, &address) in keys.iter_mut().zip(&self.0[from..]) {
            *key = Some(Ipv4Addr::from(address).into());
        }
        Ok(())
    }

    fn as_v4(&self) -> Option<&[u32]> {
        Some(self.0)
    }
}

/// IPv4 addresses of Arrow.
struct ArrowHosts<'a>(&'a arrow_array::UInt32Array);

impl Column<IpAddr> for ArrowHosts<'_> {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn read(&self, from: usize, keys: &mut [Option<IpAddr>]) -> Result<(), (usize, String)> {
        for (at, key) in (from..).zip(keys) {
            *key = self.0.is_valid(at).then(|| Ipv4Addr::from(self.0.value(at)).into());
        }
        Ok(())
    }

    fn as_v4(&self) -> Option<&[u32]> {
        Some(self.0.values())
    }

    fn clear_nulls(&self, from: usize, numbers: &mut [u32]) {
        if self.0.null_count() == 0 {
            return;
        }
        for (at, number) in (from..).zip(numbers) {
            if self.0.is_null(at) {
                *number = 0;
            }
        }
    }
}

/// The column of an Arrow array.
pub(crate) fn column<'a>(
    array: &'a dyn Array,
    wrong: Wrong,
) -> Result<Box<dyn Column<IpAddr> + 'a>, Failure> {
    macro_rules! binary {
        ($values:expr) => {{
            let values = $values;
            let key =
                move |at| if values.is_null(at) { Ok(None) } else { of_bytes(values.value(at)).map(Some) };
            Box::new(By { len: values.len(), wrong, key })
        }};
    }
    if let Some(texts) = of_texts(array, wrong, parse) {
        return Ok(texts);
    }
    let of_values = |values: &dyn Array| Ok(each(&*column(values, Wrong::Raise)?));
    Ok(match array.data_type() {
        DataType::UInt32 => Box::new(ArrowHosts(array.as_primitive::<UInt32Type>())),
        DataType::Int64 => {
            let values = array.as_primitive::<Int64Type>();
            let key =
                move |at| if values.is_null(at) { Ok(None) } else { of_number(values.value(at)).map(Some) };
            Box::new(By { len: values.len(), wrong, key })
        }
        DataType::FixedSizeBinary(4 | 16) => binary!(array.as_fixed_size_binary()),
        DataType::Binary => binary!(array.as_binary::<i32>()),
        DataType::LargeBinary => binary!(array.as_binary::<i64>()),
        DataType::BinaryView => binary!(array.as_binary_view()),
        DataType::Null => Box::new(By { len: array.len(), wrong, key: |_| Ok(None) }),
        DataType::Dictionary(_, values) if !matches!(**values, DataType::Dictionary(..)) => {
            match of_dictionary(array, wrong, of_values)? {
                Some(column) => column,
                None => return Err(no_keys("addresses", array.data_type(), FORMS)),
            }
        }
        other => return Err(no_keys("addresses", other, FORMS)),
    })
}

fn of_number(number: i64) -> Result<IpAddr, String> {
    let host = u32::try_from(number).map_err(|_| format!("{number} is no IPv4 address"))?;
    Ok(Ipv4Addr::from(host).into())
}

fn of_bytes(bytes: &[u8]) -> Result<IpAddr, String> {
    if let Ok(octets) = <[u8; 4]>::try_from(bytes) {
        return Ok(Ipv4Addr::from(octets).into());
    }
    let octets = <[u8; 16]>::try_from(bytes);
    octets
        .map(|octets| Ipv6Addr::from(octets).into())
        .map_err(|_| format!("{} bytes are no address", bytes.len()))
}
