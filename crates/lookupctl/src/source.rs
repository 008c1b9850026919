//! Options for reading a table, and the reading.

use std::ffi::OsStr;
use std::fmt;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

use anyhow::{Result, anyhow, bail};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use wirespeed_fib::read::{
    Columns, Format, PeerChoice, PrefixColumns, ReadOptions, ReadReport, Source, read_fib, read_updates,
    read_vrps,
};
use wirespeed_fib::rpki::Vrps;
use wirespeed_fib::{AnyUpdate, BuildOptions, Family, Fib, InFib, NextHops, Strides, Update};
use wirespeed_input::plural;

pub(crate) use wirespeed_commands::routes::{is_image, naming_the_option};

use crate::busy::Busy;
use crate::family;
use crate::memory;
use crate::number::{Grouped, counted, grouped};
use crate::refuse::{Given, NO_TABLE, refuse};
use crate::strides::StridesArgument;

/// Options for reading a table.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Reading")]
pub(crate) struct ReadArguments {
    /// Format of the table. By default recognised by content
    #[arg(long, value_name = "FORMAT", value_parser = format_parser(Format::holds_routes))]
    format: Option<Format>,

    /// Peer whose routes and updates to take from MRT or bgpdump. The default is one peer for each family:
    /// for a table the peer with most prefixes, for updates the table's peer, or the peer with most updates
    /// if the table has none. all mixes the updates of all peers
    #[arg(long, value_name = "NUMBER|ADDRESS|AS|all")]
    peer: Option<PeerChoice>,

    /// VRF whose routes to take from FRR's JSON of several VRFs (show ip route vrf all json)
    #[arg(long, value_name = "NAME")]
    vrf: Option<String>,

    /// Set whose members to take from a file with several sets (ipset save, nft -j list ruleset)
    #[arg(long, value_name = "NAME")]
    set: Option<String>,

    /// Take the origin of the AS path, an AS number or a set as {1,2}, as the value of routes and updates of
    /// MRT and bgpdump. By default their next hop is taken
    #[arg(long)]
    origins: bool,

    /// Clear the host bits of prefixes (10.1.2.3/8 becomes 10.0.0.0/8) and count these prefixes. By default
    /// they are refused
    #[arg(long)]
    mask_host_bits: bool,

    /// Columns of CSV, or fields of a MaxMind DB (country.iso_code), of ranges of clouds (provider, service,
    /// region, ...) or of delegations (country, status, ...), that are the value, by name. Several make one:
    /// asn=13335,country=US. By default all but those of the prefix
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    value_columns: Vec<String>,

    /// Column of CSV with the prefix, or the two with an address and a length or netmask. By default found by
    /// usual names (network, prefix, cidr, start_ip and end_ip, ip and length, ...)
    #[arg(long, value_name = "NAME[,LENGTH]", value_parser = PrefixColumns::of_prefix)]
    prefix_columns: Option<PrefixColumns>,

    /// Columns of CSV with the first and the last address of a range
    #[arg(long, value_name = "FIRST,LAST", value_parser = PrefixColumns::of_range, conflicts_with = "prefix_columns")]
    range_columns: Option<PrefixColumns>,

    /// Family of addresses of CSV that are decimal numbers. By default numbers are read in ranges alone, in
    /// --range-columns and columns like ip_from and ip_to: as IPv6 if the file has one over 4294967295, and
    /// it is refused if it has others, too
    #[arg(long, value_name = "4|6", value_parser = family::parse)]
    address_numbers: Option<Family>,

    /// Pass over wrong lines or records, count them by reason and go on. By default the file is refused
    #[arg(long)]
    lenient: bool,

    /// List every peer of MRT and bgpdump with its counts
    #[arg(long)]
    verbose: bool,
}

