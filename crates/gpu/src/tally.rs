//! [`Tally`]: counts that many threads add to without slowing each other down, and the devices that each
//! thread's last batches went to.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Numbers of keys that each device looked up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Keys that the CPU looked up.
    pub cpu: u64,
    /// Keys that GPUs looked up.
    pub gpu: u64,
    /// The reasons for which the CPU looked its keys up.
    pub why_cpu: Reasons,
}

/// Numbers of keys that the CPU looked up, by reason. Their sum is [`Counts::cpu`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Reasons {
    /// The CPU was the faster device for the batch, or the one that the latency bound asked for.
    pub faster_cpu: u64,
    /// Feeding a GPU would have kept the core busy for as long as looking up.
    pub vain_feeding: u64,
    /// No slot of a GPU was free.
    pub no_slot: u64,
    /// The GPUs are out of use, or one failed.
    pub failed: u64,
}

impl Counts {
    /// The sum with the counts of another table.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        self.each(other, u64::wrapping_add)
    }

    /// The counts since these earlier ones.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        self.each(before, u64::wrapping_sub)
    }

    fn each(self, other: Self, of: fn(u64, u64) -> u64) -> Self {
        let (a, b) = (self.why_cpu, other.why_cpu);
        let why_cpu = Reasons {
            faster_cpu: of(a.faster_cpu, b.faster_cpu),
            vain_feeding: of(a.vain_feeding, b.vain_feeding),
            no_slot: of(a.no_slot, b.no_slot),
            failed: of(a.failed, b.failed),
        };
        Self { cpu: of(self.cpu, other.cpu), gpu: of(self.gpu, other.gpu), why_cpu }
    }
}

/// The reason why the CPU looks a batch up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// [`Reasons::faster_cpu`].
    FasterCpu,
    /// [`Reasons::vain_feeding`].
    VainFeeding,
    /// [`Reasons::no_slot`].
    NoSlot,
    /// [`Reasons::failed`].
    Failed,
}

/// The keys of batches: each kind goes to the device that suits it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keys {
    /// Keys of a slice, which are packed for a GPU.
    Slice,
    /// Keys that are written in a GPU's form as they come.
    AsTheyCome,
    /// Keys that lie in a slot.
    InSlot,
}

/// The device that the last batch of a size went to, or that has the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Last {
    /// There was none.
    Nowhere,
    /// The CPU.
    Cpu,
    /// A GPU.
    Gpu,
    /// A slot of a GPU has the keys.
    Slot,
}

/// The number of parts. Threads beyond it share parts.
const PARTS: usize = 32;

/// Counts in parts, one for each of the first threads.
#[derive(Debug, Default)]
pub(crate) struct Tally([Part; PARTS]);

/// Counts in cache lines of their own: a pair of lines, which processors fetch together.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Part {
    gpu: AtomicU64,
    /// Keys that the CPU looked up, by [`Why`].
    cpu: [AtomicU64; 4],
    /// The devices of the last batches of slices, and of keys that are written as they come. A bit for each
    /// size, a power of two: the lower half for the CPU, the upper one for GPUs.
    last: [AtomicU64; 2],
}

impl Tally {
    /// Adds keys that a GPU looked up, or the CPU for a reason.
    pub(crate) fn add(&self, on: Result<(), Why>, keys: u64) {
        let part = self.part();
        let count = on.map_or_else(|why| &part.cpu[why as usize], |()| &part.gpu);
        count.fetch_add(keys, Ordering::Relaxed);
    }

    /// The sum of all parts.
    pub(crate) fn sum(&self) -> Counts {
        let sum = |of: &dyn Fn(&Part) -> &AtomicU64| {
            self.0.iter().map(|part| of(part).load(Ordering::Relaxed)).fold(0, u64::wrapping_add)
        };
        let [faster_cpu, vain_feeding, no_slot, failed] =
            [Why::FasterCpu, Why::VainFeeding, Why::NoSlot, Why::Failed]
                .map(|why| sum(&|part| &part.cpu[why as usize]));
        let cpu = [faster_cpu, vain_feeding, no_slot, failed].into_iter().fold(0, u64::wrapping_add);
        let why_cpu = Reasons { faster_cpu, vain_feeding, no_slot, failed };
        Counts { cpu, gpu: sum(&|part| &part.gpu), why_cpu }
    }

