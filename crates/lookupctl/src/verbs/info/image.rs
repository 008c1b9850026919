//! `info` of an image: its engine and its content.

use std::ffi::OsStr;
use std::fmt;
use std::path::Path;

use anyhow::Result;
use serde::Serialize;
use wirespeed::classify::image_file::RuleImageFile;
use wirespeed::image_file::{ImageFile, VrfImageFile, bytes_of_table};
use wirespeed::names::image_file::NameImageFile;
use wirespeed::{Error, Vrfs};
use wirespeed_fib::{Family, V4, V6};
use wirespeed_image::Image;

use crate::family::number_of;
use crate::number::{Bytes, counted, counted_u64};
use crate::output::Output;
use crate::section::{Section, sections};
use crate::verbs::lookup::is_none_left_out;

/// The description of an image.
#[derive(Debug, Serialize)]
pub(in crate::verbs) struct ImageReport {
    image: String,
    /// `addresses`, `VRFs`, `names`, `a list of domains` or `rules`.
    holds: &'static str,
    /// The kind in the file's header.
    kind: String,
    engine: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    family: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tuple: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    vrfs: Option<usize>,
    /// The number of compiled prefixes, names or rules.
    entries: u64,
    /// The number of next hops, results or actions.
    results: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    aggregated: Option<bool>,
    /// Lines that a lenient reading left out of a table of addresses or names.
    #[serde(skip_serializing_if = "is_none_left_out")]
    left_out: u64,
    file_bytes: u64,
    /// Bytes of the compiled table alone, if it was checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    sections: Vec<Section>,
}

impl ImageReport {
    /// Describes the tables of an image file. A table of addresses or names is checked like for a lookup.
    pub(in crate::verbs) fn of(from: &OsStr) -> Result<Vec<Self>> {
        let path = Path::new(from);
        Ok(vec![match ImageFile::open_all(path) {
            Ok(files) => return files.into_iter().map(|file| Self::of_addresses(path, file)).collect(),
            Err(Error::ImageOf { found: "VRFs", .. }) => return Self::of_vrfs(path),
            Err(Error::ImageOf { found: "names", .. }) => Self::of_names(path, NameImageFile::open(path)?)?,
            Err(Error::ImageOf { found: "rules", .. }) => Self::of_rules(path, &RuleImageFile::open(path)?)?,
            Err(error) => return Err(error.into()),
        }])
    }

    fn of_addresses(path: &Path, file: ImageFile) -> Result<Self> {
        let (family, engine, results) = (file.family(), file.engine(), file.next_hops()?.len());
        let left_out = file.left_out()?;
        let report = Self::new(path, file.image(), "addresses", engine.as_str(), results);
        let bytes = match family {
            Family::V4 => bytes_of_table(file.into_table::<V4>()?.image()),
            Family::V6 => bytes_of_table(file.into_table::<V6>()?.image()),
        };
        Ok(Self { family: Some(number_of(family)), left_out, bytes: Some(bytes), ..report })
    }

    /// Describes the tables of each family.
    fn of_vrfs(path: &Path) -> Result<Vec<Self>> {
        let (vrfs, file) = (Vrfs::open(path)?.len(), VrfImageFile::open(path)?);
        let results = file.next_hops()?.len();
        let of_family = |family| {
            let image = file.image(family)?;
            let report = Self::new(path, &image, "VRFs", "forest", results);
            let bytes = Some(bytes_of_table(&image));
            Ok(Self { family: Some(number_of(family)), vrfs: Some(vrfs), bytes, ..report })
        };
        [Family::V4, Family::V6].into_iter().map(of_family).collect()
    }

    fn of_names(path: &Path, file: NameImageFile) -> Result<Self> {
        let (engine, aggregated, results) = (file.engine(), file.is_aggregated(), file.labels()?.len());
        let left_out = file.left_out()?;
        let holds = if file.list()?.is_some() { "a list of domains" } else { "names" };
        let bytes = file.into_table()?.image().bytes();
        let image = opened(path)?;
        let report = Self::new(path, &image, holds, engine.as_str(), results);
        Ok(Self { aggregated: Some(aggregated), left_out, bytes: Some(bytes), ..report })
    }

    fn of_rules(path: &Path, file: &RuleImageFile) -> Result<Self> {
        let image = opened(path)?;
        let report = Self::new(path, &image, "rules", file.engine().as_str(), file.labels()?.len());
        Ok(Self { tuple: Some(file.tuple().as_str()), ..report })
    }

    /// Fills the fields that all images have.
    fn new(path: &Path, image: &Image, holds: &'static str, engine: &'static str, results: usize) -> Self {
        Self {
            image: path.display().to_string(),
            holds,
            kind: image.kind().to_owned(),
            engine,
            family: None,
            tuple: None,
            vrfs: None,
            entries: image.entries(),
            results,
            aggregated: None,
            left_out: 0,
            // A file of several images is longer than each.
            file_bytes: path.metadata().map_or(image.bytes(), |file| file.len()),
            bytes: None,
            sections: sections(image),
        }
    }

    /// Prints JSON, or text with the sections.
    pub(in crate::verbs) fn show(&self, json: bool, output: &mut Output) -> Result<()> {
        if json {
            return output.json(self);
        }
        output.line(self)?;
        self.sections.iter().try_for_each(|section| output.line(format_args!("  {section}")))
    }
}

fn opened(path: &Path) -> Result<Image> {
    Ok(Image::open(path).map_err(|cause| Error::Image { path: path.to_owned(), cause })?)
}

impl fmt::Display for ImageReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { image, holds, kind, engine, entries, results, .. } = self;
        let (entry, result) = match *holds {
            "addresses" | "VRFs" => ("prefix", "next hop"),
            "names" => ("name", "result"),
            "a list of domains" => ("name", "value"),
            _ => ("rule", "action"),
        };
        write!(f, "{image}: an image of {holds}, {engine} (kind {kind})")?;
        self.family.map_or(Ok(()), |family| write!(f, ", IPv{family}"))?;
        self.tuple.map_or(Ok(()), |tuple| write!(f, ", {tuple}"))?;
        self.vrfs.map_or(Ok(()), |vrfs| write!(f, ", {}", counted(vrfs, "VRF")))?;
        let compiled = if self.aggregated == Some(true) { " left of aggregation" } else { "" };
        write!(f, ", {}{compiled}, {}", counted_u64(*entries, entry), counted(*results, result))?;
        self.bytes.map_or(Ok(()), |bytes| write!(f, ", {}", Bytes(bytes)))?;
        write!(f, "; a file of {}", Bytes(self.file_bytes))?;
        match self.left_out {
            0 => Ok(()),
            lines => write!(f, "; without {} that --lenient left out", counted_u64(lines, "line")),
        }
    }
}
