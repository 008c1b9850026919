//! All rules of a classifier replaced in one step, from memory and from files.

use std::path::Path;

use wirespeed::classify::RuleVerdict;
use wirespeed::classify::read::Doubts;
use wirespeed::engine::RuleTuple;
use wirespeed::prelude::*;
use wirespeed::{Error, Labels, NextHop, Reloader};

use crate::classify::{check, churn, rules};
use crate::common::{engines, on_host, under_readers};

/// The rules after some updates.
fn changed<T: RuleTuple>(rules: &RuleSet<T>, updates: usize) -> RuleSet<T> {
    let mut after = rules.clone();
    churn(rules, updates, 9).iter().for_each(|update| _ = after.apply(update).unwrap());
    after
}

/// The number of numbers whose rules are not alike in both.
fn differing<T: RuleTuple>(old: &RuleSet<T>, new: &RuleSet<T>) -> usize {
    let last = old.last_number().max(new.last_number());
    (1..=last).filter(|&number| old.rule(number) != new.rule(number)).count()
}

fn every_engine<T: RuleTuple>() {
    for engine in engines::<T>() {
        let first = rules::<T>(21);
        let mut classifier = Classifier::builder().rule_set(first.clone()).engine(engine).build().unwrap();
        let (reader, few, other) = (classifier.reader(), changed(&first, 5), rules::<T>(22));
        let mut spent = few.clone();
        let last = spent.insert("proto=tcp".parse().unwrap()).unwrap();
        spent.remove(last.get());
        // Few differences, many, none, no rules at all, one that was removed, and back.
        for (at, state) in [few.clone(), other.clone(), other, RuleSet::new(), few, spent].iter().enumerate()
        {
            let (before, rebuilds) = (classifier.rules().clone(), classifier.rebuilds());
            let applied = classifier.replace(state.clone()).unwrap();
            let differing = differing(&before, state);
            assert_eq!(applied.changes, differing, "{engine}: state {at}");
            let is_many = differing > state.len() / 4;
            assert!(!is_many || applied.rebuilt && classifier.rebuilds() == rebuilds + 1, "{engine}: {at}");
            assert_eq!(classifier.rules().last_number(), before.last_number().max(state.last_number()));
            assert_eq!(classifier.len(), state.len());
            check(&reader, state, engine.as_str()); // with the actions
        }
        // Updates go on from there, with numbers that no rule had.
        let number = classifier.insert("sport=7 priority=4294967295 action=3".parse().unwrap()).unwrap();
        assert!(number > last, "{engine}");
        let found = reader.find(&"sport=7".parse().unwrap());
        assert_eq!(found, Some(RuleMatch { number, action: NextHop(3) }), "{engine}");
    }
}

#[test]
fn every_engine_takes_other_rules() {
    every_engine::<Ipv4Tuple>();
    every_engine::<OpenFlowTuple>();
}

/// Some rules have the number of the round as action, so a mixture of two rounds is seen.
fn round(n: u32, of_round: u32, others: u32) -> RuleSet<Ipv4Tuple> {
    let rule = |text: String| text.parse::<Rule<Ipv4Tuple>>().unwrap();
    let still = (0..others).map(|at| rule(format!("sport={at} proto=udp action=1")));
    let of_round = (0..of_round).map(|at| rule(format!("dport={at} proto=tcp action={n}")));
    let mut rules: RuleSet<_> = of_round.chain(still).collect();
    if n.is_multiple_of(2) {
        // Other numbers, too.
        let moved = rules.remove(1).unwrap();
        rules.insert(moved).unwrap();
    }
    rules
}

#[test]
fn readers_see_one_set_or_the_other() {
    // By a build, and by difference.
    for (of_round, others) in [(64, 0), (8, 100)] {
        let mut classifier = Classifier::builder().rule_set(round(1, of_round, others)).build().unwrap();
        let (reader, rebuilds) = (classifier.reader(), classifier.rebuilds());
        let keys: Vec<_> = (0..of_round).map(|at| format!("dport={at} proto=tcp").parse().unwrap()).collect();
        let look = || {
            let mut found = vec![None; keys.len()];
            reader.match_batch(&keys, &mut found);
            let action = |found: &Option<RuleMatch>| found.unwrap().action;
            assert!(found.iter().all(|one| action(one) == action(&found[0])), "a mixture");
            let guard = reader.enter();
            let first = guard.find(&keys[0]).unwrap();
            assert_eq!(guard.action(first.number), Some(first.action));
        };
        let change = || (2..60).for_each(|n| _ = classifier.replace(round(n, of_round, others)).unwrap());
        under_readers(look, change);
        let rebuilt = classifier.rebuilds() - rebuilds;
        assert!(if others == 0 { rebuilt == 58 } else { rebuilt < 20 }, "{rebuilt} rebuilds");
    }
}

