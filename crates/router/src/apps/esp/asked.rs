//! [`Asked`]: the policy of each of some frames, looked up as a batch of each family.

use wirespeed::RuleReader;
use wirespeed::classify::{Ipv4Tuple, Ipv6Tuple};
use wirespeed::engine::RuleTuple;
use wirespeed_esp::FamilyReaders;

use crate::{Chunk, Memory, narrow};

/// The number in place of a policy's for a packet whose transport header is cut off: no policy can be asked.
pub(super) const NO_TUPLE: u32 = u32::MAX;

/// The policy of each frame.
#[derive(Debug, Default)]
pub(super) struct Asked {
    policies: Vec<u32>,
    v4: Family<Ipv4Tuple>,
    v6: Family<Ipv6Tuple>,
}

/// The tuples of one family.
#[derive(Debug)]
struct Family<T> {
    tuples: Vec<T>,
    /// The place of each tuple's frame among those that are asked about.
    places: Vec<u32>,
    numbers: Vec<u32>,
}

impl<T> Default for Family<T> {
    fn default() -> Self {
        Self { tuples: Vec::new(), places: Vec::new(), numbers: Vec::new() }
    }
}

impl Asked {
    /// Looks up the policy of each frame.
    pub(super) fn ask(
        &mut self,
        rules: &FamilyReaders,
        chunk: &Chunk,
        memory: &Memory,
        packets: &[u16],
        frames: &[u32],
    ) {
        self.policies.clear();
        self.policies.resize(frames.len(), 0);
        if rules.are_empty() {
            return;
        }
        self.v4.clear();
        self.v6.clear();
        for (place, &frame) in frames.iter().enumerate() {
            let at = frame as usize;
            let packet = &memory.bytes(&chunk.frames()[at])[packets[at].into()..];
            let is_whole = if packet[0] >> 4 == 4 {
                self.v4.take(place, Ipv4Tuple::of_packet(packet).ok())
            } else {
                self.v6.take(place, Ipv6Tuple::of_packet(packet).ok())
            };
            if !is_whole {
                self.policies[place] = NO_TUPLE;
            }
        }
        self.v4.look_up(&rules.v4, &mut self.policies);
        self.v6.look_up(&rules.v6, &mut self.policies);
    }

    /// The number of the policy of each frame, in their order; 0 for none.
    pub(super) fn policies(&self) -> &[u32] {
        &self.policies
    }
}

impl<T: RuleTuple> Family<T> {
    fn clear(&mut self) {
        self.tuples.clear();
        self.places.clear();
    }

    fn take(&mut self, place: usize, tuple: Option<T>) -> bool {
        if let Some(tuple) = tuple {
            self.tuples.push(tuple);
            // Frames of a chunk are fewer than 2^32.
            self.places.push(narrow::u32(place));
        }
        tuple.is_some()
    }

    fn look_up(&mut self, rules: &RuleReader<T>, policies: &mut [u32]) {
        if self.tuples.is_empty() {
            return;
        }
        // Every element is written.
        self.numbers.resize(self.tuples.len(), 0);
        rules.lookup_batch(&self.tuples, &mut self.numbers);
        for (&place, &number) in self.places.iter().zip(&self.numbers) {
            policies[place as usize] = number;
        }
    }
}
