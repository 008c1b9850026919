//! Tables of more chunks than two bytes number, and of shapes that only large ones take: the suite's have few
//! routes.

use std::fmt::Debug;

use crate::device;
use crate::mirror::Mirrored;
use wirespeed_fib::conformance::{Expected, check, scattered};
use wirespeed_fib::{Address, BuildOptions, Engine, NextHop, Prefix, Rib, V4, V6, oracle};
use wirespeed_image::device::OnDevice;
use wirespeed_image::{Table, rounds};

/// A next hop of each width of elements: 1, 2 and 4 bytes. A plain run takes the first.
fn next_hops() -> impl Iterator<Item = u32> {
    [100, 10_000, 100_000].into_iter().take(if rounds::is_plain() { 1 } else { 3 })
}

/// Holds an engine's table of these routes against the right answers, if `is_meant` finds it to be what the
/// test is about.
fn hold<A: Address, E: Engine<A>>(rib: &Rib<A>, is_meant: impl Fn(&E::Table) -> bool, what: &str)
where
    E::Table: OnDevice,
{
    if device::device().is_none() {
        return;
    }
    let options = BuildOptions { seed: Some(1), ..BuildOptions::default() };
    let (_, table) = Mirrored::<E>::build(rib, &options).expect("a valid table is built");
    let (_, plain) = E::build(rib, &options).expect("a valid table is built");
    assert!(is_meant(&plain), "{what}");
    let prefixes = || rib.iter().map(|(prefix, _)| prefix);
    let longest = prefixes().filter(|prefix| prefix.len() > 24).take(100);
    let mut keys = oracle::boundaries(prefixes().step_by(rib.len() / 300).chain(longest));
    keys.extend(scattered::<A>(500));
    check(&table, &Expected::of(rib), &keys, what);
}

/// The width of a section's elements.
fn is_wide<T: Table>(table: &T, section: &str) -> bool {
    let image = table.image();
    image.find(section).and_then(|section| image.width(section)) == Some(4)
}

fn rib<A: Address + Debug>(routes: impl IntoIterator<Item = (A, u8, u32)>) -> Rib<A> {
    routes.into_iter().map(|(address, len, n)| (Prefix::around(address, len), NextHop(n))).collect()
}

/// A different chunk for each of 70,000 slots, and some that lead on.
#[test]
fn fold_v4_with_many_chunks() {
    for most in next_hops() {
        let routes = (0..70_000u32).flat_map(|slot| {
            [0, 4, 8, 12].map(|shift| {
                let len = if slot % 1_000 == 999 { 30 } else { 24 };
                (V4(slot << 14 | shift << 6), len, 1 + (slot >> shift) % 16 + if slot < 9 { most } else { 0 })
            })
        });
        hold::<V4, wirespeed_fold::FoldV4>(&rib(routes), |table| is_wide(table, "c18"), "many chunks");
    }
}

/// A chunk for each slot, and some that lead on.
#[test]
fn rank_with_a_chunk_for_each_slot() {
    if rounds::leaves_to_ci() {
        return;
    }
    for most in next_hops() {
        let routes = (0..1 << 16).flat_map(|slot| {
            let half = (V4(slot << 16 | 1 << 15), 17, 1 + slot % most);
            let long = slot.is_multiple_of(1_000).then_some((V4(slot << 16 | 77), 30, most));
            [Some(half), long].into_iter().flatten()
        });
        hold::<V4, wirespeed_rank::Rank>(&rib(routes), |table| is_wide(table, "level16"), "a chunk a slot");
    }
}

/// Routes so scattered that the first step is of 16 bits.
#[test]
fn fold_v6_of_another_shape() {
    if rounds::leaves_to_ci() {
        return;
    }
    for len in [48, 64, 128].into_iter().step_by(device::stride()) {
        let routes = scattered::<V6>(9_000).into_iter().zip(1..).map(|(address, n)| (address, len, n));
        let is_meant = |table: &wirespeed_fold::FoldTableV6| table.strides()[0] == 16;
        hold::<V6, wirespeed_fold::FoldV6>(&rib(routes), is_meant, "another shape");
    }
}
