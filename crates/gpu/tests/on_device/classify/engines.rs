//! Every kernel of rules against the suite that every engine of rules passes, and, short enough for a tool
//! that watches each access, on sets of the kernels' own edges: none, more than fit in shared memory at once,
//! numbers of every width, patches between batches.

use wirespeed_classify::conformance::probes::around;
use wirespeed_classify::conformance::{options, sets};
use wirespeed_classify::oracle::{Expected, Right};
use wirespeed_classify::{Engine, LiveRules, Lookup, Rule, RuleSet, RuleUpdate, Tuple};
use wirespeed_fib::synth::rng::Rng;
use wirespeed_image::rounds;

use super::device::OfRules;
use crate::mirror::Mirrored;

/// Sets that each have something of their own.
fn hand_picked<T: Tuple>() -> Vec<(&'static str, RuleSet<T>)> {
    let mut rng = Rng::new(3);
    let wanted = [
        "no rules",
        "a rule that matches all",
        "nested prefixes, the longest first",
        "all classes match, the last is best",
        "numbers far apart and out of order",
        "masks with holes",
        "ranges that no hash tells apart",
    ];
    let mut all: Vec<_> =
        sets::hand_picked::<T>().into_iter().filter(|(what, _)| wanted.contains(what)).collect();
    assert_eq!(all.len(), wanted.len());
    all.push(("150 classes, 300 rules", sets::classes(&mut rng, 150, 300)));
    all.push(("40 classes, 4,000 rules", sets::classes(&mut rng, 40, 4_000)));
    all.push(("2 classes, 6,000 rules", sets::classes(&mut rng, 2, 6_000)));
    all
}

fn edges<T: Tuple, E: Engine<T>>()
where
    Mirrored<E, OfRules>: Engine<T>,
{
    // Programs, widths and grids change from batch to batch.
    let batches = 8usize.div_ceil(crate::device::stride()).max(3);
    let step = rounds::plain_step(4);
    for (what, rules) in hand_picked::<T>().into_iter().step_by(step) {
        let mut live = LiveRules::<T, Mirrored<E, OfRules>>::new(rules, options()).expect("it is built");
        let reader = live.reader();
        for turn in 0..2u32 {
            let right = Expected::of(live.model());
            let mut probes = around(live.model(), 60);
            // Over a tile of the largest block.
            probes =
                probes.iter().cycle().take(probes.len().max([300, 2_500][turn as usize])).copied().collect();
            for batch in 0..batches {
                // A short batch is the device's where it is a state's first.
                let count = if batch == 0 { [1, 33][turn as usize] } else { probes.len() - batch / 2 };
                let mut found = vec![u32::MAX; count];
                reader.enter().lookup_batch(&probes[..count], &mut found);
                for (tuple, &found) in probes.iter().zip(&found) {
                    assert_eq!(found, right.right(tuple), "{what}, turn {turn}: {tuple}");
                }
            }
            live.apply(&updates(live.model())).expect("the table takes the updates");
        }
    }
}

/// Some rules go, some change places, some come back as the last, with numbers of more bytes.
fn updates<T: Tuple>(rules: &RuleSet<T>) -> Vec<RuleUpdate<T>> {
    let some = rules.sorted().into_iter().step_by(7).take(150);
    let of = |(number, rule): (_, &Rule<T>)| {
        let number: u32 = wirespeed_classify::RuleNumber::into(number);
        match number % 3 {
            0 => RuleUpdate::Remove(number),
            1 => RuleUpdate::Set(number, rule.clone().with_priority(1_000_000 + number % 5)),
            _ => RuleUpdate::Set(70_000 + number % 1_000, rule.clone().with_priority(2_000_000)),
        }
    };
    some.map(of).collect()
}

/// Whether a part of the suite runs here. On the host build, under sanitizers, the whole takes most of an
/// hour: there it is what is made up at random, with one tuple for each kernel, and the kernels' own edges
/// for all, or everything with `WIRESPEED_TEST_WHOLE`.
fn runs(module: &str, test: &str) -> bool {
    let is_whole = crate::device::is_whole();
    let shorts = ["linear_ipv6", "bloom_openflow", "tuple_search_ipv4", "quilt_openflow", "quilt_openflow13"];
    let is_short = test == "random_sets" && shorts.contains(&module);
    if !is_whole && !is_short {
        println!("skipped: minutes on the host build; WIRESPEED_TEST_WHOLE=1 runs it");
    }
    (is_whole || is_short) && crate::device::device().is_some()
}

macro_rules! on_device_rules {
    ($($module:ident, $tuple:ty, $engine:ty;)+) => {
        $(on_device_rules! { @ $module, $tuple, $engine,
            hand_picked_sets random_sets random_updates large_sets images live_readers hostile_rules wide_ranges })+
    };
    (@ $module:ident, $tuple:ty, $engine:ty, $($test:ident)+) => {
        mod $module {
            #[allow(unused_imports)]
            use wirespeed_classify::{Ipv4Tuple, Ipv6Tuple, OpenFlow13Tuple, OpenFlowTuple};

            $(#[test]
            fn $test() {
                if super::runs(stringify!($module), stringify!($test)) {
                    wirespeed_classify::conformance::$test::<$tuple, crate::mirror::Mirrored<$engine, crate::classify::device::OfRules>>();
                }
            })+
            #[test]
            fn edges() {
                if crate::device::device().is_some() {
                    super::edges::<$tuple, $engine>();
                }
            }
        }
    };
}

on_device_rules! {
    linear_ipv4, Ipv4Tuple, wirespeed_classify::linear::Linear<Ipv4Tuple>;
    linear_ipv6, Ipv6Tuple, wirespeed_classify::linear::Linear<Ipv6Tuple>;
    linear_openflow, OpenFlowTuple, wirespeed_classify::linear::Linear<OpenFlowTuple>;
    linear_openflow13, OpenFlow13Tuple, wirespeed_classify::linear::Linear<OpenFlow13Tuple>;
    tuple_search_ipv4, Ipv4Tuple, wirespeed_classify::tuple_search::TupleSearch<Ipv4Tuple>;
    tuple_search_ipv6, Ipv6Tuple, wirespeed_classify::tuple_search::TupleSearch<Ipv6Tuple>;
    tuple_search_openflow, OpenFlowTuple, wirespeed_classify::tuple_search::TupleSearch<OpenFlowTuple>;
    bloom_ipv4, Ipv4Tuple, wirespeed_classify::bloom::BloomSearch<Ipv4Tuple>;
    bloom_ipv6, Ipv6Tuple, wirespeed_classify::bloom::BloomSearch<Ipv6Tuple>;
    bloom_openflow, OpenFlowTuple, wirespeed_classify::bloom::BloomSearch<OpenFlowTuple>;
    quilt_ipv4, Ipv4Tuple, wirespeed_classify::quilt::Quilt<Ipv4Tuple>;
    quilt_ipv6, Ipv6Tuple, wirespeed_classify::quilt::Quilt<Ipv6Tuple>;
    quilt_openflow, OpenFlowTuple, wirespeed_classify::quilt::Quilt<OpenFlowTuple>;
    quilt_openflow13, OpenFlow13Tuple, wirespeed_classify::quilt::Quilt<OpenFlow13Tuple>;
}
