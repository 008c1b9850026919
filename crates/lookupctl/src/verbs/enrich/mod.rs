//! `enrich`: flow and log records, with columns of what tables say of their addresses and names, and rules of
//! their flows.
//!
//! ```text
//! input ─► workers, each: the next block of whole records, cells, lookups in batches, bytes ─► writer, in order
//!             ▲ tables, as they are now
//! files of tables, looked at each second ─► read beside the running work
//! ```

mod answers;
mod cell;
mod columns;
mod flow;
mod keys;
mod parquet;
mod pieces;
mod pipeline;
mod reading;
mod spare;
mod summary;
mod table;
mod values;
mod work;
mod write;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Result, bail};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use wirespeed_fib::Family;
use wirespeed_input::Source;
use wirespeed_records::{Format, Splitter, TableFile, TableReading};

use crate::number::parse_positive;
use crate::output::is_no_input;
use crate::verbs::classify::set_arguments::{RuleArguments, SetArguments};
use crate::verbs::generate::Common;
use crate::{Outcome, family, interrupt, stdin, threads};
use columns::Given;
use pipeline::Pipeline;
use reading::ReadingArguments;
use table::{Followed, Kind, Reading, Spec};

/// Bytes that are read at a time.
const BLOCK: usize = 256 << 10;

