//! Classifiers: every engine in the list, every tuple, before, during and after updates, from every source,
//! and through every reader.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use wirespeed::classify::oracle::Oracle;
use wirespeed::classify::read::{ReadOptions, Source, read_rules, read_trace};
use wirespeed::classify::{FrameError, RuleError, TupleName, generate};
use wirespeed::engine::{self, EngineName, Engines, RuleTuple, of_domain};
use wirespeed::fib::synth::rng::Rng;
use wirespeed::image::{Image, ImageBuilder};
use wirespeed::prelude::*;
use wirespeed::{Error, Labels, NextHop};

use crate::common::engines;

/// Rules with what engines get wrong among them: ranges, equal priorities, a rule for all, one for a single
/// tuple, masks with holes, equal rules, and an action that is none.
pub(crate) fn rules<T: RuleTuple>(seed: u64) -> RuleSet<T> {
    let mut rng = Rng::new(seed);
    let mut rules = RuleSet::new();
    for n in 0..150u32 {
        rules.insert(rule(&mut rng).with_action(n % 7)).unwrap();
    }
    let random = T::from_words(&vec![0x5a5a_5a5a; T::WORDS]);
    for pattern in [Pattern::all(), Pattern::exact(random), Pattern::new(random, random), Pattern::all()] {
        rules.insert(Rule::new(pattern, 0, 9)).unwrap();
    }
    rules
}

/// A rule of few kinds, so that rules overlap, of which many have one priority.
fn rule<T: RuleTuple>(rng: &mut Rng) -> Rule<T> {
    let word = |wanted: &str, width: u64, rng: &mut Rng| format!("{wanted}={} ", rng.below(width));
    let mut text = format!("priority={} ", rng.below(4));
    if rng.chance(0.5) {
        text += if rng.chance(0.5) { "proto=tcp " } else { "proto=udp " };
    }
    if rng.chance(0.3) {
        text += &word("sport", 4, rng);
    }
    match rng.below(3) {
        0 => text += &word("dport", 8, rng),
        1 => text += &format!("dport={}-{} ", rng.below(8), 9 + rng.below(100)),
        _ => {}
    }
    let rule: Rule<T> = text.parse().unwrap();
    let (src, len) = (T::field_of("src").unwrap(), u16::try_from(rng.below(9)).unwrap());
    let base = rule.base().with(src, u128::from(rng.below(4)) << (src.width - 2), src.prefix(len));
    Rule::with_ranges(base, rule.ranges().iter().copied(), rule.priority(), 0).unwrap()
}

/// Tuples of the rules, and others.
pub(crate) fn tuples<T: RuleTuple>(rules: &RuleSet<T>) -> Vec<T> {
    let mut tuples = generate::tuples(rules, 1_000, 1.0, 3);
    tuples.extend(generate::tuples::<T>(&RuleSet::new(), 200, 1.0, 4));
    tuples
}

/// Updates of all kinds, of numbers that are there, that were, and that never were.
pub(crate) fn churn<T: RuleTuple>(rules: &RuleSet<T>, count: usize, seed: u64) -> Vec<RuleUpdate<T>> {
    let (mut rng, most) = (Rng::new(seed), u64::from(rules.last_number()) + 5);
    let update = |rng: &mut Rng| {
        let number = u32::try_from(1 + rng.below(most)).unwrap();
        let action = u32::try_from(1 + rng.below(20)).unwrap();
        match rng.below(3) {
            0 => RuleUpdate::Insert(rule(rng).with_action(action)),
            1 => RuleUpdate::Set(number, rule(rng).with_action(action)),
            _ => RuleUpdate::Remove(number),
        }
    };
    (0..count).map(|_| update(&mut rng)).collect()
}

