//! The order of patches and batches on the device.
//!
//! ```text
//! slot 0    keys in ─► kernel ┐                       keys in ──────────┬► kernel
//! slot 1      keys in ─► kernel ┤                       keys in ────────┤► kernel
//! patches   ────────────────────┴► patch kernel ─► [patched] ───────────┘
//! ```
//!
//! The patch kernel reads its writes from pinned memory. If they were copied to the device, the copy would
//! stand behind the keys of later batches, because all use the one engine for that direction, and these
//! batches' kernels would wait for the patch: with copies, and four patches under way at most, an H200 lost 6
//! % of its rate at 1,000,000 updates a second.
//!
//! All patches go through one stream, in order, so waiting for one patch waits for all earlier ones. Patches
//! without a lookup between them are merged, and go in one launch.

use bytemuck::{Pod, Zeroable, bytes_of};

use super::tables::TableState;
use super::{Cargo, Owner};
use crate::driver::{DevicePtr, Driver, Event, Pinned, Shape, Stream, writers};
use crate::error::GpuError;
use crate::runtime::Result;
use crate::runtime::shared::Shared;
use crate::runtime::writes::{DeviceWrite, Writes};

/// The most patches that can be under way to the device.
const STAGES: usize = 32;
/// The most launches whose writes are gathered before they are sent.
const GATHERED: usize = 4;
const THREADS: u32 = 256;

/// `Writes` of `kernels/table.cu`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct KernelWrites {
    writes: DevicePtr,
    count: u64,
}

/// `Widths` of `kernels/table.cu`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct KernelWidths {
    of: [u64; 3],
}

/// The stream of patches, and its stages.
pub(super) struct Patcher {
    pub(super) stream: Stream,
    stages: Vec<Stage>,
    /// Numbers of the last started and the last done patch, over all tables, from 1.
    started: u64,
    done: u64,
    /// Tables with waiting patches.
    waiting: Vec<u64>,
}

struct Stage {
    pinned: Pinned,
    event: Event,
    is_free: bool,
}

impl Patcher {
    pub(super) fn new(driver: &mut dyn Driver, shared: &Shared) -> Result<Self> {
        let stream = driver.stream()?;
        let bytes = shared.options.patch_writes.max(1) * size_of::<DeviceWrite>();
        let mut stages = Vec::new();
        for _ in 0..STAGES {
            let pinned = driver.alloc_pinned(bytes)?;
            shared.account.pin(bytes);
            stages.push(Stage { pinned, event: driver.event(false)?, is_free: true });
        }
        Ok(Self { stream, stages, started: 0, done: 0, waiting: Vec::new() })
    }

    /// Notes that a patch is done, and with it all earlier patches.
    pub(super) fn landed(&mut self, place: u64, stage: Option<usize>, event: Event, spare: &mut Vec<Event>) {
        self.done = self.done.max(place);
        match stage {
            Some(stage) => self.stages[stage].is_free = true,
            None => spare.push(event),
        }
    }

    pub(super) fn give_back(&mut self, pinned: &mut Vec<Pinned>) {
        pinned.extend(self.stages.drain(..).map(|stage| stage.pinned));
    }
}

#[allow(unsafe_code)] // copies and launches
impl Owner {
    pub(super) fn patch(&mut self, table: u64, writes: Writes, version: u64, one_by_one: bool) {
        if self.alive().is_err() {
            return;
        }
        let most = self.shared.options.patch_writes * GATHERED;
        let Some(state) = self.tables.get_mut(&table) else { return };
        if one_by_one {
            let patched = self.flush(table).and_then(|()| self.one_by_one(table, &writes));
            if let Some(state) = self.tables.get_mut(&table) {
                state.version = version;
            }
            return self.note_patch(patched);
        }
        state.version = version;
        match &mut state.pending {
            Some(pending) => pending.append(writes),
            None => {
                state.pending = Some(writes);
                self.patcher.waiting.push(table);
            }
        }
        // Writes that repeat the same places are few once they are merged.
        let is_much = state.pending.as_mut().is_some_and(|pending| {
            pending.len() > most && {
                pending.settle();
                pending.len() > most / 2
            }
        });
        if is_much {
            // An error has ended everything by now.
            let _ = self.flush(table);
        }
    }

    /// Sends all waiting patches.
    pub(super) fn flush_all(&mut self) {
        while let Some(table) = self.patcher.waiting.pop() {
            let _ = self.flush(table);
        }
    }

    /// Sends a table's waiting patches.
    pub(super) fn flush(&mut self, table: u64) -> Result<()> {
        let Some(mut writes) = self.tables.get_mut(&table).and_then(|state| state.pending.take()) else {
            return Ok(());
        };
        self.patcher.waiting.retain(|&waiting| waiting != table);
        writes.settle();
        let sent = self.send_patch(table, &writes);
        self.note_patch(sent);
        self.alive()
    }

    /// Handles the result of a patch. A table that lacks a part of a patch would answer wrongly, so nobody
    /// may use it any more.
    fn note_patch(&mut self, sent: Result<()>) {
        if let Err(error) = sent {
            match error.is_fatal() {
                true => self.fail(&error),
                false => self.fail(&GpuError::Lost(format!("a patch can't be applied: {error}"))),
            }
        }
    }

