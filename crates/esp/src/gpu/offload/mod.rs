//! [`Offload`]: a worker's packets on a device, where that costs the worker less than its own ciphers.
//!
//! ```text
//! seal, open    packets ─► keys of their associations, slots ─► Batch: under way
//! is_ready      whether a batch is back
//! sealed        Batch ─► packets; those that a lost device took with it are sealed here, from what is in the
//! opened                 router's memory still, with the numbers that they have
//! ```
//!
//! What the device does not take of packets to be sealed stays for the caller, who seals it at once: numbers
//! were given in order, and frames leave in order. Packets to be opened all go into the batch, because the
//! replay window has to see them in the order in which they came: the CPU opens its part when the batch is
//! taken back. Batches have to be taken back in the order in which they were made.
//!
//! The device works on copies. A packet changes when its batch is taken back, and once: so a device may fail
//! at any time, and no packet is lost, and none goes out under a number that another one has.
//!
//! The decision counts what the worker pays. With the CPU that is the time of ciphers; with the device it is
//! the time to copy frames to the device's memory and back, to start work, and to wait where a batch is not
//! back when it is needed. Both are measured by the size of the batch, for each direction and each suite, and
//! now and then a batch goes the other way, so that both stay known: the slower that is, the more seldom. A
//! device that is too slow makes the worker wait, or has no slot free: either sends packets to the CPU.

mod costs;
mod places;

use std::sync::Arc;
use std::time::{Duration, Instant};

pub use self::costs::Use;
use self::costs::{Costs, LEAST};
use self::places::Places;
use super::chunk::Chunk;
use super::device::{Device, Options};
use super::slot::Transform;
use crate::crypto::Keys;
use crate::error::Error;
use crate::fault::Fault;
use crate::open::{Envelope, Opened, Opening, open};
use crate::packets::Packets;
use crate::sa::Sa;
use crate::seal::{Scratch, Unsealed, seal};
use crate::state::State;

/// Suites whose costs are known apart.
const SUITES: usize = 4;

/// A device for the packets of one worker.
#[derive(Debug)]
pub struct Offload {
    /// None once it failed.
    device: Option<Device>,
    failure: Option<Error>,
    by: Use,
    keys: Places,
    /// Slots that are free.
    idle: Vec<usize>,
    costs: [Costs; 2 * SUITES],
    counts: Counts,
}

/// Numbers of packets, by who sealed or opened them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Packets that the device sealed or opened.
    pub by_device: u64,
    /// Packets that it had when it failed, and that the CPU did in its place.
    pub recovered: u64,
}

/// Packets that a device has. `K` is [`Sealed`] or [`Arrived`].
#[derive(Debug)]
pub struct Batch<K> {
    kept: Vec<Kept<K>>,
    /// The associations of the packets.
    sas: Vec<Arc<Sa>>,
    /// The slots, and the packets in each.
    parts: Vec<(usize, usize)>,
    bytes: usize,
    class: usize,
    /// The time that it took to fill and to start.
    spent: Duration,
}

/// A packet of a batch: what makes it whole again, and the place of its association.
#[derive(Clone, Copy, Debug)]
struct Kept<K> {
    rest: K,
    sa: usize,
}

/// A packet that is being sealed.
#[derive(Clone, Copy, Debug)]
pub struct Sealed {
    at: usize,
    sequence: u64,
}

/// A packet that is being opened.
#[derive(Clone, Copy, Debug)]
pub struct Arrived {
    at: usize,
    envelope: Envelope,
    sequence: u64,
}

/// A packet that goes through a device.
trait Job<'s>: Copy {
    type Rest: Copy;
    const TRANSFORM: Transform;

    fn sa(&self) -> &'s Sa;
    fn rest(&self) -> Self::Rest;
    fn again(rest: Self::Rest, sa: &'s Sa) -> Self;
    fn at(&self) -> usize;
    fn frame<'p>(&self, packet: &'p [u8]) -> &'p [u8];
    fn push(&self, chunk: &mut Chunk<'_>, keys: u32, packet: &[u8]) -> Result<(), Error>;
}

