//! [`Lookups`]: the tables of a port. [`Keys`]: the packets of a chunk that are looked up there.

use wirespeed::engine::Addresses;
use wirespeed::gpu::dispatch::Place;
use wirespeed::{Batches, IpReader, NextHop, Reader, Submitted, V4, V6};

/// Chunks of a GPU that a worker has under way, and one more that is filled.
const AT_ONCE: usize = 9;

/// Keys of a chunk up to which the CPU looks up at once, without a batch that is handed over, unless GPUs
/// look up always.
const ON_CPU: usize = 512;

/// The tables of both families.
#[derive(Debug)]
pub(super) struct Lookups {
    pub(super) v4: OfFamily<V4>,
    pub(super) v6: OfFamily<V6>,
}

/// One family's table.
#[derive(Debug)]
pub(super) struct OfFamily<A: Addresses> {
    pub(super) reader: Reader<A>,
    batches: Batches<A>,
    /// Keys of a chunk up to which the CPU looks up at once.
    on_cpu: usize,
}

impl Lookups {
    pub(super) fn new(reader: &IpReader) -> Self {
        Self { v4: OfFamily::new(reader.v4().clone()), v6: OfFamily::new(reader.v6().clone()) }
    }

    /// The keys of a batch that suits a GPU, if one answers sooner.
    pub(super) fn suited_to_gpu(&self) -> Option<usize> {
        let suited = self.v4.batches.suited().filter(|suited| suited.place == Place::Gpu);
        suited.map(|suited| suited.keys)
    }
}

impl<A: Addresses> OfFamily<A> {
    fn new(reader: Reader<A>) -> Self {
        let batches = reader.batches().at_once(AT_ONCE);
        // One key goes to a GPU only if all do.
        let on_cpu = if batches.place(1) == Some(Place::Gpu) { 0 } else { ON_CPU };
        Self { reader, batches, on_cpu }
    }

    /// Hands a large batch over to the device that suits it.
    pub(super) fn submit(&self, keys: &[A]) -> Option<Submitted<A>> {
        if keys.len() <= self.on_cpu {
            return None;
        }
        let mut batch = self.batches.batch(keys.len())?;
        let taken = batch.extend_from(keys);
        debug_assert_eq!(taken, keys.len(), "the batch was made for them");
        Some(batch.submit())
    }
}

/// The frames of a chunk that are looked up.
#[derive(Debug, Default)]
pub(super) struct Keys {
    pub(super) v4: Vec<V4>,
    pub(super) v6: Vec<V6>,
    /// The place of each key's frame in the chunk, and of its packet in the frame. 0 for the packet says that
    /// the frame is plain: see [`check_plain`](super::v4::check_plain).
    pub(super) at_v4: Vec<At>,
    pub(super) at_v6: Vec<At>,
    pub(super) found_v4: Vec<NextHop>,
    pub(super) found_v6: Vec<NextHop>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct At {
    pub(super) frame: u32,
    pub(super) packet: u16,
}

/// The place of the packet in a plain frame, as it is noted: no packet begins there.
pub(super) const PLAIN: u16 = 0;

impl Keys {
    pub(super) fn clear(&mut self) {
        self.v4.clear();
        self.v6.clear();
        self.at_v4.clear();
        self.at_v6.clear();
    }
}

/// Takes the answers of a batch, or looks the keys up on the CPU now. Returns whether a GPU looked them up.
pub(super) fn answers<A: Addresses>(
    reader: &Reader<A>,
    submitted: Option<Submitted<A>>,
    keys: &[A],
    found: &mut Vec<NextHop>,
) -> bool {
    // Every element is written.
    found.resize(keys.len(), NextHop::NONE);
    let Some(submitted) = submitted else {
        reader.enter().lookup_batch(keys, found);
        return false;
    };
    let answers = submitted.wait();
    answers.copy_to(found);
    answers.is_from_gpu()
}
