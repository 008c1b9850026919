//! `build`: compiles a table to an image file, or several to one, or writes it in a format of other programs.

mod vrfs;

use std::borrow::Cow;
use std::ffi::OsString;
use std::fmt;

use anyhow::{Context, Result, bail};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde::Serialize;
use wirespeed::engine::{Addresses, Compiled};
use wirespeed::image_file::{self, NumberedRoutes};
use wirespeed_fib::merge::{MergeSource, field_types};
use wirespeed_fib::read::{FieldTypes, Format, ReadReport};
use wirespeed_fib::rpki::VrpSet;
use wirespeed_fib::write::{SetOptions, write_fib, write_mmdb, write_set, write_vrps};
use wirespeed_fib::{Family, Fib, Rib, V4, V6};
use wirespeed_image::Image;
use wirespeed_input::plural;

use crate::Outcome;
use crate::busy::Busy;
use crate::engine::{BothFamilies, Choice};
use crate::escaped::Escaped;
use crate::family::{self, number_of};
use crate::made::{Entries, ImageArguments, ImageReport};
use crate::merged;
use crate::mmdb::MmdbArguments;
use crate::number::{Bytes, counted, grouped};
use crate::output::{self, Output, is_no_input};
use crate::refuse::refuse;
use crate::source::{FamilyArgument, Loaded, ReadArguments, TableArguments};
use crate::tables;
use crate::verbs::generate::Common;
use crate::verbs::lookup::is_none_left_out;

/// Compiles a table to an image file, which lookup and replay open with --image, without compiling; or writes
/// it in a format that other programs read (--to)
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// The table; - is standard input, builtin:bogons the special-purpose prefixes of IANA. With several the
    /// image holds VRFs: the first table is VRF 0, the next VRF 1
    #[arg(long, value_name = "FILE", required_unless_present = "merge", conflicts_with = "merge")]
    fib: Vec<OsString>,

    /// Sources to merge to one table, each by an option of its own. Each field of an address comes from the
    /// longest prefix that has it, of all sources, and where several have it at one prefix, from the first of
    /// them. NAME is the field of values without names, of lists and of a single column; COLUMN,... are the
    /// columns to take
    #[arg(long, value_name = "NAME[:COLUMN,...]=FILE")]
    merge: Vec<MergeSource>,

    /// Format of the output: an image, or one of routes; ipset (for ipset restore) or nft-sets (for nft -j
    /// -f) of a list of prefixes, the latter without those that lie within others; vrp-csv or vrp-json of
    /// RPKI payloads, which --fib then has. Of labels that are records (asn=13335,country=US) mmdb has the
    /// fields, and csv has columns. -o - writes these formats to standard output
    #[arg(long, value_name = "FORMAT", default_value = IMAGE, value_parser = to_parser())]
    to: To,

    #[command(flatten)]
    image: ImageArguments<BothFamilies>,

    /// Compile a table whose lookups give the matched prefix, too, for IpReader::lookup_prefix of the
    /// library. It is larger and slower, and lookupctl looks it up on the CPU only
    #[arg(long)]
    prefix_lookups: bool,

    #[command(flatten)]
    family: FamilyArgument,
    #[command(flatten)]
    table: TableArguments,
    #[command(flatten)]
    read: ReadArguments,
    #[command(flatten)]
    mmdb: MmdbArguments,

    /// Name of the set that is written (--to ipset, nft-sets) [default: prefixes]
    #[arg(long, value_name = "NAME", help_heading = "A set of addresses (--to ipset, nft-sets)")]
    set_name: Option<String>,

    /// Table of nft, of the family inet, that has the set (--to nft-sets) [default: wirespeed]
    #[arg(long, value_name = "NAME", help_heading = "A set of addresses (--to ipset, nft-sets)")]
    set_table: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  lookupctl build --fib rib.mrt.bz2 -o fib.img
  lookupctl build --fib rib.mrt.bz2 --origins -o asn.img
  lookupctl build --fib fib.txt --family 6 --engine sail-l -o six.img
  lookupctl build --fib fib.txt --prefix-lookups -o prefixes.img
  lookupctl build --fib red.txt --fib blue.txt -o vrfs.img
  lookupctl build --merge own=networks.csv --merge country:country.iso_code=geo.mmdb --merge bogon:name=builtin:bogons -o all.img
  lookupctl build --fib networks.csv --to mmdb --field-types postal_code=text --database-type Own-City -o own.mmdb
  lookupctl build --merge own=networks.csv --merge asn:asn=asn.csv --to csv -o all.csv
  lookupctl build --fib blocked.txt --family 4 --to ipset --set-name blocked -o - | ipset restore
  lookupctl build --fib vrps.json --to vrp-csv -o vrps.csv
  lookupctl replay --image fib.img --trace capture.pcap
  lookupctl lookup --image fib.img 192.0.2.1

