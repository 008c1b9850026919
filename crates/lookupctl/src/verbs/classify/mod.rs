//! `classify`: the verbs for sets of rules.
//!
//! Code that depends on the tuple is compiled for each tuple. Code that also depends on the engine is behind
//! [`compiled`] and [`live`]: only these visit an engine.

mod build;
mod generate;
mod info;
mod labelled;
mod lookup;
mod replay;
mod set;
mod source;
mod trace;
mod uncertain;
mod verify;

use std::ffi::OsStr;

use anyhow::Result;
use clap::{Args, Subcommand};
use wirespeed::classify::RuleSet;
use wirespeed::classify::tuple_name::{TupleVisitor, visit};
use wirespeed::engine::RuleTuple;
use wirespeed_commands::rules::{Raw, ReadArguments};

use crate::Outcome;

/// Verbs for sets of rules: access lists, firewalls, OpenFlow tables.
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
  lookupctl classify replay                       the main job on a synthetic set
  lookupctl classify replay --rules acl.rules --trace acl.trace --updates up.txt
  lookupctl classify lookup --rules acl.rules src=10.0.0.1 dst=192.0.2.7 sport=4000 dport=443 tcp
  lookupctl classify verify --rules acl.rules     engines on tuples at the edges of all rules
  lookupctl classify build --rules acl.rules -o acl.img
  lookupctl classify replay --help                options and examples of a verb

The firewall of a host, with ufw, docker or firewalld: its content, and the verdict on a new connection from eth0
  iptables-save | lookupctl classify info -
  iptables-save > fw.txt; lookupctl classify lookup --rules fw.txt --assume ct=new --assume in=eth0 src=192.0.2.1 dport=443 tcp

A set is a file of ClassBench filters, of ovs-ofctl dump-flows, of iptables-save, of nft -j list ruleset, \
of aws ec2 describe-security-groups, of kubectl get networkpolicy -o json or -o yaml, or of rules in words, one a line: src=10.0.0.0/8 dport=1024-65535 proto=tcp priority=10 action=3. The highest priority wins, and among equals the first rule. The \
format is recognised by content, plain or compressed with gzip, bzip2 or zstd; - is standard input.
Rules test the fields of a 5-tuple of IPv4 or IPv6 (src dst sport dport proto) or the 12 fields of OpenFlow (in_port dl_src \
dl_dst dl_vlan dl_vlan_pcp dl_type nw_tos nw_proto nw_src nw_dst tp_src tp_dst), by content or as --tuple says.
A rule that tests more than these fields, such as the state of a connection or an interface, can't be decided by them. A file that \
has one is refused, with the line and the reason, unless --assume states the missing fact, or --lenient leaves the rule out: then each \
answer that the rule could change says so.";

/// A function over rules of a tuple that is recognised by content.
pub(crate) trait OfRules {
    /// Calls the function.
    fn call<T: RuleTuple>(self, rules: RuleSet<T>) -> Result<()>;
}

/// Reads rules, recognised by content, for a function.
pub(crate) fn read_by_content(from: &OsStr, lenient: bool, of_rules: impl OfRules) -> Result<()> {
    struct Read<F>(Raw, ReadArguments, F);

    impl<F: OfRules> TupleVisitor for Read<F> {
        type Output = Result<()>;

        fn visit<T: RuleTuple>(self) -> Result<()> {
            let Self(raw, read, of_rules) = self;
            of_rules.call::<T>(raw.load(&read)?.rules)
        }
    }
    let read = ReadArguments::by_content(lenient);
    let raw = read.open(from)?;
    visit(raw.tuple(), Read(raw, read, of_rules))
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