impl<'s> Job<'s> for Unsealed<'s> {
    type Rest = Sealed;
    const TRANSFORM: Transform = Transform::Seal;

    fn sa(&self) -> &'s Sa {
        self.sa
    }

    fn rest(&self) -> Sealed {
        Sealed { at: self.at, sequence: self.sequence }
    }

    fn again(Sealed { at, sequence }: Sealed, sa: &'s Sa) -> Self {
        Self { at, sa, sequence }
    }

    fn at(&self) -> usize {
        self.at
    }

    fn frame<'p>(&self, packet: &'p [u8]) -> &'p [u8] {
        &packet[self.start()..]
    }

    fn push(&self, chunk: &mut Chunk<'_>, keys: u32, packet: &[u8]) -> Result<(), Error> {
        chunk.push_unsealed(keys, self, packet)
    }
}

impl<'s> Job<'s> for Opening<'s> {
    type Rest = Arrived;
    const TRANSFORM: Transform = Transform::Open;

    fn sa(&self) -> &'s Sa {
        Opening::sa(self)
    }

    fn rest(&self) -> Arrived {
        Arrived { at: self.at, envelope: self.envelope, sequence: self.sequence }
    }

    fn again(Arrived { at, envelope, sequence }: Arrived, sa: &'s Sa) -> Self {
        Self { at, sa, envelope, sequence }
    }

    fn at(&self) -> usize {
        self.at
    }

    fn frame<'p>(&self, packet: &'p [u8]) -> &'p [u8] {
        &packet[Opening::frame(self)]
    }

    fn push(&self, chunk: &mut Chunk<'_>, keys: u32, packet: &[u8]) -> Result<(), Error> {
        chunk.push_opening(keys, self, packet)
    }
}

impl<K> Batch<K> {
    fn new(class: usize, packets: usize) -> Self {
        Self {
            kept: Vec::with_capacity(packets),
            sas: Vec::new(),
            parts: Vec::new(),
            bytes: 0,
            class,
            spent: Duration::ZERO,
        }
    }

    /// The place of an association among those of the batch. None if the state does not have it.
    fn sa_of(&mut self, state: &State, sa: &Sa) -> Option<usize> {
        // Packets of one tunnel follow each other.
        if !self.sas.last().is_some_and(|last| std::ptr::eq(&**last, sa)) {
            self.sas.push(state.shared(sa)?);
        }
        Some(self.sas.len() - 1)
    }

    /// The number of packets that the device has.
    #[must_use]
    pub fn on_device(&self) -> usize {
        self.parts.iter().map(|&(_, count)| count).sum()
    }

    /// The number of packets.
    #[must_use]
    pub fn len(&self) -> usize {
        self.kept.len()
    }

    /// Whether there is no packet: never.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }
}

impl Batch<Arrived> {
    /// The association of a packet by its place among the outcomes.
    ///
    /// Panics if there is none.
    #[must_use]
    pub fn sa(&self, place: usize) -> &Sa {
        &self.sas[self.kept[place].sa]
    }
}

impl Offload {
    /// Options for a worker that has up to eight chunks of 2,048 frames under way.
    pub const OPTIONS: Options = Options { keys: 1024, slots: 18, frames: 4096, bytes: 2 << 20, lanes: None };

    /// Takes a device that has no keys yet, and nothing under way.
    #[must_use]
    pub fn new(device: Device, by: Use) -> Self {
        Self {
            keys: Places::new(device.places()),
            idle: (0..device.slots()).rev().collect(),
            device: Some(device),
            failure: None,
            by,
            costs: std::array::from_fn(|_| Costs::default()),
            counts: Counts::default(),
        }
    }

    /// Whether the device works.
    #[must_use]
    pub const fn is_there(&self) -> bool {
        self.device.is_some()
    }

