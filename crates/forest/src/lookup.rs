//! Lookups, singly and in batches: from chunk to chunk, and the last next hop counts.

use wirespeed_fib::{Address, Lookup, NextHop, Step, VectorLevel};
use wirespeed_image::Table;

use crate::fibs::{FibId, FibKeys, InFibs};
use crate::layout::{Cell, ForestTable, Width};
use crate::rest::{BLOCK, UnderWay};
use crate::simd;

/// Keys that portable code looks up at once.
const AT_ONCE: usize = 8;

/// Lookups in table 0.
impl<A: Address> Lookup<A> for ForestTable<A> {
    #[inline]
    fn lookup(&self, address: A) -> NextHop {
        self.lookup_in(FibId(0), address)
    }

    fn lookup_batch(&self, addresses: &[A], next_hops: &mut [NextHop]) {
        self.lookup_batch_in(FibId(0), addresses, next_hops);
    }

    fn explain(&self, address: A) -> Vec<Step> {
        self.explain_in(FibId(0), address)
    }
}

impl<A: Address> Lookup<InFibs<A>> for ForestTable<A> {
    #[inline]
    fn lookup(&self, (fib, address): (FibId, A)) -> NextHop {
        self.lookup_in(fib, address)
    }

    fn lookup_batch(&self, keys: FibKeys<'_, A>, next_hops: &mut [NextHop]) {
        let (fibs, addresses) = keys.parts();
        match self.width {
            Width::Narrow(_) => self.batch::<u32>(VectorLevel::best(), |at| fibs[at], addresses, next_hops),
            Width::Wide => self.batch::<u64>(VectorLevel::best(), |at| fibs[at], addresses, next_hops),
        }
    }

    fn explain(&self, (fib, address): (FibId, A)) -> Vec<Step> {
        self.explain_in(fib, address)
    }
}

impl<A: Address> ForestTable<A> {
    /// The next hop of an address in a table, or [`NextHop::NONE`] if no route matches or there is no such
    /// table.
    #[inline]
    pub fn lookup_in(&self, fib: FibId, address: A) -> NextHop {
        match self.width {
            Width::Narrow(_) => self.find::<u32>(fib, address),
            Width::Wide => self.find::<u64>(fib, address),
        }
    }

    /// [`lookup_in`](Self::lookup_in) for many addresses in one table, each result at the index of its key.
    ///
    /// Panics when the slices differ in length.
    pub fn lookup_batch_in(&self, fib: FibId, addresses: &[A], next_hops: &mut [NextHop]) {
        match self.width {
            Width::Narrow(_) => self.batch::<u32>(VectorLevel::best(), |_| fib, addresses, next_hops),
            Width::Wide => self.batch::<u64>(VectorLevel::best(), |_| fib, addresses, next_hops),
        }
    }

    #[inline]
    fn root<C: Cell>(&self, fib: FibId) -> C {
        match u64::from(fib.0) < self.tables {
            true => self.image().at(self.roots, fib.index()),
            false => C::zeroed(),
        }
    }

    #[inline]
    fn find<C: Cell>(&self, fib: FibId, address: A) -> NextHop {
        let root = self.root::<C>(fib);
        next_hop(self.rest::<C>(address, 0, root.route(self.width), root.link(self.width)))
    }

    pub(crate) fn batch<C: Cell>(
        &self,
        level: VectorLevel,
        fib: impl Fn(usize) -> FibId,
        addresses: &[A],
        next_hops: &mut [NextHop],
    ) {
        assert_eq!(addresses.len(), next_hops.len(), "a result for each key");
        let mut state = UnderWay { routes: [0; BLOCK], links: [0; BLOCK] };
        let blocks = addresses.chunks(BLOCK).zip(next_hops.chunks_mut(BLOCK));
        for (block, (addresses, next_hops)) in blocks.enumerate() {
            let parts = state.routes.iter_mut().zip(&mut state.links);
            for (at, (route, link)) in (block * BLOCK..).zip(parts).take(addresses.len()) {
                let root = self.root::<C>(fib(at));
                (*route, *link) = (root.route(self.width), root.link(self.width));
            }
            let done = simd::block::<A, C>(level, self, addresses, &mut state);
            self.portable::<C>(done, addresses, &mut state);
            for (to, &from) in next_hops.iter_mut().zip(&state.routes) {
                *to = next_hop(from);
            }
        }
    }

