//! Routes with labels from files: [`IpTable::load`](crate::IpTable::load).

use std::fs::File;
use std::hash::Hash;
use std::io::Read;
use std::path::Path;
use std::str::FromStr;

use wirespeed_fib::{Family, Fib, NextHop};
use wirespeed_image::Image;

use crate::builder::{labelled, read_file, relabel};
use crate::error::Error;
use crate::image_file::{ImageFile, each_label};
use crate::labels::{Labels, parse};
use crate::uses::Claims;

/// Reads a file of routes, or an image with its routes. The claims keep the labels.
pub(crate) fn read<T: FromStr<Err: ToString> + Eq + Hash>(
    path: &Path,
    labels: &Labels<T>,
    claims: &mut Claims,
) -> Result<Fib, Error> {
    match routes_of_image(path, labels, claims)? {
        Some(fib) => Ok(fib),
        None => labelled(read_file(path)?, labels, claims),
    }
}

/// The routes of an image file of addresses, with labels. `None` if the file is no image.
fn routes_of_image<T: FromStr<Err: ToString> + Eq + Hash>(
    path: &Path,
    labels: &Labels<T>,
    claims: &mut Claims,
) -> Result<Option<Fib>, Error> {
    let in_file = |source| Error::Image { path: path.to_owned(), source };
    let mut start = [0; 64];
    let read = File::open(path).and_then(|mut file| file.read(&mut start));
    if !Image::is_start(&start[..read.map_err(|error| in_file(error.into()))?]) {
        return Ok(None);
    }
    let image = Image::open(path).map_err(in_file)?;
    let mut fib = Fib::default();
    for file in ImageFile::all_of(path, image)? {
        let without = || Error::without(path, "routes");
        match file.family() {
            Family::V4 => fib.v4 = file.routes()?.ok_or_else(without)?,
            Family::V6 => fib.v6 = file.routes()?.ok_or_else(without)?,
        }
    }
    let mut label = vec![NextHop::NONE];
    each_label(path, None, |text| {
        label.push(match text {
            None => NextHop::NONE,
            Some(text) => labels.intern_for(claims, parse(text)?)?,
        });
        Ok(())
    })?;
    if label.len() == 1 && !(fib.v4.is_empty() && fib.v6.is_empty()) {
        return Err(Error::without(path, "labels"));
    }
    claims.attach(labels.counts());
    relabel(&mut fib, &label);
    Ok(Some(fib))
}
