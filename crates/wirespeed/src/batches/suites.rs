//! The suites of all domains over [`Batches`]: engines whose tables have batches filled and answered in
//! place, on the kernels' host build or, with `WIRESPEED_TEST_DEVICE=cuda`, on the first GPU.
//!
//! Batches are filled in each way, by turns. So keys are packed as they come, in the form of the table's
//! state, leave a slot that has no room for them, and are packed anew after patches that ask for wider keys
//! or results.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use wirespeed_classify::quilt::Quilt;
use wirespeed_classify::tuple_search::TupleSearch;
use wirespeed_classify::{Ipv4Tuple, Ipv6Tuple, OpenFlow13Tuple, OpenFlowTuple, RuleSet};
use wirespeed_fib::{Address, Rib, V4, V6};
use wirespeed_fold::{FoldHot, FoldV4, FoldV6};
use wirespeed_forest::ForestOf;
use wirespeed_image::device::OnDevice;
use wirespeed_image::{Checked, Image, ImageError, Outgrown, Patch, PatchError, SectionId, Step, rounds};
use wirespeed_kernels_host::{HostDriver, Sanitizers};
use wirespeed_namelookup::{Acta, NameDomain};
use wirespeed_rank::Rank;
use wirespeed_table::conformance::Suite;
use wirespeed_table::{BuildError, BuildOptions, Companion, Domain, Engine, Keys, Lookup, Model, Standing};
use wirespeed_waldvogel::Waldvogel;

use super::Batches;
use crate::classify::Facts;
use crate::common::ReaderCore;
use crate::engine::{Served, of_kind};
use crate::gpu::dispatch::{Meter, Use};
use crate::gpu::ip::open_all;
use crate::gpu::offload::{Offload, RemoteTable};
use crate::gpu::runtime::{Fleet, Gpu, GpuOptions, SlotSize};

/// A domain whose suite runs here.
trait Tried: Served {
    /// The data beside a table.
    fn beside() -> Self::Beside;

    /// The number of leading bits of a key that lookups depend on.
    fn reach(source: &Self::Source) -> u8 {
        let _ = source;
        0
    }
}

impl Tried for V4 {
    fn beside() {}

    fn reach(rib: &Rib<V4>) -> u8 {
        Model::reach(rib)
    }
}

impl Tried for V6 {
    fn beside() {}

    fn reach(rib: &Rib<V6>) -> u8 {
        Model::reach(rib)
    }
}

impl Tried for NameDomain {
    fn beside() {}
}

macro_rules! tried {
    ($($tuple:ty)+) => {$(
        impl Tried for $tuple {
            fn beside() -> Self::Beside {
                Companion::of(&RuleSet::<$tuple>::new(), Facts::None)
            }
        }
    )+};
}

tried!(Ipv4Tuple Ipv6Tuple OpenFlowTuple OpenFlow13Tuple);

/// The device of this thread, with small slots; `None` where there is none.
fn fleet<D: Served>() -> Option<Fleet> {
    let slots = vec![SlotSize { slots: 4, keys: 1 << 10 }, SlotSize { slots: 2, keys: 1 << 13 }];
    let options = GpuOptions { slots, timeout: Duration::from_secs(60), ..D::gpu_options() };
    if is_gpu() {
        return Some(open_all(&options).expect("a GPU was asked for"));
    }
    let driver = HostDriver::for_tests(Sanitizers::Off)?;
    Some(Fleet::new(vec![Gpu::start(Box::new(driver), options).expect("it starts")]).expect("there is one"))
}

fn is_gpu() -> bool {
    std::env::var_os("WIRESPEED_TEST_DEVICE").is_some_and(|device| device == "cuda")
}

/// The device of a test.
#[derive(Clone)]
struct Device {
    fleet: Fleet,
    /// Batches that it answered.
    answered: Arc<AtomicUsize>,
}

thread_local! {
    /// The device of the test that runs on this thread.
    static DEVICE: RefCell<Option<Device>> = const { RefCell::new(None) };
}

