//! [`Subject`]: a family's routes and keys, and the engine that its trips are made with.

use anyhow::Result;
use wirespeed_fib::trace::{TraceKind, keys};
use wirespeed_fib::{Address, Engine, InFib, Lookup, NextHops, Rib, V4, V6};
use wirespeed_fold::FoldV6;
use wirespeed_gpu::ip::KeyBytes;
use wirespeed_image::device::OnDevice;

use crate::data::Source;

/// A family's routes, its keys, and what is measured on them.
pub struct Subject<A: Address> {
    pub(super) name: String,
    pub(super) rib: Rib<A>,
    pub(super) next_hops: NextHops,
    /// Random, and by prefix.
    traces: Vec<(String, Vec<A>)>,
}

impl<A: InFib> Subject<A> {
    /// Reads a table and draws its traces.
    pub fn read(source: &Source, count: usize) -> Result<Self> {
        let (rib, next_hops) = source.rib::<A>()?;
        let draw = |kind: TraceKind| Ok((kind.to_string(), keys(&rib, kind, count, 1)?));
        let traces = [TraceKind::Random, TraceKind::Prefix].map(draw).into_iter().collect::<Result<_>>()?;
        Ok(Self { name: source.name.clone(), rib, next_hops, traces })
    }

    pub(super) fn reach(&self) -> u8 {
        self.rib
            .by_length()
            .iter()
            .rposition(|&count| count > 0)
            .and_then(|len| u8::try_from(len).ok())
            .unwrap_or(0)
    }

    /// The kinds of keys that hold all that lookups depend on, the widest first.
    pub(super) fn widths(&self) -> Vec<usize> {
        let holds = |bytes: &usize| 8 * bytes >= usize::from(self.reach());
        KeyBytes::kinds(A::FAMILY).iter().map(|kind| kind.count()).filter(holds).collect()
    }

    /// The narrowest keys that hold all that lookups depend on.
    pub(super) fn narrow(&self) -> KeyBytes {
        KeyBytes::for_bits(A::FAMILY, self.reach())
    }

    pub(super) fn by_prefix(&self) -> &[A] {
        &self.traces[1].1
    }

    pub(super) fn traces(&self) -> Vec<(&str, &[A])> {
        self.traces.iter().map(|(name, keys)| (name.as_str(), &keys[..])).collect()
    }
}

/// A table to travel with: what is fastest on a GPU for the family.
pub trait Best: InFib {
    /// The engine.
    type Engine: Engine<Self, Table: OnDevice + Lookup<Self>>;
}

impl Best for V4 {
    type Engine = wirespeed_fold::FoldHot;
}

impl Best for V6 {
    type Engine = FoldV6;
}