/// Holds everything that a reader can do against a linear scan of the rules.
#[track_caller]
pub(crate) fn check<T: RuleTuple>(reader: &RuleReader<T>, rules: &RuleSet<T>, what: &str) {
    let (oracle, tuples) = (Oracle::of(rules), tuples(rules));
    let right: Vec<u32> = tuples.iter().map(|tuple| oracle.lookup(tuple)).collect();
    let matched = |&number: &u32| {
        let action = NextHop(rules.action(number)?);
        Some(RuleMatch { number: RuleNumber::new(number)?, action })
    };
    let matches: Vec<_> = right.iter().map(matched).collect();
    for (at, tuple) in tuples.iter().enumerate().step_by(7) {
        let number = RuleNumber::new(right[at]);
        assert_eq!((reader.lookup(tuple), reader.enter().lookup(tuple)), (number, number), "{what}: {tuple}");
        assert_eq!(reader.find(tuple), matches[at], "{what}: {tuple}");
        assert_eq!(number.and_then(|n| reader.enter().action(n)), matches[at].map(|m| m.action), "{what}");
    }
    for len in [0, 1, 3, 1_023, tuples.len()] {
        let mut found = vec![u32::MAX; len];
        reader.lookup_batch(&tuples[..len], &mut found);
        assert_eq!(found, right[..len], "{what}: {len}");
        found.fill(u32::MAX);
        reader.par_lookup_batch(&tuples[..len], &mut found);
        assert_eq!(found, right[..len], "{what}: {len} on all cores");
        let mut found = vec![None; len];
        reader.match_batch(&tuples[..len], &mut found);
        assert_eq!(found, matches[..len], "{what}: {len} with actions");
        let mut batch = reader.batches().batch(len).unwrap();
        assert_eq!(batch.extend_from(&tuples[..len]), len);
        let mut answers = batch.submit().wait();
        let found = answers.matches();
        assert!(found.iter().eq(matches[..len].iter().copied()), "{what}: {len} in place");
        assert_eq!((found.len(), found.is_empty()), (len, len == 0));
    }
}

#[test]
fn every_engine_is_right_before_and_after_updates() {
    for engine in engines::<Ipv4Tuple>() {
        is_right_before_and_after_updates::<Ipv4Tuple>(engine);
        is_right_before_and_after_updates::<Ipv6Tuple>(engine);
        is_right_before_and_after_updates::<OpenFlowTuple>(engine);
    }
}

fn is_right_before_and_after_updates<T: RuleTuple>(engine: EngineName) {
    let mut rules = rules::<T>(11);
    let what = format!("{engine} {}", T::NAME);
    let mut classifier = Classifier::builder().rule_set(rules.clone()).engine(engine).build().unwrap();
    assert_eq!((classifier.engine(), classifier.len()), (engine, rules.len()));
    assert_eq!(classifier.classes(), rules.classes().len());
    let reader = classifier.reader();
    check(&reader, &rules, &what);
    for updates in churn(&rules, 200, 5).chunks(100) {
        let applied = classifier.apply(updates).unwrap();
        let changes = updates.iter().filter(|update| rules.apply(update).unwrap()).count();
        assert_eq!(applied.changes, changes);
        check(&reader.clone(), &rules, &what);
    }
    let best: Rule<T> = "sport=7 priority=4294967295 action=3".parse().unwrap();
    let number = classifier.insert(best.clone()).unwrap();
    let tuple: T = "sport=7".parse().unwrap();
    assert_eq!(reader.find(&tuple), Some(RuleMatch { number, action: NextHop(3) }));
    classifier.set(number, best.with_action(4)).unwrap();
    assert_eq!(reader.find(&tuple), Some(RuleMatch { number, action: NextHop(4) }));
    assert_eq!(classifier.remove(number).unwrap().changes, 1);
    assert_ne!(reader.lookup(&tuple), Some(number));
    let all: Vec<_> = classifier.rules().iter().map(|(n, _)| RuleUpdate::Remove(n.get())).collect();
    classifier.apply(&all).unwrap();
    assert!(classifier.is_empty());
    check(&reader, &RuleSet::new(), &what);
    let next = classifier.insert("proto=tcp".parse().unwrap()).unwrap();
    assert!(next > number, "a number is given once");
    drop(classifier);
    assert_eq!(reader.lookup(&"proto=tcp".parse().unwrap()), Some(next), "after the writer is gone");
}

