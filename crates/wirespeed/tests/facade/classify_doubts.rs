//! Rules that were left out: verdicts tell which answers they could change, before and after updates, in
//! files of images and out of them.

use std::path::Path;

use wirespeed::Error;
use wirespeed::classify::oracle::Oracle;
use wirespeed::classify::read::{
    Doubts, Effect, LeftOut, ReadOptions, RuleFile, RuleReport, Uncertain, read_rules_from,
};
use wirespeed::classify::{ClassifierBuilder, RuleVerdict};
use wirespeed::engine::{EngineName, RuleTuple};
use wirespeed::fib::synth::rng::Rng;
use wirespeed::prelude::*;

use crate::classify::{churn, rules, tuples};
use crate::common::engines;

/// A rule that may be in effect or not.
fn uncertain<T: RuleTuple>(rule: &str, before: u32, effect: Effect) -> Uncertain<T> {
    let why =
        LeftOut { place: (u64::from(before) + 100).into(), why: "a mark".to_owned(), text: rule.to_owned() };
    Uncertain { rule: rule.parse().unwrap(), effect, before, skips: 0, why }
}

/// A file of rules in words, with what is in doubt.
fn file<T: RuleTuple>(text: &str, doubts: Vec<Uncertain<T>>) -> (RuleFile<T>, RuleReport) {
    let (mut file, mut report) =
        read_rules_from::<T>(text.as_bytes(), "file", &ReadOptions::default()).unwrap();
    report.left_out.extend(doubts.iter().map(|one| one.why.clone()));
    file.doubts.uncertain = doubts;
    (file, report)
}

/// Holds verdicts against what their words say: a rule that was left out matches, comes first, and differs.
#[track_caller]
fn check<T: RuleTuple>(reader: &RuleReader<T>, rules: &RuleSet<T>, tuples: &[T], what: &str) -> usize {
    let (oracle, all) = (Oracle::of(rules), reader.doubts());
    let doubts = &all.uncertain;
    let mut verdicts = vec![RuleVerdict::default(); tuples.len()];
    reader.verdict_batch(tuples, &mut verdicts);
    let mut batch = reader.batches().batch(tuples.len()).unwrap();
    assert_eq!(batch.extend_from(tuples), tuples.len());
    assert!(batch.submit().wait().matches().verdicts().eq(verdicts.iter().copied()), "{what}: in place");
    let mut uncertain = 0;
    for (tuple, verdict) in tuples.iter().zip(verdicts) {
        let right = oracle.lookup(tuple);
        let rule = rules.rule(right);
        let could_change = |one: &&Uncertain<T>| {
            let is_ahead = rule.is_none_or(|rule| {
                let (mine, its) = (one.rule.priority(), rule.priority());
                mine > its || mine == its && one.before <= right
            });
            let differs =
                one.effect == Effect::Any || rule.is_none_or(|rule| rule.action() != one.rule.action());
            is_ahead && differs && one.rule.matches(tuple)
        };
        let because: Vec<_> = doubts.iter().filter(could_change).collect();
        assert_eq!(verdict.found().map_or(0, |found| found.number.get()), right, "{what}: {tuple}");
        assert_eq!(verdict.is_certain(), because.is_empty(), "{what}: {tuple}: {because:?}");
        assert_eq!(reader.verdict(tuple), verdict, "{what}: {tuple}");
        assert_eq!(reader.enter().doubts_of(tuple).collect::<Vec<_>>(), because, "{what}: {tuple}");
        uncertain += usize::from(!verdict.is_certain());
    }
    uncertain
}

/// Doubts of all kinds among rules.
fn doubts<T: RuleTuple>(rules: &RuleSet<T>) -> Vec<Uncertain<T>> {
    let (mut rng, last) = (Rng::new(9), rules.last_number());
    let words = ["proto=tcp dport=3", "proto=udp", "sport=2", "dport=2-40", "src=64.0.0.0/2"];
    let one = |at: usize, rng: &mut Rng| {
        let before = u32::try_from(1 + rng.below(u64::from(last) + 1)).unwrap();
        let (priority, action) = (rng.below(4), rng.below(7));
        let word = if T::NAME == "ipv4" { words[at % 5] } else { words[at % 4] };
        let effect = if rng.chance(0.2) { Effect::Any } else { Effect::Action };
        uncertain(&format!("{word} priority={priority} action={action}"), before, effect)
    };
    (0..12).map(|at| one(at, &mut rng)).collect()
}

