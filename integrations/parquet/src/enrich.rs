//! `enrich`: a Parquet file with columns of what tables say of its addresses and names.

use std::ffi::OsStr;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::available_parallelism;

use anyhow::{Result, bail};
use clap::Args;
use wirespeed::image::replace_file;
use wirespeed_commands::enrich::{Followed, Now, Spec, TableArguments, follow};
use wirespeed_commands::{stdin, tell};

use crate::file::{How, Input, is_standard, shown};
use crate::guarded::guarded;
use crate::interrupt;
use crate::output::{Failure, Output};
use crate::values::Values;

/// Adds columns to a Parquet file: the values that tables have for its addresses and names
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// The Parquet file. - is standard input, which is read into a temporary file first
    #[arg(value_name = "IN.parquet")]
    input: PathBuf,

    /// Output file. It may be the input. - is standard output, which has a part of the file if the work fails
    #[arg(short, long, value_name = "OUT.parquet")]
    output: PathBuf,

    #[command(flatten)]
    tables: TableArguments,

    /// Worker threads, each for a row group at a time. The default is the number of cores
    #[arg(long, value_name = "N")]
    threads: Option<NonZero<usize>>,
}

const EXAMPLES: &str = "\
Example:
  wirespeed-parquet enrich flows.parquet -o flows-asn.parquet --table asn=rib.mrt.bz2 --table geo=city.mmdb \
--fields geo=country.iso_code

The new columns are text, null where there is no value, and come last. Their names are those of lookupctl enrich: src_asn, \
dst_geo_country_iso_code. All other columns are copied as they are, in the same row groups.
Addresses are text, FixedSizeBinary(4) or (16), Binary of 4 or 16 octets, or integers (IPv4), and dictionaries of these. Null, an \
empty text and - are not wrong.";

/// Does the work.
pub(crate) fn run(options: &Options) -> Result<()> {
    let specs = options.specs()?;
    if is_standard(&options.output) && io::stdout().is_terminal() {
        bail!("standard output is a terminal, and Parquet is no text: name a file with -o FILE");
    }
    let (mut followed, mut versions) = (Vec::new(), Vec::new());
    for spec in specs {
        let (table, version) = Followed::<Values>::open(spec, options.tables.reading())?;
        followed.push(table);
        versions.push(version);
    }
    let specs: Vec<Spec> = followed.iter().map(|table| table.spec().clone()).collect();
    let names: Vec<_> = specs.iter().map(|spec| spec.file.name.clone()).collect();
    let name = || shown(&options.input, "standard input");
    let given = options.tables.given();
    let input = guarded(name, || Input::open(&options.input, &given, &specs))?;
    let threads = options.threads.or_else(|| available_parallelism().ok()).map_or(1, NonZero::get);
    let how = How { lenient: options.tables.lenient, threads };
    interrupt::await_signals()?;
    let (now, is_over) = (Now::new(versions), Arc::new(AtomicBool::new(false)));
    follow(followed, now.clone(), Arc::clone(&is_over));
    let mut summary = None;
    let mut write = |file: &mut (dyn Write + Send)| {
        let mut to = Output::new(BufWriter::with_capacity(1 << 20, file));
        let enriched = input.enrich(&now, how, &mut to);
        let enriched = enriched.and_then(|summary| Ok(to.flush().map(|()| summary)?));
        summary = Some(to.or_of_output(enriched)?);
        Ok(())
    };
    let written = match is_standard(&options.output) {
        true => write(&mut io::stdout()),
        false => replace_file(&options.output, |file| write(file)),
    };
    is_over.store(true, Ordering::Release);
    written.map_err(|failure: Failure| failure.named(&shown(&options.output, "standard output")))?;
    if let Some(summary) = summary {
        tell!("{}", summary.told(&names));
    }
    Ok(())
}

impl Options {
    /// The tables, those of addresses first.
    fn specs(&self) -> Result<Vec<Spec>> {
        self.tables.check_some()?;
        let specs = self.tables.specs()?;
        // The input may be: its new file takes the place of the old one when all rows are in it.
        let is_output = |path: &OsStr| {
            let found = (Path::new(path).canonicalize(), self.output.canonicalize());
            matches!(found, (Ok(path), Ok(output)) if path == output)
        };
        let of_tables = || specs.iter().flat_map(Spec::paths);
        if of_tables().any(is_output) {
            bail!("{}: the output is a table, which would be lost", self.output.display());
        }
        let tables = of_tables().map(|path| ("a table", Some(path)));
        stdin::at_most_one(tables.chain([("the Parquet file", Some(self.input.as_os_str()))]))?;
        Ok(specs)
    }
}
