//! Options for reading sets of rules: for all sets of a command line, or for one by its name.

use std::ffi::{OsStr, OsString};
use std::str::FromStr;

use anyhow::{Context, Result, bail};
use clap::Args;
use wirespeed::classify::TupleName;
use wirespeed_classify::read::Assumption;

/// Options for reading the rules that records are looked up in.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Rules (of all sets, or NAME=... of the set --rules NAME=FILE)")]
pub struct RuleArguments {
    /// Fact about all packets that records don't hold, such as ct=new or in=eth0. It decides rules that test
    /// the fact. Repeat the option for several facts. Facts of one set (fw=in=eth0) count beside those of all
    #[arg(long, value_name = "[NAME=]KEY=VALUE")]
    assume: Vec<String>,

    /// Chain to read from iptables-save (the default is INPUT) or from nft; security groups, by ids or names
    /// with commas between; or the network policy, by NAME or NAMESPACE/NAME
    #[arg(long, value_name = "[NAME=]CHAIN")]
    chain: Vec<String>,

    /// Table to read from iptables-save (the default is filter) or from nft; ingress (the default) or egress
    /// of security groups and network policies
    #[arg(long, value_name = "[NAME=]TABLE")]
    rule_table: Vec<String>,

    /// Table to read from ovs-ofctl dump-flows (the default is 0)
    #[arg(long, value_name = "[NAME=]N")]
    flow_table: Vec<String>,

    /// Fields that the rules test: the 5-tuple of ipv4 or ipv6. By default recognised by content; a file
    /// of both families needs the option, and flows of ovs-ofctl are read as rules of ipv4
    #[arg(long, value_name = "[NAME=]TUPLE")]
    tuple: Vec<String>,

    /// Sets that rules of iptables-save name, in the format of ipset save
    #[arg(long, value_name = "[NAME=]FILE")]
    ipset: Vec<String>,
}

/// The options for one set of rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SetArguments {
    pub(super) assume: Vec<Assumption>,
    pub(super) chain: Option<String>,
    pub(super) rule_table: Option<String>,
    pub(super) flow_table: Option<u8>,
    pub(super) tuple: Option<TupleName>,
    pub(super) ipset: Option<OsString>,
}

impl SetArguments {
    /// The file of sets of addresses.
    pub fn ipset(&self) -> Option<&OsStr> {
        self.ipset.as_deref()
    }
}

impl RuleArguments {
    /// The first option that is given. `None` if there is none.
    pub fn given(&self) -> Option<&'static str> {
        let given = [
            ("--assume", &self.assume),
            ("--chain", &self.chain),
            ("--rule-table", &self.rule_table),
            ("--flow-table", &self.flow_table),
            ("--tuple", &self.tuple),
            ("--ipset", &self.ipset),
        ];
        given.iter().find(|(_, given)| !given.is_empty()).map(|(option, _)| *option)
    }

    /// The options for each of these sets. What is given for a set by its name goes before what is given for
    /// all.
    pub fn of_sets(&self, sets: &[&str]) -> Result<Vec<SetArguments>> {
        let text = |text: &str| Ok(text.to_owned());
        let number =
            |text: &str| text.parse().with_context(|| format!("a table of flows is a number: {text:?}"));
        let tuple = |text: &str| {
            let known = || TupleName::ALL.iter().map(|tuple| tuple.as_str()).collect::<Vec<_>>().join(", ");
            TupleName::of(text).with_context(|| format!("no tuple {text:?}; there are {}", known()))
        };
        let file = |text: &str| Ok(OsString::from(text));
        let chains = each(&self.chain, "--chain", sets, text)?;
        let tables = each(&self.rule_table, "--rule-table", sets, text)?;
        let flow_tables = each(&self.flow_table, "--flow-table", sets, number)?;
        let tuples = each(&self.tuple, "--tuple", sets, tuple)?;
        let ipsets = each(&self.ipset, "--ipset", sets, file)?;
        let mut of_sets = Vec::new();
        let rest = tables.into_iter().zip(flow_tables).zip(tuples).zip(ipsets);
        for (chain, (((rule_table, flow_table), tuple), ipset)) in chains.into_iter().zip(rest) {
            let assume = self.facts(sets, of_sets.len())?;
            of_sets.push(SetArguments { assume, chain, rule_table, flow_table, tuple, ipset });
        }
        Ok(of_sets)
    }

    /// The facts for a set: those for all, and its own. A fact has a `=` of its own.
    fn facts(&self, sets: &[&str], at: usize) -> Result<Vec<Assumption>> {
        let mut facts = Vec::new();
        for text in &self.assume {
            let whole = Assumption::from_str(text).with_context(|| format!("--assume {text}"));
            let of_set =
                of_set(text, sets).and_then(|(set, fact)| Some((set, Assumption::from_str(fact).ok()?)));
            match (of_set, whole) {
                (Some((set, _)), Ok(_)) => bail!(
                    "--assume {text}: a fact of all sets, or of the set {}; name the set otherwise",
                    sets[set]
                ),
                (Some((set, fact)), Err(_)) if set == at => facts.push(fact),
                (Some(_), Err(_)) => {}
                (None, whole) => facts.push(whole?),
            }
        }
        Ok(facts)
    }
}

