//! Copies of tables on the device, and device memory.

use std::sync::Arc;

use super::launch::{Launch, LaunchOf};
use super::{Cargo, Flight, Owner};
use crate::driver::{DevicePtr, Event, Pinned, Stream};
use crate::runtime::Result;
use crate::runtime::command::{Copy, Install, Staging};
use crate::runtime::memory::Purpose;
use crate::runtime::writes::Writes;
use wirespeed_image::device::Program;

/// A table: its current copy, and the programs that look up in it.
pub(super) struct TableState {
    pub(super) copy: u64,
    pub(super) programs: Vec<Program>,
    pub(super) version: u64,
    /// Patches that are not on the device yet. Nobody has looked up since they came.
    pub(super) pending: Option<Writes>,
    /// The last patch's number among all patches, and its end.
    pub(super) patched: Option<(u64, Event)>,
    /// The chosen launches.
    pub(super) launches: Vec<(LaunchOf, Arc<Launch>)>,
    /// The bytes that a key needs.
    pub(super) least_key_bytes: usize,
    /// The bytes that a result needs, if patches made that more than the programs say.
    pub(super) least_result_bytes: usize,
}

impl TableState {
    pub(super) fn forget_launches(&mut self) {
        self.launches.clear();
    }
}

/// Device memory of a copy.
pub(super) struct CopyState {
    blocks: Vec<DevicePtr>,
    bytes: u64,
    /// Whether it is freed as soon as no flight uses it.
    is_doomed: bool,
    /// Streams in which a batch of it said that it was done, without a later event that says that its grid
    /// has ended.
    ending: Vec<Stream>,
}

impl CopyState {
    pub(super) fn doom(&mut self) {
        self.is_doomed = true;
    }
}

impl Owner {
    pub(super) fn alloc_copy(&mut self, sizes: &[usize]) -> Result<Copy> {
        let blocks = self.alloc(Purpose::Table, sizes)?;
        let id = self.shared.next_id();
        let state =
            CopyState { blocks: blocks.clone(), bytes: sum(sizes), is_doomed: false, ending: Vec::new() };
        self.copies.insert(id, state);
        Ok(Copy { id, blocks })
    }

    /// Starts the upload of a piece of a table.
    pub(super) fn upload(&mut self, copy: u64, to: DevicePtr, staging: Staging, bytes: usize) {
        if self.alive().is_err() {
            return;
        }
        #[allow(unsafe_code)] // a copy to the device
        // SAFETY: the staging memory is at least as long, and stays with the flight, untouched, until the
        // copy is done; so does the copy of the table, which is freed when no flight uses it.
        let sent = unsafe { self.driver.copy_in(self.uploads, to, staging.memory.host, bytes) };
        match sent.and_then(|()| self.driver.record(staging.event, self.uploads)) {
            Ok(()) => self.take_off(staging.event, staging.event, Some(copy), Cargo::Piece(staging)),
            // The table would lack a piece.
            Err(error) => self.fail(&error),
        }
    }

    pub(super) fn install(&mut self, install: Install) {
        let Install { table, copy, programs, version } = install;
        let state = TableState {
            copy,
            programs,
            version,
            // Patches that nobody has seen belong to the state that is replaced.
            pending: None,
            // The new copy was on the device before this command was sent.
            patched: None,
            launches: Vec::new(),
            least_key_bytes: self.tables.get(&table).map_or(0, |old| old.least_key_bytes),
            least_result_bytes: 0,
        };
        if let Some(old) = self.tables.insert(table, state) {
            self.doom(old.copy);
        }
    }

    pub(super) fn require(&mut self, table: u64, key_bytes: usize, result_bytes: usize) {
        if let Some(state) = self.tables.get_mut(&table) {
            state.least_key_bytes = state.least_key_bytes.max(key_bytes);
            state.least_result_bytes = state.least_result_bytes.max(result_bytes);
        }
    }

    pub(super) fn drop_table(&mut self, table: u64) {
        if let Some(state) = self.tables.remove(&table) {
            self.doom(state.copy);
        }
    }

    pub(super) fn doom(&mut self, copy: u64) {
        if let Some(copy) = self.copies.get_mut(&copy) {
            copy.doom();
            self.free_doomed();
        }
    }

    /// Notes that a batch of a flight ends by its flag: its grid may end later.
    pub(super) fn announced(&mut self, at: usize) {
        let Some(Flight { copy: Some(copy), cargo: Cargo::Batches(stream, _), .. }) = self.flights.get(at)
        else {
            return;
        };
        if let Some(copy) = self.copies.get_mut(copy)
            && !copy.ending.contains(stream)
        {
            copy.ending.push(*stream);
        }
    }

    /// Makes flights wait for the ends of grids that have read copies that will be freed.
    fn wait_for_ends(&mut self) -> Result<()> {
        let doomed = self.copies.iter_mut().filter(|(_, copy)| copy.is_doomed);
        let ending: Vec<_> =
            doomed.flat_map(|(&id, copy)| copy.ending.drain(..).map(move |stream| (id, stream))).collect();
        for (copy, stream) in ending {
            let event = self.spare_event()?;
            self.driver.record(event, stream)?;
            self.take_off(event, event, Some(copy), Cargo::End);
        }
        Ok(())
    }

    /// Frees the copies that nothing needs any more.
    pub(super) fn free_doomed(&mut self) {
        if !self.copies.values().any(|copy| copy.is_doomed) || self.alive().is_err() {
            return;
        }
        if let Err(error) = self.wait_for_ends() {
            // It is not known any more who reads which copy.
            return self.fail(&error);
        }
        let in_use: Vec<u64> = self.flights.iter().filter_map(|flight| flight.copy).collect();
        let (driver, account) = (&mut self.driver, &self.shared.account);
        self.copies.retain(|id, copy| {
            let stays = !copy.is_doomed || in_use.contains(id);
            if !stays {
                #[allow(unsafe_code)] // gives memory back
                // SAFETY: no table is this copy any more, so nothing new uses it; and of what did, no flight
                // is left, nor a grid that has not ended: those have become flights.
                unsafe {
                    driver.free(&copy.blocks);
                }
                account.give_back(Purpose::Table, copy.bytes);
            }
            stays
        });
    }

    /// Allocates device memory, unless it would be over the cap.
    pub(super) fn alloc(&mut self, purpose: Purpose, blocks: &[usize]) -> Result<Vec<DevicePtr>> {
        self.shared.account.check(sum(blocks))?;
        let taken = self.driver.alloc(blocks)?;
        self.shared.account.take(purpose, sum(blocks));
        Ok(taken)
    }

    pub(super) fn pin(&mut self, bytes: usize) -> Result<Pinned> {
        let memory = self.driver.alloc_pinned(bytes)?;
        self.shared.account.pin(bytes);
        Ok(memory)
    }
}

/// Bytes of blocks, each aligned like the driver aligns it.
fn sum(blocks: &[usize]) -> u64 {
    blocks.iter().map(|&bytes| bytes.next_multiple_of(256) as u64).sum()
}
