//! [`AddressTable`]: longest-prefix match over columns of addresses.

use std::fmt::{Display, Write as _};
use std::net::IpAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::{
    Array, ArrayBuilder, ArrayRef, ListBuilder, StringViewBuilder, UInt8Array, UInt32Array, UInt32Builder,
};
use arrow::buffer::NullBuffer;
use wirespeed::fib::Family;
use wirespeed::image_file::ImageFile;
use wirespeed::prelude::*;
use wirespeed::{Prefix, Rib};
use wirespeed_columns::{self as column, Addresses, Invalid, Keys};

use super::{Kept, Stamp};
use crate::error::Error;
use crate::labels::LabelColumn;

/// A table of prefixes of both families. IPv4-mapped addresses (`::ffff:192.0.2.1`) are IPv4 addresses.
#[derive(Debug)]
pub struct AddressTable {
    reader: IpReader,
    labels: LabelColumn,
    /// Read when `lpm_all` needs them.
    routes: Mutex<Routes>,
}

#[derive(Debug)]
enum Routes {
    Here(Arc<Both>),
    In(Vec<Kept>),
}

#[derive(Debug, Default)]
struct Both {
    v4: Rib<V4>,
    v6: Rib<V6>,
}

impl AddressTable {
    /// Takes a table with its labels as they are now. Nobody changes the table any more: a service that goes
    /// on changing its own registers a table of each state that queries shall see.
    pub fn new<T: Display>(table: IpTable, labels: &Labels<T>) -> Self {
        let both = Both { v4: table.v4().routes().to_rib(), v6: table.v6().routes().to_rib() };
        Self {
            reader: table.reader().mapped_as_v4(true),
            labels: LabelColumn::new(labels),
            routes: Mutex::new(Routes::Here(Arc::new(both))),
        }
    }

    /// Opens an image, of one family or of both, or an image of each family.
    pub(super) fn open(paths: &[&Path], stamps: &[Stamp]) -> Result<Self, Error> {
        let (reader, labels) = match paths {
            [path] => (IpReader::open(path)?, LabelColumn::open(path)?),
            [one, other] => {
                let path_of = |family| {
                    Ok::<_, Error>(match ImageFile::open_family(one, family) {
                        Ok(_) => one,
                        Err(_) => other,
                    })
                };
                let (v4, v6) = (path_of(Family::V4)?, path_of(Family::V6)?);
                if v4 == v6 {
                    let reason = "the file before it has this family already";
                    return Err(Error::Join { path: other.to_path_buf(), reason });
                }
                let (labels, of_v6) = (LabelColumn::open(v4)?, LabelColumn::open(v6)?);
                if !labels.is_equal(&of_v6) {
                    // An index would have two labels.
                    let reason =
                        "its labels are others than those of the other file: build one image of both";
                    return Err(Error::Join { path: other.to_path_buf(), reason });
                }
                (IpReader::new(Ipv4Reader::open(v4)?, Ipv6Reader::open(v6)?), labels)
            }
            _ => {
                let path = paths.last().map(|path| path.to_path_buf()).unwrap_or_default();
                return Err(Error::Join { path, reason: "a table has at most an image of each family" });
            }
        };
        let kept = paths.iter().zip(stamps);
        let kept = kept.map(|(path, stamp)| Kept { path: path.to_path_buf(), stamp: stamp.clone() });
        Ok(Self { reader: reader.mapped_as_v4(true), labels, routes: Mutex::new(Routes::In(kept.collect())) })
    }

    /// The index of each address's longest prefix.
    pub(crate) fn lpm(&self, array: &ArrayRef, invalid: Invalid) -> Result<UInt32Array, Error> {
        let Addresses { keys, nulls } = column::addresses(array, invalid)?;
        let mut found = vec![0; keys.len()];
        let next_hops: &mut [NextHop] = bytemuck::cast_slice_mut(&mut found);
        match &keys {
            Keys::V4(keys) => self.reader.v4().lookup_batch(keys, next_hops),
            Keys::V6(keys) => self.reader.v6().lookup_batch(keys, next_hops),
            Keys::Any(keys) => self.reader.lookup_batch(keys, next_hops),
        }
        Ok(column::found(found, nulls))
    }

    /// The label of each address's longest prefix.
    pub(crate) fn labels(&self, array: &ArrayRef, invalid: Invalid) -> Result<ArrayRef, Error> {
        self.labels.of(self.lpm(array, invalid)?)
    }

    /// A field of the label of each address's longest prefix.
    pub(crate) fn field(&self, array: &ArrayRef, field: &str, invalid: Invalid) -> Result<ArrayRef, Error> {
        self.labels.field(&self.lpm(array, invalid)?, field)
    }