#[test]
fn verdicts_are_right_before_and_after_updates_and_of_images() {
    for engine in engines::<Ipv4Tuple>() {
        are_right::<Ipv4Tuple>(engine);
    }
    are_right::<OpenFlowTuple>(EngineName::Quilt);
}

fn are_right<T: RuleTuple>(engine: EngineName) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("image");
    let mut rules = rules::<T>(31);
    let (tuples, what) = (tuples(&rules)[..400].to_vec(), format!("{engine} {}", T::NAME));
    // Labels are the actions' numbers, interned in the order of the rules: as those of the rules, so that
    // both can be compared.
    let labels = Labels::<u32>::new();
    (1..8).for_each(|action| _ = labels.intern(action).unwrap());
    for (number, rule) in rules.clone().sorted() {
        rules.set(number.get(), rule.clone().with_action(rule.action() % 7 + 1)).unwrap();
    }
    let mut read = RuleFile { rules: rules.clone(), ..RuleFile::default() };
    read.doubts.uncertain = doubts(&rules);
    for one in &mut read.doubts.uncertain {
        one.rule = one.rule.clone().with_action(one.rule.action() + 1);
    }
    read.doubts.assumed = vec!["ct=new".parse().unwrap()];
    let report = file::<T>("proto=tcp\n", Vec::new()).1;
    let builder = Classifier::<T>::builder().read((read.clone(), report), &labels).leave_out(true);
    let mut classifier = builder.engine(engine).build().unwrap();
    assert_eq!(*classifier.doubts(), read.doubts);
    let reader = classifier.reader();
    assert!(check(&reader, &rules, &tuples, &what) > 40, "{what}");

    // A rule that comes later and ranks first is certain; one that comes after all leaves the doubts.
    let all = classifier.insert("priority=9 action=3".parse().unwrap()).unwrap();
    rules.insert("priority=9 action=3".parse().unwrap()).unwrap();
    assert_eq!(check(&reader, &rules, &tuples, &what), 0, "{what}");
    classifier.remove(all).unwrap();
    rules.remove(all.get());
    for updates in churn(&rules, 100, 8).chunks(50) {
        classifier.apply(updates).unwrap();
        updates.iter().for_each(|update| _ = rules.apply(update).unwrap());
        assert!(check(&reader.clone(), &rules, &tuples, &what) > 0, "{what}");
    }

    classifier.save_labelled(&path, &labels).unwrap();
    let fixed = RuleReader::<T>::open(&path).unwrap();
    assert_eq!(*fixed.doubts(), *classifier.doubts());
    check(&fixed, &rules, &tuples, "an image");
    let mut opened = Classifier::<T>::open(&path).unwrap();
    let number = opened.insert("proto=tcp priority=4294967295 action=5".parse().unwrap()).unwrap();
    rules.set(number.get(), "proto=tcp priority=4294967295 action=5".parse().unwrap()).unwrap();
    assert!(check(&opened.reader(), &rules, &tuples, "an image and an update") > 0);
    opened.save(&path).unwrap();
    check(&RuleReader::<T>::open(&path).unwrap(), &rules, &tuples, "an image of an image");
}

#[test]
fn doubts_of_several_files_stay_among_their_rules() {
    // Numbers with gaps; the doubt lies before the rule of number 9.
    let first = file(
        "number=5 dport=1 action=1\nnumber=9 action=2\n",
        vec![uncertain("action=7", 9, Effect::Action)],
    );
    let second = file(
        "number=3 dport=2 action=3\nnumber=40 action=4\n",
        vec![uncertain("action=7", 40, Effect::Action), uncertain("dport=2 action=7", 41, Effect::Action)],
    );
    let labels = Labels::<u32>::new();
    let build = |files: Vec<(RuleFile<Ipv4Tuple>, RuleReport)>| {
        let builder = Classifier::<Ipv4Tuple>::builder().leave_out(true);
        files.into_iter().fold(builder, |builder, file| builder.read(file, &labels)).build().unwrap()
    };
    let one = build(vec![second.clone()]);
    let is_certain = |classifier: &Classifier<_>, tuple: &str| {
        classifier.reader().verdict(&str::parse(tuple).unwrap()).is_certain()
    };
    assert_eq!(["dport=2", "dport=3"].map(|tuple| is_certain(&one, tuple)), [true, false]);
    let mut both = build(vec![first, second]);
    let before: Vec<_> = both.doubts().uncertain.iter().map(|one| one.before).collect();
    // 5 and 9, then 10 and 11.
    assert_eq!(before, [9, 11, 12]);
    assert!(is_certain(&both, "dport=1") && !is_certain(&both, "dport=3"));
    both.apply(&[RuleUpdate::Remove(9), RuleUpdate::Remove(11)]).unwrap();
    assert!(!is_certain(&both, "dport=3"), "no rule is left, and one could be in effect");
    // All rules of one value: a rule that was left out gives it, too.
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("list");
    std::fs::write(&path, "*filter\n:INPUT DROP [0:0]\n-A INPUT -m mark --mark 3 -j ACCEPT\nCOMMIT\n")
        .unwrap();
    let builder = || Classifier::<Ipv4Tuple>::builder().leave_out(true);
    let list = builder().list(&path, &labels, 70).build().unwrap();
    assert!(!list.doubts().is_empty() && is_certain(&list, "proto=tcp"));
    let file = builder().file(&path, &Labels::<String>::new()).build().unwrap();
    assert!(!is_certain(&file, "proto=tcp"));
}