/// Two rules change places with each update, as often as this and until so many batches were looked up
/// meanwhile; how often that was. Whoever looks up finds the action of the packet, whatever its rule's number
/// is.
pub(crate) fn change_places(classifier: &mut Classifier<Ipv4Tuple>, least: u32, batches: u32) -> u32 {
    let (reader, is_over, seen) = (classifier.reader(), AtomicBool::new(false), AtomicU32::new(0));
    std::thread::scope(|scope| {
        let (is_over, seen) = (&is_over, &seen);
        let worker = scope.spawn(move || {
            let tuples: Vec<Ipv4Tuple> =
                (0..300).map(|n| format!("dport={}", 1 + n % 2).parse().unwrap()).collect();
            let (mut found, batches) = (vec![None; tuples.len()], reader.batches());
            let check = |found: &[Option<RuleMatch>], what: &str| {
                for (at, one) in found.iter().enumerate() {
                    assert_eq!(*one, found[at % 2], "a batch is of one state {what}");
                    assert_eq!(one.unwrap().action.0 as usize, 1 + at % 2, "{one:?} {what}");
                }
            };
            while !is_over.load(Ordering::Relaxed) {
                reader.match_batch(&tuples, &mut found);
                check(&found, "of a slice");
                let mut batch = batches.batch(tuples.len()).unwrap();
                batch.extend_from(&tuples);
                let mut answers = batch.submit().wait();
                check(&answers.matches().iter().collect::<Vec<_>>(), "in place");
                assert_eq!(reader.find(&tuples[1]).unwrap().action, NextHop(2));
                seen.fetch_add(1, Ordering::Relaxed);
            }
        });
        let mut rounds = 0;
        while rounds < least || (seen.load(Ordering::Relaxed) < batches && !worker.is_finished()) {
            rounds += 1;
            classifier.apply(&places(rounds)).unwrap();
        }
        is_over.store(true, Ordering::Relaxed);
        worker.join().unwrap();
        rounds
    })
}

/// What is to be in the place of the rules 1 and 2.
pub(crate) fn places(round: u32) -> [RuleUpdate<Ipv4Tuple>; 2] {
    let rule = |of: u32| format!("dport={of} priority=1 action={of}").parse::<Rule<_>>().unwrap();
    let at = 1 + round % 2;
    [RuleUpdate::Set(at, rule(1)), RuleUpdate::Set(3 - at, rule(2))]
}

/// Rules in both places, by an engine.
fn in_places(engine: EngineName) -> Classifier<Ipv4Tuple> {
    let mut classifier = Classifier::builder().engine(engine).build().unwrap();
    classifier.apply(&places(0)).unwrap();
    classifier
}

#[test]
fn readers_see_rules_and_their_actions_in_one_state() {
    for engine in engines::<Ipv4Tuple>() {
        let mut classifier = in_places(engine);
        let rounds = change_places(&mut classifier, 100, 50);
        let first = classifier.rules().rule(1).unwrap().action();
        assert_eq!(first, 1 + rounds % 2, "{engine}");
    }
}

#[test]
fn a_guard_keeps_its_rules_and_their_actions() {
    let mut classifier = in_places(EngineName::Quilt);
    let reader = classifier.reader();
    let (tuple, guard) = ("dport=1".parse().unwrap(), reader.enter());
    let before = guard.find(&tuple).unwrap();
    classifier.apply(&places(1)).unwrap();
    assert_eq!(guard.find(&tuple), Some(before));
    assert_eq!(guard.action(RuleNumber::new(2).unwrap()), Some(NextHop(2)));
    assert!(guard.shape().is_some() && !guard.explain(&tuple).is_empty());
    drop(guard);
    let after = reader.find(&tuple).unwrap();
    assert_eq!((before.number.get(), after.number.get(), after.action), (1, 2, NextHop(1)));
}

