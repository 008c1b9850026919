//! Batches filled in place, of each domain: more keys than slots hold, a device that is lost, slots that are
//! kept, tables that are gone, and memory that runs out.

mod calls;
mod domains;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use wirespeed::classify::OpenFlow13Tuple;
use wirespeed::engine::Keys;
use wirespeed::gpu::runtime::GpuOptions;
use wirespeed::names::NameDomain;
use wirespeed::prelude::*;

use crate::common::{Warnings, on_host};
use calls::any_order_of_calls_gives_right_answers;
use domains::{Gone, Tried};

/// Writes a test for each domain.
macro_rules! of_all {
    ($($(#[$doc:meta])* $test:ident)+) => {$(
        $(#[$doc])*
        mod $test {
            use super::*;

            #[test]
            fn of_ipv4() {
                super::$test::<V4>();
            }

            #[test]
            fn of_ipv6() {
                super::$test::<V6>();
            }

            #[test]
            fn of_names() {
                super::$test::<NameDomain>();
            }

            #[test]
            fn of_rules() {
                super::$test::<Ipv4Tuple>();
            }

            #[test]
            fn of_openflow13() {
                super::$test::<OpenFlow13Tuple>();
            }
        }
    )+};
}

of_all! {
    more_keys_than_a_slot_holds_go_to_a_gpu_in_parts
    a_gpu_that_is_lost_costs_no_answer
    slots_that_are_kept_stop_nobody
    answers_outlive_their_table
    memory_that_runs_out_costs_no_answer
    any_order_of_calls_gives_right_answers
}

/// The largest slot of the device has 8,192 keys. A batch that could have more, and has few, goes as others
/// do.
fn more_keys_than_a_slot_holds_go_to_a_gpu_in_parts<D: Tried>() {
    let Some((fleet, _)) = on_host(D::gpu_options()) else { return };
    let all = D::start(Device::Gpu, &fleet, 20_000);
    let warnings = Arc::new(AtomicUsize::new(0));
    tracing::subscriber::with_default(Warnings(Arc::clone(&warnings)), || {
        for room in [8_193, 1 << 30, usize::MAX] {
            let mut few = all.batches.batch(room).unwrap();
            assert_eq!(few.extend_from(D::keys(&all.kept).part(0..100)), 100);
            assert_eq!((few.capacity(), few.len(), few.is_full()), (room, 100, false));
            let answers = few.submit().wait();
            assert!(answers.is_from_gpu(), "room for {room}");
            all.check(&answers, 0, "few of many");
        }
        // The second one has its parts sent when the first has given its slots back.
        let (one, other) = (all.filled(0, 20_000).submit(), all.filled(1, 9_000).submit());
        for (sent, from) in [(one, 0), (other, 1)] {
            let answers = sent.wait();
            assert!(answers.is_from_gpu());
            all.check(&answers, from, "in parts");
        }
    });
    let counts = all.table.counts();
    assert_eq!((counts.cpu, warnings.load(Ordering::Relaxed)), (0, 0), "{counts:?}");
    drop(all.filled(0, 20_000).submit());
    all.check(&all.filled(5, 15_000).submit().wait(), 5, "after a batch that was dropped");
}

fn a_gpu_that_is_lost_costs_no_answer<D: Tried>() {
    let Some((fleet, switch)) = on_host(D::gpu_options()) else { return };
    let all = D::start(Device::Gpu, &fleet, 10_000);
    let held = all.filled(0, 500).submit().wait();
    let (under_way, parts, filled) =
        (all.filled(500, 900).submit(), all.filled(0, 9_000).submit(), all.filled(900, 1_000));
    switch.store(true, Ordering::Relaxed);
    all.check(&under_way.wait(), 500, "under way");
    all.check(&parts.wait(), 0, "parts under way");
    all.check(&filled.submit().wait(), 900, "filled before");
    assert!(held.is_from_gpu());
    all.check(&held, 0, "from before");
    all.check(&all.filled(3, 1_000).submit().wait(), 3, "after");
    let counts = all.table.counts();
    assert_eq!(counts.cpu, counts.why_cpu.failed, "{counts:?}");
    assert!(counts.cpu > 0 && all.table.note().is_some());
}

fn slots_that_are_kept_stop_nobody<D: Tried>() {
    let Some((fleet, _)) = on_host(D::gpu_options()) else { return };
    let mut all = D::start(Device::Gpu, &fleet, 10_000);
    all.batches = all.batches.clone().at_once(100);
    let kept: Vec<_> = (0..20).map(|at| all.filled(at, at + 1).submit().wait()).collect();
    assert_eq!(kept.iter().filter(|answers| answers.is_from_gpu()).count(), 6, "there are six slots");
    kept.iter().enumerate().for_each(|(at, answers)| all.check(answers, at, "kept"));
    for to in [50, 1_000, 10_000] {
        let answers = all.filled(7, to).submit().wait();
        assert!(!answers.is_from_gpu());
        all.check(&answers, 7, "beside kept answers");
    }
    let counts = all.table.counts();
    assert!(counts.cpu > 10_000 && counts.cpu == counts.why_cpu.no_slot, "{counts:?}");
    drop(kept);
    for to in [50, 1_000, 10_000] {
        let answers = all.filled(7, to).submit().wait();
        assert!(answers.is_from_gpu());
        all.check(&answers, 7, "after them");
    }
    assert_eq!(all.table.counts().cpu, counts.cpu);
}

fn answers_outlive_their_table<D: Tried>() {
    let Some((fleet, _)) = on_host(D::gpu_options()) else { return };
    for device in [Device::Gpu, Device::Auto, Device::Cpu] {
        let mut all = D::start(device, &fleet, 10_000);
        let held = all.filled(0, 100).submit().wait();
        let (under_way, parts, filled) =
            (all.filled(100, 900).submit(), all.filled(0, 9_000).submit(), all.filled(900, 1_000));
        all.table = Box::new(Gone);
        all.check(&under_way.wait(), 100, "under way");
        all.check(&parts.wait(), 0, "parts under way");
        all.check(&filled.submit().wait(), 900, "filled before");
        all.check(&held, 0, "from before");
        all.check(&all.filled(3, 1_000).submit().wait(), 3, "after");
    }
}

/// A table that outgrows a cap on a GPU's memory goes out of use there.
fn memory_that_runs_out_costs_no_answer<D: Tried>() {
    let Some((fleet, _)) = on_host(D::gpu_options()) else { return };
    let all = D::start(Device::Gpu, &fleet, 0);
    let used = fleet.gpus()[0].usage();
    // Tables of one set of rules differ a little, because their seeds are random.
    let cap = used.device() + used.tables / 8;
    drop((all, fleet));
    let options = GpuOptions { memory_cap: Some(cap), ..D::gpu_options() };
    let Some((fleet, _)) = on_host(options) else { return };
    let mut all = D::start(Device::Gpu, &fleet, 1_000);
    let held = all.filled(0, 100).submit().wait();
    let (under_way, filled) = (all.filled(100, 900).submit(), all.filled(900, 1_000));
    all.table.grow();
    assert!(all.table.note().is_some(), "there is no memory for a second copy");
    all.check(&under_way.wait(), 100, "under way");
    all.check(&filled.submit().wait(), 900, "filled before");
    assert!(held.is_from_gpu());
    all.check(&held, 0, "from before");
    let answers = all.filled(3, 1_000).submit().wait();
    assert!(!answers.is_from_gpu());
    all.check(&answers, 3, "after");
}
