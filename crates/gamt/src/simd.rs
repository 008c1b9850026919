//! Batches by gathers: the only unsafe code of the engine. Units of up to 4 bytes; wider ones are walked key
//! by key.
//!
//! Several vectors at a time, one gather a level for the keys that are not done. All keys of a batch are in
//! the same level at the same time (`layout.rs` says why), so shifts are by constants of the level, and of a
//! unit nothing is looked at but whether it leads on.
//!
//! IPv6 keys are taken apart into their first two words of 32 bits, and a level reads from one of them or
//! across both. Levels past bit 64 are walked key by key: few tables have any prefix there.

use wirespeed_fib::vector::{Batch, Cpu, InVectors, MOST_LANES, Mask, Vector};
use wirespeed_fib::{Address, NextHop, VectorLevel};
use wirespeed_image::{Element, Table, prefetch_once_at};

use crate::layout::{Code, GamtTable, JUMP_BITS, Level, Placement, next_hops, units};

/// How far ahead keys are prefetched, in bytes: past the reads that are under way. Not for the caches that
/// tables lie in: keys pass through once.
const AHEAD: usize = 2_048;

/// Looks up as many of the keys, from the front, as a vector level does; how many that were.
pub(crate) fn batch<A: Address, P: Placement>(
    level: VectorLevel,
    table: &GamtTable<A, P>,
    addresses: &[A],
    next_hops: &mut [NextHop],
) -> usize {
    let levels = in_vectors(table);
    level.run(Gathers { table, levels, batch: Batch::new(addresses, next_hops) }).unwrap_or(0)
}

/// The levels that vectors go through: those within the first two words, of units of up to 4 bytes, and short
/// enough for an index of 32 bits.
fn in_vectors<A: Address, P: Placement>(table: &GamtTable<A, P>) -> &[Level] {
    let fits =
        |level: &&Level| level.from + level.stride <= 64 && level.code.width() <= 4 && level.len <= 1 << 30;
    &table.levels[..table.levels.iter().take_while(fits).count()]
}

/// Keys of a table.
struct Gathers<'a, A: Address, P: Placement> {
    table: &'a GamtTable<A, P>,
    /// The levels [`in_vectors`].
    levels: &'a [Level],
    batch: Batch<'a, A, NextHop>,
}

impl<A: Address, P: Placement> InVectors for Gathers<'_, A, P> {
    type Output = usize;

    #[inline(always)]
    fn run<V: Vector>(mut self, cpu: Cpu<V>) -> usize {
        let all = self.batch.len();
        match A::OCTETS {
            4 => self.rounds::<V, 8>(cpu),
            _ => self.rounds::<V, 4>(cpu),
        }
        self.rounds::<V, 1>(cpu);
        all - self.batch.len()
    }
}

impl<A: Address, P: Placement> Gathers<'_, A, P> {
    /// Looks up keys, so many vectors at a time, while there are enough.
    #[inline(always)]
    fn rounds<V: Vector, const VECTORS: usize>(&mut self, cpu: Cpu<V>) {
        for (keys, results) in self.batch.rounds(V::LANES * VECTORS) {
            let mut upper = [V::splat(cpu, 0); VECTORS];
            let mut lower = [V::splat(cpu, 0); VECTORS];
            for v in 0..VECTORS {
                [upper[v], lower[v]] = first_words(cpu, &keys[v * V::LANES..(v + 1) * V::LANES]);
            }
            let mut round =
                Round { upper, lower, found: [V::splat(cpu, 0); VECTORS], open: [V::all(cpu); VECTORS] };
            // The first level begins where a unit of zeros would lead to.
            let mut before = Code::paper(4, 0);
            let mut done = 0;
            for (at, level) in self.levels.iter().enumerate() {
                let units = self.table.image().padded(units(at));
                #[allow(unsafe_code)]
                // SAFETY: open lanes come from the level before, or there is none.
                let any = unsafe { round.step::<A>(cpu, level, before, units) };
                (before, done) = (level.code, at + 1);
                if !any {
                    break;
                }
            }
            for (v, (&found, &open)) in round.found.iter().zip(&round.open).enumerate() {
                #[allow(unsafe_code)]
                // SAFETY: the leaf of a lane that is not open is a slot, if next hops are separate.
                let next_hop = unsafe { self.next_hop(cpu, found, !open) };
                next_hop.store(&mut results[v * V::LANES..]);
                if open.any() {
                    let mut units = [0u32; MOST_LANES];
                    found.store(&mut units);
                    // In no vectors at all all lanes are still before the first level.
                    let from = (done > 0).then_some(before);
                    self.finish(
                        open.bits(),
                        from,
                        &units,
                        done,
                        &keys[v * V::LANES..],
                        &mut results[v * V::LANES..],
                    );
                }
            }
        }
    }

    /// The next hops of the leaves in the lanes of the mask.
    ///
    /// # Safety
    /// In a table with separate next hops these leaves must be slots.
    #[allow(unsafe_code)]
    #[inline(always)]
    unsafe fn next_hop<V: Vector>(&self, cpu: Cpu<V>, leaf: V, mask: V::Mask) -> V {
        let Some((_, width)) = self.table.next_hops else { return leaf };
        let slots = self.table.image().padded(next_hops(self.table.levels.len()));
        let none = V::splat(cpu, 0);
        // SAFETY: a slot is one of the table, which every image and patch is checked for.
        unsafe {
            match width {
                1 => V::gather_where::<u8>(cpu, mask, leaf, slots, none),
                2 => V::gather_where::<u16>(cpu, mask, leaf, slots, none),
                _ => V::gather_where::<u32>(cpu, mask, leaf, slots, none),
            }
        }
    }

    /// Finishes the keys of the lanes that are open, from a level on, where a unit of the level before leads
    /// each.
    #[cold]
    fn finish(
        &self,
        mut open: u32,
        before: Option<Code>,
        units: &[u32; MOST_LANES],
        level: usize,
        keys: &[A],
        results: &mut [NextHop],
    ) {
        while open != 0 {
            let lane = open.trailing_zeros() as usize;
            let to = before.map_or(0, |code| code.read(units[lane].into()).1);
            results[lane] = self.table.rest_of_lookup(keys[lane], level, to);
            open &= open - 1;
        }
    }
}

