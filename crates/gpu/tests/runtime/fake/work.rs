//! What is queued, and the steps in which it is done.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;

use wirespeed_gpu::driver::{Event, Stream};

use super::Fake;

pub(super) const KERNELS: [&str; 7] = [
    "gather_w4_plain_k4",
    "gather_w1_k4",
    "gather_w2_k4",
    "gather_w4_k4",
    "gather_w4_k6",
    "patch",
    "patch_one",
];

#[derive(Clone)]
pub(super) enum Op {
    /// A copy from an address of this process to one of the device, or the other way, or within; and how far
    /// it has come.
    Copy {
        to: Place,
        from: Place,
        bytes: usize,
        done: usize,
    },
    /// The rows of a launch that have not ended.
    Launch(Vec<Row>),
    Record(Event, u64),
    Wait(Event, u64),
}

#[derive(Clone)]
pub(super) struct Row {
    pub(super) kernel: String,
    pub(super) blocks: u32,
    /// Its batch, or what else the kernel takes, and the table.
    pub(super) arguments: [Vec<u8>; 2],
    pub(super) done: u64,
    /// The number of blocks that have said so.
    pub(super) announced: u32,
}

impl Row {
    fn is_announced(&self) -> bool {
        self.announced == self.blocks
    }
}

#[derive(Clone, Copy)]
pub(super) enum Place {
    Host(u64),
    Device(u64),
}

impl Fake {
    pub(super) fn give(&mut self, stream: Stream, op: Op) {
        match &mut self.capture {
            Some((captured, ops)) if *captured == stream => {
                if matches!(op, Op::Record(..) | Op::Wait(..)) {
                    self.control.note("an event while a stream is recorded");
                }
                ops.push(op);
            }
            _ => self.streams.get_mut(&stream).expect("a stream of this driver").push_back(op),
        }
    }

    /// Does some work.
    pub(super) fn run(&mut self) {
        if self.control.hangs.load(Ordering::SeqCst) {
            return;
        }
        let holds_ends = self.control.holds_ends.load(Ordering::SeqCst);
        for _ in 0..1 + self.below(6) {
            let ready = |ops: &VecDeque<Op>| match ops.front() {
                Some(Op::Wait(event, count)) => self.events[event].1 >= *count,
                Some(Op::Record(..)) => !holds_ends,
                Some(Op::Launch(rows)) => !holds_ends || rows.iter().any(|row| !row.is_announced()),
                Some(Op::Copy { .. }) => true,
                None => false,
            };
            let mut streams: Vec<Stream> =
                self.streams.iter().filter(|(_, ops)| ready(ops)).map(|(&stream, _)| stream).collect();
            if streams.is_empty() {
                return;
            }
            streams.sort_by_key(|stream| stream.0);
            let stream = streams[self.below(streams.len())];
            let mut op = self.streams.get_mut(&stream).unwrap().pop_front().unwrap();
            self.steps += 1;
            if !self.step(&mut op) {
                self.streams.get_mut(&stream).unwrap().push_front(op);
            }
        }
    }

    /// Does a part of an operation; whether it is done.
    fn step(&mut self, op: &mut Op) -> bool {
        match op {
            Op::Wait(..) => true,
            Op::Record(event, count) => {
                let reached = &mut self.events.get_mut(event).unwrap().1;
                *reached = (*reached).max(*count);
                self.times.insert(*event, self.steps);
                true
            }
            Op::Copy { to, from, bytes, done } => {
                let part = (*bytes - *done).min(*bytes / 2 + 1);
                let data = self.read_place(*from, *done, part);
                self.write_place(*to, *done, &data);
                *done += part;
                *done == *bytes
            }
            Op::Launch(rows) => {
                let holds_ends = self.control.holds_ends.load(Ordering::SeqCst);
                let can_go = |row: &Row| !(holds_ends && row.is_announced());
                let able: Vec<usize> = (0..rows.len()).filter(|&at| can_go(&rows[at])).collect();
                if able.is_empty() {
                    return false;
                }
                let at = able[self.below(able.len())];
                if self.step_row(&mut rows[at]) {
                    rows.remove(at);
                }
                rows.is_empty()
            }
        }
    }

    /// Does a part of a row's work; whether it has ended.
    fn step_row(&mut self, row: &mut Row) -> bool {
        let Row { kernel, blocks, arguments, done, announced } = row;
        let is_lookup = !is_patch(kernel);
        let count = word(&arguments[0], if is_lookup { 3 } else { 1 });
        if kernel == "patch_one" {
            self.store(word(&arguments[0], 0), word(&arguments[0], 1), word(&arguments[1], 0));
            return true;
        }
        let part = (count - *done).min(count / 3 + 1);
        for i in *done..*done + part {
            if is_lookup {
                self.gather(kernel, arguments, i);
            } else {
                self.patch(arguments, i);
            }
        }
        *done += part;
        if *done < count || !is_lookup {
            return *done == count;
        }
        // Whatever comes next may come at once or later.
        if part == 0 && self.below(2) == 0 {
            if announced == blocks || self.control.is_silent.load(Ordering::SeqCst) {
                return true;
            }
            self.announce(*announced, &arguments[0]);
            *announced += 1;
        }
        false
    }

    /// Does what `announce_end` of `kernels/batch.cuh` does in a block.
    fn announce(&mut self, block: u32, batch: &[u8]) {
        let (done, mark) = (word(batch, 4), word(batch, 5));
        if done != 0 {
            self.store(done + 4 * u64::from(block), mark, 4);
        }
    }

    fn patch(&mut self, [writes, widths]: &[Vec<u8>; 2], i: u64) {
        let at = word(writes, 0) + 16 * i;
        let (to, value) = (self.load(at, 8), self.load(at + 8, 8));
        let ends = [0, 1, 2].map(|w| (0..=w).map(|w| word(widths, w)).sum::<u64>());
        let bytes = ends.iter().position(|&end| i < end).map_or(8, |w| 1 << w);
        self.store(to, value, bytes);
    }

    /// Does what `kernels/gather.cuh` does; and with keys of six bytes, whose planes are mixed.
    fn gather(&mut self, kernel: &str, [batch, table]: &[Vec<u8>; 2], i: u64) {
        let width: u64 = kernel[8..9].parse().unwrap();
        let key = match &kernel[9..] {
            "_k4" | "_plain_k4" => self.load(word(batch, 0) + 4 * i, 4),
            "_k6" => self.load(word(batch, 0) + 4 * i, 4) ^ self.load(word(batch, 1) + 2 * i, 2),
            other => unreachable!("{other}"),
        };
        let value = self.load(word(table, 0) + (key & word(table, 1)) * width, width);
        self.store(word(batch, 2) + i * width, value, width);
    }
}

/// Whether a kernel writes to a table, and doesn't look up.
pub(super) fn is_patch(kernel: &str) -> bool {
    kernel.starts_with("patch")
}

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[8 * at..8 * at + 8].try_into().unwrap())
}
