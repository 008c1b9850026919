//! The /16s of a Rib, for engines that hold something for each of them or for parts of them.

use wirespeed_fib::rib::Cursor;
use wirespeed_fib::{Address, NextHop, Prefix, Rib, V4};

/// Visits every /16, in order: its two octets as a number, the way to longer routes if there are any, and the
/// next hop where there are none.
pub(crate) fn every_16<E>(
    rib: &Rib<V4>,
    visit: impl FnMut(u32, Option<Cursor<'_, V4>>, NextHop) -> Result<(), E>,
) -> Result<(), E> {
    walk(rib, Prefix::DEFAULT, |_| false, visit)
}

/// Visits the /16s that a change of `prefix` reaches.
pub(crate) fn changed_16<E>(
    rib: &Rib<V4>,
    prefix: Prefix<V4>,
    visit: impl FnMut(u32, Option<Cursor<'_, V4>>, NextHop) -> Result<(), E>,
) -> Result<(), E> {
    walk(rib, prefix, |best| prefix.is_hidden_by(best), visit)
}

/// A cursor at the routes of a /16 that are longer, if there are any, and the next hop where there are
/// none.
pub(crate) fn below_16(rib: &Rib<V4>, address: V4) -> (Option<Cursor<'_, V4>>, NextHop) {
    let (root, [first, second]) = (rib.cursor(), [address.octet(0), address.octet(1)]);
    let cursor = root.child(first);
    let best = cursor.and_then(|cursor| cursor.best(second)).or_else(|| root.best(first));
    let inherited = best.map_or(NextHop::NONE, |(_, next_hop)| next_hop);
    (cursor.and_then(|cursor| cursor.child(second)), inherited)
}

fn walk<E>(
    rib: &Rib<V4>,
    prefix: Prefix<V4>,
    is_hidden_by: impl Fn(Option<(u8, NextHop)>) -> bool,
    mut visit: impl FnMut(u32, Option<Cursor<'_, V4>>, NextHop) -> Result<(), E>,
) -> Result<(), E> {
    let root = rib.cursor();
    for first in prefix.octets(0) {
        let best = root.best(first);
        if is_hidden_by(best) {
            continue;
        }
        let inherited = best.map_or(NextHop::NONE, |(_, next_hop)| next_hop);
        let cursor = root.child(first);
        for second in prefix.octets(1) {
            let best = cursor.and_then(|cursor| cursor.best(second));
            if is_hidden_by(best) {
                continue;
            }
            let inherited = best.map_or(inherited, |(_, next_hop)| next_hop);
            let cursor = cursor.and_then(|cursor| cursor.child(second));
            visit(u32::from_be_bytes([0, 0, first, second]), cursor, inherited)?;
        }
    }
    Ok(())
}
