//! `enrich`: a Parquet file with columns of what tables say of its addresses and names.

use std::ffi::OsStr;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::thread::available_parallelism;

use anyhow::{Result, bail};
use clap::Args;
use wirespeed::image::replace_file;
use wirespeed_records::{TableFile, TableReading};

use crate::columns::Given;
use crate::file::{Input, is_standard, shown};
use crate::guarded::guarded;
use crate::interrupt;
use crate::output::{Failure, Output};
use crate::table::ReadTable;

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

    /// Table of addresses and the name of its columns: routes in any format, CSV, a MaxMind DB or an image.
    /// May be given more than once
    #[arg(long, value_name = "NAME=FILE")]
    table: Vec<String>,

    /// Source of a table of addresses that is merged of several, and the name of the table's columns, as in
    /// net=asn=rib.mrt or net=geo:country.iso_code,city=geo.mmdb. Several of one table are its sources. Each
    /// field of an address comes from the longest prefix that has it, of all sources, and where several have
    /// it at one prefix, from the first of them
    #[arg(long, value_name = "TABLE=NAME[:COLUMN,...]=FILE")]
    merge: Vec<String>,

    /// Fields of a table's values, each for a column of its own: columns of CSV, fields of a MaxMind DB
    /// (geo=country.iso_code,city.names.en), of ranges of clouds or of delegations, those of an image whose
    /// labels are records, or of names whose results are records. By default one column has the whole value
    #[arg(long, value_name = "NAME=FIELD,...")]
    fields: Vec<String>,

    /// Table of names and the name of its column: names with or without results in any format, a list of
    /// domains (hosts, Adblock, dnsmasq, RPZ, the Public Suffix List), or an image. May be given more than
    /// once
    #[arg(long, value_name = "NAME=FILE")]
    names: Vec<String>,

    /// Column of source addresses, also one within structs (source.ip). By default found by usual names
    /// (srcaddr, src_ip, src, ...), unless --dst or --address is given
    #[arg(long, value_name = "COLUMN")]
    src: Option<String>,

    /// Column of destination addresses. By default found like --src
    #[arg(long, value_name = "COLUMN")]
    dst: Option<String>,

    /// Column of other addresses. May be given more than once. By default a column ip, address, client_ip or
    /// the like, if there is neither a source nor a destination
    #[arg(long, value_name = "COLUMN")]
    address: Vec<String>,

    /// Column of names, domains or URLs, for --names. May be given more than once. By default found by usual
    /// names (query, server_name, host, ...)
    #[arg(long, visible_alias = "name-column", value_name = "COLUMN")]
    domain: Vec<String>,

    /// Add the prefix that matched, too, for each table
    #[arg(long)]
    prefix: bool,

    /// Take next hops from MRT and bgpdump. By default the origin of the AS path is taken
    #[arg(long)]
    next_hops: bool,

    /// Pass rows with a value that is no address or name, with empty columns, and count them; and pass over
    /// wrong lines of tables. By default the first such row ends the work, and a file with wrong lines is
    /// refused. A table of which nothing is right is always refused
    #[arg(long)]
    lenient: bool,

    /// Refuse wrong lines of tables, though wrong rows pass
    #[arg(long, requires = "lenient")]
    strict_tables: bool,

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
    let tables = options.tables()?;
    let given = Given {
        src: options.src.clone(),
        dst: options.dst.clone(),
        addresses: options.address.clone(),
        names: options.domain.clone(),
        prefix: options.prefix,
    };
    if is_standard(&options.output) && io::stdout().is_terminal() {
        bail!("standard output is a terminal, and Parquet is no text: name a file with -o FILE");
    }
    let name = || shown(&options.input, "standard input");
    let input = guarded(name, || Input::open(&options.input, &given, &tables))?;
    let threads = options.threads.or_else(|| available_parallelism().ok()).map_or(1, NonZero::get);
    interrupt::await_signals()?;
    let mut summary = None;
    let mut write = |file: &mut (dyn Write + Send)| {
        let mut to = Output::new(BufWriter::with_capacity(1 << 20, file));
        let enriched = input.enrich(options.lenient, threads, &mut to);
        let enriched = enriched.and_then(|summary| Ok(to.flush().map(|()| summary)?));
        summary = Some(to.or_of_output(enriched)?);
        Ok(())
    };
    let written = match is_standard(&options.output) {
        true => write(&mut io::stdout()),
        false => replace_file(&options.output, |file| write(file)),
    };
    written.map_err(|failure: Failure| failure.named(&shown(&options.output, "standard output")))?;
    if let Some(summary) = summary {
        eprintln!("{summary}");
    }
    Ok(())
}

impl Options {
    /// Reads the tables, those of addresses first.
    fn tables(&self) -> Result<Vec<ReadTable>> {
        let (mut tables, mut names) =
            (TableFile::parse_all(&self.table)?, TableFile::parse_all(&self.names)?);
        TableFile::add_sources(&mut tables, &self.merge)?;
        TableFile::name_fields(tables.iter_mut().chain(&mut names), &self.fields)?;
        if tables.is_empty() && names.is_empty() {
            bail!("no table: name one with --table NAME=FILE, --merge TABLE=NAME=FILE or --names NAME=FILE");
        }
        // The input may be: its new file takes the place of the old one when all rows are in it.
        let is_output = |path: &OsStr| {
            let found = (Path::new(path).canonicalize(), self.output.canonicalize());
            matches!(found, (Ok(path), Ok(output)) if path == output)
        };
        if tables.iter().chain(&names).flat_map(TableFile::paths).any(is_output) {
            bail!("{}: the output is a table, which would be lost", self.output.display());
        }
        let of_tables = tables.iter().chain(&names).flat_map(TableFile::paths);
        let inputs = of_tables.chain([self.input.as_os_str()]);
        if inputs.filter(|path| is_standard(Path::new(path))).count() > 1 {
            bail!("standard input is named twice: it is read once");
        }
        let has_table = !tables.is_empty();
        for (is_given, has, option) in [
            (!self.domain.is_empty(), !self.names.is_empty(), "--domain is for --names"),
            (self.src.is_some(), has_table, "--src is for --table"),
            (self.dst.is_some(), has_table, "--dst is for --table"),
            (!self.address.is_empty(), has_table, "--address is for --table"),
        ] {
            if is_given && !has {
                bail!("{option}, and there is none");
            }
        }
        let lenient = self.lenient && !self.strict_tables;
        let reading = TableReading { lenient, prefix: self.prefix, next_hops: self.next_hops };
        let tables = tables.into_iter().map(|file| ReadTable::addresses(file, reading));
        tables.chain(names.into_iter().map(|file| ReadTable::names(file, reading))).collect()
    }
}