An image holds the compiled table of each family that has prefixes, or of --family, with its prefixes and the texts \
of its next hops: lookup and replay need nothing else. For a table of both families build reports two tables in one file.
Other formats (--to) hold the prefixes and their next hops: of both families, or of --family. A file that is read again gives the same \
answers. What a format can't hold is refused. CSV starts with the line prefix,FIELD,...; a table without records has the column value, and \
one of members none. Networks of a MaxMind DB don't overlap, so prefixes around others are cut to pieces. The types of its fields stay when one is read \
and written again.";

/// The name of an image among the formats.
const IMAGE: &str = "image";

/// The format to write.
#[derive(Clone, Copy, Debug)]
enum To {
    Image,
    Routes(Format),
}

fn to_parser() -> impl TypedValueParser<Value = To> {
    let is_written = |format: &Format| format.is_written() || format.has_sets() || format.holds_vrps();
    let formats = Format::ALL.into_iter().filter(is_written).map(Format::name);
    PossibleValuesParser::new(std::iter::once(IMAGE).chain(formats)).try_map(|name| match &*name {
        IMAGE => Ok(To::Image),
        name => name.parse().map(To::Routes),
    })
}

pub(crate) fn run(options: &Options) -> Result<Outcome> {
    let inputs = options.fib.iter().chain(options.merge.iter().map(|source| &source.file));
    match options.to {
        To::Image => options.image.check_output(inputs)?,
        To::Routes(format) => {
            is_no_input(Some(&options.image.output), inputs)?;
            if let Some(option) = options.of_images() {
                bail!("{option} is for images, and --to {format} writes none");
            }
            let json = [("json", options.image.json && output::file(Some(&options.image.output)).is_none())];
            refuse(&json, "is for a report on standard output, and -o - writes the table there")?;
        }
    }
    if !matches!(options.to, To::Routes(Format::Mmdb)) {
        refuse(&options.mmdb.given(), "is for a MaxMind DB (--to mmdb)")?;
    }
    let of_sets = [("set-name", options.set_name.is_some()), ("set-table", options.set_table.is_some())];
    match options.to {
        To::Routes(Format::NftSets) => {}
        To::Routes(Format::Ipset) => refuse(&of_sets[1..], "is for sets of nft (--to nft-sets)")?,
        _ => refuse(&of_sets, "is for sets (--to ipset, nft-sets)")?,
    }
    if let To::Routes(format) = options.to
        && format.holds_vrps()
    {
        options.write_payloads(format)?;
        return Ok(Outcome::Done);
    }
    let (fib, left_out, types) = match &*options.fib {
        [_, _, ..] => {
            if let To::Routes(format) = options.to {
                bail!("--to {format} holds one FIB, and {} are given", options.fib.len());
            }
            vrfs::build(options, &options.fib)?.show(options.image.json)?;
            return Ok(Outcome::Done);
        }
        [fib] => {
            let Loaded { fib, report, .. } = options.read.load_one_of(fib)?;
            options.read.check(&[&report], None)?;
            (fib, report.faults(), report.field_types)
        }
        [] => {
            let (fib, reports) = merged::load(&options.read, &options.merge)?;
            let left_out = reports.iter().map(ReadReport::faults).sum();
            (fib, left_out, field_types(&options.merge, &reports))
        }
    };
    if let To::Routes(format) = options.to {
        options.write(fib, format, types)?;
        return Ok(Outcome::Done);
    }
    let busy = Busy::with("building");
    let reports = match family::wanted(options.family.wanted(), &fib) {
        Some(Family::V4) => vec![build::<V4>(options, &fib, left_out)?],
        Some(Family::V6) => vec![build::<V6>(options, &fib, left_out)?],
        None => build_both(options, &fib, left_out)?,
    };
    drop(busy);
    reports.iter().try_for_each(|report| report.show(options.image.json, &[]))?;
    Ok(Outcome::Done)
}