/// The value of an option for each set: its own, or that for all.
fn each<T: Clone>(
    texts: &[String],
    option: &str,
    sets: &[&str],
    parse: impl Fn(&str) -> Result<T>,
) -> Result<Vec<Option<T>>> {
    let (mut all, mut own) = (None, vec![None; sets.len()]);
    for text in texts {
        let (place, value, of) = match of_set(text, sets) {
            Some((set, value)) => (&mut own[set], value, sets[set]),
            None => (&mut all, &**text, "all sets"),
        };
        let value = parse(value).with_context(|| format!("{option} {text}"))?;
        if place.replace(value).is_some() {
            bail!("{option} is given twice for {of}");
        }
    }
    Ok(own.into_iter().map(|own| own.or_else(|| all.clone())).collect())
}

/// The set that a text begins with the name of, and what follows.
fn of_set<'t>(text: &'t str, sets: &[&str]) -> Option<(usize, &'t str)> {
    let (name, value) = text.split_once('=')?;
    Some((sets.iter().position(|set| *set == name)?, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|&text| text.to_owned()).collect()
    }

    #[test]
    fn values_of_a_set_go_before_those_of_all() {
        let given = RuleArguments {
            assume: texts(&["ct=new", "fw=in=eth0"]),
            chain: texts(&["FORWARD", "fw=OUTPUT"]),
            rule_table: texts(&["aws=egress"]),
            flow_table: texts(&["3"]),
            tuple: texts(&["aws=ipv6"]),
            ipset: texts(&["fw=sets", "x=y"]),
        };
        let [fw, aws] = &given.of_sets(&["fw", "aws"]).unwrap()[..] else { panic!() };
        let facts = |set: &SetArguments| set.assume.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!((facts(fw), facts(aws)), (texts(&["ct=new", "in=eth0"]), texts(&["ct=new"])));
        let of = |set: &SetArguments| (set.chain.clone().unwrap(), set.rule_table.clone(), set.flow_table);
        assert_eq!(of(fw), ("OUTPUT".into(), None, Some(3)));
        assert_eq!(of(aws), ("FORWARD".into(), Some("egress".into()), Some(3)));
        assert_eq!((fw.tuple, aws.tuple), (None, Some(TupleName::Ipv6)));
        assert_eq!((fw.ipset(), aws.ipset()), (Some("sets".as_ref()), Some("x=y".as_ref())));
        assert_eq!(given.given(), Some("--assume"));
    }

    #[test]
    fn what_is_not_clear_is_refused() {
        let said = |given: RuleArguments, set: &str| format!("{:#}", given.of_sets(&[set, "b"]).unwrap_err());
        let default = RuleArguments::default;
        for (given, set, error) in [
            (
                RuleArguments { chain: texts(&["x", "y"]), ..default() },
                "a",
                "--chain is given twice for all sets",
            ),
            (
                RuleArguments { chain: texts(&["a=x", "a=y"]), ..default() },
                "a",
                "--chain is given twice for a",
            ),
            (
                RuleArguments { tuple: texts(&["a=ipv5"]), ..default() },
                "a",
                "--tuple a=ipv5: no tuple \"ipv5\"",
            ),
            (RuleArguments { flow_table: texts(&["a=256"]), ..default() }, "a", "--flow-table a=256: "),
            (RuleArguments { assume: texts(&["a=new"]), ..default() }, "a", "--assume a=new: "),
            (
                RuleArguments { assume: texts(&["in=out=eth0"]), ..default() },
                "in",
                "of all sets, or of the set in",
            ),
        ] {
            let said = said(given, set);
            assert!(said.contains(error), "{said}");
        }
        // A set with the name of a fact's key.
        let given = RuleArguments { assume: texts(&["ct=new"]), ..default() };
        assert_eq!(given.of_sets(&["ct", "b"]).unwrap()[1].assume.len(), 1);
    }
}