    /// The label of each address's longest prefix as an AS number.
    pub(crate) fn asns(&self, array: &ArrayRef, invalid: Invalid) -> Result<ArrayRef, Error> {
        self.labels.asns(&self.lpm(array, invalid)?, invalid)
    }

    /// The length of each address's longest prefix.
    pub(crate) fn lengths(&self, array: &ArrayRef, invalid: Invalid) -> Result<ArrayRef, Error> {
        let Matched { lengths, nulls, .. } = self.matched(array, invalid)?;
        Ok(Arc::new(UInt8Array::new(lengths.into(), nulls)))
    }

    /// Each address's longest prefix, as text.
    pub(crate) fn prefixes(&self, array: &ArrayRef, invalid: Invalid) -> Result<ArrayRef, Error> {
        let Matched { keys, lengths, nulls } = self.matched(array, invalid)?;
        let (mut texts, mut text) = (StringViewBuilder::with_capacity(lengths.len()), String::new());
        for (row, len) in lengths.into_iter().enumerate() {
            if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
                texts.append_null();
                continue;
            }
            text.clear();
            // Writing to memory doesn't fail.
            let _ = match keys.get(row) {
                IpAddr::V4(address) => write!(text, "{}", Prefix::<V4>::around(address.into(), len)),
                IpAddr::V6(address) => write!(text, "{}", Prefix::<V6>::around(address.into(), len)),
            };
            texts.append_value(&text);
        }
        Ok(Arc::new(texts.finish()))
    }

    fn matched<'a>(&self, array: &'a ArrayRef, invalid: Invalid) -> Result<Matched<'a>, Error> {
        let Addresses { keys, nulls } = column::addresses(array, invalid)?;
        let (mut found, mut lengths) = (vec![0; keys.len()], vec![0; keys.len()]);
        let next_hops: &mut [NextHop] = bytemuck::cast_slice_mut(&mut found);
        match &keys {
            Keys::V4(keys) => self.reader.v4().lookup_prefixes(keys, next_hops, &mut lengths)?,
            Keys::V6(keys) => self.reader.v6().lookup_prefixes(keys, next_hops, &mut lengths)?,
            Keys::Any(keys) => self.reader.lookup_prefixes(keys, next_hops, &mut lengths)?,
        }
        let nulls = column::found(found, nulls).nulls().cloned();
        Ok(Matched { keys, lengths, nulls })
    }

    /// The indexes of all prefixes that contain each address, shortest first.
    pub(crate) fn all(&self, array: &ArrayRef, invalid: Invalid) -> Result<ArrayRef, Error> {
        let routes = self.routes()?;
        let Addresses { keys, nulls } = column::addresses(array, invalid)?;
        let mut lists = ListBuilder::new(UInt32Builder::new());
        for row in 0..keys.len() {
            let before = lists.values().len();
            if nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row)) {
                match keys.get(row) {
                    IpAddr::V4(address) => append(&routes.v4, address.into(), lists.values()),
                    IpAddr::V6(address) => append(&routes.v6, address.into(), lists.values()),
                }
            }
            let is_any = lists.values().len() > before;
            lists.append(is_any);
        }
        Ok(Arc::new(lists.finish()))
    }

    /// The routes. Those of images are read once.
    fn routes(&self) -> Result<Arc<Both>, Error> {
        let mut routes = self.routes.lock().unwrap_or_else(PoisonError::into_inner);
        let both = match &*routes {
            Routes::Here(both) => return Ok(Arc::clone(both)),
            Routes::In(files) => {
                let mut both = Both::default();
                for file in files {
                    file.check()?;
                    for image in ImageFile::open_all(&file.path)? {
                        match image.family() {
                            Family::V4 => both.v4 = image.routes()?.ok_or(Error::NoRoutes)?,
                            Family::V6 => both.v6 = image.routes()?.ok_or(Error::NoRoutes)?,
                        }
                    }
                    file.check()?;
                }
                Arc::new(both)
            }
        };
        *routes = Routes::Here(Arc::clone(&both));
        Ok(both)
    }
}

/// The lengths of the prefixes that addresses match. Rows without one are null.
struct Matched<'a> {
    keys: Keys<'a>,
    lengths: Vec<u8>,
    nulls: Option<NullBuffer>,
}

fn append<A: wirespeed::Address>(routes: &Rib<A>, address: A, indexes: &mut UInt32Builder) {
    for (_, next_hop) in routes.covering(Prefix::host(address)) {
        indexes.append_value(next_hop.0);
    }
}
