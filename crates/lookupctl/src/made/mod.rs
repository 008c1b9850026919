//! Tables that engines compiled, as `info` and `build` report them.

mod arguments;

use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::path::Path;

use anyhow::Result;
use serde::Serialize;
use wirespeed::engine::{AnyTable, Compiled, EngineName, Served, Wanted};
use wirespeed_image::Image;
use wirespeed_table::BuildOptions;

use crate::memory;
use crate::number::{Bytes, BytesEach, share};
use crate::output::Output;
use crate::section::{Section, sections};

pub(crate) use arguments::{ImageArguments, InfoArguments};

/// The number of entries of a table, and the noun for an entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entries {
    pub(crate) count: u64,
    pub(crate) one: &'static str,
}

/// Bytes for each entry.
#[derive(Clone, Debug, Serialize)]
struct Each {
    /// The bytes by their key in JSON, such as `bytes_per_prefix`.
    #[serde(flatten)]
    by_key: BTreeMap<String, f64>,
    /// Bytes of an entry in a compiled table.
    #[serde(skip)]
    bytes: f64,
    /// Bytes of an entry in a live table.
    #[serde(skip)]
    live: Option<f64>,
    #[serde(skip)]
    one: &'static str,
}

impl Each {
    fn of(bytes: u64, live: Option<u64>, Entries { count, one }: Entries) -> Self {
        let (bytes, live) = (share(bytes, count), live.map(|live| share(live, count)));
        let live_key = live.map(|live| (format!("live_bytes_per_{one}"), live));
        let by_key = std::iter::once((format!("bytes_per_{one}"), bytes)).chain(live_key).collect();
        Self { by_key, bytes, live, one }
    }
}

/// Bytes of the live table of a model: both copies, the engine and the model. `None` if it can't be built,
/// for example under a memory cap.
fn live_bytes<D: Served>(
    engine: EngineName,
    model: D::Model,
    options: BuildOptions,
    wanted: Wanted<D>,
) -> Result<Option<u64>> {
    let live = D::live(engine, model, options, wanted)?;
    Ok(live.ok().map(|live| live.memory_usage()))
}

impl Display for Each {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} a {}", BytesEach(self.bytes), self.one)
    }
}

/// Further facts about a table of a domain.
pub(crate) trait More: Serialize {
    /// Text after the bytes of an entry.
    fn beside_bytes(&self) -> String {
        String::new()
    }

    /// A line after the shape.
    fn line(&self) -> Option<String> {
        None
    }
}

/// No further facts.
#[derive(Debug, Serialize)]
pub(crate) struct NoMore {}

impl More for NoMore {}

/// The table of one engine, or the reason why there is none.
#[derive(Debug, Serialize)]
pub(crate) struct EngineReport<X> {
    engine: &'static str,
    /// The engine's standing.
    standing: String,
    #[serde(flatten)]
    built: Built<X>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Built<X> {
    Table {
        /// Seconds of the build. `None` for an image, which is not built.
        #[serde(skip_serializing_if = "Option::is_none")]
        build_seconds: Option<f64>,
        bytes: u64,
        /// Bytes of the live table. `None` for an image, and if it can't be built.
        #[serde(skip_serializing_if = "Option::is_none")]
        live_bytes: Option<u64>,
        #[serde(flatten)]
        each: Each,
        control_plane_bytes: u64,
        /// The shape of the table, if it depends on the entries.
        #[serde(skip_serializing_if = "Option::is_none")]
        shape: Option<String>,
        #[serde(flatten)]
        more: X,
        sections: Vec<Section>,
    },
    Refused {
        error: String,
    },
}

impl<X: More> EngineReport<X> {
    /// Builds a table of an engine, and a live table.
    pub(crate) fn of<D: Served>(
        engine: EngineName,
        source: &D::Source,
        (model, wanted): (D::Model, Wanted<D>),
        build: &BuildOptions,
        entries: Entries,
        more: impl FnOnce(&dyn AnyTable<D>) -> X,
    ) -> Result<Self> {
        let built = D::compile(engine, source, build)?;
        let live = live_bytes::<D>(engine, model, build.clone(), wanted)?;
        Ok(match built {
            Ok(Compiled { table, control_plane, build_time, .. }) => {
                let built = Some((build_time.as_secs_f64(), control_plane, live));
                Self::of_table(engine, &*table, built, entries, more)
            }
            Err(error) => {
                let error = memory::as_asked(&error.to_string());
                Self::new(engine, Built::Refused { error })
            }
        })
    }

