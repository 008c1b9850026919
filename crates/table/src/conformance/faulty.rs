//! [`Faulty`]: an engine that is wrong in one way, of any domain; proof that a test can fail.
//!
//! All faults of a domain share one type of engine: a type for each fault would have the whole suite compiled
//! for each. So an engine takes the fault of the thread that builds it.

use std::any::Any;
use std::cell::RefCell;
use std::fmt;

use wirespeed_image::{
    Checked, Image, ImageError, Outgrown, Patch, PatchError, SectionId, Step, Table, rounds,
};

use super::suite::Suite;
use crate::domain::Domain;
use crate::engine::Engine;
use crate::error::BuildError;
use crate::lookup::Lookup;
use crate::options::BuildOptions;
use crate::standing::Standing;

/// A fault of an engine. Each method stands for the method of that name of the right engine `E` or of its
/// table, and a fault replaces one or two of them.
pub trait Fault<D: Domain, S: Suite<D> + 'static, E: Engine<D>>: Send + Sync + 'static {
    /// Stands for [`Engine::build`].
    fn build(&self, source: &D::Source, options: &BuildOptions) -> Result<(E, E::Table), BuildError> {
        E::build(source, options)
    }

    /// Stands for [`Engine::take`].
    fn take(
        &self,
        engine: &mut E,
        table: &E::Table,
        source: &D::Source,
        changed: &[D::Change],
    ) -> Result<(), Outgrown> {
        engine.take(table, source, changed)
    }

    /// Stands for [`Engine::patch`].
    fn patch(
        &self,
        engine: &mut E,
        table: &E::Table,
        source: &D::Source,
        changed: &[D::Change],
    ) -> Result<Patch, Outgrown> {
        engine.patch(table, source, changed)
    }

    /// Stands for [`Engine::unpublished`].
    fn unpublished(&self, engine: &mut E) {
        engine.unpublished();
    }

    /// Stands for [`Table::from_image`].
    fn open(&self, image: Image) -> Result<E::Table, ImageError> {
        E::Table::from_image(image)
    }

    /// Stands for [`Table::check`].
    fn check(&self, table: &E::Table, patch: &Patch) -> Result<(), PatchError> {
        table.check(patch)
    }

    /// Stands for [`Lookup::lookup`].
    fn lookup(&self, table: &E::Table, key: D::Key<'_>) -> D::Found {
        table.lookup(key)
    }

    /// Stands for [`Lookup::lookup_batch`]: each key singly.
    fn lookup_batch(&self, table: &E::Table, keys: D::Keys<'_>, results: &mut [D::Result]) {
        for (at, result) in results.iter_mut().enumerate() {
            *result = S::result(self.lookup(table, S::key(keys, at)));
        }
    }

    /// Stands for [`Lookup::match_batch`]: each key singly.
    fn match_batch(&self, table: &E::Table, keys: D::Keys<'_>, found: &mut [D::Found]) {
        for (at, found) in found.iter_mut().enumerate() {
            *found = self.lookup(table, S::key(keys, at));
        }
    }

    /// Stands for [`Lookup::par_lookup_batch`].
    fn par_lookup_batch(&self, table: &E::Table, keys: D::Keys<'_>, results: &mut [D::Result]) {
        self.lookup_batch(table, keys, results);
    }

    /// Stands for [`Lookup::explain`]. The last step tells what the lookup finds.
    fn explain(&self, table: &E::Table, key: D::Key<'_>) -> Vec<Step> {
        let mut steps = table.explain(key);
        let last = steps.last_mut().expect("a lookup reads something");
        last.meaning = S::say(S::result(self.lookup(table, key)));
        steps
    }
}

/// No fault.
struct Flawless;

impl<D: Domain, S: Suite<D> + 'static, E: Engine<D>> Fault<D, S, E> for Flawless {}

type AFault<D, S, E> = &'static dyn Fault<D, S, E>;

thread_local! {
    /// The fault of what this thread builds and opens, an [`AFault`].
    static FAULT: RefCell<Option<Box<dyn Any>>> = const { RefCell::new(None) };
}

/// The fault of this thread: none where another domain's, or no fault, is set.
fn fault<D: Domain, S: Suite<D> + 'static, E: Engine<D>>() -> AFault<D, S, E> {
    let fault = |fault: &Option<Box<dyn Any>>| fault.as_ref()?.downcast_ref::<AFault<D, S, E>>().copied();
    FAULT.with_borrow(fault).unwrap_or(&Flawless)
}

/// Runs a test of a suite with a fault that it has to find, and say so in these words.
pub fn must_fail<D: Domain, S: Suite<D> + 'static, E: Engine<D>>(
    expected: &str,
    fault: &'static dyn Fault<D, S, E>,
    test: impl FnOnce(),
) {
    FAULT.set(Some(Box::new(fault)));
    rounds::must_fail(expected, test);
    FAULT.set(None);
}

/// An engine with a fault; none outside [`must_fail`].
pub struct Faulty<D: Domain, S: Suite<D> + 'static, E: Engine<D>>(E, AFault<D, S, E>);