/// An engine whose tables have batches filled in place.
struct InBatches<E, S> {
    engine: E,
    reach: Arc<AtomicU8>,
    suite: PhantomData<fn() -> S>,
}

/// A table that answers batches by [`Batches`] of a copy on the device.
struct InBatchesTable<D: Served, T, S> {
    table: T,
    reach: Arc<AtomicU8>,
    device: Option<Device>,
    /// The copy, and the source of batches of this state.
    copy: Mutex<Copied<D>>,
    has_answered: AtomicBool,
    suite: PhantomData<fn() -> S>,
}

type Copied<D> = Option<(<D as Served>::Remote, Option<Batches<D>>)>;

impl<D: Tried, T: OnDevice + Lookup<D>, S: Suite<D>> InBatchesTable<D, T, S> {
    fn new(table: T, reach: Arc<AtomicU8>, device: Option<Device>) -> Self {
        let (copy, has_answered) = (Mutex::new(None), AtomicBool::new(false));
        Self { table, reach, device, copy, has_answered, suite: PhantomData }
    }

    /// Batches of the state, on a copy that is uploaded by the first keys.
    fn batches(&self, keys: D::Keys<'_>, fleet: &Fleet) -> Batches<D> {
        let mut copy = self.copy.lock().unwrap_or_else(PoisonError::into_inner);
        let (remote, batches) = copy.get_or_insert_with(|| {
            // A sample of no names or tuples measures nothing.
            let none = keys.part(0..0);
            let hint = D::key_hint(none, self.reach.load(Ordering::Relaxed));
            (D::Remote::upload(fleet, &self.table, hint).expect("it is uploaded"), None)
        });
        let batches = batches.get_or_insert_with(|| {
            let image = self.table.image().clone();
            let engine = of_kind::<D>(image.kind()).expect("the engine is of the domain");
            let core = ReaderCore::open(engine, ("state".into(), image), D::beside()).expect("it is valid");
            let meter = Meter::measured(1, 1, Duration::from_micros(1));
            Batches::new(core.on(Offload::new(remote.clone(), Use::Always, meter)))
        });
        batches.clone()
    }

    /// Looks keys up in place. They are added in one of three ways.
    fn look_up(&self, keys: D::Keys<'_>, results: &mut [D::Result], turn: usize) {
        let Some(device) = &self.device else { return self.table.lookup_batch(keys, results) };
        let batches = self.batches(keys, &device.fleet);
        let mut batch = batches.batch(keys.len()).expect("no batch is out");
        let each = || (0..keys.len()).map(|at| S::key(keys, at));
        match turn % 3 {
            0 => each().for_each(|key| batch.push(key).expect("there is room")),
            1 => assert_eq!(batch.extend(each()), keys.len()),
            _ => {
                // Across the bounds of groups.
                let (one, other) = (keys.part(0..keys.len() / 3), keys.part(keys.len() / 3..keys.len()));
                assert_eq!(batch.extend_from(one) + batch.extend_from(other), keys.len());
            }
        }
        let answers = batch.submit().wait();
        device.answered.fetch_add(answers.is_from_gpu().into(), Ordering::Relaxed);
        let mut found = vec![D::Answer::default(); keys.len()];
        answers.copy_to(&mut found);
        results.copy_from_slice(D::results(&mut found));
    }
}

impl<D: Tried, T: OnDevice + Lookup<D>, S: Suite<D> + 'static> Lookup<D> for InBatchesTable<D, T, S> {
    fn lookup(&self, key: D::Key<'_>) -> D::Found {
        self.table.lookup(key)
    }

    fn lookup_batch(&self, keys: D::Keys<'_>, results: &mut [D::Result]) {
        assert_eq!(keys.len(), results.len());
        static TURN: AtomicUsize = AtomicUsize::new(0);
        let turn = TURN.fetch_add(1, Ordering::Relaxed);
        let is_first = !self.has_answered.swap(true, Ordering::Relaxed);
        // Suites have very many short batches.
        match is_first || keys.len() >= 128 || turn.is_multiple_of(16) {
            true => self.look_up(keys, results, turn),
            false => self.table.lookup_batch(keys, results),
        }
    }

    fn match_batch(&self, keys: D::Keys<'_>, found: &mut [D::Found]) {
        self.table.match_batch(keys, found);
    }

    fn explain(&self, key: D::Key<'_>) -> Vec<Step> {
        self.table.explain(key)
    }
}

