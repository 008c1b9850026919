//! [`TableArguments`]: the tables that records are looked up in, and the columns, as a command line names
//! them.

use anyhow::{Result, bail};
use clap::Args;
use wirespeed_fib::Family;
use wirespeed_records::{TableFile, TableReading};

use super::columns::Given;
use super::reading::ReadingArguments;
use super::table::{Kind, Spec};
use crate::family;
use crate::rules::RuleArguments;

/// Options for tables and the columns that are looked up in them.
#[derive(Clone, Debug, Default, Args)]
pub struct TableArguments {
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

    /// Column of source addresses; of JSON and Parquet, also a path with dots. By default found by usual
    /// names (id.orig_h, sa, srcAddr, src_ip, src, ...), unless --dst or --address is given
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
    /// of IPv6 up to 2^128 - 1, in text and in JSON; addresses in text stand beside them. By default a
    /// number is wrong, because a column does not tell of which family it is, or whether it has addresses at
    /// all; but integers of Parquet are of IPv4
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
    pub lenient: bool,

    /// Refuse wrong lines of tables and rules that records can't decide, though wrong records pass
    #[arg(long, requires = "lenient")]
    strict_tables: bool,
}

impl TableArguments {
    /// The tables, those of addresses first.
    pub fn specs(&self) -> Result<Vec<Spec>> {
        let (mut tables, mut names) =
            (TableFile::parse_all(&self.table)?, TableFile::parse_all(&self.names)?);
        TableFile::add_sources(&mut tables, &self.merge)?;
        TableFile::add_sources(&mut names, &self.merge_names)?;
        self.reading.state(&mut tables, &mut names)?;
        TableFile::name_fields(tables.iter_mut().chain(&mut names), &self.fields)?;
        let rules = TableFile::parse_all(&self.rules)?;
        let sets: Vec<_> = rules.iter().map(|file| &*file.name).collect();
        let of_sets = self.rule_arguments.of_sets(&sets)?;
        self.check_needed()?;
        let of = |(files, kind): (Vec<_>, _)| files.into_iter().map(move |file| Spec::new(file, kind));
        let of_kinds = [(tables, Kind::Addresses), (names, Kind::Names)];
        let of_rules = rules
            .into_iter()
            .zip(of_sets)
            .map(|(file, rules)| Spec { rules, ..Spec::new(file, Kind::Rules) });
        Ok(of_kinds.into_iter().flat_map(of).chain(of_rules).collect())
    }

    /// Whether no table is named.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let Self { table, merge, names, merge_names, rules, .. } = self;
        [table, merge, names, merge_names, rules].iter().all(|named| named.is_empty())
    }

    /// Refuses a command line without a table.
    pub fn check_some(&self) -> Result<()> {
        if self.is_empty() {
            bail!(
                "no table: name one with --table NAME=FILE, --merge TABLE=NAME=FILE, --names NAME=FILE or --rules NAME=FILE"
            );
        }
        Ok(())
    }

    /// Refuses options for tables of a kind that there is none of.
    fn check_needed(&self) -> Result<()> {
        let has_table = self.has_addresses();
        let has_names = !(self.names.is_empty() && self.merge_names.is_empty());
        let has_rules = !self.rules.is_empty();
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
        Ok(())
    }

    /// Whether a table of addresses is named.
    fn has_addresses(&self) -> bool {
        !(self.table.is_empty() && self.merge.is_empty())
    }

    /// The way in which tables are read.
    #[must_use]
    pub fn reading(&self) -> TableReading {
        let lenient = self.lenient && !self.strict_tables;
        TableReading { lenient, prefix: self.prefix, next_hops: self.next_hops }
    }

    /// The columns that are named.
    #[must_use]
    pub fn given(&self) -> Given {
        Given {
            src: self.src.clone(),
            dst: self.dst.clone(),
            addresses: self.address.clone(),
            names: self.name_column.clone(),
            protocol: self.proto.clone(),
            sport: self.sport.clone(),
            dport: self.dport.clone(),
            icmp_type: self.icmp_type.clone(),
            icmp_code: self.icmp_code.clone(),
            prefix: self.prefix,
            numbers: self.address_numbers,
        }
    }
}