/// `--format NAME`, for the formats that `will_do` allows.
pub(crate) fn format_parser(will_do: fn(Format) -> bool) -> impl TypedValueParser<Value = Format> {
    let names = Format::ALL.into_iter().filter(move |&format| will_do(format)).map(Format::name);
    PossibleValuesParser::new(names).try_map(|name| name.parse::<Format>())
}

/// A table as it was read.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) fib: Fib,
    pub(crate) report: ReadReport,
    seconds: f64,
}

impl ReadArguments {
    /// Each of them.
    pub(crate) fn given(&self) -> [Given<'static>; 12] {
        [
            ("format", self.format.is_some()),
            ("peer", self.peer.is_some()),
            ("vrf", self.vrf.is_some()),
            ("set", self.set.is_some()),
            ("origins", self.origins),
            ("mask-host-bits", self.mask_host_bits),
            ("value-columns", !self.value_columns.is_empty()),
            ("prefix-columns", self.prefix_columns.is_some()),
            ("range-columns", self.range_columns.is_some()),
            ("address-numbers", self.address_numbers.is_some()),
            ("lenient", self.lenient),
            ("verbose", self.verbose),
        ]
    }

    /// Whether any of them is given.
    pub(crate) fn is_given(&self) -> bool {
        self.given().iter().any(|(_, is_given)| *is_given)
    }

    /// Whether origins of routes are asked for.
    pub(crate) fn takes_origins(&self) -> bool {
        self.origins
    }

    /// Whether an option is given that only tables of addresses have.
    pub(crate) fn is_for_addresses(&self) -> bool {
        self.given().iter().any(|&(option, is_given)| is_given && option != "lenient")
    }

    /// Whether wrong lines are passed over.
    pub(crate) fn is_lenient(&self) -> bool {
        self.lenient
    }

    /// Reads a table that is the only input. Prints its size and the lines that were passed over.
    pub(crate) fn load(&self, from: &OsStr) -> Result<Fib> {
        let loaded = self.load_one_of(from)?;
        self.check(&[&loaded.report], None)?;
        Ok(loaded.fib)
    }

    /// Reads a table among other tables or updates. The caller gives all their reports to
    /// [`check`](Self::check).
    pub(crate) fn load_one_of(&self, from: &OsStr) -> Result<Loaded> {
        let loaded = self.load_quietly(from)?;
        eprintln!("{loaded}");
        self.tell_peers(&loaded.report);
        Ok(loaded)
    }

    /// The columns of CSV that are named.
    fn columns(&self) -> Columns {
        let prefix = self.prefix_columns.clone().or_else(|| self.range_columns.clone());
        Columns { prefix, values: self.value_columns.clone(), numbers: self.address_numbers }
    }

    /// The options with other columns of the value.
    pub(crate) fn with_values(&self, columns: &[String]) -> Self {
        Self { value_columns: columns.to_vec(), ..self.clone() }
    }

    /// Reads a table.
    pub(crate) fn load_quietly(&self, from: &OsStr) -> Result<Loaded> {
        self.load_with(from, self.options())
    }

