//! [`Failing`]: an engine that fails where it is told to, of any domain.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

use wirespeed_image::{ImageError, Outgrown, Patch};

use crate::domain::Domain;
use crate::engine::Engine;
use crate::error::BuildError;
use crate::options::BuildOptions;
use crate::standing::Standing;

thread_local! {
    /// The operations that fail, counted from 0 in the order in which engines of this thread are asked:
    /// builds and what they are told of changes, together.
    static FAILING: RefCell<BTreeSet<u32>> = const { RefCell::new(BTreeSet::new()) };
    static OPERATIONS: Cell<u32> = const { Cell::new(0) };
}

/// Counts from 0 again, and has these operations of this thread fail.
pub fn fail_at(operations: impl IntoIterator<Item = u32>) {
    FAILING.set(operations.into_iter().collect());
    OPERATIONS.set(0);
}

/// The operations of this thread since [`fail_at`].
pub fn operations() -> u32 {
    OPERATIONS.get()
}

/// Counts an operation; whether it is to fail.
fn fails() -> bool {
    let now = OPERATIONS.replace(OPERATIONS.get() + 1);
    FAILING.with_borrow(|failing| failing.contains(&now))
}

/// An engine that fails where it is told to ([`fail_at`]).
#[derive(Debug)]
pub struct Failing<E>(E);

impl<D: Domain, E: Engine<D>> Engine<D> for Failing<E> {
    const NAME: &'static str = E::NAME;
    const STANDING: Standing = E::STANDING;
    type Table = E::Table;

    fn build(source: &D::Source, options: &BuildOptions) -> Result<(Self, E::Table), BuildError> {
        if fails() {
            // One kind is tried again with less head room, the other isn't.
            return Err(match OPERATIONS.get() % 2 {
                0 => ImageError::OverCap { needed: 2, cap: 1 }.into(),
                _ => BuildError::Limit { engine: E::NAME, what: "things", limit: 1, found: 2 },
            });
        }
        E::build(source, options).map(|(engine, table)| (Self(engine), table))
    }

    /// The engine is spent after an error in any case, and may have done its work by then.
    fn take(&mut self, source: &D::Source, changed: &[D::Change]) -> Result<(), Outgrown> {
        let taken = self.0.take(source, changed);
        if fails() { Err(Outgrown("told to")) } else { taken }
    }

    fn patch(
        &mut self,
        table: &E::Table,
        source: &D::Source,
        changed: &[D::Change],
    ) -> Result<Patch, Outgrown> {
        let patch = self.0.patch(table, source, changed);
        if fails() { Err(Outgrown("told to")) } else { patch }
    }

    fn memory_usage(&self) -> u64 {
        self.0.memory_usage()
    }
}
