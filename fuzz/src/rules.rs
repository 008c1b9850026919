//! Readers of rules: nothing panics, strict and lenient reading agree, and what is read, written in plain,
//! reads back equal.

use wirespeed_classify::read::{
    Doubts, ReadOptions, RuleFile, RuleFormat, read_rules_from, read_updates_from,
};
use wirespeed_classify::write::{write_classbench, write_rules, write_updates};
use wirespeed_classify::{Ipv4Tuple, Ipv6Tuple, OpenFlowTuple, RuleSet, Tuple};

/// Reads bytes in a format and in that which is recognised, as rules of every tuple.
pub fn rules(format: RuleFormat, bytes: &[u8]) {
    for format in [Some(format), None] {
        of::<Ipv4Tuple>(format, bytes);
        of::<Ipv6Tuple>(format, bytes);
        of::<OpenFlowTuple>(format, bytes);
    }
}

/// Reads policies in JSON also as YAML, of which JSON is a part, behind the mark of a document. What is read
/// is the same.
pub fn policies(bytes: &[u8]) {
    let as_yaml = [b"---\n", bytes].concat();
    let options = |table: &str| ReadOptions {
        format: Some(RuleFormat::NetworkPolicy),
        table_name: Some(table.to_owned()),
        ..ReadOptions::default()
    };
    for table in ["ingress", "egress"] {
        let [json, yaml] =
            [bytes, &as_yaml].map(|bytes| read_rules_from::<Ipv4Tuple>(bytes, "fuzz", &options(table)));
        if let (b'{', Ok((json, _)), Ok((yaml, _))) = (bytes.first().copied().unwrap_or_default(), json, yaml)
        {
            assert_eq!(plain(&json.rules), plain(&yaml.rules));
        }
    }
}

/// Reads bytes as updates of rules of every tuple.
pub fn rule_updates(bytes: &[u8]) {
    updates_of::<Ipv4Tuple>(bytes);
    updates_of::<Ipv6Tuple>(bytes);
    updates_of::<OpenFlowTuple>(bytes);
}

fn updates_of<T: Tuple>(bytes: &[u8]) {
    let options = |lenient| ReadOptions { lenient, ..ReadOptions::default() };
    let strictly = read_updates_from::<T>(bytes, "fuzz", &options(false));
    let Ok((updates, report)) = read_updates_from::<T>(bytes, "fuzz", &options(true)) else {
        assert!(strictly.is_err(), "strict reading took what lenient reading refused");
        return;
    };
    let _shown = report.to_string();
    if let Ok((strictly, _)) = strictly {
        assert_eq!(strictly, updates);
    }
    let mut text = Vec::new();
    write_updates(&updates, &mut text).expect("a Vec takes what is written");
    let (again, _) =
        read_updates_from::<T>(&text[..], "again", &options(false)).expect("what was written reads back");
    assert_eq!(again, updates);
    // They are taken one by one: what a set refuses leaves it as it was.
    let mut rules = RuleSet::new();
    for update in &updates {
        let before = rules.len();
        if rules.apply(update).is_err() {
            assert_eq!(rules.len(), before);
        }
    }
}

fn of<T: Tuple>(format: Option<RuleFormat>, bytes: &[u8]) {
    let options = |lenient| ReadOptions { format, lenient, ..ReadOptions::default() };
    let strictly = read_rules_from::<T>(bytes, "fuzz", &options(false));
    match read_rules_from::<T>(bytes, "fuzz", &options(true)) {
        Ok((file, report)) => {
            let _shown = report.to_string();
            assert_eq!((report.rules, report.entries), (file.rules.len(), file.rules.entries_len()));
            actions(&file);
            assert_eq!(Doubts::from_text(&file.doubts.to_text()), Ok(file.doubts.clone()));
            // What is written of no rules is no file of rules.
            if !file.rules.is_empty() {
                reads_back(&file.rules);
                as_filters(&file.rules);
            }
            if let Ok((strictly, with)) = strictly {
                assert_eq!(with.left_out, report.left_out);
                assert_eq!(plain(&strictly.rules), plain(&file.rules));
            }
        }
        Err(error) => {
            let _shown = error.to_string();
            assert!(strictly.is_err(), "strict reading took what lenient reading refused: {error}");
        }
    }
}

/// Every action has its name, in formats that have names.
fn actions<T: Tuple>(file: &RuleFile<T>) {
    if !file.actions.is_empty() {
        assert!(file.rules.iter().all(|(number, _)| file.action(number.get()).is_some()));
    }
}

fn plain<T: Tuple>(rules: &RuleSet<T>) -> Vec<u8> {
    let mut text = Vec::new();
    write_rules(rules, &mut text).expect("a Vec takes what is written");
    text
}

fn reads_back<T: Tuple>(rules: &RuleSet<T>) {
    let text = plain(rules);
    let options = ReadOptions { format: Some(RuleFormat::Plain), ..ReadOptions::default() };
    let (again, report) =
        read_rules_from::<T>(&text[..], "again", &options).expect("what was written reads back");
    assert!(report.left_out.is_empty());
    assert_eq!(again.rules.sorted(), rules.sorted());
}

/// What filters of ClassBench can say reads back from them, best first.
fn as_filters<T: Tuple>(rules: &RuleSet<T>) {
    let mut text = Vec::new();
    if write_classbench(rules, &mut text).is_err() {
        return;
    }
    let options = ReadOptions { format: Some(RuleFormat::ClassBench), ..ReadOptions::default() };
    let (again, _) = read_rules_from::<T>(&text[..], "again", &options).expect("filters read back");
    let mut ranked = rules.sorted();
    ranked.sort_by_key(|(_, rule)| std::cmp::Reverse(rule.priority()));
    assert_eq!(again.rules.len(), ranked.len());
    for ((_, filter), (_, rule)) in again.rules.sorted().into_iter().zip(ranked) {
        assert!(filter.patterns().eq(rule.patterns()));
    }
}
