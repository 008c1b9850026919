//! Entries with labels from files: [`IpTable::load`](crate::IpTable::load), and those of names and rules.

use std::hash::Hash;
use std::path::Path;
use std::str::FromStr;

use wirespeed_fib::NextHop;
#[cfg(feature = "text")]
use wirespeed_fib::read::{ReadOptions, is_built_in};
#[cfg(feature = "text")]
use wirespeed_fib::{Family, Fib};
use wirespeed_image::Image;

#[cfg(feature = "text")]
use crate::builder::{labelled, read_file, relabel};
use crate::error::Error;
use crate::image_file::each_label;
#[cfg(feature = "text")]
use crate::image_file::{ImageFile, opened};
use crate::labels::{Labels, parse};
use crate::uses::Claims;

/// Whether a file is an image.
pub(crate) fn is_image(path: &Path) -> Result<bool, Error> {
    Image::is_at(path).map_err(|error| Error::in_image(path, error.into()))
}

/// Attaches labels, and gives each index of an image file the label of its text, from 0:
/// [`NextHop::NONE`]. The claims keep the labels. Fails if the file has no labels for its entries.
pub(crate) fn labels_of_image<T: FromStr<Err: ToString> + Eq + Hash>(
    path: &Path,
    has_entries: bool,
    labels: &Labels<T>,
    claims: &mut Claims,
) -> Result<Vec<NextHop>, Error> {
    let mut label = vec![NextHop::NONE];
    each_label(path, None, |text| {
        label.push(match text {
            None => NextHop::NONE,
            Some(text) => {
                let value = parse(text).map_err(|error| error.in_file(path))?;
                labels.intern_for(claims, value)?
            }
        });
        Ok(())
    })?;
    if has_entries && label.len() == 1 {
        return Err(Error::without(path, "labels"));
    }
    claims.attach(labels.counts());
    Ok(label)
}

/// Reads a file of routes, or an image with its routes. The claims keep the labels.
#[cfg(feature = "text")]
pub(crate) fn read<T: FromStr<Err: ToString> + Eq + Hash>(
    path: &Path,
    labels: &Labels<T>,
    claims: &mut Claims,
    options: &ReadOptions,
) -> Result<Fib, Error> {
    match !is_built_in(path) && is_image(path)? {
        true => routes_of_image(path, labels, claims),
        false => labelled(read_file(path, options)?, labels, claims).map_err(|error| error.in_file(path)),
    }
}

/// The routes of an image file of addresses, with labels.
#[cfg(feature = "text")]
fn routes_of_image<T: FromStr<Err: ToString> + Eq + Hash>(
    path: &Path,
    labels: &Labels<T>,
    claims: &mut Claims,
) -> Result<Fib, Error> {
    let image = opened::read(path)?;
    let mut fib = Fib::default();
    for file in ImageFile::all_of(path, image)? {
        let without = || Error::without(path, "routes");
        match file.family() {
            Family::V4 => fib.v4 = file.routes()?.ok_or_else(without)?,
            Family::V6 => fib.v6 = file.routes()?.ok_or_else(without)?,
        }
    }
    let label = labels_of_image(path, !(fib.v4.is_empty() && fib.v6.is_empty()), labels, claims)?;
    relabel(&mut fib, &label);
    Ok(fib)
}