#[test]
fn an_image_answers_at_once_and_takes_updates_where_it_is_asked_to() {
    for engine in engines::<Ipv4Tuple>() {
        comes_back::<Ipv4Tuple>(engine);
        comes_back::<OpenFlowTuple>(engine);
    }
    comes_back::<Ipv6Tuple>(EngineName::Quilt);
}

fn comes_back<T: RuleTuple>(engine: EngineName) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("image");
    let mut rules = rules::<T>(21);
    // The largest number goes, and is not given again.
    rules.remove(rules.last_number());
    let builder = Classifier::builder().rule_set(rules.clone()).engine(engine);
    builder.build().unwrap().save(&path).unwrap();
    let reader = RuleReader::<T>::open(&path).unwrap();
    assert_eq!(reader.engine(), engine);
    check(&reader, &rules, engine.as_str());
    check(&reader.clone(), &rules, "a clone");
    let mut classifier = Classifier::<T>::open(&path).unwrap();
    assert_eq!((classifier.engine(), classifier.len(), classifier.rebuilds()), (engine, rules.len(), 0));
    let live = classifier.reader();
    check(&live, &rules, "opened");
    for (round, updates) in churn(&rules, 100, 6).chunks(50).enumerate() {
        let applied = classifier.apply(updates).unwrap();
        assert!(applied.rebuilt || round > 0, "an image brings no engine");
        updates.iter().for_each(|update| _ = rules.apply(update).unwrap());
        check(&live, &rules, "opened and updated");
    }
    classifier.save(&path).unwrap();
    check(&RuleReader::<T>::open(&path).unwrap(), &rules, "saved again");
}

#[test]
fn images_that_are_not_of_these_rules_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("image");
    let labels = Labels::new();
    let rule: Rule<Ipv4Tuple> = "dport=443 proto=tcp".parse().unwrap();
    let classifier =
        Classifier::builder().labelled_rules(&labels, [(rule, "web".to_owned())]).build().unwrap();
    classifier.save_labelled(&path, &labels).unwrap();
    let labels = Labels::<String>::open(&path).unwrap();
    let found = RuleReader::<Ipv4Tuple>::open(&path).unwrap().find(&"dport=443 tcp".parse().unwrap());
    assert_eq!(labels.get(found.unwrap().action).as_deref().map(String::as_str), Some("web"));

    let error = RuleReader::<OpenFlowTuple>::open(&path).unwrap_err();
    assert_eq!(
        error.to_string().split(": ").nth(1),
        Some("the image holds rules of tuple ipv4, rules of tuple openflow are wanted")
    );
    assert!(matches!(
        Ipv4Table::open(&path),
        Err(Error::ImageOf { found: "rules", wanted: "addresses", .. })
    ));
    assert!(matches!(NameTable::open(&path), Err(Error::ImageOf { found: "rules", wanted: "names", .. })));
    let bytes = std::fs::read(&path).unwrap();
    for at in (0..bytes.len()).step_by(bytes.len() / 50) {
        let mut bad = bytes.clone();
        bad[at] ^= 1;
        std::fs::write(&path, &bad).unwrap();
        assert!(Classifier::<Ipv4Tuple>::open(&path).is_err(), "byte {at}");
    }
    // A table alone; rules that are not the table's, or none; a tuple that there isn't.
    std::fs::write(&path, &bytes).unwrap();
    let open = || RuleReader::<Ipv4Tuple>::open(&path);
    let bare = Image::open(&path).unwrap().without_attachments(&["rules", "tuple"]).unwrap();
    let of_tuple = bare.with_attachment("tuple", b"ipv4").unwrap();
    of_tuple.save(&path).unwrap();
    assert!(matches!(open(), Err(Error::ImageWithout { what: "rules", .. })));
    for words in ["", "dport=443\ndport=80\n", "quic\n", "number=2 dport=443\n"] {
        of_tuple.with_attachment("rules", words.as_bytes()).unwrap().save(&path).unwrap();
        assert!(matches!(open(), Err(Error::Image { .. })), "{words:?}");
    }
    for tuple in ["", "ipv5"] {
        bare.with_attachment("tuple", tuple.as_bytes()).unwrap().save(&path).unwrap();
        assert!(matches!(open(), Err(Error::Image { .. })), "{tuple:?}");
    }
    ImageBuilder::new("other", 1).build(None).unwrap().save(&path).unwrap();
    assert!(matches!(open(), Err(Error::ImageKind { .. })));
    Ipv4Table::builder().build().unwrap().save(&path).unwrap();
    assert!(matches!(open(), Err(Error::ImageOf { found: "addresses", wanted: "rules", .. })));
    NameTable::builder().build().unwrap().save(&path).unwrap();
    assert!(matches!(open(), Err(Error::ImageOf { found: "names", wanted: "rules", .. })));
}