    /// Looks up the keys of a block from the key `first` on, several at once.
    fn portable<C: Cell>(&self, first: usize, addresses: &[A], state: &mut UnderWay) {
        let (cells, width, leaf_bit) = (self.cells::<C>(), self.width, self.width.leaf_bit());
        let mut keys = addresses[first..].chunks_exact(AT_ONCE);
        let mut at = first;
        for keys in keys.by_ref() {
            let (routes, links) = (&mut state.routes[at..at + AT_ONCE], &mut state.links[at..at + AT_ONCE]);
            let mut from = 0;
            while from < A::BITS && links.iter().any(|&link| link != 0) {
                for ((&key, route), link) in keys.iter().zip(&mut *routes).zip(&mut *links) {
                    let index =
                        |number: u32| (number as usize) << self.stride | key.bits(from, self.stride) as usize;
                    let (found, next) = match *link {
                        0 => (0, 0),
                        leaf if leaf & leaf_bit != 0 => (self.leaf(index(leaf & !leaf_bit)), 0),
                        chunk => {
                            let cell = cells.at(index(chunk));
                            (cell.route(width), cell.link(width))
                        }
                    };
                    *route = if found == 0 { *route } else { found };
                    *link = next;
                }
                from += self.stride;
            }
            at += AT_ONCE;
        }
        for (at, &key) in (at..).zip(keys.remainder()) {
            state.routes[at] = self.rest::<C>(key, 0, state.routes[at], state.links[at]);
        }
    }

    /// The steps of [`lookup_in`](Self::lookup_in) as text: each cell that is read, in order.
    pub fn explain_in(&self, fib: FibId, address: A) -> Vec<Step> {
        match self.width {
            Width::Narrow(_) => self.steps::<u32>(fib, address),
            Width::Wide => self.steps::<u64>(fib, address),
        }
    }

    fn steps<C: Cell>(&self, fib: FibId, address: A) -> Vec<Step> {
        let (mut steps, mut longest) = (Vec::new(), 0);
        let (width, leaf_bit) = (self.width, self.width.leaf_bit());
        let mut say = |section, index: usize, value: u64, (route, link): (u32, u32), bits: u8| {
            let ends = match route.checked_sub(1) {
                None => format!("no other route ends up to bit {bits}"),
                Some(next_hop) => format!("a route to {next_hop} ends up to bit {bits}"),
            };
            longest = if route == 0 { longest } else { route };
            let meaning = match (link, next_hop(longest)) {
                (0, NextHop::NONE) => format!("{ends}, and none is longer: no route"),
                (0, next_hop) => format!("{ends}, and none is longer: next hop {next_hop}"),
                (leaf, _) if leaf & leaf_bit != 0 => format!("{ends}; go on in leaf {}", leaf & !leaf_bit),
                (chunk, _) => format!("{ends}; go on in chunk {chunk}"),
            };
            steps.push(Step { section, index: index as u64, value, meaning });
        };
        let root = self.root::<C>(fib);
        let mut link = root.link(width);
        if u64::from(fib.0) < self.tables {
            say("roots", fib.index(), root.into(), (root.route(width), link), 0);
        }
        let cells = self.cells::<C>();
        for from in (0..A::BITS).step_by(self.stride.into()) {
            if link == 0 {
                break;
            }
            let (bits, end) = (address.bits(from, self.stride) as usize, from + self.stride);
            let index = ((link & !leaf_bit) as usize) << self.stride | bits;
            if link & leaf_bit != 0 {
                let route = self.leaf(index);
                say("leaves", index, route.into(), (route, 0), end);
                break;
            }
            let cell = cells.at(index);
            link = cell.link(width);
            say("cells", index, cell.into(), (cell.route(width), link), end);
        }
        steps
    }
}

/// The result of a lookup that ended with this route.
#[inline]
fn next_hop(route: u32) -> NextHop {
    NextHop(route.saturating_sub(1))
}