    /// Whether packets go to the device whatever that costs.
    #[must_use]
    pub fn is_always(&self) -> bool {
        self.by == Use::Always
    }

    /// Gives the error once that ended the device.
    pub const fn take_failure(&mut self) -> Option<Error> {
        self.failure.take()
    }

    /// The numbers of packets so far.
    #[must_use]
    pub const fn counts(&self) -> Counts {
        self.counts
    }

    /// Gives packets with their headers to the device, to be sealed, and takes them out of the list. What
    /// stays in it is for [`seal_here`](Self::seal_here). Keys of associations that are not in `state` any
    /// more are overwritten on the device.
    pub fn seal<P: Packets + ?Sized>(
        &mut self,
        state: &Arc<State>,
        unsealed: &mut Vec<Unsealed<'_>>,
        packets: &P,
    ) -> Option<Batch<Sealed>> {
        self.hand_over(state, unsealed, packets)
    }

    /// Gives packets that came to the device, to be opened, as far as it takes them. The batch has all of
    /// them. `None` if there are none. Associations that are not in `state` end with it.
    pub fn open<P: Packets + ?Sized>(
        &mut self,
        state: &Arc<State>,
        mut openings: Vec<Opening<'_>>,
        packets: &P,
    ) -> Option<Batch<Arrived>> {
        match self.hand_over(state, &mut openings, packets) {
            Some(batch) => Some(Self::keep(batch, state, openings)),
            None => Self::open_later(state, openings),
        }
    }

    /// Keeps packets that came for the CPU, which opens them when the batch is taken back: behind those of
    /// batches before it. `None` if there are none.
    pub fn open_later(state: &Arc<State>, openings: Vec<Opening<'_>>) -> Option<Batch<Arrived>> {
        let batch = Batch::new(class(openings.first()?), openings.len());
        Some(Self::keep(batch, state, openings))
    }

    fn keep(mut batch: Batch<Arrived>, state: &Arc<State>, openings: Vec<Opening<'_>>) -> Batch<Arrived> {
        for opening in openings {
            let sa = batch.sa_of(state, opening.sa);
            debug_assert!(sa.is_some(), "openings begin with associations of the state");
            batch.kept.extend(sa.map(|sa| Kept { rest: opening.rest(), sa }));
        }
        batch
    }

    /// Seals packets on the CPU, like [`seal`](fn@seal), and notes the time.
    pub fn seal_here<P: Packets + ?Sized>(
        &mut self,
        unsealed: &[Unsealed<'_>],
        packets: &mut P,
        scratch: &mut Scratch,
    ) {
        let (bytes, begun) = (bytes(unsealed, packets), Instant::now());
        seal(unsealed, packets, scratch);
        self.note_cpu(unsealed, bytes, begun.elapsed());
    }

    /// Whether a batch is back, without waiting for it.
    pub fn is_ready<K>(&mut self, batch: &Batch<K>) -> bool {
        let Some(device) = &mut self.device else { return true };
        for &(slot, _) in &batch.parts {
            match device.is_done(slot) {
                Ok(true) => {}
                Ok(false) => return false,
                Err(error) => {
                    self.lose(error);
                    return true;
                }
            }
        }
        true
    }

    /// Waits for a batch, and writes its sealed packets. Those of a device that failed are sealed here.
    ///
    /// Panics if a packet has another length than before.
    pub fn sealed<P: Packets + ?Sized>(
        &mut self,
        batch: &Batch<Sealed>,
        packets: &mut P,
        scratch: &mut Scratch,
    ) {
        let mut lost = Vec::new();
        self.take_back(batch, |chunk, place, unsealed: Unsealed<'_>| match chunk {
            Some(chunk) => chunk.sealed(place, &unsealed, packets.packet_mut(unsealed.at)),
            None => lost.push(unsealed),
        });
        seal(&lost, packets, scratch);
    }