#[test]
fn what_fails_leaves_the_rules_and_their_labels() {
    let (labels, rule) = (Labels::new(), "proto=tcp".parse::<Rule<Ipv4Tuple>>().unwrap());
    let builder = Classifier::builder().labelled_rules(&labels, [(rule.clone(), "a".to_owned())]);
    let mut classifier = builder.memory_cap(256 << 10).build().unwrap();
    let (reader, tuple) = (classifier.reader(), "proto=tcp".parse().unwrap());
    let many = (0..8_000).map(|n| format!("src=10.{}.{}.0/24 dport={n}", n % 200, n % 250).parse().unwrap());
    let error = classifier.replace(many.collect()).unwrap_err();
    assert!(matches!(error, Error::MemoryCap { .. }), "{error}");
    assert_eq!((classifier.refused(), classifier.len(), labels.len()), (1, 1, 1));
    assert_eq!(classifier.rules().last_number(), 1);
    assert_eq!(reader.find(&tuple).map(|found| found.action), Some(NextHop(1)));
    classifier
        .set(RuleNumber::new(1).unwrap(), rule.with_action(labels.intern("b".to_owned()).unwrap().0))
        .unwrap();
    let found = reader.find(&tuple).unwrap();
    assert_eq!(labels.get(found.action).as_deref().map(String::as_str), Some("b"));
}

#[test]
fn gpus_follow() {
    let Some((fleet, _)) = on_host(<Ipv4Tuple as wirespeed::engine::Served>::gpu_options()) else { return };
    let first = rules::<Ipv4Tuple>(4);
    let builder = Classifier::builder().rule_set(first.clone()).device(Device::Gpu).fleet(fleet);
    let mut classifier = builder.build().unwrap();
    let states = [(changed(&first, 5), doubtful(1_000)), (rules(5), Doubts::none()), (rules(6), doubtful(8))];
    for (state, doubts) in states {
        classifier.replace_with_doubts(state.clone(), doubts).unwrap();
        let reader = classifier.reader();
        check(&reader, &state, "on a GPU");
        let keys = &crate::classify::tuples(&state)[..100];
        let (mut verdicts, guard) = (vec![RuleVerdict::default(); keys.len()], reader.enter());
        reader.verdict_batch(keys, &mut verdicts);
        assert!(verdicts.iter().eq(keys.iter().map(|key| guard.verdict(key)).collect::<Vec<_>>().iter()));
    }
    assert!(classifier.lookups().unwrap().gpu > 0);
}

const SAVED: &str = "*filter\n:INPUT DROP [0:0]\n";