    fn send_patch(&mut self, table: u64, writes: &Writes) -> Result<()> {
        let most = self.shared.options.patch_writes.max(1);
        let kernel = writers::patch();
        let stream = self.patcher.stream;
        let copy = self.table(table)?.copy;
        let mut readers = Some(self.readers(copy));
        for piece in writes.pieces(most) {
            let count: usize = piece.iter().map(|of| of.len()).sum();
            let at = self.free_stage()?;
            let stage = &mut self.patcher.stages[at];
            fill(stage, &piece);
            let (writes, event) = (stage.pinned.device, stage.event);
            for reader in readers.take().into_iter().flatten() {
                self.driver.wait(stream, reader)?;
            }
            let arguments = KernelWrites { writes, count: count as u64 };
            let widths = KernelWidths { of: [0, 1, 2].map(|width| piece[width].len() as u64) };
            let shape = Shape::row(self.blocks_for(count), THREADS, 0);
            // SAFETY: these are the kernel's two structs. The stage holds so many writes and is left alone
            // until its event has come. Every address is of an element of the table (`Writes::of`), whose
            // copy stays with the flight; and of this copy, as a table's places and its copy change together,
            // in the order of commands.
            unsafe { self.driver.launch(stream, &kernel, shape, [bytes_of(&arguments), bytes_of(&widths)]) }?;
            self.driver.record(event, stream)?;
            self.patcher.stages[at].is_free = false;
            self.patched(table, copy, event, Some(at));
        }
        Ok(())
    }

    fn one_by_one(&mut self, table: u64, writes: &Writes) -> Result<()> {
        let kernel = writers::patch_one();
        let stream = self.patcher.stream;
        let copy = self.table(table)?.copy;
        for reader in self.readers(copy) {
            self.driver.wait(stream, reader)?;
        }
        let shape = Shape::row(1, 32, 0);
        for (bytes, write) in writes.iter() {
            // SAFETY: as in `send_patch`.
            unsafe { self.driver.launch(stream, &kernel, shape, [bytes_of(&write), bytes_of(&bytes)]) }?;
        }
        let event = self.spare_event()?;
        self.driver.record(event, stream)?;
        self.patched(table, copy, event, None);
        Ok(())
    }

    fn patched(&mut self, table: u64, copy: u64, event: Event, stage: Option<usize>) {
        self.patcher.started += 1;
        let place = self.patcher.started;
        if let Some(state) = self.tables.get_mut(&table) {
            state.patched = Some((place, event));
        }
        self.take_off(event, event, Some(copy), Cargo::Patch(place, stage));
    }

    /// The events at which reading of a copy ends, of all work under way.
    fn readers(&self, copy: u64) -> Vec<Event> {
        let reads = |cargo: &Cargo| matches!(cargo, Cargo::Batches(..) | Cargo::Foreign);
        let flights = self.flights.iter().filter(|flight| flight.copy == Some(copy) && reads(&flight.cargo));
        flights.map(|flight| flight.read).collect()
    }

    /// Makes a stream's further work wait for a table's last patch, unless the patch is done or the stream
    /// has waited for it.
    pub(super) fn after_patch(
        &mut self,
        table: u64,
        stream: Stream,
        waited_for: Option<&mut u64>,
    ) -> Result<()> {
        let Some(&TableState { patched: Some((place, event)), .. }) = self.tables.get(&table) else {
            return Ok(());
        };
        if place <= self.patcher.done || waited_for.as_ref().is_some_and(|waited| **waited >= place) {
            return Ok(());
        }
        self.driver.wait(stream, event)?;
        if let Some(waited) = waited_for {
            *waited = place;
        }
        Ok(())
    }

    fn free_stage(&mut self) -> Result<usize> {
        self.wait_until(|owner| owner.patcher.stages.iter().any(|stage| stage.is_free))?;
        let free = self.patcher.stages.iter().position(|stage| stage.is_free);
        Ok(free.expect("that is what was waited for"))
    }

    fn blocks_for(&self, writes: usize) -> u32 {
        let blocks = writes.div_ceil(THREADS as usize);
        u32::try_from(blocks).unwrap_or(u32::MAX).clamp(1, self.shared.properties.multiprocessors.max(1) * 8)
    }
}

/// Writes the writes of a launch into a stage's pinned memory.
fn fill(stage: &mut Stage, piece: &[&[DeviceWrite]; 4]) {
    let room = stage.pinned.len / size_of::<DeviceWrite>();
    assert!(piece.iter().map(|of| of.len()).sum::<usize>() <= room, "a piece is no longer than a stage");
    assert!(stage.pinned.host.cast::<DeviceWrite>().is_aligned(), "pinned memory starts at a page");
    #[allow(unsafe_code)] // pinned memory as a slice
    // SAFETY: 1. `len` bytes of pinned memory, zeroed when they were taken, which stay until they are given
    // back at the end. 2. `DeviceWrite` is plain data, the pointer is aligned for it (just checked). 3. The
    // stage is free: the device has read what was there, and only the owner, who calls this, writes there.
    let to = unsafe { std::slice::from_raw_parts_mut(stage.pinned.host.cast::<DeviceWrite>(), room) };
    let mut at = 0;
    for of in piece {
        to[at..at + of.len()].copy_from_slice(of);
        at += of.len();
    }
}