#[test]
fn filters_wider_than_said_are_built_and_their_answers_are_uncertain() {
    let dir = tempfile::tempdir().unwrap();
    let (path, image) = (dir.path().join("filters"), dir.path().join("image"));
    let filters = "@10.0.0.0/8 0.0.0.0/0 0 : 65535 80 : 80 0x06/0xFF 0x0002/0x0002\n\
                   @10.0.0.0/8 0.0.0.0/0 0 : 65535 0 : 65535 0x06/0xFF\n";
    std::fs::write(&path, filters).unwrap();
    let labels = Labels::<u32>::new();
    // After rules with gaps among their numbers.
    let first = file("number=5 dport=1 action=1\nnumber=9 dport=2 action=2\n", Vec::new());
    let builder = Classifier::<Ipv4Tuple>::builder().read(first, &labels).list(&path, &labels, 7);
    let mut classifier = builder.build().unwrap();
    classifier.save(&image).unwrap();
    let (in_doubt, certain): (Ipv4Tuple, Ipv4Tuple) = (
        "src=10.0.0.1 dport=80 proto=tcp".parse().unwrap(),
        "src=10.0.0.1 dport=1 proto=tcp".parse().unwrap(),
    );
    for reader in [classifier.reader(), RuleReader::open(&image).unwrap()] {
        assert_eq!(reader.find(&in_doubt).map(|found| found.number.get()), Some(10));
        assert!(!reader.verdict(&in_doubt).is_certain() && reader.verdict(&certain).is_certain());
        let mut verdicts = [RuleVerdict::default(); 2];
        reader.verdict_batch(&[in_doubt, certain], &mut verdicts);
        assert_eq!(verdicts.map(RuleVerdict::is_certain), [false, true]);
        let guard = reader.enter();
        let why: Vec<_> = guard.doubts_of(&in_doubt).map(|one| (one.effect, one.why.place.line)).collect();
        assert_eq!(why, [(Effect::Wider, 1)]);
    }
    // The next filter is as wide as it says.
    classifier.apply(&[RuleUpdate::Remove(10)]).unwrap();
    assert!(classifier.reader().verdict(&in_doubt).is_certain());
}