#[test]
fn a_classifier_follows_its_file() {
    let dir = tempfile::tempdir().unwrap();
    let (path, other) = (dir.path().join("rules"), dir.path().join("other"));
    let labels = Labels::<String>::new();
    let builder = Classifier::<Ipv4Tuple>::builder().assume("ct=new");
    let (mut classifier, mut reloader) = (builder.build().unwrap(), Reloader::new(&path));
    let reader = classifier.reader();
    let mut reload =
        |classifier: &mut Classifier<_>| reloader.if_changed(|path| classifier.load(path, &labels));
    let put = |text: &str| {
        std::fs::write(&other, text).unwrap();
        std::fs::rename(&other, &path).unwrap();
    };
    let ask = |tuple: &str| {
        let known = labels.enter();
        let found = reader.find(&tuple.parse().unwrap());
        found.and_then(|found| known.get(found.action).cloned()).unwrap_or_default()
    };
    put("dport=80 proto=tcp action=3\nproto=udp action=4\n");
    assert_eq!(reload(&mut classifier).unwrap().map(|applied| applied.changes), Some(2));
    assert!(reload(&mut classifier).unwrap().is_none());
    assert_eq!([ask("dport=80 proto=tcp"), ask("proto=udp")], ["3", "4"]);

    // The facts that the builder assumed decide rules of later files, too.
    let stateful =
        "-A INPUT -m conntrack --ctstate ESTABLISHED -j ACCEPT\n-A INPUT -p udp -j ACCEPT\nCOMMIT\n";
    put(&[SAVED, stateful].concat());
    reload(&mut classifier).unwrap().unwrap();
    assert_eq!([ask("dport=80 proto=tcp"), ask("proto=udp")], ["DROP", "ACCEPT"]);
    assert_eq!((classifier.reports().len(), labels.len()), (1, 2));

    // A wrong file changes nothing, and is tried again. So does a file with a rule that fields don't decide.
    let owned = [SAVED, "-A INPUT -m owner --uid-owner 7 -j REJECT\nCOMMIT\n"].concat();
    for (text, why) in [("dport=80 action=5\nnonsense\n", ":2"), (&owned, "leave_out")] {
        put(text);
        for _ in 0..2 {
            let error = reload(&mut classifier).unwrap_err();
            assert!(error.to_string().contains(why), "{error}");
            assert_eq!([ask("dport=80 proto=tcp"), ask("proto=udp")], ["DROP", "ACCEPT"]);
            assert_eq!((classifier.reports().len(), labels.len()), (1, 2));
        }
    }

    // An image, with the labels of another classifier.
    let (of_image, rule) = (Labels::new(), |text: &str| text.parse::<Rule<Ipv4Tuple>>().unwrap());
    let rules = [(rule("proto=udp"), "x".to_owned()), (rule("dport=80"), "ACCEPT".to_owned())];
    let image = Classifier::builder().labelled_rules(&of_image, rules).build().unwrap();
    image.save_labelled(&other, &of_image).unwrap();
    std::fs::rename(&other, &path).unwrap();
    reload(&mut classifier).unwrap().unwrap();
    assert_eq!([ask("dport=80 proto=tcp"), ask("proto=udp")], ["ACCEPT", "x"]);

    // An image without labels says nothing that a label could be.
    image.save(&path).unwrap();
    let error = reload(&mut classifier).unwrap_err();
    assert!(error.to_string().contains("labels"), "{error}");
    assert_eq!((ask("proto=udp"), labels.len()), ("x".to_owned(), 2));
}

/// A file that is read, with a rule that fields don't decide. Its action is `REJECT`.
const OWNED: &str = "-A INPUT -p tcp -j ACCEPT\n-A INPUT -m owner --uid-owner 7 -j REJECT\nCOMMIT\n";

#[test]
fn rules_in_doubt_come_and_go() {
    let dir = tempfile::tempdir().unwrap();
    let [path, whole, image] = ["rules", "whole", "image"].map(|name| dir.path().join(name));
    std::fs::write(&path, [SAVED, OWNED].concat()).unwrap();
    std::fs::write(&whole, [SAVED, "-A INPUT -p tcp -j ACCEPT\nCOMMIT\n"].concat()).unwrap();
    let labels = Labels::<String>::new();
    let mut classifier =
        Classifier::<Ipv4Tuple>::builder().file(&whole, &labels).leave_out(true).build().unwrap();
    let reader = classifier.reader();
    let is_certain = |tuple: &str| {
        let (tuple, mut verdicts) = (tuple.parse().unwrap(), [RuleVerdict::default()]);
        reader.verdict_batch(&[tuple], &mut verdicts);
        let guard = reader.enter();
        assert_eq!([reader.verdict(&tuple), guard.verdict(&tuple)], [verdicts[0]; 2]);
        assert_eq!(guard.doubts_of(&tuple).next().is_none(), verdicts[0].is_certain());
        verdicts[0].is_certain()
    };
    let all_labels = || labels.enter().iter().map(|(_, label)| label.clone()).collect::<Vec<_>>();
    assert!(is_certain("proto=udp"));

    // The rules are the same, so doubts come and go alone. Their labels do, too.
    for _ in 0..2 {
        let applied = classifier.load(&path, &labels).unwrap();
        assert_eq!((applied.changes, applied.rebuilt), (0, false));
        assert!(is_certain("proto=tcp") && !is_certain("proto=udp"));
        assert_eq!((reader.doubts().uncertain.len(), classifier.doubts()), (1, &*reader.doubts()));
        assert_eq!((classifier.reports()[0].left_out.len(), all_labels().len()), (1, 3));
        // Loaded again, it is no change.
        classifier.load(&path, &labels).unwrap();
        assert!(is_certain("proto=tcp") && !is_certain("proto=udp"));
        classifier.save_labelled(&image, &labels).unwrap();
        classifier.load(&whole, &labels).unwrap();
        assert!(is_certain("proto=udp") && reader.doubts().is_empty());
        assert_eq!(labels.find(&"REJECT".to_owned()), None);
    }

    // An image brings its doubts, and their labels.
    classifier.load(&image, &labels).unwrap();
    assert!(is_certain("proto=tcp") && !is_certain("proto=udp"));
    let action = NextHop(reader.doubts().uncertain[0].rule.action());
    assert_eq!(labels.get(action).as_deref().map(String::as_str), Some("REJECT"));
    // An update reckons with the priorities from now on.
    let first = "proto=udp priority=4294967295 action=1".parse().unwrap();
    let number = classifier.insert(first).unwrap();
    assert!(is_certain("proto=udp"));
    classifier.remove(number).unwrap();
    assert!(!is_certain("proto=udp"));
    classifier.replace(RuleSet::new()).unwrap();
    assert!(is_certain("proto=udp") && reader.doubts().is_empty() && classifier.reports().is_empty());

    // Who did not ask for `leave_out` gets no such rules.
    let mut strict = Classifier::<Ipv4Tuple>::builder().file(&whole, &labels).build().unwrap();
    let mut refused = |path: &Path| strict.load(path, &labels).unwrap_err();
    assert!(matches!(refused(&path), Error::RulesLeftOut { .. }));
    assert!(matches!(refused(&image), Error::RulesInDoubt { rules: 1, .. }));
    assert_eq!((strict.len(), strict.doubts().is_empty()), (2, true));
    // Who opens an image with such rules takes other files with them, too.
    let mut opened = Classifier::<Ipv4Tuple>::open(&image).unwrap();
    opened.load(&path, &labels).unwrap();
    assert_eq!(opened.doubts().uncertain.len(), 1);
}