impl<D: Tried, T: OnDevice + Lookup<D>, S: Suite<D> + 'static> Clone for InBatchesTable<D, T, S> {
    fn clone(&self) -> Self {
        Self::new(self.table.clone(), Arc::clone(&self.reach), self.device.clone())
    }
}

impl<D: Tried, T: OnDevice + Lookup<D>, S: Suite<D> + 'static> wirespeed_image::Table
    for InBatchesTable<D, T, S>
{
    const KIND: &'static str = T::KIND;
    const LAYOUT: u32 = T::LAYOUT;

    fn from_image(image: Image) -> Result<Self, ImageError> {
        // Nothing tells how long its prefixes are.
        let reach = Arc::new(AtomicU8::new(V6::BITS));
        Ok(Self::new(T::from_image(image)?, reach, DEVICE.with_borrow(Clone::clone)))
    }

    fn image(&self) -> &Image {
        self.table.image()
    }

    fn image_mut(&mut self, checked: Checked) -> &mut Image {
        *self.copy.get_mut().unwrap_or_else(PoisonError::into_inner) = None;
        self.table.image_mut(checked)
    }

    fn admits(&self, section: SectionId, value: u64, results: u64) -> bool {
        self.table.admits(section, value, results)
    }

    fn admits_at(&self, section: SectionId, index: u64, value: u64, results: u64) -> bool {
        self.table.admits_at(section, index, value, results)
    }

    fn check(&self, patch: &Patch) -> Result<(), PatchError> {
        self.table.check(patch)
    }

    fn apply(&mut self, patch: &Patch) -> Result<(), PatchError> {
        self.table.apply(patch)?;
        *self.has_answered.get_mut() = false;
        if let Some((remote, batches)) = self.copy.get_mut().unwrap_or_else(PoisonError::into_inner) {
            remote.reach(self.reach.load(Ordering::Relaxed));
            remote.patch(patch);
            *batches = None;
        }
        Ok(())
    }
}

impl<D, E, S> Engine<D> for InBatches<E, S>
where
    D: Tried,
    E: Engine<D, Table: OnDevice>,
    S: Suite<D> + 'static,
{
    const NAME: &'static str = E::NAME;
    const STANDING: Standing = E::STANDING;
    const HEAD_ROOM: u32 = E::HEAD_ROOM;
    const LATER_HEAD_ROOM: u32 = E::LATER_HEAD_ROOM;

    type Table = InBatchesTable<D, E::Table, S>;

    fn build(source: &D::Source, options: &BuildOptions) -> Result<(Self, Self::Table), BuildError> {
        let (engine, table) = E::build(source, options)?;
        let reach = Arc::new(AtomicU8::new(D::reach(source)));
        let table = InBatchesTable::new(table, Arc::clone(&reach), DEVICE.with_borrow(Clone::clone));
        Ok((Self { engine, reach, suite: PhantomData }, table))
    }

    fn take(
        &mut self,
        table: &Self::Table,
        source: &D::Source,
        changed: &[D::Change],
    ) -> Result<(), Outgrown> {
        self.engine.take(&table.table, source, changed)
    }

    fn patch(
        &mut self,
        table: &Self::Table,
        source: &D::Source,
        changed: &[D::Change],
    ) -> Result<Patch, Outgrown> {
        self.reach.fetch_max(<D as Domain>::Model::reach_of(changed), Ordering::Relaxed);
        self.engine.patch(&table.table, source, changed)
    }

    fn grow(
        &mut self,
        table: &Self::Table,
        source: &D::Source,
        options: &BuildOptions,
    ) -> Option<Self::Table> {
        let grown = self.engine.grow(&table.table, source, options)?;
        Some(InBatchesTable::new(grown, Arc::clone(&self.reach), table.device.clone()))
    }

    fn unpublished(&mut self) {
        self.engine.unpublished();
    }

    fn memory_usage(&self) -> u64 {
        self.engine.memory_usage()
    }
}