/// Adds columns to flow and log records: the values that tables have for their addresses and names, and the
/// answers of rules
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// The records: CSV or TSV with a header, nfdump's CSV, Zeek's logs, or JSON with an object on each line;
    /// plain or compressed. - is standard input. A Parquet file goes to the program wirespeed-parquet, which
    /// takes the same options without those of rules
    #[arg(value_name = "RECORDS", default_value = "-")]
    records: OsString,

    /// Format of the records. By default recognised by content
    #[arg(long, value_name = "FORMAT", value_parser = format_parser())]
    format: Option<Format>,

    /// Table of addresses and the name of its columns: routes in any format, CSV, a MaxMind DB, an image, or
    /// builtin:bogons. The value of a route of MRT or bgpdump is the origin of its AS path, unless
    /// --next-hops is given; in an image it is what build took: origins with build --origins. May be given
    /// more than once
    #[arg(long, value_name = "NAME=FILE")]
    table: Vec<String>,

    /// Source of a table of addresses that is merged of several, and the name of the table's columns, as in
    /// net=asn=rib.mrt or net=geo:country.iso_code,city=geo.mmdb. Several of one table are its sources.
    /// Each field of an address comes from the longest prefix that has it, of all sources, and where several
    /// have it at one prefix, from the first of them. NAME is the field of values without names, of lists and
    /// of a single column; COLUMN,... are the columns to take
    #[arg(long, value_name = "TABLE=NAME[:COLUMN,...]=FILE")]
    merge: Vec<String>,

    /// Fields of a table's values, each for a column of its own: columns of CSV, fields of a MaxMind DB
    /// (geo=country.iso_code,city.names.en), of ranges of clouds, of delegations or of a merged table. Images
    /// have the fields of labels that are records (build --merge), and so have tables of names whose results
    /// are records (category=ads,risk=3). By default one column has the whole value
    #[arg(long, value_name = "NAME=FIELD,...")]
    fields: Vec<String>,

    /// Table of names and the name of its column: names with or without results in any format, CSV, a list of
    /// domains (hosts, Adblock, dnsmasq, RPZ, the Public Suffix List), or an image. May be given more than
    /// once
    #[arg(long, value_name = "NAME=FILE")]
    names: Vec<String>,

    /// Source of a table of names that is merged of several, as --merge has it for addresses: each field of a
    /// name comes from the longest name that has it. Lists of domains can't be merged
    #[arg(long, value_name = "TABLE=NAME[:COLUMN,...]=FILE")]
    merge_names: Vec<String>,

    /// Rules and the name of their columns: iptables-save, nft -j list ruleset, ovs-ofctl dump-flows,
    /// ClassBench or any other format that lookupctl classify reads, or an image. Looked up by the 5-tuple.
    /// May be given more than once
    #[arg(long, value_name = "NAME=FILE")]
    rules: Vec<String>,

    #[command(flatten)]
    reading: ReadingArguments,

    #[command(flatten)]
    rule_arguments: RuleArguments,

    /// Column of source addresses; of JSON, a member or a path with dots. By default found by usual names
    /// (id.orig_h, sa, srcAddr, src_ip, src, ...), unless --dst or --address is given
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
    #[arg(long, visible_alias = "domain", value_name = "COLUMN")]
    name_column: Vec<String>,

    /// Column of protocols, by number or name, for --rules. By default found by usual names (proto, protocol,
    /// pr, ...)
    #[arg(long, value_name = "COLUMN")]
    proto: Option<String>,

    /// Column of source ports, for --rules. By default found by usual names (id.orig_p, sp, srcport,
    /// src_port, ...). Records may have none
    #[arg(long, value_name = "COLUMN")]
    sport: Option<String>,

    /// Column of destination ports, for --rules. By default found like --sport
    #[arg(long, value_name = "COLUMN")]
    dport: Option<String>,

    /// Column of ICMP types, for --rules. By default a column icmp_type, if there is one
    #[arg(long, value_name = "COLUMN")]
    icmp_type: Option<String>,

    /// Column of ICMP codes, for --rules. By default a column icmp_code, if there is one
    #[arg(long, value_name = "COLUMN")]
    icmp_code: Option<String>,

    /// Family of addresses that are decimal numbers. IPv4 addresses are then numbers up to 4294967295, those
    /// of IPv6 up to 2^128 - 1, in cells and in JSON; addresses in text stand beside them. By default a
    /// number is wrong: a column does not tell of which family it is, or whether it has addresses at all
    #[arg(long, value_name = "4|6", value_parser = family::parse)]
    address_numbers: Option<Family>,

    /// Add the prefix that matched, too, for each table of addresses or names
    #[arg(long)]
    prefix: bool,

    /// Take next hops from MRT and bgpdump. By default the origin of the AS path is taken: build, lookup and
    /// replay do so with --origins
    #[arg(long)]
    next_hops: bool,

    /// Pass wrong records through and count them by reason, pass over wrong lines of tables, and leave out
    /// rules that records can't decide. By default the first wrong record ends the work, and a file with
    /// wrong lines or such rules is refused. A table of which nothing is right is always refused
    #[arg(long)]
    lenient: bool,

    /// Refuse wrong lines of tables and rules that records can't decide, though wrong records pass
    #[arg(long, requires = "lenient")]
    strict_tables: bool,

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
    let of_rules = options.of_rules(&specs)?;
    let sets = || of_rules.iter().filter_map(SetArguments::ipset);
    let others =
        sets().map(|sets| ("the sets", Some(sets))).chain([("the records", Some(&*options.records))]);
    stdin::at_most_one(tables.chain(others))?;
    // The records may be: their new file takes the place of the old one when all are in it.
    let files = specs.iter().flat_map(|spec| spec.file.paths()).chain(sets());
    is_no_input(options.output.as_deref(), files)?;
    let tables = TableReading {
        lenient: options.lenient && !options.strict_tables,
        prefix: options.prefix,
        next_hops: options.next_hops,
    };
    let (mut followed, mut versions) = (Vec::new(), Vec::new());
    for (spec, rules) in specs.into_iter().zip(of_rules) {
        let (table, version) = Followed::open(spec, Reading { tables, rules })?;
        followed.push(table);
        versions.push(version);
    }
    let given = Given {
        src: options.src.clone(),
        dst: options.dst.clone(),
        addresses: options.address.clone(),
        names: options.name_column.clone(),
        protocol: options.proto.clone(),
        sport: options.sport.clone(),
        dport: options.dport.clone(),
        icmp_type: options.icmp_type.clone(),
        icmp_code: options.icmp_code.clone(),
        prefix: options.prefix,
        numbers: options.address_numbers,
    };
    let specs: Vec<Spec> = followed.iter().map(|table: &Followed| table.spec().clone()).collect();
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
        lenient: options.lenient,
        shape,
    };
    let splitter = Splitter::new(options.format, plan).lenient(options.lenient);
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
    /// The options for rules of each table, which has none if it is no set of rules.
    fn of_rules(&self, specs: &[Spec]) -> Result<Vec<SetArguments>> {
        let is_set = |spec: &&Spec| spec.kind == Kind::Rules;
        let sets: Vec<_> = specs.iter().filter(is_set).map(|spec| &*spec.file.name).collect();
        let others = specs.len() - sets.len();
        // The tables of rules are the last ones.
        let of_sets = self.rule_arguments.of_sets(&sets)?;
        Ok(std::iter::repeat_with(SetArguments::default).take(others).chain(of_sets).collect())
    }

    /// The tables, those of addresses first.
    fn specs(&self) -> Result<Vec<Spec>> {
        let (mut tables, mut names) =
            (TableFile::parse_all(&self.table)?, TableFile::parse_all(&self.names)?);
        TableFile::add_sources(&mut tables, &self.merge)?;
        TableFile::add_sources(&mut names, &self.merge_names)?;
        self.reading.state(&mut tables, &mut names)?;
        TableFile::name_fields(tables.iter_mut().chain(&mut names), &self.fields)?;
        let rules = TableFile::parse_all(&self.rules)?;
        let of_kinds = [(tables, Kind::Addresses), (names, Kind::Names), (rules, Kind::Rules)];
        let of = |(files, kind): (Vec<_>, _)| files.into_iter().map(move |file| Spec::new(file, kind));
        let specs: Vec<_> = of_kinds.into_iter().flat_map(of).collect();
        let has_names = !(self.names.is_empty() && self.merge_names.is_empty());
        if specs.is_empty() && !self.copy {
            bail!(
                "no table: name one with --table NAME=FILE, --merge TABLE=NAME=FILE, --names NAME=FILE or --rules NAME=FILE"
            );
        }
        let (has_table, has_rules) =
            (!(self.table.is_empty() && self.merge.is_empty()), !self.rules.is_empty());
        for (is_given, has, option) in [
            (!self.name_column.is_empty(), has_names, "--name-column is for --names"),
            (self.src.is_some(), has_table || has_rules, "--src is for --table and --rules"),
            (self.dst.is_some(), has_table || has_rules, "--dst is for --table and --rules"),
            (!self.address.is_empty(), has_table, "--address is for --table"),
            (
                self.address_numbers.is_some(),
                has_table || has_rules,
                "--address-numbers is for --table and --rules",
            ),
            (self.proto.is_some(), has_rules, "--proto is for --rules"),
            (self.sport.is_some(), has_rules, "--sport is for --rules"),
            (self.dport.is_some(), has_rules, "--dport is for --rules"),
            (self.icmp_type.is_some(), has_rules, "--icmp-type is for --rules"),
            (self.icmp_code.is_some(), has_rules, "--icmp-code is for --rules"),
        ] {
            if is_given && !has {
                bail!("{option}, and there is none");
            }
        }
        if let Some(option) = self.reading.given().filter(|_| !has_table) {
            bail!("{option} is for --table and --merge, and there is none");
        }
        if let Some(option) = self.reading.given_for_names().filter(|_| !has_names) {
            bail!("{option} is for --names and --merge-names, and there is none");
        }
        if let Some(option) = self.rule_arguments.given().filter(|_| !has_rules) {
            bail!("{option} is for --rules, and there is none");
        }
        Ok(specs)
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
