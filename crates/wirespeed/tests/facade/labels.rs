//! Labels that end: with tables of all domains, readers that look up meanwhile, and images.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use wirespeed::engine::EngineName;
use wirespeed::names::NameRib;
use wirespeed::prelude::*;
use wirespeed::{Error, LabelsGuard, Prefix, Rib};
use wirespeed_image::rounds;

fn net(text: &str) -> IpNet {
    text.parse().unwrap()
}

/// The labels, with their indexes.
fn all<T: Clone>(labels: &Labels<T>) -> Vec<(u32, T)> {
    labels.enter().iter().map(|(index, value)| (index.0, value.clone())).collect()
}

/// Waits for values that the pins of other tests' threads keep.
fn until(mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(60), "it did not happen");
        std::thread::yield_now();
    }
}

/// A value that counts how many there are.
#[derive(Debug)]
struct Counted(u64, Arc<AtomicUsize>);

impl Counted {
    fn new(number: u64, live: &Arc<AtomicUsize>) -> Self {
        live.fetch_add(1, Ordering::Relaxed);
        Self(number, Arc::clone(live))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.1.fetch_sub(1, Ordering::Relaxed);
    }
}

impl PartialEq for Counted {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Eq for Counted {}

impl std::hash::Hash for Counted {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

#[test]
fn endless_changes_take_no_more_memory_than_a_few() {
    let changes = if rounds::is_long() { 1_000_000 } else { 20_000 };
    let (labels, live) = (Labels::new(), Arc::new(AtomicUsize::new(0)));
    let mut table = Ipv4Table::builder().labels(&labels).build().unwrap();
    let prefix = Prefix::new(V4(0x0a00_0000), 16).unwrap();
    let (mut most_live, mut largest) = (0, NextHop::NONE);
    for number in 0..changes {
        let next_hop = labels.intern(Counted::new(number, &live)).unwrap();
        table.insert(prefix, next_hop).unwrap();
        largest = largest.max(next_hop);
        most_live = most_live.max(live.load(Ordering::Relaxed));
    }
    // Other tests of this process pin, too: a thread that is put aside while it is pinned keeps some values.
    const BOUND: usize = 5_000;
    assert!(most_live < BOUND && (largest.0 as usize) < BOUND, "{most_live} values, {largest} indexes");
    assert_eq!(labels.len(), 1);
    until(|| {
        labels.reclaim();
        live.load(Ordering::Relaxed) == 1
    });
    drop(table);
    until(|| {
        labels.reclaim();
        live.load(Ordering::Relaxed) == 0
    });
}

/// Each prefix gets labels with its number; no reader sees a label of another prefix, or none.
#[test]
fn readers_that_enter_first_resolve_all_that_they_find() {
    const PREFIXES: u32 = 8;
    let rounds = if rounds::is_long() { 40_000 } else { 4_000 };
    let labels = Labels::new();
    let (v4, v6) = (|n: u32| Ipv4Addr::from(n << 24), |n: u32| Ipv6Addr::from(u128::from(n) << 96));
    let mut table = IpTable::builder().labels(&labels).build().unwrap();
    let nets = |n: u32| [IpNet::new(v4(n).into(), 8).unwrap(), IpNet::new(v6(n).into(), 32).unwrap()];
    for n in 0..PREFIXES {
        for net in nets(n) {
            table.insert(net, labels.intern((n, 0)).unwrap()).unwrap();
        }
    }
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            let (reader, labels, is_over) = (table.reader(), labels.clone(), &is_over);
            scope.spawn(move || {
                let keys: Vec<IpAddr> = (0..PREFIXES).flat_map(|n| [v4(n).into(), v6(n).into()]).collect();
                let (mut found, mut last) = (vec![NextHop::NONE; keys.len()], 0);
                let resolve = |known: &LabelsGuard<'_, (u32, u32)>, found: NextHop, at: usize| {
                    let &(n, round) = known.get(found).expect("what was found resolves");
                    assert_eq!(n as usize, at / 2);
                    round
                };
                while !is_over.load(Ordering::Relaxed) {
                    let known = labels.enter();
                    reader.lookup_batch(&keys, &mut found);
                    std::thread::yield_now();
                    let rounds = (0..).zip(&found).map(|(at, &found)| resolve(&known, found, at));
                    let least = rounds.min().unwrap();
                    assert!(least >= last);
                    last = least;
                    for (at, &key) in keys.iter().enumerate() {
                        resolve(&known, reader.lookup(key), at);
                    }
                }
            });
        }
        for round in 1..=rounds {
            let mut updates = Vec::new();
            for n in 0..PREFIXES {
                // Also labels that are replaced, and some that no route gets.
                let next_hop = labels.intern((n, round)).unwrap();
                for net in nets(n) {
                    updates.push(AnyUpdate::announce(net, next_hop).unwrap());
                }
                if round % 3 == n % 3 {
                    labels.replace(next_hop, (n, round + 1)).unwrap();
                    labels.release(labels.intern((n, u32::MAX)).unwrap());
                }
            }
            table.apply(&updates).unwrap();
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert_eq!(labels.len(), PREFIXES as usize);
}

#[test]
fn calls_that_fail_leave_the_counts_as_they_were() {
    let labels = Labels::new();
    let route = |n: u32| IpNet::new(Ipv4Addr::from(n << 8).into(), 24).unwrap();
    let routes = (0..300).map(|n| (route(n), n));
    let builder = || IpTable::builder().engine(EngineName::SailL).labelled_routes(&labels, routes.clone());
    assert!(matches!(builder().memory_cap(1).build(), Err(Error::MemoryCap { .. })));
    assert_eq!(labels.len(), 0, "what a builder interned ends with it");
    // Enough for both tables now, and not for routes all over IPv4.
    let mut table = builder().memory_cap(700_000).build().unwrap();
    assert_eq!(labels.len(), 300);

    let (wide, moved) = (labels.intern(1000).unwrap(), labels.intern(7).unwrap());
    let mut updates = vec![
        AnyUpdate::announce(net("2001:db8::/32"), labels.intern(8).unwrap()).unwrap(),
        AnyUpdate::withdraw(route(5)).unwrap(),
        AnyUpdate::announce(route(6), moved).unwrap(),
    ];
    updates.extend((1000..10_000).map(|n| AnyUpdate::announce(route(n << 8), wide).unwrap()));
    assert!(matches!(table.apply(&updates), Err(Error::MemoryCap { .. })));
    assert_eq!((labels.len(), labels.find(&1000)), (301, Some(wide)));
    labels.release(wide);
    assert_eq!((labels.len(), labels.find(&1000), labels.find(&5).is_some()), (300, None, true));

    // The claims of 7 and 8 are still there.
    for n in [7, 8, 9] {
        table.remove(route(n)).unwrap();
    }
    assert_eq!([7, 8, 9].map(|n| labels.find(&n).is_some()), [true, true, false]);
    [7, 8].iter().for_each(|n| labels.release(labels.find(n).unwrap()));
    assert_eq!(labels.len(), 297);
    table.apply(&[AnyUpdate::announce(route(7), NextHop::NONE).unwrap()]).unwrap_err();
    table.apply(&[]).unwrap();
    assert_eq!(labels.len(), 297);
}

#[test]
fn routes_count_until_the_table_and_its_last_reader_are_gone() {
    let labels = Labels::new();
    let table =
        IpTable::builder().labelled_routes(&labels, [(net("10.0.0.0/8"), "a"), (net("::/0"), "b")]).build();
    let other =
        Ipv4Table::builder().labels(&labels).routes([("10.0.0.0/8".parse::<Ipv4Net>().unwrap(), NextHop(1))]);
    let (table, other) = (table.unwrap(), other.build().unwrap());
    let reader = table.v6().reader();
    drop(table);
    assert_eq!(all(&labels), [(1, "a"), (2, "b")]);
    let last = reader.clone();
    drop((other, reader));
    assert_eq!(all(&labels), [(2, "b")]);
    assert_eq!(labels.get(last.lookup(Ipv6Addr::LOCALHOST)).as_deref(), Some(&"b"));
    drop(last);
    assert!(labels.is_empty());
}

#[test]
fn a_label_moves_between_prefixes_families_and_tables() {
    let labels = Labels::new();
    let mut table = IpTable::builder().labelled_routes(&labels, [(net("10.0.0.0/8"), "a")]).build().unwrap();
    let a = NextHop(1);
    // Without another claim: in one call the index never ends.
    table
        .apply(&[
            AnyUpdate::withdraw(net("10.0.0.0/8")).unwrap(),
            AnyUpdate::announce(net("::/0"), a).unwrap(),
        ])
        .unwrap();
    table
        .apply(&[
            AnyUpdate::announce(net("10.0.0.0/8"), a).unwrap(),
            AnyUpdate::withdraw(net("::/0")).unwrap(),
        ])
        .unwrap();
    assert_eq!(all(&labels), [(1, "a")]);
    // Updates of one prefix count by what they come to, and use up what was interned for them.
    let b = labels.intern("b").unwrap();
    let c = labels.intern("c").unwrap();
    let to = |next_hop| AnyUpdate::announce(net("10.0.0.0/8"), next_hop).unwrap();
    table.apply(&[to(b), AnyUpdate::withdraw(net("10.0.0.0/8")).unwrap(), to(c), to(a)]).unwrap();
    assert_eq!(all(&labels), [(1, "a")]);
    // A route that comes again uses up its claim.
    for _ in 0..3 {
        table.insert(net("10.0.0.0/8"), labels.intern("a").unwrap()).unwrap();
    }
    let (v4, mut v6) = table.into_parts();
    v6.insert("::/0".parse::<Ipv6Net>().unwrap(), labels.intern("a").unwrap()).unwrap();
    drop(v4);
    assert_eq!(all(&labels), [(1, "a")]);
    v6.remove("::/0".parse::<Ipv6Net>().unwrap()).unwrap();
    assert!(labels.is_empty());
}

#[test]
fn an_index_that_ended_gets_no_value_while_a_route_leads_to_it() {
    let labels = Labels::new();
    let mut table = IpTable::builder().labelled_routes(&labels, [(net("10.0.0.0/8"), 0)]).build().unwrap();
    table.remove(net("10.0.0.0/8")).unwrap();
    assert!(labels.is_empty());
    // Against the rule: the index was not interned again.
    table.insert(net("11.0.0.0/8"), NextHop(1)).unwrap();
    let kept: Vec<_> = (0..10).map(|n| labels.intern(n).unwrap()).collect();
    until(|| {
        labels.reclaim();
        labels.get(NextHop(1)).is_none()
    });
    assert!(!kept.contains(&NextHop(1)) && labels.intern(100) != Ok(NextHop(1)));
    table.remove(net("11.0.0.0/8")).unwrap();
    assert_eq!(labels.intern(101), Ok(NextHop(1)));
}

#[test]
fn labels_of_names_end() {
    let labels = Labels::new();
    let name = |text: &str| NameBuf::new(text).unwrap();
    let names = [("/a", "one"), ("/b", "one"), ("/b", "two"), ("/c", "three"), ("/c", "four")];
    let builder = NameTable::builder().labelled_names(&labels, names.map(|(n, label)| (name(n), label)));
    let mut table = builder.build().unwrap();
    assert_eq!(all(&labels), [(1, "one"), (2, "two"), (4, "four")], "a later result replaces an earlier one");
    table.remove(name("/a")).unwrap();
    table.remove(name("/a")).unwrap();
    let five = labels.intern("five").unwrap();
    table.apply(&[NameUpdate::insert(name("/b"), five), NameUpdate::remove(name("/none"))]).unwrap();
    assert_eq!(labels.find(&"five"), Some(five));
    assert_eq!(labels.len(), 2);
    let reader = table.reader();
    let known = labels.enter();
    let found = reader.lookup(&*name("/b/x"));
    table.remove(name("/b")).unwrap();
    assert_eq!((labels.len(), known.get(found)), (1, Some(&"five")));
}

#[test]
fn labels_of_rules_end() {
    let labels = Labels::new();
    let rule = |text: &str| text.parse::<Rule<Ipv4Tuple>>().unwrap();
    let rules = [(rule("dport=1"), "one"), (rule("dport=2"), "two"), (rule("dport=3"), "two")];
    let mut table = Classifier::builder().labelled_rules(&labels, rules).build().unwrap();
    let labelled = |text: &str, label| rule(text).with_action(labels.intern(label).unwrap().0);
    table.remove(RuleNumber::new(1).unwrap()).unwrap();
    table.remove(RuleNumber::new(2).unwrap()).unwrap();
    let number = table.insert(labelled("dport=4", "three")).unwrap();
    assert_eq!((labels.len(), labels.find(&"one")), (2, None));
    table.set(number, labelled("dport=4", "four")).unwrap();
    // Numbers of rules that the call inserts itself, and a rule without an action.
    let (five, six) = (labelled("dport=5", "five"), labelled("dport=6", "six"));
    let at = number.get() + 1;
    table
        .apply(&[RuleUpdate::Insert(five), RuleUpdate::Set(at, six), RuleUpdate::Insert(rule("dport=7"))])
        .unwrap();
    let mut values: Vec<_> = all(&labels).into_iter().map(|(_, label)| label).collect();
    values.sort_unstable();
    assert_eq!(values, ["four", "six", "two"]);
    assert!(
        table.apply(&[RuleUpdate::Remove(at), RuleUpdate::Set(0, labelled("dport=8", "eight"))]).is_err()
    );
    assert_eq!(labels.len(), 4, "the claim of a call that failed stays");
    drop(table);
    assert_eq!(labels.len(), 1);
}

#[test]
fn labels_of_doubts_stay() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("rules.v4");
    let text = "*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -m owner --uid-owner 7 -j DROP\nCOMMIT\n";
    std::fs::write(&path, text.replace("owner --uid-owner 7", "conntrack --ctstate NEW")).unwrap();
    let labels = Labels::<String>::new();
    let builder = Classifier::<Ipv4Tuple>::builder().leave_out(true).file(&path, &labels);
    let mut table = builder.build().unwrap();
    assert_eq!(table.doubts().uncertain.len(), 1);
    let numbers: Vec<_> = table.rules().iter().map(|(number, _)| number).collect();
    numbers.into_iter().for_each(|number| _ = table.remove(number).unwrap());
    assert_eq!(all(&labels).into_iter().map(|(_, text)| text).collect::<Vec<_>>(), ["DROP"]);
    drop(table);
    assert!(labels.is_empty());
}

