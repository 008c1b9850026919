//! `rov`: origin validation of routes by the RPKI.

use std::ffi::{OsStr, OsString};
use std::fmt;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use serde::Serialize;
use wirespeed_fib::read::{Format, ReadOptions, Source, read_vrps};
use wirespeed_fib::rpki::{Mismatch, NoOrigin, Origin, Validity, VrpSet, Vrps};
use wirespeed_fib::{Address, Fib, Rib};
use wirespeed_input::plural;

use crate::Outcome;
use crate::number::{Grouped, grouped};
use crate::output::Output;
use crate::source::{ReadArguments, format_parser, unless_image};
use crate::stdin;

/// Validates the origins of routes by RPKI payloads (RFC 6811): valid, invalid or not found.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// Validated ROA payloads (VRPs) as rpki-client and Routinator write them, in JSON or CSV; - is standard
    /// input
    #[arg(long, value_name = "FILE")]
    vrps: OsString,

    /// Format of the payloads. By default recognised by content
    #[arg(long, value_name = "FORMAT", value_parser = format_parser(Format::holds_vrps))]
    vrps_format: Option<Format>,

    /// Tables with the origins of routes: MRT, bgpdump -m, pfx2as, CSV with --value-columns, or plain text
    /// with an AS number as next hop; - is standard input. A prefix with several origins (1_2) is a route of
    /// each
    #[arg(value_name = "ROUTES", required = true)]
    routes: Vec<OsString>,

    /// States whose routes are listed, one on each line
    #[arg(long, value_name = "STATE", value_delimiter = ',')]
    list: Vec<State>,

    /// One JSON object for each listed route, and one with the counts of each table
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    read: ReadArguments,
}

const EXAMPLES: &str = "\
Examples:
  lookupctl rov --vrps vrps.json rib.mrt.bz2
  lookupctl rov --vrps vrps.csv pfx2as.txt --list invalid
  lookupctl rov --vrps vrps.json routes.csv --value-columns origin --list invalid,not-found --json";

/// A state of a route, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
enum State {
    /// A payload covers and matches the route.
    Valid,
    /// Payloads cover the route, and none matches.
    Invalid,
    /// No payload covers the route.
    NotFound,
}

impl State {
    fn of(validity: Validity) -> Self {
        match validity {
            Validity::Valid => Self::Valid,
            Validity::Invalid(_) => Self::Invalid,
            Validity::NotFound => Self::NotFound,
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Valid => "valid",
            Self::Invalid => "invalid",
            Self::NotFound => "not-found",
        })
    }
}

pub(crate) fn run(options: &Options) -> Result<Outcome> {
    let tables = options.routes.iter().map(|from| ("the table", Some(&**from)));
    stdin::at_most_one(tables.chain([("--vrps", Some(&*options.vrps))]))?;
    let vrps = options.payloads()?;
    let mut output = Output::new();
    let mut reports = Vec::new();
    for from in &options.routes {
        reports.push(options.validate(from, &vrps, &mut output)?);
    }
    options.read.check(&reports.iter().collect::<Vec<_>>(), None)?;
    output.finish()?;
    Ok(Outcome::Done)
}

impl Options {
    /// Reads the payloads.
    fn payloads(&self) -> Result<Vrps> {
        let options = ReadOptions {
            format: self.vrps_format,
            lenient: self.read.is_lenient(),
            ..ReadOptions::default()
        };
        let read = read_vrps(&Source::from_arg(&self.vrps), &options);
        let (vrps, report) = read.map_err(|error| unless_image(&self.vrps, error))?;
        eprintln!("{report}\n  {} IPv4 and {} IPv6 VRPs", grouped(vrps.v4.len()), grouped(vrps.v6.len()));
        Ok(vrps)
    }