    /// The device that this thread's last batch of such keys and of this size went to.
    pub(crate) fn last(&self, keys: Keys, count: usize) -> Last {
        let Some(last) = self.part().of(keys) else { return Last::Slot };
        let [cpu, gpu] = bits(count);
        match last.load(Ordering::Relaxed) {
            last if last & gpu > 0 => Last::Gpu,
            last if last & cpu > 0 => Last::Cpu,
            _ => Last::Nowhere,
        }
    }

    /// Notes the device that a batch goes to, for [`last`](Self::last).
    pub(crate) fn note(&self, keys: Keys, count: usize, on_gpu: bool) {
        let Some(last) = self.part().of(keys) else { return };
        let [cpu, gpu] = bits(count);
        let now = last.load(Ordering::Relaxed) & !(cpu | gpu) | if on_gpu { gpu } else { cpu };
        // Threads that share a part may lose a note, which does not matter.
        last.store(now, Ordering::Relaxed);
    }

    fn part(&self) -> &Part {
        &self.0[THREAD.with(|thread| thread.part)]
    }
}

impl Part {
    /// The devices of the last batches of such keys. `None` for keys in a slot.
    fn of(&self, keys: Keys) -> Option<&AtomicU64> {
        match keys {
            Keys::Slice => Some(&self.last[0]),
            Keys::AsTheyCome => Some(&self.last[1]),
            Keys::InSlot => None,
        }
    }
}

/// The bits of a size, for the CPU and for GPUs.
fn bits(count: usize) -> [u64; 2] {
    let size = count.max(1).ilog2().min(31);
    [1 << size, 1 << (32 + size)]
}

struct Thread {
    part: usize,
    turns: Cell<u64>,
}

thread_local! {
    static THREAD: Thread = {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        Thread { part: NEXT.fetch_add(1, Ordering::Relaxed) % PARTS, turns: Cell::new(0) }
    };
}

/// The number of earlier calls by this thread.
pub(crate) fn turn() -> u64 {
    THREAD.with(|thread| thread.turns.replace(thread.turns.get().wrapping_add(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost_between_threads() {
        let tally = Tally::default();
        std::thread::scope(|scope| {
            for thread in 0..2 * PARTS {
                let tally = &tally;
                scope.spawn(move || {
                    let on = [Ok(()), Err(Why::FasterCpu), Err(Why::NoSlot), Ok(())][thread % 4];
                    (0..1000).for_each(|keys| tally.add(on, keys));
                });
            }
        });
        let each = 499_500 * PARTS as u64;
        let why_cpu = Reasons { faster_cpu: each / 2, no_slot: each / 2, ..Reasons::default() };
        let counts = Counts { cpu: each, gpu: each, why_cpu };
        assert_eq!(tally.sum(), counts);
        assert_eq!(counts.plus(counts).since(counts), counts);
    }

    #[test]
    fn the_last_device_is_known_by_kind_and_size() {
        let tally = Tally::default();
        assert_eq!(tally.last(Keys::Slice, 1000), Last::Nowhere);
        tally.note(Keys::Slice, 1000, true);
        tally.note(Keys::AsTheyCome, 1000, false);
        tally.note(Keys::InSlot, 1000, false);
        let last = |keys, count| tally.last(keys, count);
        assert_eq!((last(Keys::Slice, 513), last(Keys::Slice, 1024)), (Last::Gpu, Last::Nowhere));
        assert_eq!((last(Keys::AsTheyCome, 1000), last(Keys::InSlot, 1000)), (Last::Cpu, Last::Slot));
        tally.note(Keys::Slice, 600, false);
        assert_eq!((last(Keys::Slice, 1000), last(Keys::Slice, usize::MAX)), (Last::Cpu, Last::Nowhere));
    }

    #[test]
    fn turns_are_of_a_thread() {
        let before = turn();
        assert_eq!(turn(), before + 1);
        assert_eq!(std::thread::spawn(turn).join().unwrap(), 0);
    }
}
