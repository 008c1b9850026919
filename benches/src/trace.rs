//! The keys that are looked up: made once, shared by all lanes, in both byte orders where rivals want both.

use std::collections::HashSet;
use std::ops::Range;

use anyhow::Result;
use wirespeed_fib::trace::{Generator, TraceKind};
use wirespeed_fib::{Address, Family, Rib};

use crate::batch::Batch;
use crate::pages::Huge;

/// Keys in the order in which they are looked up.
#[derive(Clone, Debug)]
pub struct Trace<A> {
    /// The kind of trace.
    pub name: String,
    /// The seed that it was drawn from.
    pub seed: u64,
    keys: Huge<A>,
    /// Keys in network order, for tables that take IPv6 addresses as bytes. Empty for IPv4.
    network: Huge<[u8; 16]>,
}

/// A part of a trace.
#[derive(Clone, Copy, Debug)]
pub struct Keys<'a, A> {
    /// The part as integers.
    pub host: &'a [A],
    /// The part as bytes in network order; empty for IPv4.
    pub network: &'a [[u8; 16]],
}

impl<A: Copy> Batch for Keys<'_, A> {
    type Key = A;

    fn len(self) -> usize {
        self.host.len()
    }

    fn part(self, range: Range<usize>) -> Self {
        let network = if self.network.is_empty() { &[][..] } else { &self.network[range.clone()] };
        Keys { host: &self.host[range], network }
    }

    fn each(self) -> impl Iterator<Item = A> {
        self.host.iter().copied()
    }
}

impl<A: Address> Trace<A> {
    /// A trace of given keys.
    pub fn new(name: impl Into<String>, seed: u64, keys: &[A]) -> Result<Self> {
        let network: Vec<_> = match A::FAMILY {
            Family::V4 => Vec::new(),
            Family::V6 => keys.iter().map(|key| key.to_u128().to_be_bytes()).collect(),
        };
        Ok(Self { name: name.into(), seed, keys: Huge::copy(keys)?, network: Huge::copy(&network)? })
    }

    /// Distinct keys of a kind; fewer where drawing keeps repeating itself.
    pub fn draw(rib: &Rib<A>, kind: TraceKind, count: usize, seed: u64) -> Result<Self> {
        let mut generator = Generator::new(rib, kind, seed)?;
        let mut seen = HashSet::with_capacity(count);
        let mut keys = Vec::with_capacity(count);
        for _ in 0..2 * count {
            if keys.len() == count {
                break;
            }
            let key = generator.draw();
            if seen.insert(key) {
                keys.push(key);
            }
        }
        Self::new(kind.to_string(), seed, &keys)
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

    /// All keys in every form.
    pub fn all(&self) -> Keys<'_, A> {
        Keys { host: &self.keys, network: &self.network }
    }
}