impl Options {
    /// An option that only images have, if one is given.
    fn of_images(&self) -> Option<&'static str> {
        match () {
            () if self.image.engine != Choice::Auto => Some("--engine"),
            () if self.prefix_lookups => Some("--prefix-lookups"),
            () => self.table.given(),
        }
    }

    /// Writes the routes of the families that are wanted. Their fields had these types where they were read.
    fn write(&self, mut fib: Fib, format: Format, types: FieldTypes) -> Result<()> {
        match self.family.wanted() {
            Some(Family::V4) => fib.v6 = Rib::new(),
            Some(Family::V6) => fib.v4 = Rib::new(),
            None => {}
        }
        let file = output::file(Some(&self.image.output));
        let shown = output::shown(file);
        if fib.is_empty() {
            bail!("{shown}: the table has no prefix to write");
        }
        let of_mmdb = self.mmdb.options(types)?;
        Common::write_to(file, |to| {
            Ok(match format {
                Format::Mmdb => write_mmdb(&fib, &of_mmdb, to),
                format if format.has_sets() => write_set(&fib, format, &self.of_set(), to),
                format => write_fib(&fib, format, to),
            }?)
        })?;
        self.tell_written(shown, format, [fib.v4.len(), fib.v6.len()])
    }

    /// Writes the payloads of the file.
    fn write_payloads(&self, format: Format) -> Result<()> {
        let [from] = &*self.fib else {
            bail!("--to {format} holds the payloads of one file: name it with --fib");
        };
        let mut vrps = self.read.load_payloads(from)?;
        match self.family.wanted() {
            Some(Family::V4) => vrps.v6 = VrpSet::default(),
            Some(Family::V6) => vrps.v4 = VrpSet::default(),
            None => {}
        }
        let file = output::file(Some(&self.image.output));
        let shown = output::shown(file);
        if vrps.is_empty() {
            bail!("{shown}: there is no payload to write");
        }
        Common::write_to(file, |to| Ok(write_vrps(&vrps, format, to)?))?;
        let unknown = vrps.without_anchor();
        if unknown > 0 {
            eprintln!(
                "{shown}: {} without a trust anchor: the input tells none",
                counted(unknown, "payload")
            );
        }
        self.tell_written(shown, format, [vrps.v4.len(), vrps.v6.len()])
    }

    fn of_set(&self) -> SetOptions {
        let usual = SetOptions::default();
        SetOptions {
            name: self.set_name.clone().unwrap_or(usual.name),
            table: self.set_table.clone().unwrap_or(usual.table),
        }
    }

    /// Tells what was written, and how many prefixes or payloads of each family it has.
    fn tell_written(&self, file: String, format: Format, [v4, v6]: [usize; 2]) -> Result<()> {
        let path = output::file(Some(&self.image.output));
        let written = Written {
            file,
            format: format.name(),
            vrfs: None,
            ipv4_prefixes: v4,
            ipv6_prefixes: v6,
            file_bytes: path.map(|path| path.metadata().map(|file| file.len())).transpose()?,
        };
        if path.is_none() {
            eprintln!("{}", Escaped(&written));
            return Ok(());
        }
        written.show(self.image.json)
    }
}

/// A file of routes, or of VRFs, that was written.
#[derive(Debug, Serialize)]
struct Written {
    file: String,
    format: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    vrfs: Option<usize>,
    ipv4_prefixes: usize,
    ipv6_prefixes: usize,
    /// `None` for standard output.
    file_bytes: Option<u64>,
}

