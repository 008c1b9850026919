//! `enrich`: flow and log records, with columns of what tables say of their addresses and names, and rules of
//! their flows.
//!
//! ```text
//! input ─► workers, each: the next block of whole records, cells, lookups in batches, bytes ─► writer, in order
//!             ▲ tables, as they are now
//! files of tables, looked at each second ─► read beside the running work
//! ```

mod columns;
mod keys;
mod parquet;
mod pieces;
mod pipeline;
mod spare;
mod summary;
mod values;
mod work;
mod write;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use wirespeed_commands::enrich::{Followed, Spec, TableArguments};
use wirespeed_commands::stdin;
use wirespeed_input::Source;
use wirespeed_records::{Format, Splitter};

use crate::number::parse_positive;
use crate::output::is_no_input;
use crate::verbs::generate::Common;
use crate::{Outcome, interrupt, threads};
use pipeline::Pipeline;

/// Bytes that are read at a time.
const BLOCK: usize = 256 << 10;

/// Adds columns to flow and log records: the values that tables have for their addresses and names, and the
/// answers of rules
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// The records: CSV or TSV with a header, nfdump's CSV, Zeek's logs, or JSON with an object on each line;
    /// plain or compressed. - is standard input. A Parquet file goes to the program wirespeed-parquet, which
    /// takes the same options for tables and columns
    #[arg(value_name = "RECORDS", default_value = "-")]
    records: OsString,

    /// Format of the records. By default recognised by content
    #[arg(long, value_name = "FORMAT", value_parser = format_parser())]
    format: Option<Format>,

    #[command(flatten)]
    tables: TableArguments,

    /// Worker threads. The default is the number of cores
    #[arg(long, value_name = "N", value_parser = threads::parser())]
    threads: Option<usize>,

    /// Output file, which is there once the work is done: if a wrong record ends it, a new file does not
    /// appear and an old one stays. The default is standard output (-), which has the records before the
    /// wrong one
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Bytes that are read at a time and worked on together
    #[arg(long, value_name = "BYTES", default_value_t = BLOCK, value_parser = parse_positive, hide = true)]
    block: usize,

    /// Only read, cut, scan and write the records, for measurements
    #[arg(long, hide = true, conflicts_with_all = ["table", "merge", "names", "merge_names", "rules"])]
    copy: bool,
}

const EXAMPLES: &str = "\
Examples:
  lookupctl enrich --table asn=rib.mrt.bz2 < conn.log > conn-asn.log
  zcat flows.csv.gz | lookupctl enrich --src src_ip --dst dst_ip --table asn=rib.mrt.bz2 --table geo=city.mmdb \
--fields geo=country.iso_code,city.names.en
  lookupctl enrich eve.json --address src_ip --table net=networks.csv --prefix -o eve-net.json
  tail -f dns.log | lookupctl enrich --names list=domains.txt --name-column query
  lookupctl enrich conn.log --rules fw=fw.txt --assume ct=new --lenient > conn-fw.log
  lookupctl enrich flow.csv --rules in=groups.json --rules out=groups.json --chain sg-1 --rule-table out=egress \
--assume ct=new
  nfdump -r nfcapd -o csv | lookupctl enrich --table asn=pfx2as.txt --lenient
  lookupctl enrich flow.csv --table bad=sets.json --table net=geo.csv --set bad=blocked --range-columns net=from,to
  lookupctl enrich dns.log --merge-names d=own=own.csv --merge-names d=blocked=list.txt --fields d=own,blocked
  lookupctl enrich flows.csv --merge net=own=networks.csv --merge net=geo:country=geo.mmdb --fields net=own,geo

