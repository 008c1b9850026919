//! The complete command line. The options of each verb are in the verb's file.

use clap::{Parser, Subcommand};

use crate::verbs::{
    build, classify, completions, devices, enrich, generate, info, lookup, names, replay, route, rov, verify,
};

/// Looks up in forwarding tables; replays, verifies, builds and generates them.
#[derive(Debug, Parser)]
#[command(name = "lookupctl", version, after_help = EXAMPLES, subcommand_required = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

/// The verb to run.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    Info(info::Options),
    Lookup(lookup::Options),
    Replay(replay::Options),
    Verify(verify::Options),
    Build(build::Options),
    #[command(subcommand)]
    Gen(generate::What),
    Names(names::Options),
    Classify(classify::Options),
    Route(Box<route::Options>),
    Rov(rov::Options),
    Enrich(Box<enrich::Options>),
    Devices(devices::Options),
    Completions(completions::Options),
}

const EXAMPLES: &str = "\
Examples:
  lookupctl replay                            the main job on a synthetic table
  lookupctl replay --fib rib.mrt.bz2 --trace capture.pcap --updates up.mrt.gz
  lookupctl info rib.mrt.bz2                  the content of a table
  ip -j route | lookupctl lookup --fib - 192.0.2.1
  lookupctl verify --fib fib.txt --exhaustive engines on every address
  lookupctl build --fib fib.txt -o fib.img    compile once, then use --image
  lookupctl names lookup --table t.txt /com/parc/www   the same verbs for names (names --help)
  lookupctl classify lookup --rules acl.txt src=10.0.0.1 dport=443 tcp   the same verbs for rules (classify --help)
  lookupctl route --fib fib.txt --in traffic.pcap --out out.pcapng   the packet pipeline
  lookupctl rov --vrps vrps.json rib.mrt.bz2  origin validation by the RPKI
  lookupctl enrich --table asn=rib.mrt.bz2 < conn.log   columns for flow and log records
  lookupctl devices                           the GPUs that lookups can run on
  lookupctl replay --help                     options and examples of a verb

Tables are read from plain text (prefix, next hop), MRT, bgpdump -m, pfx2as, ip route, ip -j route, FRR's JSON, \
MaxMind DB, CSV or TSV whose first line names the columns, ranges of clouds in JSON (AWS, Google, Azure, Oracle, Cloudflare), \
delegations of registries (delegated-ripencc-extended-latest), and sets of ipset save and nft -j list ruleset, \
recognised by content, plain or compressed with gzip, bzip2 or zstd; - is standard input, and builtin:bogons the \
special-purpose prefixes of IANA.
Plain text may also write 10.0.0.0/8 as 10.0.0.0/255.0.0.0 or 10.0.0.0 255.0.0.0. If no line has a next hop, each prefix has the next \
hop member.
Results go to stdout (--json: one object a line), everything else to stderr.
Exit status: 0 for success; 1 for a mismatch, or an address without a match; 2 for a wrong command line or bad input; 130 or 143 for \
a run that Ctrl-C or SIGTERM ended.";
