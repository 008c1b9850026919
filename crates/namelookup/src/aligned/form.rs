//! [`Form`]: the parameters that make aligned transition arrays an ATA or a MATA.

use std::fmt::Debug;

use wirespeed_table::{BuildOptions, Standing};

use crate::fsm::Stride;

/// A form of aligned transition arrays.
pub trait Form: Copy + Debug + Send + Sync + 'static {
    /// The name that users choose the engine by.
    const NAME: &'static str;
    /// [`Engine::STANDING`](wirespeed_table::Engine::STANDING) of its engine.
    const STANDING: Standing;
    /// The kind of its images.
    const KIND: &'static str;
    /// The most bytes of a step, d.
    const STRIDE: Stride;
    /// Low bits of a state that are its base; its array is above.
    const BASE_BITS: u32;
    /// Whether there may be several arrays, of several lengths.
    const MANY_ARRAYS: bool;
}

/// The lengths that arrays of a table are made of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lengths {
    /// Slots to have in all: those needed, and room for updates.
    pub(crate) slots: u64,
    /// About how long an array is.
    pub(crate) unit: u64,
}

/// The head room that updates find: an eighth, and some for the smallest tables.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room;

impl Room {
    /// Slots for so many transitions.
    pub(crate) const fn slots(transitions: u64) -> u64 {
        let some = if transitions < 1 << 14 { transitions } else { 1 << 14 };
        transitions + transitions / 8 + some / 4 + 64
    }
}

impl Lengths {
    /// Lengths for so many transitions in an array of their own, and so many hundredths of them that updates
    /// may bring.
    pub(crate) fn of<F: Form>(transitions: u64, options: &BuildOptions) -> Self {
        /// Arrays that there are about: few enough to be found in the cache, many enough for three lengths.
        const ARRAYS: u64 = 12;
        let slots = match options.tight {
            false => Room::slots(transitions + transitions * u64::from(options.head_room) / 100),
            true => transitions + transitions / 32 + 64,
        };
        if F::MANY_ARRAYS {
            return Self { slots, unit: (slots / ARRAYS).clamp(61, (1 << F::BASE_BITS) / 2) };
        }
        // Of one array no two inputs of a state may be the same slot.
        let slots = slots.max(F::STRIDE.inputs());
        Self { slots, unit: slots }
    }
}