/// Files of rules.
struct Files(tempfile::TempDir);

impl Files {
    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }
}

#[test]
fn rules_from_files_in_every_form() {
    let files = Files(tempfile::tempdir().unwrap());
    let nft = r#"{"nftables": [{"chain": {"family": "ip", "table": "t", "name": "c", "handle": 1, "type": "filter", "hook": "input", "prio": 0, "policy": "drop"}}, {"rule": {"family": "ip", "table": "t", "chain": "c", "handle": 2, "expr": [{"match": {"op": "==", "left": {"payload": {"protocol": "tcp", "field": "dport"}}, "right": 22}}, {"accept": null}]}}]}"#;
    for (name, text, for_ssh, for_others) in [
        ("plain", "dport=22 proto=tcp priority=2 action=5\npriority=1 action=6\n", Some("5"), Some("6")),
        (
            "iptables",
            "*filter\n:INPUT DROP [0:0]\n-A INPUT -p tcp --dport 22 -j ACCEPT\nCOMMIT\n",
            Some("ACCEPT"),
            Some("DROP"),
        ),
        ("nft", nft, Some("accept"), Some("drop")),
        (
            "ovs",
            "priority=9,tcp,tp_dst=22 actions=output:2\npriority=1 actions=drop\n",
            Some("output:2"),
            Some("drop"),
        ),
        ("classbench", "@0.0.0.0/0\t0.0.0.0/0\t0 : 65535\t22 : 22\t0x06/0xFF\n", Some("0"), None),
    ] {
        // Labels that are there already keep their indexes.
        let labels = Labels::new();
        labels.intern("other".to_owned()).unwrap();
        let path = files.write(name, text);
        let classifier = Classifier::<Ipv4Tuple>::builder().file(&path, &labels).build().unwrap();
        let reader = classifier.reader();
        let found = |tuple: &str| {
            let found = reader.find(&tuple.parse().unwrap())?;
            labels.get(found.action).as_deref().cloned()
        };
        let found = (found("src=10.0.0.1 dport=22 proto=tcp"), found("dport=23 proto=tcp"));
        assert_eq!(found, (for_ssh.map(str::to_owned), for_others.map(str::to_owned)), "{name}");
        assert_eq!(classifier.reports()[0].format.name(), name);
    }
    // A list has one value, and what is added first comes first.
    let labels = Labels::new();
    let ssh = files.write("ssh", "@0.0.0.0/0\t0.0.0.0/0\t0 : 65535\t22 : 22\t0x06/0xFF\n");
    let all = files.write("all", "action=1\n");
    let builder = Classifier::<Ipv4Tuple>::builder().list(&ssh, &labels, 70).file(&all, &labels);
    let classifier = builder.list(&ssh, &labels, 80).build().unwrap();
    let reader = classifier.reader();
    let label =
        |tuple: &str| labels.get(reader.find(&tuple.parse().unwrap()).unwrap().action).as_deref().copied();
    assert_eq!((label("dport=22 proto=tcp"), label("dport=23 proto=tcp")), (Some(70), Some(1)));
    assert_eq!((classifier.len(), classifier.reports().len()), (3, 3));
}

