//! [`Failing`]: an engine that fails where it is told to, of any domain.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

use wirespeed_image::{ImageError, Outgrown, Patch, rounds};
use wirespeed_rng::Rng;

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
fn operations() -> u32 {
    OPERATIONS.get()
}

/// Makes a play once without a failure, then with failures that begin at one operation after the other, from
/// `first` on, `plays` times at most, and once with failures at random. A play is told what fails.
pub fn with_failures(
    rng: &mut Rng,
    seed: u32,
    (first, plays): (u32, u32),
    mut play: impl FnMut(&mut Rng, &str),
) {
    fail_at([]);
    play(rng, "none fails");
    let operations = operations();
    // A plain run leaves operations out.
    let step = (operations.div_ceil(plays) as usize).max(rounds::stride());
    for from in (first..operations).step_by(step) {
        // One alone, one with the build after it, and several calls.
        let count = [1, 2, 3, 5][rng.index(4)];
        fail_at(from..from + count);
        play(rng, &format!("seed {seed}, operations {from} to {}", from + count - 1));
    }
    let some: BTreeSet<u32> = (1..2 * operations).filter(|_| rng.index(2) == 0).collect();
    fail_at(some.iter().copied());
    play(rng, &format!("seed {seed}, operations {some:?}"));
    fail_at([]);
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
    fn take(&mut self, table: &E::Table, source: &D::Source, changed: &[D::Change]) -> Result<(), Outgrown> {
        let taken = self.0.take(table, source, changed);
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

    fn unpublished(&mut self) {
        self.0.unpublished();
    }

    fn memory_usage(&self) -> u64 {
        self.0.memory_usage()
    }
}