    /// Waits for a batch, and finds its inner packets. The outcome of each, with the number of the packet,
    /// goes to `outcomes`, in the order of [`Batch::sa`]. Those that the device did not take, or that it had
    /// when it failed, are opened here.
    ///
    /// Panics if a packet has another length than before.
    pub fn opened<P: Packets + ?Sized>(
        &mut self,
        batch: &Batch<Arrived>,
        packets: &mut P,
        scratch: &mut Scratch,
        outcomes: &mut Vec<(usize, Result<Opened, Fault>)>,
    ) {
        let mut here = Vec::new();
        outcomes.clear();
        self.take_back(batch, |chunk, place, opening: Opening<'_>| match chunk {
            Some(chunk) => {
                let outcome = chunk.opened(place, &opening, packets.packet_mut(opening.at));
                outcomes.push((opening.at, outcome));
            }
            // A device that failed has done the first parts, and none behind them.
            None => here.push(opening),
        });
        if !here.is_empty() {
            let (bytes, begun) = (bytes(&here, packets), Instant::now());
            let mut of_here = Vec::with_capacity(here.len());
            open(&here, packets, scratch, &mut of_here);
            self.note_cpu(&here, bytes, begun.elapsed());
            outcomes.extend(here.iter().map(|opening| opening.at).zip(of_here));
        }
    }

    fn hand_over<'s, J: Job<'s>, P: Packets + ?Sized>(
        &mut self,
        state: &Arc<State>,
        jobs: &mut Vec<J>,
        packets: &P,
    ) -> Option<Batch<J::Rest>> {
        let device = self.device.as_mut()?;
        if let Err(error) = self.keys.follow(state, device) {
            self.lose(error);
            return None;
        }
        let bytes = bytes(jobs, packets);
        let class = class(jobs.first()?);
        if !self.costs[class].suits_device(self.by, bytes) {
            return None;
        }
        let begun = Instant::now();
        let mut batch = self.fill(state, jobs, packets, Batch::new(class, jobs.len()))?;
        batch.spent = begun.elapsed();
        Some(batch)
    }

    /// Fills slots with packets and starts them. A batch comes back if any is under way, or was when the
    /// device failed.
    fn fill<'s, J: Job<'s>, P: Packets + ?Sized>(
        &mut self,
        state: &Arc<State>,
        jobs: &mut Vec<J>,
        packets: &P,
        mut batch: Batch<J::Rest>,
    ) -> Option<Batch<J::Rest>> {
        let device = self.device.as_mut()?;
        // All keys first: a chunk that is being filled would not go with other keys than at its beginning.
        let mut numbers: Vec<Option<u32>> = Vec::with_capacity(jobs.len());
        let mut last: Option<&Sa> = None;
        for job in &*jobs {
            // Packets of one tunnel follow each other.
            if last.replace(job.sa()).is_some_and(|last| std::ptr::eq(last, job.sa())) {
                numbers.extend(numbers.last().copied());
                continue;
            }
            match self.keys.of(state, job.sa(), device) {
                Ok(number) => numbers.push(number),
                Err(error) => {
                    self.lose(error);
                    return None;
                }
            }
        }
        let mut left = Vec::new();
        let mut waiting = jobs.drain(..).zip(numbers).peekable();
        while waiting.peek().is_some() {
            let Some(slot) = self.idle.pop() else { break };
            let begun = batch.kept.len();
            let filled = fill_slot(device, slot, &mut waiting, packets, state, &mut batch, &mut left);
            let count = batch.kept.len() - begun;
            if filled.is_ok() && count == 0 {
                // The rest is not for the device, or no slot is large enough for the next packet.
                self.idle.push(slot);
                break;
            }
            batch.parts.push((slot, count));
            if let Err(error) = filled.and_then(|()| device.start(slot, J::TRANSFORM)) {
                left.extend(waiting.map(|(job, _)| job));
                *jobs = left;
                self.lose(error);
                return Some(batch);
            }
        }
        left.extend(waiting.map(|(job, _)| job));
        *jobs = left;
        (!batch.parts.is_empty()).then_some(batch)
    }

    /// Waits for the slots of a batch, and gives its packets in their order, each with its chunk and its
    /// place there: none if the device has failed.
    fn take_back<'b, J: Job<'b>>(
        &mut self,
        batch: &'b Batch<J::Rest>,
        mut each: impl FnMut(Option<&Chunk<'_>>, usize, J),
    ) {
        let begun = Instant::now();
        let job = |kept: &Kept<J::Rest>| J::again(kept.rest, &batch.sas[kept.sa]);
        let mut kept = &batch.kept[..];
        for &(slot, count) in &batch.parts {
            let (here, rest) = kept.split_at(count);
            kept = rest;
            let waited = self.device.as_mut().map(|device| device.wait(slot));
            if let Some(Err(error)) = waited {
                self.lose(error);
            }
            let chunk = self.device.as_mut().and_then(|device| device.chunk(slot).ok());
            here.iter().enumerate().for_each(|(place, kept)| each(chunk.as_ref(), place, job(kept)));
            if chunk.is_some() {
                self.idle.push(slot);
                self.counts.by_device += count as u64;
            } else {
                self.counts.recovered += count as u64;
            }
        }
        kept.iter().for_each(|kept| each(None, 0, job(kept)));
        if self.device.is_some() && batch.bytes > 0 {
            self.costs[batch.class].device.note(batch.bytes, batch.spent + begun.elapsed());
        }
    }

    fn note_cpu<'s, J: Job<'s>>(&self, jobs: &[J], bytes: usize, took: Duration) {
        if let Some(first) = jobs.first()
            && bytes >= LEAST
        {
            self.costs[class(first)].cpu.note(bytes, took);
        }
    }

    #[cold]
    fn lose(&mut self, error: Error) {
        // Its memory is overwritten as far as it still answers.
        self.device = None;
        self.keys = Places::new(0);
        self.failure.get_or_insert(error);
    }
}

