//! [`publish`]: files by their content, and a pointer to the latest.

use std::path::{Path, PathBuf};

use object_store::{ObjectStoreExt, PutPayload};
use wirespeed::fib::read::is_built_in;
use wirespeed::image::Image;
use wirespeed::prelude::{IpTable, Labels};
use wirespeed_datafusion::Table;

use crate::error::Error;
use crate::place::{ContentHash, Place, is_plain};
use crate::stores::Stores;

/// Publishes a table: writes its files under names of their content to a directory or an object store, then
/// makes `<name>@latest` mean these files, in one step. Queries that run keep the files they have.
///
/// A file is an image of addresses, names or rules, payloads of the RPKI, or routes in a format that
/// [`IpBuilder::file`](wirespeed::IpBuilder::file) knows, which are built into an image. Several files are
/// one table, for example an image of each family. Returns their places, in the order of `files`.
///
/// Fails if a file is no table, and if the files are not one table together; then nothing is written.
pub async fn publish(files: &[PathBuf], to: &str, name: &str, stores: &Stores) -> Result<Vec<Place>, Error> {
    if !is_plain(name) {
        let wanted = "letters, digits, '_', '-' and '.'";
        return Err(Error::Argument(format!("{name:?} is no name of a table: {wanted}")));
    }
    let Some(first) = files.first() else {
        return Err(Error::Argument("a table needs a file".to_owned()));
    };
    let built = tempfile::tempdir().map_err(|source| Error::Io { path: std::env::temp_dir(), source })?;
    let mut whole = files.to_vec();
    if let ([_], Err(not_table)) = (files, Table::open(files)) {
        let image = built.path().join("routes.img");
        build(first, not_table, &image)?;
        whole = vec![image];
    }
    Table::open(&whole)?;

    let slash = if to.ends_with('/') { "" } else { "/" };
    let pointer = Place::parse(&format!("{to}{slash}{name}.latest"))?;
    let mut places = Vec::new();
    for file in &whole {
        let bytes = std::fs::read(file).map_err(|source| Error::Io { path: file.clone(), source })?;
        let extension = match Image::is_start(&bytes) {
            true => "img",
            false => file.extension().and_then(|extension| extension.to_str()).unwrap_or("table"),
        };
        let hash = ContentHash::of(&bytes);
        let place = pointer.beside(&format!("{name}-{hash}.{extension}"))?;
        // A file that is there already is in use, and stays as it is.
        let is_there = place.read(stores).await.is_ok_and(|there| ContentHash::of(&there) == hash);
        if !is_there {
            write(&place, bytes, stores).await?;
        }
        places.push(place);
    }
    let lines: Vec<_> = places.iter().map(|place| format!("{}\n", place.file_name())).collect();
    write(&pointer, lines.concat().into_bytes(), stores).await?;
    Ok(places)
}

/// Writes a file completely or not at all.
async fn write(place: &Place, bytes: Vec<u8>, stores: &Stores) -> Result<(), Error> {
    let (store, path) = place.in_store(stores)?;
    store.put(&path, PutPayload::from(bytes)).await.map_err(|error| place.failed(error))?;
    Ok(())
}

/// Builds an image of routes. `not_table` tells why the file is no table as it is.
fn build(file: &Path, not_table: wirespeed_datafusion::Error, image: &Path) -> Result<(), Error> {
    if !is_built_in(file) && !matches!(not_table, wirespeed_datafusion::Error::Payloads(_)) {
        return Err(not_table.into());
    }
    let labels = Labels::<String>::new();
    let built = IpTable::builder().file(file, &labels).prefix_lookups().build();
    let saved = built.and_then(|table| table.save_labelled(image, &labels));
    Ok(saved.map_err(wirespeed_datafusion::Error::Open)?)
}