A new column is named by the column that is looked up (src, dst, or the name of another), the table, and the field: src_asn, \
dst_geo_country_iso_code, query_list. With --prefix there is also src_asn_prefix. Dots in names become underscores.
Rules NAME=FILE add three columns: NAME is the action, NAME_rule the number of the rule, and NAME_uncertain_because says why the \
answer is uncertain: a rule that --lenient left out could change it, or the record lacks ports, or the type and code of ICMP, that a \
rule tests. They are empty if an address or the protocol is missing, and for addresses of the other family than that of the rules.
Members of JSON for ports, and for types and codes of ICMP, that the first object lacks are looked for by their usual names in lower case.
In a list of domains an exception has an empty value, and a URL is looked up by its host. The Public Suffix List adds \
NAME_suffix and NAME_registrable, too.
All other bytes of the records pass as they are, in order: quotes, spacing, order of members, header lines. In JSON the new members are the \
last ones, and are text or null. A record that has a member of such a name already is wrong; so is a header with such a column.
An empty address, - and a missing member are not wrong: their new columns are empty. IPv4-mapped IPv6 addresses are looked up as IPv4.
A wrong record has another number of columns than the header, is no JSON object, has a member to look up that is no text, or has an address, a protocol \
or a port that is none. With --lenient it passes: if it is wrong by a text alone that is no address, protocol or port, with empty columns (null in JSON), \
otherwise unchanged and without new ones. A record of over 1 MiB, its line ending included, always ends the work, after those before it.
A list of names without results has the value member, and so have routes without next hops.
When a table's file is replaced it is read again beside the running work. If it can't be read, the old table stays, with a message. The summary \
at the end says which version answered which records.
Records leave as soon as they are complete, also on a pipe that stays open. Ctrl-C or SIGTERM ends the work \
after whole records, with exit status 130 or 143.";

fn format_parser() -> impl TypedValueParser<Value = Format> {
    PossibleValuesParser::new(Format::ALL.map(Format::name)).try_map(|name| name.parse::<Format>())
}

pub(crate) fn run(options: &Options) -> Result<Outcome> {
    let source = Source::from_arg(&options.records);
    if parquet::is_parquet(&source) {
        return parquet::hand_over(&source, options);
    }
    let specs = options.specs()?;
    let tables = specs.iter().flat_map(|spec| spec.file.paths().map(|path| ("a table", Some(path))));
    let sets = || specs.iter().filter_map(|spec| spec.rules.ipset());
    let others =
        sets().map(|sets| ("the sets", Some(sets))).chain([("the records", Some(&*options.records))]);
    stdin::at_most_one(tables.chain(others))?;
    // The records may be: their new file takes the place of the old one when all are in it.
    let files = specs.iter().flat_map(|spec| spec.file.paths()).chain(sets());
    is_no_input(options.output.as_deref(), files)?;
    let (mut followed, mut versions) = (Vec::new(), Vec::new());
    for spec in specs {
        let (table, version) = Followed::open(spec, options.tables.reading())?;
        followed.push(table);
        versions.push(version);
    }
    let given = options.tables.given();
    let lenient = options.tables.lenient;
    let specs: Vec<Spec> = followed.iter().map(|table| table.spec().clone()).collect();
    let names: Vec<_> = specs.iter().map(|spec| spec.file.name.clone()).collect();
    let shape = columns::Shared::default();
    let plan = {
        let shape = Arc::clone(&shape);
        move |format, names: &[String]| columns::plan(&given, &specs, &shape, format, names)
    };
    // Records are read a block at a time.
    let input = wirespeed_input::open(&source)?.unlimited();
    let pipeline = Pipeline {
        name: source.to_string(),
        threads: options.threads.unwrap_or_else(threads::all_cores),
        block: options.block,
        lenient,
        shape,
    };
    let splitter = Splitter::new(options.format, plan).lenient(lenient);
    let running = interrupt::Running::begin();
    let mut summary = None;
    Common::write_quietly(options.output.as_deref(), |to| {
        summary = Some(pipeline.run(input, splitter, followed, versions, to)?);
        Ok(())
    })?;
    drop(running);
    if let Some(summary) = summary {
        eprintln!("{}", summary.told(&pipeline.shape, &names));
    }
    Ok(if interrupt::is_interrupted() { Outcome::Interrupted } else { Outcome::Done })
}

impl Options {
    fn specs(&self) -> Result<Vec<Spec>> {
        if !self.copy {
            self.tables.check_some()?;
        }
        self.tables.specs()
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::arguments::{Arguments, Verb};

    #[test]
    fn the_examples_are_command_lines() {
        let mut seen = 0;
        for line in EXAMPLES.lines().filter_map(|line| line.split_once("lookupctl enrich ")) {
            let words = line.1.split(' ').take_while(|word| !matches!(*word, "<" | ">"));
            let parsed = Arguments::try_parse_from(["lookupctl", "enrich"].into_iter().chain(words)).unwrap();
            let Verb::Enrich(options) = parsed.verb else { panic!("another verb") };
            options.specs().unwrap();
            seen += 1;
        }
        assert_eq!(seen, 10);
    }
}