#[test]
fn real_filters_are_matched_as_a_scan_matches_them() {
    let Some(data) = wirespeed_image::real_data("rules") else { return };
    let file = |name: &str| data.join(name);
    let labels = Labels::new();
    let builder = Classifier::<Ipv4Tuple>::builder().list(file("fw1_1k.rules.zst"), &labels, "denied");
    let classifier = builder.build().unwrap();
    let trace = Source::Path(file("fw1_1k.trace.zst"));
    let (trace, _) = read_trace::<Ipv4Tuple>(&trace, &ReadOptions::default()).unwrap();
    let (oracle, mut found) = (Oracle::of(classifier.rules()), vec![None; trace.len()]);
    classifier.reader().match_batch(&trace, &mut found);
    for (tuple, found) in trace.iter().zip(&found).step_by(10) {
        assert_eq!(found.map_or(0, |found| found.number.get()), oracle.lookup(tuple), "{tuple}");
    }
    assert!(found.iter().flatten().all(|found| labels.get(found.action).as_deref() == Some(&"denied")));
    assert!(found.iter().flatten().count() > trace.len() / 2);
}

#[test]
fn rules_that_are_left_out_are_told_or_refused() {
    let files = Files(tempfile::tempdir().unwrap());
    let saved = files.write(
        "saved",
        "*filter\n:INPUT DROP [0:0]\n:OTHER - [0:0]\n-A INPUT -m state --state ESTABLISHED -j ACCEPT\n-A INPUT -i lo -j ACCEPT\n\
         -A INPUT -p tcp --dport 22 -j ACCEPT\n-A OTHER -p tcp --dport 23 -j ACCEPT\nCOMMIT\n",
    );
    let labels = Labels::<String>::new();
    let error = Classifier::<Ipv4Tuple>::builder().file(&saved, &labels).build().unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("saved: 2 rules") && text.contains("line 4: ") && text.contains("leave_out"),
        "{text}"
    );
    let Error::RulesLeftOut { report } = error else { panic!("{text}") };
    assert_eq!(report.left_out.len(), 2);

    let builder = Classifier::<Ipv4Tuple>::builder().file(&saved, &labels).leave_out(true);
    let classifier = builder.build().unwrap();
    assert_eq!((classifier.len(), classifier.reports()[0].left_out.len()), (2, 2));
    // Another chain, read by the user's own options.
    let options = ReadOptions { chain: Some("OTHER".to_owned()), ..ReadOptions::default() };
    let read = read_rules::<Ipv4Tuple>(&Source::Path(saved), &options).unwrap();
    let classifier = Classifier::builder().read(read, &labels).build().unwrap();
    assert_eq!(classifier.reader().lookup(&"dport=23 tcp".parse().unwrap()), RuleNumber::new(1));

    let bad = files.write("bad", "dport=22 action=1\ndport=99999 action=2\n");
    let error = Classifier::<Ipv4Tuple>::builder().file(&bad, &labels).build().unwrap_err();
    assert!(matches!(error, Error::ReadRules(_)) && error.to_string().contains("bad:2: "), "{error}");
    let error = Classifier::<Ipv4Tuple>::builder().list(files.0.path().join("none"), &labels, "x".to_owned());
    assert!(error.build().unwrap_err().to_string().contains("none"));
    let words = files.write("words", "*filter\n-A INPUT -j ACCEPT\nCOMMIT\n");
    let error = Classifier::<Ipv4Tuple>::builder().file(words, &Labels::<u32>::new()).build().unwrap_err();
    assert!(matches!(&error, Error::Label { text, .. } if text == "ACCEPT"), "{error}");
    assert!(error.to_string().contains("words: \"ACCEPT\" is no label: "), "{error}");
}