/// Its table.
pub struct FaultyTable<D: Domain, S: Suite<D> + 'static, E: Engine<D>>(E::Table, AFault<D, S, E>);

impl<D: Domain, S: Suite<D> + 'static, E: Engine<D>> fmt::Debug for Faulty<D, S, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Faulty")
    }
}

impl<D: Domain, S: Suite<D> + 'static, E: Engine<D>> fmt::Debug for FaultyTable<D, S, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FaultyTable")
    }
}

impl<D: Domain, S: Suite<D> + 'static, E: Engine<D>> Clone for FaultyTable<D, S, E> {
    fn clone(&self) -> Self {
        Self(self.0.clone(), self.1)
    }
}

impl<D: Domain, S: Suite<D> + 'static, E: Engine<D>> Engine<D> for Faulty<D, S, E> {
    const NAME: &'static str = E::NAME;
    const STANDING: Standing = E::STANDING;
    const HEAD_ROOM: u32 = E::HEAD_ROOM;
    const LATER_HEAD_ROOM: u32 = E::LATER_HEAD_ROOM;
    type Table = FaultyTable<D, S, E>;

    fn build(source: &D::Source, options: &BuildOptions) -> Result<(Self, Self::Table), BuildError> {
        let fault = fault();
        let (engine, table) = fault.build(source, options)?;
        Ok((Self(engine, fault), FaultyTable(table, fault)))
    }

    fn take(
        &mut self,
        table: &Self::Table,
        source: &D::Source,
        changed: &[D::Change],
    ) -> Result<(), Outgrown> {
        self.1.take(&mut self.0, &table.0, source, changed)
    }

    fn patch(
        &mut self,
        table: &Self::Table,
        source: &D::Source,
        changed: &[D::Change],
    ) -> Result<Patch, Outgrown> {
        self.1.patch(&mut self.0, &table.0, source, changed)
    }

    fn unpublished(&mut self) {
        self.1.unpublished(&mut self.0);
    }

    fn memory_usage(&self) -> u64 {
        self.0.memory_usage()
    }
}

impl<D: Domain, S: Suite<D> + 'static, E: Engine<D>> Table for FaultyTable<D, S, E> {
    const KIND: &'static str = E::Table::KIND;
    const LAYOUT: u32 = E::Table::LAYOUT;

    fn from_image(image: Image) -> Result<Self, ImageError> {
        let fault = fault();
        Ok(Self(fault.open(image)?, fault))
    }

    fn image(&self) -> &Image {
        self.0.image()
    }

    fn image_mut(&mut self, checked: Checked) -> &mut Image {
        self.0.image_mut(checked)
    }

    fn admits(&self, section: SectionId, value: u64, results: u64) -> bool {
        self.0.admits(section, value, results)
    }

    fn check(&self, patch: &Patch) -> Result<(), PatchError> {
        self.1.check(&self.0, patch)
    }
}

impl<D: Domain, S: Suite<D> + 'static, E: Engine<D>> Lookup<D> for FaultyTable<D, S, E> {
    fn lookup(&self, key: D::Key<'_>) -> D::Found {
        self.1.lookup(&self.0, key)
    }

    fn lookup_batch(&self, keys: D::Keys<'_>, results: &mut [D::Result]) {
        self.1.lookup_batch(&self.0, keys, results);
    }

    fn match_batch(&self, keys: D::Keys<'_>, found: &mut [D::Found]) {
        self.1.match_batch(&self.0, keys, found);
    }

    fn par_lookup_batch(&self, keys: D::Keys<'_>, results: &mut [D::Result]) {
        self.1.par_lookup_batch(&self.0, keys, results);
    }

    fn explain(&self, key: D::Key<'_>) -> Vec<Step> {
        self.1.explain(&self.0, key)
    }
}

/// Writes faults, each of which replaces some methods of [`Fault`], and a module `each_fails` with a test for
/// each fault and each function of the suite that must see it. First come the trait and the types that these
/// functions take. Words behind a function are part of what it must say:
/// `faults! { Fault<V4, OfRoutes, MyEngine>, [V4, Faulty]; /// … NoDefault: images = "right is" => { fn … } }`.
#[macro_export]
macro_rules! faults {
    (@run $test:ident, [$($of:ty),+]) => { super::super::$test::<$($of),+> };
    ($fault:path, $of:tt;
     $($(#[doc = $doc:literal])+ $name:ident: $($test:ident $(= $message:literal)?),+ => { $($method:item)* })+) => {
        $(
            $(#[doc = $doc])+
            struct $name;
            impl $fault for $name { $($method)* }
        )+
        /// Each fault is seen by each of the tests that are to see it.
        mod each_fails {
            $(
                #[allow(non_snake_case)]
                mod $name {
                    #[allow(unused_imports)]
                    use super::super::*;

                    $(
                        #[test]
                        fn $test() {
                            let fault: &'static dyn $fault = &super::super::$name;
                            let test = $crate::faults!(@run $test, $of);
                            $crate::conformance::must_fail(concat!($($message)?), fault, test);
                        }
                    )+
                }
            )+
        }
    };
}
