//! Lists of domains: every engine answers as the walk over all entries.

use proptest::prelude::*;
use wirespeed_namelookup::list::oracle::Oracle;
use wirespeed_namelookup::list::{Answer, Answers, Entries, Precedence, Resolved, Scope, Verdict};
use wirespeed_namelookup::mata::{Mata, MataNw};
use wirespeed_namelookup::stt::Stt;
use wirespeed_namelookup::{Acta, BuildOptions, Engine, Lookup, Match, NameBatch, NameBuf, NameDomain};

type Rows = Vec<(NameBuf, Scope, Precedence, Verdict)>;

fn list(entries: &Rows) -> Entries {
    let mut list = Entries::new();
    for (name, scope, precedence, verdict) in entries {
        list.insert(name, *scope, *precedence, *verdict);
    }
    list
}

/// Names of up to four labels of two letters: so few that entries meet at names, above and beneath.
fn name() -> impl Strategy<Value = NameBuf> {
    prop::collection::vec(prop::sample::select(vec![&b"a"[..], b"bb"]), 0..5)
        .prop_map(|labels| NameBuf::from_components(labels).unwrap())
}

fn entries() -> impl Strategy<Value = Rows> {
    let verdict =
        prop_oneof![3 => (1_u32..4).prop_map(|v| Verdict::value(v).unwrap()), 1 => Just(Verdict::Exception)];
    let precedence = (0_u8..2, 0_u8..2).prop_map(|(level, weight)| Precedence { level, weight });
    prop::collection::vec((name(), prop::sample::select(Scope::ALL.to_vec()), precedence, verdict), 0..12)
}

/// Every name of up to five labels that can meet an entry, and labels that are in no list.
fn probes() -> NameBatch {
    let mut all = vec![NameBuf::root()];
    for at in 0.. {
        let Some(name) = all.get(at).cloned() else { break };
        if name.components().count() < 5 {
            for label in [&b"a"[..], b"bb", b"c"] {
                let mut longer = name.clone();
                longer.push(label).unwrap();
                all.push(longer);
            }
        }
    }
    all.iter().map(|name| &**name).collect()
}

fn check_engine<E: Engine<NameDomain>>(list: &Resolved, right: &[Option<Answer>], probes: &NameBatch) {
    let (_, table) = E::build(&list.names, &BuildOptions::default()).unwrap();
    let mut found = vec![Match::NONE; probes.len()];
    table.match_batch(probes.names(), &mut found);
    for ((name, &found), &right) in probes.names().iter().zip(&found).zip(right) {
        assert_eq!(list.answers.answer(name, found), right, "{name} in a batch");
        assert_eq!(list.answers.answer(name, table.lookup(name)), right, "{name} alone");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn every_engine_answers_as_the_walk_over_all_entries(entries in entries()) {
        let probes = probes();
        let oracle = Oracle(entries.clone());
        let right: Vec<_> = probes.names().iter().map(|name| oracle.lookup(name)).collect();
        // Equal names and scopes of which the first has the higher rank, or the last comes last.
        let list = list(&entries).resolve();
        for (name, right) in probes.names().iter().zip(&right) {
            prop_assert_eq!(list.lookup(name), *right, "{}", name);
        }
        check_engine::<Acta>(&list, &right, &probes);
        check_engine::<Mata>(&list, &right, &probes);
        check_engine::<MataNw>(&list, &right, &probes);
        check_engine::<Stt>(&list, &right, &probes);
        prop_assert_eq!(Answers::from_bytes(&list.answers.to_bytes()), Some(list.answers));
    }
}
