//! The trip of a batch: keys are packed into a slot and sent, and its results are taken. Keys or results that
//! a change of the table made too narrow make the trip once more.

use std::collections::VecDeque;
use std::ops::Range;

use wirespeed_table::Keys;

use crate::error::GpuError;
use crate::remote::{Answers, KeysOf, RemoteTable};
use crate::runtime::{Done, FleetBatch, Ticket};

/// Packs and sends keys, at most as many as a slot holds. Waits for a slot, but not for ever.
pub fn send<R, T: Answers<R>>(table: &T, keys: KeysOf<'_, T>) -> Result<Ticket, GpuError> {
    send_in(table, table.copies().slot(table.slot_keys(keys))?, keys)
}

/// Packs and sends keys like [`send`]. `None` if no slot is free; a caller with batches under way then takes
/// the results of one, which frees a slot.
pub(crate) fn try_send<R, T: Answers<R>>(table: &T, keys: KeysOf<'_, T>) -> Result<Option<Ticket>, GpuError> {
    match table.copies().try_slot(table.slot_keys(keys))? {
        None => Ok(None),
        Some(slot) => send_in(table, slot, keys).map(Some),
    }
}

#[inline(never)] // one copy for all crates
fn send_in<R, T: Answers<R>>(
    table: &T,
    mut slot: FleetBatch,
    keys: KeysOf<'_, T>,
) -> Result<Ticket, GpuError> {
    let batch = slot.batch();
    let too_many = GpuError::TooManyKeys { asked: keys.len(), most: batch.capacity() };
    let form = table.pack(keys, batch).ok_or(too_many)?;
    Ok(slot.submit_form(table.copies().table(), form))
}

/// Waits for keys that were sent, until they have results that are valid.
#[inline(never)] // one copy for all crates
pub(crate) fn valid<R, T: Answers<R>>(
    table: &T,
    mut done: Done,
    keys: KeysOf<'_, T>,
) -> Result<Done, GpuError> {
    loop {
        match table.check(&done) {
            Ok(()) => return Ok(done),
            Err(GpuError::NarrowKeys { .. } | GpuError::NarrowResults { .. }) => {}
            Err(error) => return Err(error),
        }
        // The batch is sent again in its slot, because a caller with other batches under way must not wait
        // for a slot. Keys and results get wider each time, so this ends.
        let mut batch = done.into_batch()?;
        let replica = table.copies().table().beside(&batch).ok_or(GpuError::OtherDevice)?;
        let too_many = GpuError::TooManyKeys { asked: keys.len(), most: batch.capacity() };
        let form = table.pack(keys, &mut batch).ok_or(too_many)?;
        done = batch.submit_form(replica, form).wait();
    }
}

/// Takes the results of keys that were sent.
#[inline(never)] // one copy for all crates
pub fn results<R, T: Answers<R>>(
    table: &T,
    done: Done,
    keys: KeysOf<'_, T>,
    found: &mut [R],
) -> Result<(), GpuError> {
    let done = valid(table, done, keys)?;
    T::unpack(done.results().map_err(Clone::clone)?, done.result_bytes(), found);
    Ok(())
}

/// The end of a part that starts at `start`: of at most `most` keys, and small enough for a slot if one key
/// fits any. A part has one key at least.
pub(crate) fn end_of_part<T: RemoteTable>(
    table: &T,
    keys: KeysOf<'_, T>,
    start: usize,
    most: usize,
) -> usize {
    let largest = table.copies().fleet().largest_batch();
    let mut count = most.min(largest).max(1);
    loop {
        let end = keys.len().min(start + count);
        if count == 1 || table.slot_keys(keys.part(start..end)) <= largest {
            return end;
        }
        count = (end - start).div_ceil(2);
    }
}

/// Whether one slot holds all keys.
pub(crate) fn fits_a_slot<T: RemoteTable>(table: &T, keys: KeysOf<'_, T>) -> bool {
    end_of_part(table, keys, 0, keys.len()) == keys.len()
}

/// Looks up all keys in parts, several under way at once. After an error some results are written and some
/// are not.
///
/// Panics when the lengths differ.
pub(crate) fn look_up<R, T: Answers<R>>(
    table: &T,
    keys: KeysOf<'_, T>,
    found: &mut [R],
) -> Result<(), GpuError> {
    Parts::default().finish(table, keys, found)
}

/// Keys that go in parts, several under way at once. Dropping it drops the results.
#[derive(Debug, Default)]
pub struct Parts {
    under_way: VecDeque<(Ticket, Range<usize>)>,
    /// The number of keys that were sent.
    sent: usize,
}

impl Parts {
    /// Whether all parts that were sent have come back.
    pub fn is_done(&self) -> bool {
        self.under_way.iter().all(|(ticket, _)| ticket.is_done())
    }

    /// The number of keys that were sent.
    pub(crate) const fn sent(&self) -> usize {
        self.sent
    }

    /// Sends the next parts, as far as slots are free.
    pub(crate) fn send_some<R, T: Answers<R>>(
        &mut self,
        table: &T,
        keys: KeysOf<'_, T>,
    ) -> Result<(), GpuError> {
        while self.sent < keys.len() && self.under_way.len() < T::PARTS {
            let part = self.next(table, keys);
            let Some(ticket) = try_send(table, keys.part(part.clone()))? else { break };
            self.note(ticket, part);
        }
        Ok(())
    }

    /// Sends the rest, and takes the results of all parts.
    #[inline(never)] // one copy for all crates
    pub(crate) fn finish<R, T: Answers<R>>(
        mut self,
        table: &T,
        keys: KeysOf<'_, T>,
        found: &mut [R],
    ) -> Result<(), GpuError> {
        assert_eq!(keys.len(), found.len(), "a result for each key");
        loop {
            self.send_some(table, keys)?;
            match self.under_way.pop_front() {
                Some((ticket, part)) => {
                    results(table, ticket.wait(), keys.part(part.clone()), &mut found[part])?;
                }
                None if self.sent == keys.len() => return Ok(()),
                // A caller that holds slots must not wait for more, because all callers could wait then.
                None => {
                    let part = self.next(table, keys);
                    self.note(send(table, keys.part(part.clone()))?, part);
                }
            }
        }
    }

    fn next<T: RemoteTable>(&self, table: &T, keys: KeysOf<'_, T>) -> Range<usize> {
        let most = keys.len().div_ceil(T::PARTS).max(T::LEAST_PART);
        self.sent..end_of_part(table, keys, self.sent, most)
    }

    fn note(&mut self, ticket: Ticket, part: Range<usize>) {
        self.sent = part.end;
        self.under_way.push_back((ticket, part));
    }
}