/// Labels with a hole at 1, and equal values at 2 and 4.
fn with_a_hole(save: impl FnOnce(&Path, &Labels<String>, &IpTable)) -> tempfile::TempDir {
    let labels = Labels::new();
    let routes = (1..=5).map(|n| (net(&format!("{n}.0.0.0/8")), format!("label {n}")));
    let mut table = IpTable::builder().labelled_routes(&labels, routes).build().unwrap();
    for n in [1, 5] {
        table.remove(net(&format!("{n}.0.0.0/8"))).unwrap();
    }
    labels.replace(NextHop(4), "label 2".to_owned()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    save(&dir.path().join("image"), &labels, &table);
    dir
}

fn has_a_hole(labels: &Labels<String>, what: &str) {
    let texts = [(2, "label 2"), (3, "label 3"), (4, "label 2")].map(|(n, text)| (n, text.to_owned()));
    assert_eq!(all(labels), texts, "{what}");
    assert_eq!(labels.find(&"label 2".to_owned()), Some(NextHop(2)));
    assert_eq!(labels.intern("more".to_owned()), Ok(NextHop(1)));
    assert_eq!(labels.intern("still more".to_owned()), Ok(NextHop(5)));
}

#[test]
fn an_image_keeps_the_indexes_of_labels() {
    let names = || NameTable::builder().names([(NameBuf::new("/a").unwrap(), NextHop(2))]).build().unwrap();
    let rule = "dport=1 action=2".parse::<Rule<Ipv4Tuple>>().unwrap();
    let rules = || Classifier::builder().rules([rule.clone()]).build().unwrap();
    for what in ["addresses", "names", "rules"] {
        let save = |path: &Path, labels: &Labels<String>, table: &IpTable| match what {
            "addresses" => table.v4().save_labelled(path, labels).unwrap(),
            "names" => names().save_labelled(path, labels).unwrap(),
            _ => rules().save_labelled(path, labels).unwrap(),
        };
        let dir = with_a_hole(save);
        has_a_hole(&Labels::open(dir.path().join("image")).unwrap(), what);
        let save = |path: &Path, labels: &Labels<String>, table: &IpTable| match what {
            "addresses" => table.v4().save_labelled_json(path, labels).unwrap(),
            "names" => names().save_labelled_json(path, labels).unwrap(),
            _ => rules().save_labelled_json(path, labels).unwrap(),
        };
        let dir = with_a_hole(save);
        has_a_hole(&Labels::open_json(dir.path().join("image")).unwrap(), what);
    }
}

#[test]
fn a_table_that_was_opened_attaches_its_labels() {
    let dir = with_a_hole(|path, labels, table| table.v4().save_labelled(path, labels).unwrap());
    let path = dir.path().join("image");
    let (mut table, labels) = (Ipv4Table::open(&path).unwrap(), Labels::<String>::open(&path).unwrap());
    table.attach_labels(&labels);
    table.attach_labels(&labels);
    let known = labels.enter();
    let found = table.reader().lookup(Ipv4Addr::new(4, 0, 0, 1));
    assert_eq!(known.get(found).map(String::as_str), Some("label 2"));
    table.remove("4.0.0.0/8".parse::<Ipv4Net>().unwrap()).unwrap();
    table.remove("3.0.0.0/8".parse::<Ipv4Net>().unwrap()).unwrap();
    assert_eq!(all(&labels), [(2, "label 2".to_owned())]);
}

#[test]
fn labels_of_another_type_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("image");
    let refused = |error: Error, found: &str, wanted: &str| {
        let text = format!("{}: the labels are {found}, and {wanted} is wanted", path.display());
        assert_eq!(error.to_string(), text);
    };
    let labels = Labels::<(u32, u8)>::new();
    let routes = [("10.0.0.0/8".parse::<Ipv4Net>().unwrap(), (1, 2))];
    let table = Ipv4Table::builder().labelled_routes(&labels, routes).build().unwrap();
    table.save_labelled_json(&path, &labels).unwrap();
    assert_eq!(all(&Labels::<(u32, u8)>::open_json(&path).unwrap()), [(1, (1, 2))]);
    refused(Labels::<(u32, u32)>::open_json(&path).unwrap_err(), "JSON of (u32, u8)", "JSON of (u32, u32)");
    refused(Labels::<String>::open(&path).unwrap_err(), "JSON of (u32, u8)", "text");
    // The compiled table opens as any other.
    let reader = Ipv4Reader::open(&path).unwrap();
    assert_eq!(reader.lookup(Ipv4Addr::new(10, 0, 0, 1)), NextHop(1));
    Ipv4Table::open(&path).unwrap().save(&path).unwrap();
    assert!(Labels::<u32>::open_json(&path).unwrap().is_empty());

    let labels = Labels::new();
    labels.intern("text".to_owned()).unwrap();
    table.save_labelled(&path, &labels).unwrap();
    refused(Labels::<u32>::open_json(&path).unwrap_err(), "text", "JSON of u32");
}