impl Written {
    /// Prints it, for scripts or for people.
    fn show(&self, json: bool) -> Result<()> {
        let mut stdout = Output::new();
        if json {
            stdout.json(self)?;
        } else {
            stdout.line(self)?;
        }
        stdout.finish()
    }
}

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, format, vrfs, ipv4_prefixes, ipv6_prefixes, file_bytes } = self;
        let (v4, v6) = (grouped(*ipv4_prefixes), grouped(*ipv6_prefixes));
        let prefixes = plural(*ipv6_prefixes as u64, "prefix");
        let vrfs = vrfs.map_or_else(String::new, |vrfs| format!(" of {}", counted(vrfs, "VRF")));
        write!(f, "{file}: {format}{vrfs}, {v4} IPv4 and {v6} IPv6 {prefixes}")?;
        file_bytes.map_or(Ok(()), |bytes| write!(f, ", {}", Bytes(bytes)))
    }
}

fn build<A: Addresses>(options: &Options, fib: &Fib, left_out: u64) -> Result<ImageReport<Routes>> {
    let built = Built::<A>::of(options, fib, left_out)?;
    let image = built.image(options)?;
    let image = image_file::save(&image, built.routes(), &fib.next_hops, &options.image.output)?;
    Ok(built.report(options, (&image, image.bytes())))
}

fn build_both(options: &Options, fib: &Fib, left_out: u64) -> Result<Vec<ImageReport<Routes>>> {
    let hint = "the table has both families, and --family takes one";
    let v4 = Built::<V4>::of(options, fib, left_out).context(hint)?;
    let v6 = Built::<V6>::of(options, fib, left_out).context(hint)?;
    let (image_4, image_6) = (v4.image(options)?, v6.image(options)?);
    let (four, six) = ((&*image_4, v4.routes()), (&*image_6, v6.routes()));
    let ([four, six], bytes) = image_file::save_both(four, six, &fib.next_hops, &options.image.output)?;
    Ok(vec![v4.report(options, (&four, bytes)), v6.report(options, (&six, bytes))])
}

/// A compiled table, with the routes that it was compiled from.
struct Built<'f, A: Addresses> {
    compiled: Compiled<A>,
    rib: &'f Rib<A>,
    /// The routes of a table for prefix lookups.
    numbered: Option<NumberedRoutes<A>>,
    /// Lines that lenient reading left out.
    left_out: u64,
}

impl<'f, A: Addresses> Built<'f, A> {
    fn of(options: &Options, fib: &'f Fib, left_out: u64) -> Result<Self> {
        let (build, rib) = (options.table.build_options(1), A::rib(fib));
        let numbered = options.prefix_lookups.then(|| NumberedRoutes::new(rib)).transpose()?;
        let source = numbered.as_ref().map_or(rib, NumberedRoutes::source);
        let engine = options.image.engine.resolve_with::<A>(source, false, &build.strides)?;
        let compiled = tables::compile::<A>(engine, source, &build)?;
        Ok(Self { compiled, rib, numbered, left_out })
    }

    /// The image to save, which tells how many lines were left out.
    fn image(&self, options: &Options) -> Result<Cow<'_, Image>> {
        let image = self.compiled.table.image();
        Ok(image_file::with_left_out(image, self.left_out, &options.image.output)?)
    }

    fn routes(&self) -> wirespeed::Routes<'_, A> {
        self.numbered.as_ref().map_or_else(|| self.rib.into(), NumberedRoutes::routes)
    }

    fn report(&self, options: &Options, image: (&Image, u64)) -> ImageReport<Routes> {
        let (prefixes, prefix_lookups) = (self.rib.len(), options.prefix_lookups);
        let (family, left_out) = (number_of(A::FAMILY), self.left_out);
        let routes = Routes { family, prefixes, prefix_lookups, left_out };
        let entries = Entries { count: prefixes as u64, one: "prefix" };
        ImageReport::new(&options.image.output, &self.compiled, image, entries, routes)
    }
}

/// The routes that were compiled.
#[derive(Debug, Serialize)]
struct Routes {
    family: u8,
    prefixes: usize,
    prefix_lookups: bool,
    /// Lines that lenient reading left out.
    #[serde(skip_serializing_if = "is_none_left_out")]
    left_out: u64,
}

impl fmt::Display for Routes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of_prefixes = if self.prefix_lookups { ", for prefix lookups" } else { "" };
        write!(f, "IPv{}, {}{of_prefixes}", self.family, counted(self.prefixes, "prefix"))
    }
}