/// Bytes of the frames of packets.
fn bytes<'s, J: Job<'s>, P: Packets + ?Sized>(jobs: &[J], packets: &P) -> usize {
    jobs.iter().map(|job| job.frame(packets.packet(job.at())).len()).sum()
}

/// The place of the costs of a packet's kind: direction and suite.
fn class<'s, J: Job<'s>>(job: &J) -> usize {
    let suite = match &job.sa().config.keys {
        // With a key of 16 bytes and a salt, or a longer one.
        Keys::Gcm(key) => usize::from(key.len() > 20),
        Keys::CtrSha1 { .. } => 2,
        Keys::NullSha1 { .. } => 3,
    };
    usize::from(J::TRANSFORM == Transform::Open) * SUITES + suite
}

/// Puts packets into a slot until it is full. Those without keys on the device are left.
fn fill_slot<'s, J: Job<'s>, P: Packets + ?Sized>(
    device: &mut Device,
    slot: usize,
    waiting: &mut std::iter::Peekable<impl Iterator<Item = (J, Option<u32>)>>,
    packets: &P,
    state: &State,
    batch: &mut Batch<J::Rest>,
    left: &mut Vec<J>,
) -> Result<(), Error> {
    let mut chunk = device.chunk(slot)?;
    chunk.clear();
    while let Some(&(job, number)) = waiting.peek() {
        let packet = packets.packet(job.at());
        if let Some(keys) = number
            && let Some(sa) = batch.sa_of(state, job.sa())
        {
            match job.push(&mut chunk, keys, packet) {
                Ok(()) => {}
                // The next slot has place for it, unless this one is empty.
                Err(Error::Full { .. }) => return Ok(()),
                Err(error) => return Err(error),
            }
            batch.kept.push(Kept { rest: job.rest(), sa });
            batch.bytes += job.frame(packet).len();
        } else {
            left.push(job);
        }
        waiting.next();
    }
    Ok(())
}