/// One rule in doubt, which matches all tuples.
fn doubtful(action: u32) -> Doubts<Ipv4Tuple> {
    let text = format!("before=1 effect=action skips=0 line=1 priority=0 action={action}\ta mark\ta rule");
    Doubts::from_text(&text).unwrap()
}

#[test]
fn a_replacement_that_fails_leaves_the_doubts() {
    let labels = Labels::new();
    let index = |label: &str| labels.intern(label.to_owned()).unwrap();
    let builder = Classifier::<Ipv4Tuple>::builder().memory_cap(256 << 10);
    let mut classifier = builder.build().unwrap();
    classifier.attach_labels(&labels);
    classifier.replace_with_doubts(RuleSet::new(), doubtful(index("old").0)).unwrap();
    let many = (0..8_000).map(|n| format!("src=10.{}.{}.0/24 dport={n}", n % 200, n % 250).parse().unwrap());
    let new = index("new");
    let error = classifier.replace_with_doubts(many.collect(), doubtful(new.0)).unwrap_err();
    assert!(matches!(error, Error::MemoryCap { .. }), "{error}");
    let is_there = |label: &str| labels.find(&label.to_owned()).is_some();
    assert_eq!(classifier.reader().doubts().uncertain[0].rule.action(), index("old").0);
    // The caller's claim on the new label stays, until it is given up.
    assert!(is_there("old") && is_there("new"));
    labels.release(new);
    assert!(is_there("old") && !is_there("new"));
    let new = index("new").0;
    classifier.replace_with_doubts(RuleSet::new(), doubtful(new)).unwrap();
    labels.release(NextHop(1)); // interned once more above
    assert!(!is_there("old") && is_there("new"));
    classifier.replace(RuleSet::new()).unwrap();
    assert!(!is_there("new"));
}

#[test]
fn readers_see_rules_with_their_own_doubts() {
    // Sets whose first action is even are in doubt. By a build, and by difference.
    for (of_round, others) in [(64, 0), (2, 100)] {
        let mut classifier = Classifier::builder().rule_set(round(1, of_round, others)).build().unwrap();
        let (reader, rebuilds) = (classifier.reader(), classifier.rebuilds());
        let keys: Vec<_> = (0..of_round).map(|at| format!("dport={at} proto=tcp").parse().unwrap()).collect();
        let look = || {
            let mut verdicts = vec![RuleVerdict::default(); keys.len()];
            reader.verdict_batch(&keys, &mut verdicts);
            verdicts.push(reader.verdict(&keys[0]));
            for verdict in verdicts {
                let action = verdict.found().unwrap().action.0;
                assert_eq!(verdict.is_certain(), !action.is_multiple_of(2), "{action}");
            }
        };
        let change = || {
            for n in 2..60 {
                let doubts = if n % 2 == 0 { doubtful(1_000) } else { Doubts::none() };
                classifier.replace_with_doubts(round(n, of_round, others), doubts).unwrap();
            }
        };
        under_readers(look, change);
        let rebuilt = classifier.rebuilds() - rebuilds;
        assert!(if others == 0 { rebuilt == 58 } else { rebuilt < 20 }, "{rebuilt} rebuilds");
    }
}