#[test]
fn a_set_that_is_not_whole_is_refused_with_the_first_reasons() {
    let labels = Labels::<u32>::new();
    let doubts = (1..6).map(|line| uncertain("dport=1 action=2", line, Effect::Action)).collect();
    let read = file::<Ipv4Tuple>("action=1\n", doubts);
    let error = Classifier::<Ipv4Tuple>::builder().read(read.clone(), &labels).build().unwrap_err();
    let text = error.to_string();
    for part in ["file: 5 rules", "line 101: a mark", "line 103: a mark", "and 2 more", "assume", "leave_out"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(matches!(error, Error::RulesLeftOut { report } if report.left_out.len() == 5));
    // What is in doubt is refused, told in the report or not.
    let (file, mut report) = read;
    report.left_out.clear();
    let error = Classifier::<Ipv4Tuple>::builder().read((file, report), &labels).build().unwrap_err();
    assert!(matches!(error, Error::RulesLeftOut { report } if report.left_out.len() == 5));
}

#[test]
fn an_action_that_is_no_label_is_another_one() {
    let text = "*filter\n:INPUT ACCEPT [0:0]\nCOMMIT\n";
    let (mut read, report) =
        read_rules_from::<Ipv4Tuple>(text.as_bytes(), "file", &ReadOptions::default()).unwrap();
    read.actions.push("REJECT".to_owned());
    read.doubts.uncertain.push(uncertain("dport=1 action=1", 1, Effect::Action));
    #[derive(Debug, PartialEq, Eq, Hash)]
    struct Accept;
    impl std::str::FromStr for Accept {
        type Err = String;
        fn from_str(text: &str) -> Result<Self, String> {
            if text == "ACCEPT" { Ok(Self) } else { Err(format!("{text} is unknown")) }
        }
    }
    let labels = Labels::<Accept>::new();
    let builder = Classifier::builder().read((read, report), &labels).leave_out(true);
    let reader = builder.build().unwrap().reader();
    assert_eq!(reader.doubts().uncertain[0].effect, Effect::Any);
    let verdict = reader.verdict(&"dport=1".parse().unwrap());
    assert!(!verdict.is_certain() && labels.get(verdict.found().unwrap().action).as_deref() == Some(&Accept));
    assert!(reader.verdict(&"dport=2".parse().unwrap()).is_certain());
}

#[test]
fn assumptions_come_before_the_files_that_they_are_for() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("rules");
    std::fs::write(&path, "dport=1 action=1\n").unwrap();
    let labels = Labels::<u32>::new();
    let builder = || Classifier::<Ipv4Tuple>::builder();
    let error = builder().file(&path, &labels).assume("ct=new").build().unwrap_err();
    assert!(matches!(&error, Error::AssumedLate { fact, .. } if fact == "ct=new"), "{error}");
    for wrong in [["ct=open", "in=eth0"], ["ct=new", "ct=related"], ["in=eth0", "state"]] {
        let builder = wrong.iter().fold(builder(), ClassifierBuilder::assume);
        let error = builder.file(&path, &labels).build().unwrap_err();
        assert!(matches!(error, Error::Assumption(_)), "{error}");
    }
    let classifier = builder().assume("ct=new").file(&path, &labels).build().unwrap();
    assert!(classifier.doubts().assumed.is_empty(), "it decided nothing");
}

/// An image that was made when there were no doubts in images:
/// `lookupctl classify build --engine linear --seed 1` of
///
/// ```text
/// *filter
/// :INPUT DROP [0:0]
/// -A INPUT -s 10.0.0.0/8 -p tcp -m tcp --dport 22 -j ACCEPT
/// -A INPUT -p udp --dport 1024:2000 -j REJECT
/// COMMIT
/// ```
#[test]
fn an_image_from_before_doubts_is_opened() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/facade/kept/rules-before-doubts.img");
    let labels = Labels::<String>::open(&path).unwrap();
    let mut classifier = Classifier::<Ipv4Tuple>::open(&path).unwrap();
    for reader in [RuleReader::<Ipv4Tuple>::open(&path).unwrap(), classifier.reader()] {
        assert_eq!(*reader.doubts(), Doubts::none());
        for (tuple, action) in [
            ("src=10.1.2.3 dport=22 proto=tcp", "ACCEPT"),
            ("src=11.1.2.3 dport=22 proto=tcp", "DROP"),
            ("dport=1999 proto=udp", "REJECT"),
        ] {
            let RuleVerdict::Certain(Some(found)) = reader.verdict(&tuple.parse().unwrap()) else {
                panic!("{tuple}")
            };
            assert_eq!(labels.get(found.action).as_deref().map(String::as_str), Some(action), "{tuple}");
        }
    }
    let drop = RuleNumber::new(3).unwrap();
    classifier.remove(drop).unwrap();
    assert_eq!(classifier.reader().verdict(&"proto=esp".parse().unwrap()), RuleVerdict::Certain(None));
}

#[test]
fn damaged_doubts_are_refused() {
    use wirespeed::image::Image;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("image");
    let read = file::<Ipv4Tuple>("action=1\n", vec![uncertain("dport=1 action=2", 1, Effect::Action)]);
    let labels = Labels::<u32>::new();
    let builder = Classifier::<Ipv4Tuple>::builder().read(read, &labels).leave_out(true);
    builder.build().unwrap().save(&path).unwrap();
    let whole = Image::open(&path).unwrap();
    let bare = whole.without_attachments(&["doubts"]).unwrap();
    for wrong in [&b"before=1"[..], b"\xff", b"assume ct=open\n"] {
        bare.with_attachment("doubts", wrong).unwrap().save(&path).unwrap();
        assert!(matches!(RuleReader::<Ipv4Tuple>::open(&path), Err(Error::Image { .. })));
        assert!(matches!(Classifier::<Ipv4Tuple>::open(&path), Err(Error::Image { .. })));
    }
}
