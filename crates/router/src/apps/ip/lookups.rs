//! [`Lookups`]: the tables of a port. [`Keys`]: the packets of a chunk that are looked up there.

use wirespeed::engine::Addresses;
use wirespeed::gpu::dispatch::Place;
use wirespeed::{Batches, IpReader, NextHop, Reader, Submitted, V4, V6};

/// Chunks of a GPU that a worker has under way, and one more that is filled.
const AT_ONCE: usize = 9;

/// Keys of a chunk that are looked up at once, without a batch that is handed over: by the CPU, unless GPUs
/// look up always. Then the worker waits for them, because a GPU with many small batches under way is slower.
const FEW: usize = 512;

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
        Self { batches: reader.batches().at_once(AT_ONCE), reader }
    }

    /// Hands a large batch over to the device that suits it.
    pub(super) fn submit(&self, keys: &[A]) -> Option<Submitted<A>> {
        if keys.len() <= FEW {
            return None;
        }
        let mut batch = self.batches.batch(keys.len())?;
        let taken = batch.extend_from(keys);
        debug_assert_eq!(taken, keys.len(), "the batch was made for them");
        Some(batch.submit())
    }

    /// Takes the answers of a batch, or looks the keys up now. Returns whether a GPU looked them up.
    pub(super) fn answers(
        &self,
        submitted: Option<Submitted<A>>,
        keys: &[A],
        found: &mut Vec<NextHop>,
    ) -> bool {
        // Every element is written.
        found.resize(keys.len(), NextHop::NONE);
        if let Some(submitted) = submitted {
            let answers = submitted.wait();
            answers.copy_to(found);
            return answers.is_from_gpu();
        }
        // A batch of one key goes to a GPU only if all do.
        let is_for_gpu = !keys.is_empty() && self.batches.place(1) == Some(Place::Gpu);
        if is_for_gpu {
            self.reader.lookup_batch(keys, found);
        } else {
            self.reader.enter().lookup_batch(keys, found);
        }
        is_for_gpu
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