/// Runs a part of a suite on a device, if there is one.
fn on_device<D: Served>(part: impl FnOnce()) {
    // Each table is measured anew when it comes to a device.
    if std::env::var_os("WIRESPEED_TEST_WHOLE").is_none() {
        rounds::go_through_one_in(16);
    }
    let Some(fleet) = fleet::<D>() else { return };
    let answered = Arc::new(AtomicUsize::new(0));
    DEVICE.set(Some(Device { fleet, answered: Arc::clone(&answered) }));
    part();
    DEVICE.set(None);
    assert!(answered.load(Ordering::Relaxed) > 0, "the device answered");
}

/// Writes tests for engines: parts of their domain's suite. Suites of addresses and rules take the type of
/// keys, too.
macro_rules! in_batches {
    ($($module:ident: $domain:ty, ($($keys:ty)?), $suite:path, $of:ident, $engine:ty;)+ => $parts:tt) => {
        $(mod $module {
            use super::*;
            use $suite as suite;

            type Tested = InBatches<$engine, suite::$of>;

            in_batches! { @ ($domain) ($($keys)?) $parts }
        })+
    };
    (@ $domain:tt $keys:tt [$($part:ident)+]) => {
        $(in_batches! { # $domain $keys $part })+
    };
    (# ($domain:ty) ($($keys:ty)?) $part:ident) => {
        #[test]
        fn $part() {
            on_device::<$domain>(suite::$part::<$($keys,)? Tested>);
        }
    };
}

in_batches! {
    fold_v4: V4, (V4), wirespeed_fib::conformance, OfRoutes, FoldV4;
    forest_v6: V6, (V6), wirespeed_fib::conformance, OfRoutes, ForestOf<V6>;
    => [hand_picked_tables random_tables random_updates live_readers]
}

in_batches! {
    acta: NameDomain, (), wirespeed_namelookup::conformance, OfNames, Acta;
    => [hand_picked_tables random_tables random_updates live_readers hostile_names]
}

in_batches! {
    quilt_ipv4: Ipv4Tuple, (Ipv4Tuple), wirespeed_classify::conformance, OfRules, Quilt<Ipv4Tuple>;
    tuple_search_ipv6: Ipv6Tuple, (Ipv6Tuple), wirespeed_classify::conformance, OfRules, TupleSearch<Ipv6Tuple>;
    quilt_openflow: OpenFlowTuple, (OpenFlowTuple), wirespeed_classify::conformance, OfRules, Quilt<OpenFlowTuple>;
    => [hand_picked_sets random_sets random_updates live_readers hostile_rules]
}

// Engines whose batches differ from those above in their tables alone.
in_batches! {
    fold_hot: V4, (V4), wirespeed_fib::conformance, OfRoutes, FoldHot;
    fold_v6: V6, (V6), wirespeed_fib::conformance, OfRoutes, FoldV6;
    rank: V4, (V4), wirespeed_fib::conformance, OfRoutes, Rank;
    waldvogel_v6: V6, (V6), wirespeed_fib::conformance, OfRoutes, Waldvogel<V6>;
    => [hand_picked_tables random_updates]
}

in_batches! {
    quilt_openflow13: OpenFlow13Tuple, (OpenFlow13Tuple), wirespeed_classify::conformance, OfRules, Quilt<OpenFlow13Tuple>;
    => [hand_picked_sets random_updates]
}