    /// Validates one table, lists the routes that are asked for, and tells the counts.
    fn validate(
        &self,
        from: &OsStr,
        vrps: &Vrps,
        output: &mut Output,
    ) -> Result<wirespeed_fib::read::ReadReport> {
        let loaded = self.read.load_origins(from)?;
        eprintln!("{loaded}");
        self.read.tell_peers(&loaded.report);
        let name = &loaded.report.name;
        let mut counts = Counts { table: name.clone(), ..Counts::default() };
        self.family(&loaded.fib, &loaded.fib.v4, &vrps.v4, &mut counts, output)?;
        self.family(&loaded.fib, &loaded.fib.v6, &vrps.v6, &mut counts, output)?;
        if self.json {
            output.json(&counts)?;
        } else {
            output.line(&counts)?;
        }
        Ok(loaded.report)
    }

    fn family<A: Address>(
        &self,
        fib: &Fib,
        routes: &Rib<A>,
        vrps: &VrpSet<A>,
        counts: &mut Counts,
        output: &mut Output,
    ) -> Result<()> {
        for (prefix, next_hop) in routes {
            let text = fib.next_hops.text(next_hop).unwrap_or_default();
            // A prefix that several ASes announce is a route of each.
            let origins = text.split('_').map(|one| one.parse().map(|origin| (one, origin)));
            let Ok(origins) = origins.collect::<Result<Vec<(_, Origin)>, NoOrigin>>() else {
                if self.read.is_lenient() {
                    counts.without_origin += 1;
                    continue;
                }
                bail!(
                    "{}: {prefix} has {text:?} where an origin is wanted, an AS number or a set of them \
                     (--lenient passes over such routes)",
                    counts.table,
                );
            };
            for (text, origin) in origins {
                let validity = vrps.validate(prefix, origin);
                counts.add(validity);
                let state = State::of(validity);
                if !self.list.contains(&state) {
                    continue;
                }
                let because = match validity {
                    Validity::Invalid(because) => Some(because.to_string()),
                    _ => None,
                };
                let listed = Listed { prefix: prefix.to_string(), origin: text, state, because };
                if self.json { output.json(&listed)? } else { output.line(&listed)? }
            }
        }
        Ok(())
    }
}

/// A route that is listed.
#[derive(Debug, Serialize)]
struct Listed<'f> {
    prefix: String,
    origin: &'f str,
    state: State,
    /// The reason why an invalid route is.
    #[serde(skip_serializing_if = "Option::is_none")]
    because: Option<String>,
}

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { prefix, origin, state, because } = self;
        write!(f, "{prefix}  {origin}  {state}")?;
        because.as_ref().map_or(Ok(()), |because| write!(f, "  {because}"))
    }
}

/// The routes of a table by state.
#[derive(Debug, Default, Serialize)]
struct Counts {
    table: String,
    routes: u64,
    valid: u64,
    invalid: u64,
    /// Invalid routes of another AS than those that are allowed.
    invalid_origin: u64,
    /// Invalid routes of an AS that is allowed shorter prefixes only.
    invalid_length: u64,
    not_found: u64,
    /// Routes whose next hop is no origin.
    without_origin: u64,
}

impl Counts {
    fn add(&mut self, validity: Validity) {
        self.routes += 1;
        match validity {
            Validity::Valid => self.valid += 1,
            Validity::NotFound => self.not_found += 1,
            Validity::Invalid(because) => {
                self.invalid += 1;
                match because {
                    Mismatch::Origin => self.invalid_origin += 1,
                    Mismatch::Length => self.invalid_length += 1,
                }
            }
        }
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { table, routes, .. } = self;
        let [valid, invalid, origin, length, not_found, without] = [
            self.valid,
            self.invalid,
            self.invalid_origin,
            self.invalid_length,
            self.not_found,
            self.without_origin,
        ]
        .map(Grouped);
        write!(
            f,
            "{table}: {} {}: {valid} valid, {invalid} invalid ({origin} by origin, {length} by length), \
             {not_found} not found",
            Grouped(*routes),
            plural(*routes, "route"),
        )?;
        if self.without_origin > 0 {
            write!(f, "; {without} without an origin passed over")?;
        }
        Ok(())
    }
}