    /// Reads the payloads of the RPKI in a file. Prints its report.
    pub(crate) fn load_payloads(&self, from: &OsStr) -> Result<Vrps> {
        let no_payloads = |&(option, is_given): &Given<'static>| {
            (option, is_given && !matches!(option, "lenient" | "mask-host-bits"))
        };
        let given = self.given();
        refuse(&given.iter().map(no_payloads).collect::<Vec<_>>(), "is for routes, and not for payloads")?;
        let source = Source::from_arg(from);
        let busy = Busy::with(format!("reading {source}"));
        let (vrps, report) = read_vrps(&source, &self.options())
            .map_err(|error| unless_image(from, naming_the_option(error)))?;
        drop(busy);
        eprintln!("{report}");
        Ok(vrps)
    }

    /// Reads a table with the origins of routes in place of their next hops, all of a route with several.
    pub(crate) fn load_origins(&self, from: &OsStr) -> Result<Loaded> {
        self.load_with(from, ReadOptions { origins: true, all_origins: true, ..self.options() })
    }

    fn load_with(&self, from: &OsStr, options: ReadOptions) -> Result<Loaded> {
        let began = Instant::now();
        let source = Source::from_arg(from);
        let busy = Busy::with(format!("reading {source}"));
        let options = ReadOptions { format: self.format, ..options };
        let read = read_fib(&source, &options);
        let (fib, report) = read.map_err(|error| unless_image(from, naming_the_option(error)))?;
        drop(busy);
        let seconds = began.elapsed().as_secs_f64();
        Ok(Loaded { fib, report, seconds })
    }

    fn options(&self) -> ReadOptions {
        ReadOptions {
            peer: self.peer,
            vrf: self.vrf.clone(),
            set: self.set.clone(),
            origins: self.origins,
            mask_host_bits: self.mask_host_bits,
            lenient: self.lenient,
            columns: self.columns(),
            ..ReadOptions::default()
        }
    }

    /// The VRF that was asked for.
    pub(crate) fn vrf(&self) -> Option<&str> {
        self.vrf.as_deref()
    }

    /// Refuses `--peer`, `--origins`, `--set` and `--vrf` if no input has peers, AS paths, sets or VRFs.
    pub(crate) fn check(&self, tables: &[&ReadReport], updates: Option<&ReadReport>) -> Result<()> {
        if tables.is_empty() && updates.is_none() {
            let given = [("format", self.format.is_some()), ("mask-host-bits", self.mask_host_bits)];
            refuse(&given, NO_TABLE)?;
        }
        let formats: Vec<_> = tables.iter().map(|report| report.format).collect();
        let heeded = self.options().check_heeded(&formats, updates.map(|report| report.format));
        heeded.map_err(|unheeded| anyhow!("--{unheeded}"))
    }

    /// Lists the peers if --verbose is given.
    pub(crate) fn tell_peers(&self, report: &ReadReport) {
        for peer in report.peers.iter().filter(|_| self.verbose) {
            let [v4, v6] = peer.prefixes.map(Grouped);
            let taken = match peer.chosen {
                [false, false] => "",
                [true, true] => ", taken",
                [true, false] => ", taken for IPv4",
                [false, true] => ", taken for IPv6",
            };
            eprintln!("  {peer}: {v4} IPv4, {v6} IPv6{taken}");
        }
    }

    /// Reads updates of one family for the first of these tables. New next hops are numbered after those of
    /// the table.
    pub(crate) fn updates<A: InFib>(
        &self,
        from: &OsStr,
        next_hops: &mut NextHops,
        tables: &[&ReadReport],
    ) -> Result<Vec<Update<A>>> {
        let updates = self.updates_of(from, next_hops, tables, &[A::FAMILY])?;
        Ok(updates.iter().filter_map(A::update).collect())
    }

    /// Reads updates of both families, like [`updates`](Self::updates).
    pub(crate) fn updates_of_both(
        &self,
        from: &OsStr,
        next_hops: &mut NextHops,
        tables: &[&ReadReport],
    ) -> Result<Vec<AnyUpdate>> {
        self.updates_of(from, next_hops, tables, &[Family::V4, Family::V6])
    }

    fn updates_of(
        &self,
        from: &OsStr,
        next_hops: &mut NextHops,
        tables: &[&ReadReport],
        families: &[Family],
    ) -> Result<Vec<AnyUpdate>> {
        let peers_of_table = tables.first().map(|table| table.peer_by_family()).unwrap_or_default();
        // The given format is the table's.
        let options = ReadOptions { peers_of_table, ..self.options() };
        let (mut own, mut others) = (Vec::new(), 0);
        let report = read_updates(&Source::from_arg(from), &options, next_hops, |update| {
            match families.contains(&update.update.family()) {
                true => own.push(update.update),
                false => others += 1,
            }
            ControlFlow::Continue(())
        });
        let report = report.map_err(naming_the_option)?;
        eprintln!("{report}");
        self.tell_peers(&report);
        self.check(tables, Some(&report))?;
        for &family in families {
            let at = family as usize;
            if let (Some(wanted), Some(taken)) = (peers_of_table[at], report.peer_by_family()[at])
                && self.peer.is_none()
                && (wanted.address, wanted.asn) != (taken.address, taken.asn)
            {
                let (name, wanted) = (&report.name, format!("peer {} AS{}", wanted.address, wanted.asn));
                eprintln!(
                    "  {name} has no {family} updates of the table's {wanted}: those of {taken} are taken"
                );
            }
        }
        if let ([family], true, 1..) = (families, own.is_empty(), others) {
            bail!(
                "{}: all of its {} updates are of the other family, not {family}",
                report.name,
                grouped(others),
            );
        }
        Ok(own)
    }
}

