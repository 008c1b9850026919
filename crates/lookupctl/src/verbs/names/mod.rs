//! `names`: the verbs for tables of names.

mod build;
mod engines;
mod generate;
mod info;
mod lookup;
mod replay;
mod source;
mod trace;
mod verify;

use std::ffi::OsStr;

use anyhow::Result;
use clap::{Args, Subcommand};
use wirespeed::names::NameRib;

use crate::Outcome;

/// Verbs for tables of names: NDN names, domains, URLs.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, subcommand_required = true)]
pub(crate) struct Options {
    #[command(subcommand)]
    verb: Verb,
}

/// The verb to run.
#[derive(Debug, Subcommand)]
enum Verb {
    Info(info::Options),
    Lookup(lookup::Options),
    Replay(replay::Options),
    Verify(verify::Options),
    Build(build::Options),
    #[command(subcommand)]
    Gen(generate::What),
}

const EXAMPLES: &str = "\
Examples:
  lookupctl names replay                       the main job on a synthetic table
  lookupctl names replay --table fib.txt --trace requests.txt --updates up.txt
  lookupctl names info domains.txt.zst         the content of a table
  lookupctl names lookup --table fib.txt /com/parc/www http://www.parc.com/a
  lookupctl names verify --table fib.txt       engines on every name
  lookupctl names build --table fib.txt -o names.img
  lookupctl names lookup --table /etc/hosts localhost
  lookupctl names lookup --table public_suffix_list.dat www.example.co.uk
  lookupctl names replay --help                options and examples of a verb

A table is a file with one name on each line. Either all lines have a result after the name, or none: /com/parc/www core-7, \
www.parc.com 192.0.2.1, http://www.parc.com/a 3 or ndn:/com/parc/54=%03 3. The form is recognised by content, plain or \
compressed with gzip, bzip2 or zstd; - is standard input.
Domains have one form in tables and in queries: lower case, and domains in other scripts as ASCII (UTS 46), \
so that MÜNCHEN.de and xn--mnchen-3ya.de are one name. *.example.com and .example.com match example.com and all names beneath it. Names that \
start with a slash are bytes, and stay as they are.
Lists of domains are read by build, info, lookup and verify: hosts files, Adblock filter lists (||example.com^), dnsmasq (address=/example.com/), \
response policy zones and the Public Suffix List, recognised by content or by --format. Their entries cover a name alone, names beneath it, \
or both, and may be exceptions. A list takes no updates: build it again.
A table may also be CSV or TSV whose first line names the columns, one of them domain, host, url, name or the like (or --name-column): \
several values are one result, category=ads,risk=3.
Lines of CSV without names of columns, other forms of * and IP addresses are refused, with the line and what it looks like, and so are lines of lists within tables.";

/// Reads the names of a table or of a list, recognised by content.
pub(crate) fn read_by_content(from: &OsStr, lenient: bool) -> Result<NameRib> {
    Ok(source::ReadArguments::by_content(lenient).load_any(from)?.fib.names)
}

pub(crate) fn run(options: Options) -> Result<Outcome> {
    match options.verb {
        Verb::Info(options) => info::run(&options),
        Verb::Lookup(options) => lookup::run(options),
        Verb::Replay(options) => replay::run(&options),
        Verb::Verify(options) => verify::run(&options),
        Verb::Build(options) => build::run(&options),
        Verb::Gen(what) => generate::run(&what),
    }
}