#[test]
fn what_cannot_be_is_refused() {
    let error = Classifier::<Ipv4Tuple>::builder().engine("acta").build().unwrap_err();
    assert!(matches!(error, Error::UnknownEngine(_)), "{error}");
    for engine in of_domain::<Ipv4Tuple>() {
        let builder = Classifier::builder().rule_set(rules::<Ipv4Tuple>(1)).engine(engine).memory_cap(1000);
        let error = builder.build().unwrap_err();
        assert!(matches!(error, Error::MemoryCap { what: "rules", cap: 1000, .. }), "{error}");
    }
    let mut classifier = in_places(EngineName::Linear);
    let rule: Rule<Ipv4Tuple> = "proto=tcp".parse().unwrap();
    for number in [0, u32::MAX] {
        let updates = [RuleUpdate::Remove(1), RuleUpdate::Set(number, rule.clone())];
        let error = classifier.apply(&updates).unwrap_err();
        assert!(matches!(error, Error::Rule(RuleError::Number { found, .. }) if found == number), "{error}");
        assert_eq!(classifier.len(), 2, "nothing is changed");
    }
    let updates = [RuleUpdate::Set(RuleNumber::MOST, rule.clone()), RuleUpdate::Insert(rule.clone())];
    assert!(matches!(classifier.apply(&updates), Err(Error::Rule(RuleError::Spent { .. }))));
    assert_eq!((classifier.len(), classifier.rules().last_number()), (2, 2));
    classifier.apply(&updates[..1]).unwrap();
    assert!(matches!(classifier.insert(rule), Err(Error::Rule(RuleError::Spent { .. }))));
}

#[test]
fn frames_that_are_none_are_told_apart_from_those_that_no_rule_is_for() {
    let rules: [Rule<Ipv4Tuple>; 1] = ["dst=10.1.2.3 action=7".parse().unwrap()];
    let reader = Classifier::builder().rules(rules).build().unwrap().reader();
    let mut frame = vec![0; 54];
    frame[12] = 0x08;
    frame[14] = 0x45;
    frame[16..18].copy_from_slice(&40u16.to_be_bytes());
    frame[23] = 6;
    frame[30..34].copy_from_slice(&[10, 1, 2, 3]);
    let mut other = frame.clone();
    other[33] = 4;
    let mut arp = frame.clone();
    arp[13] = 0x06;
    let frames = [(1, &frame[..]), (1, &frame[..20]), (1, &other), (1, &arp), (2, &frame)];
    // Whatever was there before is no answer.
    let mut found = vec![Ok(reader.find(&"dst=10.1.2.3".parse().unwrap())); frames.len()];
    reader.match_frames(&frames, &mut found);
    let [first, cut, other, arp, last] = &found[..] else { panic!("{found:?}") };
    assert_eq!((first.as_ref().unwrap().unwrap().action, first), (NextHop(7), last));
    assert!(matches!(cut, Err(FrameError::CutOff { .. })));
    assert_eq!(other, &Ok(None));
    assert!(matches!(arp, Err(FrameError::EtherType { found: 0x0806, .. })));
    reader.match_frames(&[] as &[(u16, &[u8])], &mut []);
}

#[test]
fn equal_seeds_make_equal_tables_and_names_tell_tuples() {
    let dir = tempfile::tempdir().unwrap();
    let image = |name: &str| {
        let path = dir.path().join(name);
        let builder = Classifier::builder().rule_set(rules::<Ipv4Tuple>(5)).seed(7).head_room(50);
        builder.build().unwrap().save(&path).unwrap();
        (engine::of_kind::<Ipv4Tuple>(Image::open(&path).unwrap().kind()), std::fs::read(path).unwrap())
    };
    let (one, two) = (image("one"), image("two"));
    assert_eq!(one, two);
    assert_eq!(one.0, Some(Ipv4Tuple::best(&rules(5))));
    assert_eq!(TupleName::of("openflow"), Some(TupleName::OpenFlow));
}