/// Explains the error of a file that is not a table. An image gets a message of its own.
pub(crate) fn unless_image(from: &OsStr, error: impl Into<anyhow::Error>) -> anyhow::Error {
    match is_image(from) {
        true => anyhow!(
            "{}: an image, not a table: use it with lookup --image or replay --image, or see info",
            Path::new(from).display()
        ),
        false => error.into(),
    }
}

impl fmt::Display for Loaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { fib, report, seconds } = self;
        write!(
            f,
            "{report}\n  {} IPv4 and {} IPv6 {}, {}, read in {seconds:.2} s",
            grouped(fib.v4.len()),
            grouped(fib.v6.len()),
            plural(fib.v6.len() as u64, "prefix"),
            counted(fib.next_hops.len(), "next hop"),
        )
    }
}

/// The address family.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct FamilyArgument {
    /// Address family, 4 or 6. The default is every family of the table; gen takes IPv4 if it has both
    #[arg(long, value_name = "4|6", value_parser = family::parse)]
    family: Option<Family>,
}

impl FamilyArgument {
    /// The option.
    pub(crate) fn given(self) -> Given<'static> {
        ("family", self.family.is_some())
    }

    /// The given family.
    pub(crate) fn wanted(self) -> Option<Family> {
        self.family
    }
}

/// The memory cap.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct MemoryArgument {
    /// The most memory that a compiled table and its copies may take. The default is 80 % of the free memory
    #[arg(long, value_name = "SIZE", value_parser = memory::parse_cap)]
    memory_cap: Option<u64>,
}

impl MemoryArgument {
    /// Build options for a table with this number of copies.
    pub(crate) fn build_options(self, copies: u64) -> BuildOptions {
        BuildOptions { memory_cap: self.cap(copies), ..BuildOptions::default() }
    }

    /// The option.
    pub(crate) fn given(self) -> Given<'static> {
        ("memory-cap", self.memory_cap.is_some())
    }

    /// The most bytes of a table with this number of copies.
    pub(crate) fn cap(self, copies: u64) -> Option<u64> {
        let asked = self.memory_cap.map(|cap| memory::share_cap(cap, copies));
        asked.or_else(|| memory::default_cap().map(|cap| cap / copies))
    }
}

/// Options for compiling a table.
#[derive(Clone, Debug, Args)]
pub(crate) struct TableArguments {
    #[command(flatten)]
    memory: MemoryArgument,
    #[command(flatten)]
    strides: StridesArgument,
}

impl TableArguments {
    /// One of them that is given.
    pub(crate) fn given(&self) -> Option<&'static str> {
        match (self.memory.memory_cap, &self.strides.strides) {
            (Some(_), _) => Some("--memory-cap"),
            (None, Strides::Fastest) => None,
            (None, _) => Some("--strides"),
        }
    }

    /// Build options for a table with this number of copies.
    pub(crate) fn build_options(&self, copies: u64) -> BuildOptions {
        BuildOptions { strides: self.strides.strides.clone(), ..self.memory.build_options(copies) }
    }
}
