//! The keys that are looked up: made once, shared by all lanes, in both byte orders where rivals want both.

use std::collections::HashSet;

use wirespeed_fib::{Address, Family, Rib};

/// Keys in the order in which they are looked up.
#[derive(Clone, Debug)]
pub struct Trace<A> {
    /// What kind of trace it is.
    pub name: &'static str,
    /// The seed that it was drawn from.
    pub seed: u64,
    keys: Vec<A>,
    /// The same in network order, for tables that take IPv6 addresses as bytes. Empty for IPv4.
    network: Vec<[u8; 16]>,
}

/// A part of a trace.
#[derive(Clone, Copy, Debug)]
pub struct Keys<'a, A> {
    /// As integers.
    pub host: &'a [A],
    /// As bytes in network order; empty for IPv4.
    pub network: &'a [[u8; 16]],
}

impl<A> Keys<'_, A> {
    /// Number of keys.
    pub fn len(&self) -> usize {
        self.host.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.host.is_empty()
    }
}

impl<A: Address> Trace<A> {
    /// A trace of given keys.
    pub fn new(name: &'static str, seed: u64, keys: Vec<A>) -> Self {
        let network = match A::FAMILY {
            Family::V4 => Vec::new(),
            Family::V6 => keys.iter().map(|key| key.to_u128().to_be_bytes()).collect(),
        };
        Self { name, seed, keys, network }
    }

    /// Distinct addresses, uniform over the address space.
    pub fn random(count: usize, seed: u64) -> Self {
        let mut rng = SplitMix(seed);
        Self::new("random", seed, distinct(count, || rng.address()))
    }

    /// Distinct addresses, each inside a prefix drawn uniformly.
    pub fn by_prefix(rib: &Rib<A>, count: usize, seed: u64) -> Self {
        let prefixes: Vec<_> = rib.iter().map(|(prefix, _)| prefix).collect();
        let mut rng = SplitMix(seed);
        let draw = || {
            let at = (u128::from(rng.next()) * prefixes.len() as u128) >> 64;
            let prefix = prefixes[usize::try_from(at).expect("below a length")];
            let host = rng.address::<A>().to_u128() & !A::MAX.keep(prefix.len()).to_u128();
            A::from_u128_low(prefix.address().to_u128() | host)
        };
        Self::new("prefix", seed, distinct(count, draw))
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// All keys as integers.
    pub fn keys(&self) -> &[A] {
        &self.keys
    }

    /// Keys `from..to`.
    pub fn range(&self, from: usize, to: usize) -> Keys<'_, A> {
        let network = if self.network.is_empty() { &[][..] } else { &self.network[from..to] };
        Keys { host: &self.keys[from..to], network }
    }
}

/// `count` distinct draws; fewer where drawing keeps repeating itself.
fn distinct<A: Address>(count: usize, mut draw: impl FnMut() -> A) -> Vec<A> {
    let mut seen = HashSet::with_capacity(count);
    let mut keys = Vec::with_capacity(count);
    for _ in 0..2 * count {
        if keys.len() == count {
            break;
        }
        let key = draw();
        if seen.insert(key) {
            keys.push(key);
        }
    }
    keys
}

struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn address<A: Address>(&mut self) -> A {
        A::from_u128_low(u128::from(self.next()) << 64 | u128::from(self.next()))
    }
}
