//! The command line as a whole; each verb has its own options in its own file.

use clap::{Parser, Subcommand};

use crate::verbs::{build, classify, completions, devices, generate, info, lookup, names, replay, verify};

/// Lookups up, replays, verifies, builds and generates forwarding tables.
#[derive(Debug, Parser)]
#[command(name = "lookupctl", version, after_help = EXAMPLES, subcommand_required = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    Info(info::Options),
    Lookup(lookup::Options),
    Replay(replay::Options),
    Verify(verify::Options),
    Build(build::Options),
    Gen(generate::Options),
    Names(names::Options),
    Classify(classify::Options),
    Devices(devices::Options),
    Completions(completions::Options),
}

const EXAMPLES: &str = "\
Examples:
  lookupctl replay                            the main job on a synthetic table
  lookupctl replay --fib rib.mrt.bz2 --trace capture.pcap --updates up.mrt.gz
  lookupctl info rib.mrt.bz2                  what is in a table
  ip -j route | lookupctl lookup --fib - 192.0.2.1
  lookupctl verify --fib fib.txt --exhaustive engines on every address
  lookupctl build --fib fib.txt -o fib.img    compile once, then use --image
  lookupctl names lookup --table t.txt /com/parc/www   the same verbs for names (names --help)
  lookupctl classify lookup --rules acl.txt src=10.0.0.1 dport=443 tcp   and for sets of rules (classify --help)
  lookupctl devices                           the GPUs that lookups can run on
  lookupctl replay --help                     options and examples of a verb

Tables are read from plain text (prefix, next hop), MRT, bgpdump -m, pfx2as, ip route, ip -j route and FRR's JSON, \
recognised by content, plain or compressed with gzip, bzip2 or zstd; - is standard input.
In plain text 10.0.0.0/8 may be 10.0.0.0/255.0.0.0 or 10.0.0.0 255.0.0.0, too; where no line has a next hop, each prefix has the next \
hop member.
Results go to stdout (--json: one object a line), everything else to stderr.
Exit status: 0 all is well; 1 a mismatch, or an address that nothing matches; 2 a wrong command line or bad input; 130 \
a replay that Ctrl-C ended.";
