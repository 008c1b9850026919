//! Everyone in the lineup answers as the Rib does, on a table with what tends to go wrong in it: a default
//! route, host routes, nesting at every length, siblings, IPv6 longer than /64. Who doesn't would be left out
//! of a record; better to know now.

use super::Lineup;
use crate::contest::{check, expected};
use crate::engines;
use crate::table::Mode;
use crate::trace::Trace;
use wirespeed_fib::trace::TraceKind;
use wirespeed_fib::{Address, NextHop, Prefix, Rib, Update, V4, V6};

/// A default route, a chain to full length, and some hundred prefixes with their siblings in a corner of the
/// address space.
fn table<A: Address>() -> Rib<A> {
    let mut rib = Rib::new();
    let chain = A::from_u128_low(0x0a0b_0c0d_u128 << (A::BITS - 32) | 1);
    for len in 0..=A::BITS {
        rib.insert(Prefix::around(chain, len), NextHop(1 + u32::from(len) % 9));
    }
    for i in 0..250u32 {
        let spread =
            A::from_u128_low(u128::from(0xc000_0000 | i.wrapping_mul(0x9e37_79b9) >> 8) << (A::BITS - 32));
        let len = 8 + u8::try_from(i % 25).expect("below 25");
        let prefix = Prefix::around(spread, len);
        rib.insert(prefix, NextHop(1 + i % 60));
        if let Some(sibling) = prefix.sibling() {
            rib.insert(sibling, NextHop(1 + i % 7));
        }
    }
    rib
}

fn everyone_is_right<A: Lineup>() {
    #[cfg(feature = "dpdk")]
    crate::dpdk::start(0).expect("DPDK starts on any machine that it is installed on");
    let rib = table::<A>();
    for kind in [TraceKind::Prefix, TraceKind::Random] {
        let trace = Trace::draw(&rib, kind, 5000, 7).expect("the table has prefixes");
        let expected = expected(&rib, &trace);
        for entry in A::lookups(false) {
            let lane = match entry.build(&rib) {
                Ok(lane) => lane,
                // A lookup function that needs instructions which this CPU lacks.
                Err(error) if entry.name.starts_with("rte_") => {
                    eprintln!("skipped: {}: {error}", entry.name);
                    continue;
                }
                Err(error) => panic!("{}: {error}", entry.name),
            };
            for mode in [Mode::Single, Mode::Batch(33)] {
                check(lane.as_ref(), mode, &trace, &expected).unwrap_or_else(|wrong| panic!("{wrong}"));
            }
        }
    }
}

#[test]
fn everyone_is_right_v4() {
    everyone_is_right::<V4>();
}

#[test]
fn everyone_is_right_v6() {
    everyone_is_right::<V6>();
}

#[test]
fn our_live_tables_are_right_after_updates() {
    let mut rib = table::<V4>();
    let updates: Vec<Update<V4>> = rib
        .iter()
        .enumerate()
        .map(|(i, (prefix, next_hop))| match i % 3 {
            0 => Update::Withdraw { prefix },
            _ => Update::Announce { prefix, next_hop: Some(NextHop(next_hop.0 + 3)) },
        })
        .collect();
    let mut lanes: Vec<_> =
        engines::updates().iter().map(|entry| entry.build(&rib).expect("a small table")).collect();
    for update in &updates {
        rib.apply(update);
    }
    let trace = Trace::draw(&rib, TraceKind::Prefix, 5000, 7).expect("the table has prefixes");
    let expected = expected(&rib, &trace);
    for lane in &mut lanes {
        for batch in updates.chunks(32) {
            assert!(lane.update(batch));
        }
        check(lane.as_ref(), Mode::Batch(64), &trace, &expected).unwrap_or_else(|wrong| panic!("{wrong}"));
    }
}
