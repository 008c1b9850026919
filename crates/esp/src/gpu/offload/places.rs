//! [`Places`]: the keys that are on the device.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::super::device::Device;
use crate::error::Error;
use crate::sa::Sa;
use crate::state::State;

/// Associations whose keys are on the device, by the number of their place.
#[derive(Debug, Default)]
pub(super) struct Places {
    sas: Vec<Option<Arc<Sa>>>,
    /// The numbers by the address of the association, which stays where it is while its place has it.
    numbers: FxHashMap<usize, u32>,
    free: Vec<u32>,
    state: Option<Arc<State>>,
}

impl Places {
    pub(super) fn new(count: u32) -> Self {
        Self { sas: (0..count).map(|_| None).collect(), free: (0..count).rev().collect(), ..Self::default() }
    }

    /// Overwrites keys of associations that are gone.
    pub(super) fn follow(&mut self, state: &Arc<State>, device: &mut Device) -> Result<(), Error> {
        if self.state.as_ref().is_some_and(|known| Arc::ptr_eq(known, state)) {
            return Ok(());
        }
        for (number, place) in (0..).zip(&mut self.sas) {
            if let Some(sa) = place.take_if(|sa| state.shared(sa).is_none()) {
                self.numbers.remove(&address(&sa));
                device.clear(number)?;
                self.free.push(number);
            }
        }
        self.state = Some(Arc::clone(state));
        Ok(())
    }

    /// The number of an association's keys, which are set if they are not there. None if there is no place,
    /// or the device has no kernels for them.
    pub(super) fn of(&mut self, state: &State, sa: &Sa, device: &mut Device) -> Result<Option<u32>, Error> {
        if let Some(&number) = self.numbers.get(&address(sa)) {
            return Ok(Some(number));
        }
        let Some(shared) = state.shared(sa).filter(|sa| sa.suite.vector() > 0) else { return Ok(None) };
        let Some(number) = self.free.pop() else { return Ok(None) };
        device.set(number, &sa.config.keys, sa.is_extended)?;
        self.numbers.insert(address(sa), number);
        // There are as many places as numbers.
        self.sas[number as usize] = Some(shared);
        Ok(Some(number))
    }
}

fn address(sa: &Sa) -> usize {
    std::ptr::from_ref(sa).addr()
}