/// A service that replaces all entries interns each label anew, whether its entry differs or not.
#[test]
fn labels_of_replaced_entries_end_with_their_last_entry() {
    const ENTRIES: u32 = 40;
    let labels = Labels::new();
    // By difference, and by a build: of so many entries one label is another in each round.
    for changed in [1, ENTRIES] {
        let round =
            |n: u32| (0..ENTRIES).map(move |at| (at, if at < changed { at << 8 | n } else { at << 8 }));
        let intern = |value: u32| labels.intern(value).unwrap();
        let mut table = Ipv4Table::builder().prefix_lookups().labels(&labels).build().unwrap();
        let mut names = NameTable::builder().labels(&labels).build().unwrap();
        let mut rules = Classifier::<Ipv4Tuple>::builder().labels(&labels).build().unwrap();
        for n in 1..5 {
            let prefix = |at: u32| Prefix::around(V4(at << 24), 8);
            table.replace(round(n).map(|(at, value)| (prefix(at), intern(value))).collect()).unwrap();
            let name = |at: u32| NameBuf::new(&format!("/{at}")).unwrap();
            names.replace(round(n).map(|(at, value)| (name(at), intern(value).0)).collect()).unwrap();
            let rule = |at: u32| format!("dport={at}").parse::<Rule<Ipv4Tuple>>().unwrap();
            let all = round(n).map(|(at, value)| rule(at).with_action(intern(value).0));
            rules.replace(all.collect()).unwrap();
            assert_eq!(labels.len(), ENTRIES as usize, "round {n}");
            for (at, value) in round(n) {
                let found = table.reader().lookup(V4(at << 24 | 1));
                assert_eq!(labels.get(found).as_deref(), Some(&value));
                assert_eq!(names.reader().lookup(name(at)), found);
                let packet = format!("dport={at}").parse().unwrap();
                assert_eq!(rules.reader().find(&packet).map(|found| found.action), Some(found));
            }
        }
        table.replace(Rib::new()).unwrap();
        names.replace(NameRib::new()).unwrap();
        assert_eq!(labels.len(), ENTRIES as usize, "the rules have them");
        rules.replace(RuleSet::new()).unwrap();
        assert_eq!(labels.len(), 0, "{changed} changed");
    }
}