    /// The report of a table. `built` gives the seconds of the build, the bytes that the engine holds
    /// for updates, and the bytes of a live table.
    pub(crate) fn of_table<D: Served>(
        engine: EngineName,
        table: &dyn AnyTable<D>,
        built: Option<(f64, u64, Option<u64>)>,
        entries: Entries,
        more: impl FnOnce(&dyn AnyTable<D>) -> X,
    ) -> Self {
        let bytes = table.image().bytes();
        let live_bytes = built.and_then(|(_, _, live)| live);
        let built = Built::Table {
            build_seconds: built.map(|(seconds, ..)| seconds),
            bytes,
            live_bytes,
            each: Each::of(bytes, live_bytes, entries),
            control_plane_bytes: built.map_or(0, |(_, bytes, _)| bytes),
            shape: table.shape(),
            more: more(table),
            sections: sections(table.image()),
        };
        Self::new(engine, built)
    }

    fn new(engine: EngineName, built: Built<X>) -> Self {
        Self { engine: engine.as_str(), standing: engine.standing().to_string(), built }
    }

    /// Prints a line, and further lines for the sections and facts of the table.
    pub(crate) fn print(&self, with_sections: bool, output: &mut Output) -> Result<()> {
        let Self { engine, built, .. } = self;
        let (bytes, each, shape, more, sections) = match built {
            Built::Table { bytes, each, shape, more, sections, .. } => (bytes, each, shape, more, sections),
            Built::Refused { error } => {
                return output.line(format_args!("{engine}: can't be built: {error}"));
            }
        };
        let cost = built.cost(each);
        output.line(format_args!("{engine}: {} ({each}{}){cost}", Bytes(*bytes), more.beside_bytes()))?;
        if !with_sections {
            return Ok(());
        }
        let lines = shape.clone().into_iter().chain(more.line());
        lines
            .chain(sections.iter().map(Section::to_string))
            .try_for_each(|line| output.line(format_args!("  {line}")))
    }
}

impl<X> Built<X> {
    /// The memory of a live table, and the time of the build.
    fn cost(&self, each: &Each) -> String {
        let Self::Table { build_seconds: Some(seconds), live_bytes, .. } = self else { return String::new() };
        let live = live_bytes.zip(each.live).map(|(bytes, of_one)| {
            format!(
                "; live, with all that updates need, {} ({} a {})",
                Bytes(bytes),
                BytesEach(of_one),
                each.one
            )
        });
        format!(", built in {seconds:.3} s{}", live.unwrap_or_default())
    }
}

/// An image file that was written. `X` describes its entries.
#[derive(Debug, Serialize)]
pub(crate) struct ImageReport<X> {
    image: String,
    engine: &'static str,
    #[serde(flatten)]
    of: X,
    /// Bytes of the file: the compiled table and the attachments.
    file_bytes: u64,
    /// Bytes of the compiled table.
    bytes: u64,
    #[serde(flatten)]
    each: Each,
    build_seconds: f64,
    sections: Vec<Section>,
}

impl<X: Display + Serialize> ImageReport<X> {
    /// Describes a compiled table, and the image with its attachments.
    pub(crate) fn new<D: Served>(
        path: &Path,
        compiled: &Compiled<D>,
        (image, file_bytes): (&Image, u64),
        entries: Entries,
        of: X,
    ) -> Self {
        let bytes = compiled.table.image().bytes();
        Self {
            image: path.display().to_string(),
            engine: compiled.engine.as_str(),
            of,
            file_bytes,
            bytes,
            each: Each::of(bytes, None, entries),
            build_seconds: compiled.build_time.as_secs_f64(),
            sections: sections(image),
        }
    }

    /// Prints JSON, or text with lines between the head and the sections.
    pub(crate) fn show(&self, json: bool, between: &[String]) -> Result<()> {
        let mut output = Output::new();
        if json {
            output.json(self)?;
            return output.finish();
        }
        let Self { image, engine, of, file_bytes, bytes, each, build_seconds, sections } = self;
        output.line(format_args!(
            "{image}: {engine}, {of}, {} ({each}), built in {build_seconds:.3} s; a file of {}",
            Bytes(*bytes),
            Bytes(*file_bytes),
        ))?;
        let lines = between.iter().cloned().chain(sections.iter().map(Section::to_string));
        lines.into_iter().try_for_each(|line| output.line(format_args!("  {line}")))?;
        output.finish()
    }
}
