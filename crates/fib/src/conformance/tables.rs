//! The tables that the suite is run on.

use std::ops::Range;

use proptest::prelude::*;

use crate::address::Address;
use crate::next_hop::NextHop;
use crate::prefix::Prefix;
use crate::rib::Rib;
use crate::synth::rng::Rng;
use crate::update::Update;

/// Small tables, each with something that engines get wrong.
pub fn hand_picked<A: Address>() -> Vec<(&'static str, Rib<A>)> {
    let host = A::BITS;
    let pattern = |byte: u8| (0..A::OCTETS).fold(A::MIN, |a, i| a.with_octet(i, byte));
    let chain = |along: A| (0..=host).map(move |len| Prefix::around(along, len));
    let number =
        |prefixes: Vec<Prefix<A>>| -> Rib<A> { prefixes.into_iter().zip((1..).map(NextHop)).collect() };
    let with_siblings = |along: A| -> Vec<Prefix<A>> {
        chain(along).flat_map(|p| [Some(p), p.sibling()]).flatten().collect()
    };
    let at = |octets: &[u8], len: u8| {
        Prefix::around(octets.iter().enumerate().fold(A::MIN, |a, (i, &o)| a.with_octet(i, o)), len)
    };

    // Prefixes at both sides of each level of a trie of octets, and inside each.
    let around_levels: Vec<_> = (0..=host)
        .filter(|len| len % 8 <= 1 || len % 8 == 7)
        .flat_map(|len| [pattern(0x0f), pattern(0xf0)].map(|a| Prefix::around(a, len)))
        .collect();
    // A long prefix beneath each of 256 neighbours: as many chunks side by side.
    let neighbours: Vec<_> = (0..=255).map(|o| at(&[10, 1, o, 128], 25)).collect();
    // A hole in a covering route, and a route again in the hole.
    let hole = [(at(&[10], 8), 1), (at(&[10, 1], 16), 0), (at(&[10, 1, 2], 24), 2)];
    // A wide next hop that no lookup finds, and so many routes after it that updates come to it in one call
    // with those that hide it.
    let hidden = [(at(&[10], 8), 300), (at(&[10], 9), 1), (at(&[10, 128], 9), 2)]
        .into_iter()
        .chain((20..28).zip(3..).map(|(o, n)| (at(&[o], 8), n)));
    // Covering routes that come after what they cover, and equal next hops inside each other.
    let same: Rib<A> = chain(pattern(0xa5)).map(|p| (p, NextHop(7))).collect();
    let wide = |first: u32, count: u32| -> Rib<A> {
        (0..count)
            .map(|i| {
                let [_, a, b, c] = i.to_be_bytes();
                (at(&[20 + a, b, c], 24), NextHop(first + i))
            })
            .collect()
    };

    vec![
        ("empty", Rib::new()),
        ("only a default route", number(vec![Prefix::DEFAULT])),
        ("both halves", number(vec![at(&[0], 1), at(&[128], 1)])),
        ("the first and the last host", number(vec![Prefix::host(A::MIN), Prefix::host(A::MAX)])),
        (
            "hosts next to each other",
            number((0..=255).map(|o| Prefix::host(pattern(9).with_octet(A::OCTETS - 1, o))).collect()),
        ),
        ("a default route and one host", number(vec![Prefix::DEFAULT, Prefix::host(pattern(0x55))])),
        ("a chain of every length along zeros", number(chain(A::MIN).collect())),
        ("a chain of every length along ones", number(chain(A::MAX).collect())),
        ("a chain with every sibling", number(with_siblings(pattern(0x5a)))),
        ("around each level", number(around_levels)),
        ("256 chunks side by side", number(neighbours)),
        ("a hole", hole.into_iter().map(|(p, n)| (p, NextHop(n))).collect()),
        ("a route that two longer ones hide", hidden.map(|(p, n)| (p, NextHop(n))).collect()),
        ("one next hop at every length", same),
        ("next hops up to 255", wide(1, 255)),
        ("next hops up to 256", wide(1, 256)),
        ("next hops up to 65,535", wide(65_500, 36)),
        ("next hops up to 65,536", wide(65_500, 37)),
        ("next hops up to 16,777,216 and one more", wide((1 << 24) - 8, 10)),
        ("a half of each length", number((1..=host).map(|len| Prefix::around(pattern(0xff), len)).collect())),
        (
            "longer than half of the address",
            number((host / 2..=host).map(|len| Prefix::around(pattern(0x37), len)).collect()),
        ),
    ]
}

/// Prefixes that nest, meet and repeat: few distinct octets, now and then any, lengths of all kinds.
fn prefix<A: Address>() -> impl Strategy<Value = Prefix<A>> {
    let octet = prop_oneof![3 => Just(0u8), 3 => Just(1), 2 => Just(128), 2 => Just(255), 1 => any::<u8>()];
    (proptest::collection::vec(octet, A::OCTETS), 0..=A::BITS).prop_map(|(octets, len)| {
        Prefix::around(octets.iter().enumerate().fold(A::MIN, |a, (i, &o)| a.with_octet(i, o)), len)
    })
}

/// Next hops of few values, of one-byte, two-byte and wider indexes, and none.
fn next_hop() -> impl Strategy<Value = NextHop> {
    prop_oneof![
        40 => 1..6u32,
        20 => 0..256u32,
        1 => Just(0u32),
        1 => 250..300u32,
        1 => 65_000..66_000u32,
        1 => 1u32 << 24..(1 << 24) + 3,
    ]
    .prop_map(NextHop)
}

/// Random tables.
pub fn random<A: Address>(routes: Range<usize>) -> impl Strategy<Value = Rib<A>> {
    proptest::collection::vec((prefix::<A>(), next_hop()), routes)
        .prop_map(|routes| routes.into_iter().collect())
}

/// Random updates, from the same prefixes as [`random`].
pub fn random_updates<A: Address>(updates: Range<usize>) -> impl Strategy<Value = Vec<Update<A>>> {
    let update =
        (prefix::<A>(), proptest::option::of(next_hop()), 0..10u8).prop_map(|(prefix, next_hop, kind)| {
            if kind < 4 { Update::Withdraw { prefix } } else { Update::Announce { prefix, next_hop } }
        });
    proptest::collection::vec(update, updates)
}

/// Prefixes of all lengths in a few corners of the space, the same in every run: they nest, and each corner
/// has many.
pub fn scattered_routes<A: Address>(count: usize) -> Vec<Prefix<A>> {
    let mut rng = Rng::new(3);
    let corners: Vec<A> = (0..24).map(|_| A::from_u128_low(rng.bits128())).collect();
    let route = |at: usize| {
        // Short ones are few: each rewrites much of a table that pushes prefixes down.
        let shortest = if at.is_multiple_of(50) { 4 } else { A::BITS / 3 };
        let len = shortest + u8::try_from(rng.index(usize::from(A::BITS - shortest) + 1)).unwrap_or(0);
        let random = A::from_u128_low(rng.bits128());
        let kept = u8::try_from(rng.index(usize::from(len) + 1)).unwrap_or(0).max(12).min(len);
        let corner = corners[rng.index(corners.len())].keep(kept);
        let rest = random.to_u128() ^ random.keep(kept).to_u128();
        Prefix::around(A::from_u128_low(corner.to_u128() | rest), len)
    };
    (0..count).map(route).collect()
}