/// Keys that go through the levels together.
struct Round<V: Vector, const VECTORS: usize> {
    /// The first words of the keys, and the second.
    upper: [V; VECTORS],
    lower: [V; VECTORS],
    /// The unit that each open lane read last, and the leaf of the others.
    found: [V; VECTORS],
    /// The lanes whose unit leads on.
    open: [V::Mask; VECTORS],
}

impl<V: Vector, const VECTORS: usize> Round<V, VECTORS> {
    /// Takes the open lanes through a level; whether any lane is still open.
    ///
    /// # Safety
    /// The open lanes must have units of a level whose code is `before` and which is right above this one, in
    /// a table that was checked; or this is the first, and all is zero. `units` are those of the level, with
    /// their padding. All levels are of those [`in_vectors`].
    #[allow(unsafe_code)]
    #[inline(always)]
    unsafe fn step<A: Address>(&mut self, cpu: Cpu<V>, level: &Level, before: Code, units: &[u8]) -> bool {
        // SAFETY: as our caller promises.
        unsafe {
            match (level.code.width(), before) {
                (1, Code::Paper { .. }) => self.read::<A, u8, false>(cpu, level, before, units),
                (1, Code::Narrow { .. }) => self.read::<A, u8, true>(cpu, level, before, units),
                (2, Code::Paper { .. }) => self.read::<A, u16, false>(cpu, level, before, units),
                (2, Code::Narrow { .. }) => self.read::<A, u16, true>(cpu, level, before, units),
                (_, Code::Paper { .. }) => self.read::<A, u32, false>(cpu, level, before, units),
                (_, Code::Narrow { .. }) => self.read::<A, u32, true>(cpu, level, before, units),
            }
        }
    }

    /// [`step`](Self::step) into units of a type, from narrow ones or the paper's.
    ///
    /// # Safety
    /// The caller must keep the promises of [`step`](Self::step), and `U` must be the type of the units.
    #[allow(unsafe_code)]
    #[inline(always)]
    unsafe fn read<A: Address, U: Element, const FROM_NARROW: bool>(
        &mut self,
        cpu: Cpu<V>,
        level: &Level,
        before: Code,
        units: &[u8],
    ) -> bool {
        let bits = Bits::of(cpu, level);
        let (base_before, below) = match before {
            Code::Narrow { base, below, .. } => (base, below),
            Code::Paper { .. } => (0, 0),
        };
        let base_before = V::splat(cpu, base_before);
        let base = V::splat(cpu, level.code.base());
        let jump = V::splat(cpu, (1 << JUMP_BITS) - 1);
        let is_paper = size_of::<U>() == 4;
        let mut any = !V::all(cpu);
        for v in 0..VECTORS {
            let (open, found) = (self.open[v], self.found[v]);
            let node = match FROM_NARROW {
                true => (found - base_before) << below.into(),
                false => found >> JUMP_BITS,
            };
            let index = node + bits.take::<A>(self.upper[v], self.lower[v]);
            // SAFETY: an open lane has the first unit of a node of this level, which every image and patch is
            // checked for.
            let read = unsafe { V::gather_where::<U>(cpu, open, index, units, found) };
            // What was found before may be wider.
            let unit = if is_paper { read } else { V::select(open, read, found) };
            let on = open & if is_paper { unit.has_any(jump) } else { unit.at_least(base) };
            self.found[v] = if is_paper { V::select(open & !on, unit >> JUMP_BITS, unit) } else { unit };
            self.open[v] = on;
            any = any | on;
        }
        any.any()
    }
}

/// How the bits of a level are taken out of the first two words of a key: by shifts, of which those leave
/// nothing that are by 32, so that which words the bits are in is no branch.
struct Bits<V> {
    /// How much the upper word goes to the right for a level that ends in it.
    within: u32,
    /// How much the upper word goes to the left, and the lower to the right, for one that ends in the lower.
    /// Where it begins there too, what comes from the upper is masked away.
    across: [u32; 2],
    mask: V,
}

impl<V: Vector> Bits<V> {
    #[inline(always)]
    fn of(cpu: Cpu<V>, level: &Level) -> Self {
        let end = u32::from(level.from + level.stride);
        let mask = V::splat(cpu, (1 << level.stride) - 1);
        match end <= 32 {
            true => Self { within: 32 - end, across: [32; 2], mask },
            false => Self { within: 32, across: [end - 32, 64 - end], mask },
        }
    }

    #[inline(always)]
    fn take<A: Address>(&self, upper: V, lower: V) -> V {
        let within = upper >> self.within;
        let [left, right] = self.across;
        let bits = if A::OCTETS == 4 { within } else { within | upper << left | lower >> right };
        bits & self.mask
    }
}

/// The first and second word of a vector of keys; IPv4 has one.
#[inline(always)]
fn first_words<A: Address, V: Vector>(cpu: Cpu<V>, keys: &[A]) -> [V; 2] {
    for part in 0..A::OCTETS / 4 {
        prefetch_once_at(keys.as_ptr().wrapping_byte_add(part * V::LANES * 4 + AHEAD).cast());
    }
    match A::OCTETS {
        4 => [V::load(cpu, keys), V::splat(cpu, 0)],
        _ => V::load_first_words(cpu, keys),
    }
}
