//! Where the keys of a trace are looked up: on the CPU, or on GPUs with the CPU behind them
//! ([`either`](super::either)).
//!
//! Each lookup thread has a lane of its own, which takes batches and gives them back in order. On the CPU one
//! is under way at a time; on the way to a GPU several are, so that keys of one travel while another's are
//! looked up and a third's results come back.

use std::ops::Range;

use wirespeed::Counts;
use wirespeed_classify::Tuple;
use wirespeed_fib::{Address, Lookup, NextHop};
use wirespeed_image::Table;
use wirespeed_image::live::Reader;
use wirespeed_namelookup::{Match, NameDomain, Names};
use wirespeed_sail::{FibId, SailMTable};

/// Where a trace is looked up.
pub(in crate::verbs) trait Place {
    /// What a thread looks up with.
    type Lane<'p>: Lane
    where
        Self: 'p;

    /// Keys of the trace.
    fn len(&self) -> usize;

    /// A lane for batches of at most so many keys.
    fn lane(&self, batch: usize) -> Self::Lane<'_>;

    /// What GPUs have to do with it.
    fn gpu(&self) -> Option<GpuState> {
        None
    }
}

/// One thread's batches, first in, first out.
pub(in crate::verbs) trait Lane: Send {
    /// Batches that may be under way at once, at least 1.
    fn depth(&self) -> usize;

    /// Batches under way.
    fn under_way(&self) -> usize;

    /// Whether [`take`](Self::take) has no device to wait for.
    fn is_ready(&self) -> bool;

    /// Sends a batch; there must be fewer under way than may be.
    fn submit(&mut self, keys: Range<usize>);

    /// The results of the oldest batch; empty where nothing is under way.
    fn take(&mut self) -> &[NextHop];
}

/// GPUs as they are at some time of a replay.
#[derive(Clone, Debug)]
pub(in crate::verbs) struct GpuState {
    pub(in crate::verbs) name: String,
    pub(in crate::verbs) devices: usize,
    pub(in crate::verbs) counts: Counts,
    /// Why nothing is looked up there any more.
    pub(in crate::verbs) out: Option<String>,
}

/// Keys that a table takes.
pub(in crate::verbs) trait KeysOf<T>: Copy + Send {
    /// How many there are.
    fn len(&self) -> usize;
    /// Looks some of them up.
    fn look_up(&self, table: &T, keys: Range<usize>, next_hops: &mut [NextHop]);
}

impl<A: Address, T: Lookup<A>> KeysOf<T> for &[A] {
    fn len(&self) -> usize {
        <[A]>::len(self)
    }

    #[inline]
    fn look_up(&self, table: &T, keys: Range<usize>, next_hops: &mut [NextHop]) {
        table.lookup_batch(&self[keys], next_hops);
    }
}

/// Tuples, of which the numbers of rules are found.
#[derive(Clone, Copy, Debug)]
pub(in crate::verbs) struct Tuples<'a, T>(pub(in crate::verbs) &'a [T]);

impl<T: Tuple, C: Lookup<T>> KeysOf<C> for Tuples<'_, T> {
    fn len(&self) -> usize {
        self.0.len()
    }

    #[inline]
    fn look_up(&self, table: &C, keys: Range<usize>, next_hops: &mut [NextHop]) {
        table.lookup_batch(&self.0[keys], bytemuck::cast_slice_mut(next_hops));
    }
}

/// Names, whose lengths that matched are not asked for.
impl<T: Lookup<NameDomain>> KeysOf<T> for Names<'_> {
    fn len(&self) -> usize {
        Names::len(self)
    }

    #[inline]
    fn look_up(&self, table: &T, keys: Range<usize>, next_hops: &mut [NextHop]) {
        table.lookup_batch(self.part(keys), bytemuck::cast_slice_mut(next_hops));
    }
}

/// Names, whose lengths that matched are asked for too.
#[derive(Clone, Copy, Debug)]
pub(in crate::verbs) struct WithLengths<'a>(pub(in crate::verbs) Names<'a>);

impl<T: Lookup<NameDomain>> KeysOf<T> for WithLengths<'_> {
    fn len(&self) -> usize {
        self.0.len()
    }

    #[inline]
    fn look_up(&self, table: &T, keys: Range<usize>, next_hops: &mut [NextHop]) {
        const BLOCK: usize = 1 << 12;
        let mut matches = [Match::NONE; BLOCK];
        for (block, next_hops) in next_hops.chunks_mut(BLOCK).enumerate() {
            let (from, matches) = (keys.start + block * BLOCK, &mut matches[..next_hops.len()]);
            table.match_batch(self.0.part(from..from + next_hops.len()), matches);
            for (next_hop, found) in next_hops.iter_mut().zip(&*std::hint::black_box(matches)) {
                *next_hop = found.next_hop();
            }
        }
    }
}

/// Keys, each with its FIB.
#[derive(Clone, Copy, Debug)]
pub(in crate::verbs) struct Mixed<'a, A> {
    pub(in crate::verbs) fibs: &'a [FibId],
    pub(in crate::verbs) keys: &'a [A],
}

impl<A: Address> KeysOf<SailMTable<A>> for Mixed<'_, A> {
    fn len(&self) -> usize {
        self.keys.len()
    }

    #[inline]
    fn look_up(&self, table: &SailMTable<A>, keys: Range<usize>, next_hops: &mut [NextHop]) {
        table.lookup_mixed(&self.fibs[keys.clone()], &self.keys[keys], next_hops);
    }
}

/// All on the CPU.
pub(in crate::verbs) struct OnCpu<K, T: Table> {
    pub(in crate::verbs) trace: K,
    pub(in crate::verbs) reader: Reader<T>,
}

pub(in crate::verbs) struct CpuLane<K, T: Table> {
    trace: K,
    reader: Reader<T>,
    next_hops: Vec<NextHop>,
    waiting: Option<Range<usize>>,
}

impl<K: KeysOf<T>, T: Table> Place for OnCpu<K, T> {
    type Lane<'p>
        = CpuLane<K, T>
    where
        Self: 'p;

    fn len(&self) -> usize {
        self.trace.len()
    }

    fn lane(&self, batch: usize) -> CpuLane<K, T> {
        let next_hops = vec![NextHop::NONE; batch.min(self.trace.len())];
        CpuLane { trace: self.trace, reader: self.reader.clone(), next_hops, waiting: None }
    }
}

impl<K: KeysOf<T>, T: Table> Lane for CpuLane<K, T> {
    fn depth(&self) -> usize {
        1
    }

    fn under_way(&self) -> usize {
        usize::from(self.waiting.is_some())
    }

    fn is_ready(&self) -> bool {
        self.waiting.is_some()
    }

    #[inline]
    fn submit(&mut self, keys: Range<usize>) {
        self.waiting = Some(keys);
    }

    #[inline]
    fn take(&mut self) -> &[NextHop] {
        let Some(keys) = self.waiting.take() else { return &[] };
        let next_hops = std::hint::black_box(&mut self.next_hops[..keys.len()]);
        self.trace.look_up(&self.reader.enter(), keys, next_hops);
        next_hops
    }
}
