//! Stands in for `wirespeed-gpu` if the feature `gpu` is off. It has the same names, so that tables, builders
//! and readers are the same in every build. Opening GPUs fails with a [`GpuError`] that names the feature.
//! There is no value of [`Fleet`](runtime::Fleet) or of a table on GPUs, so code that needs one never runs.

/// GPUs were asked for, and this build leaves them out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this build leaves GPUs out: they need the feature `gpu`")]
#[non_exhaustive]
pub struct GpuError;

/// Devices that batches may go to.
pub mod dispatch {
    use std::time::Duration;

    /// Numbers of keys that each device looked up.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Counts {
        /// Keys that the CPU looked up.
        pub cpu: u64,
        /// Keys that GPUs looked up.
        pub gpu: u64,
        /// The reasons for which the CPU looked its keys up.
        pub why_cpu: Reasons,
    }

    /// Numbers of keys that the CPU looked up, by reason.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Reasons {
        /// The CPU was the faster device.
        pub faster_cpu: u64,
        /// Feeding a GPU would have taken as long as looking up.
        pub vain_feeding: u64,
        /// No slot was free.
        pub no_slot: u64,
        /// The GPUs are out of use.
        pub failed: u64,
    }

    /// The reason why the CPU looks a batch up.
    #[derive(Clone, Copy, Debug)]
    pub enum Why {
        /// The CPU is the faster device.
        FasterCpu,
        /// The GPUs are out of use.
        Failed,
    }

    /// The choice of a device for each batch.
    #[derive(Clone, Copy, Debug, PartialEq, Default)]
    pub struct Policy {
        /// The latency bound of a batch. Without a bound a batch goes where it is answered soonest.
        pub latency_bound: Option<Duration>,
    }

    /// Devices that batches may go to.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub enum Use {
        /// A GPU, always.
        Always,
        /// The device that answers soonest, or as the latency bound demands.
        ByLoad(Policy),
    }

    /// The cost of lookups on the CPU.
    #[derive(Debug)]
    pub struct Meter(());

    impl Meter {
        /// Makes a meter for a number of threads, from the time that a batch of some keys took.
        pub fn measured(_: usize, _: usize, _: Duration) -> Self {
            Self(())
        }
    }
}

/// Devices.
pub mod runtime {
    /// GPUs that work side by side. There are none.
    #[derive(Clone, Debug)]
    pub enum Fleet {}

    impl Fleet {
        /// The number of keys that the largest slot of every device holds.
        pub fn largest_batch(&self) -> usize {
            match *self {}
        }
    }

    /// A batch under way. There is none.
    #[derive(Debug)]
    pub enum Ticket {}

    impl Ticket {
        /// Whether the batch has come back.
        pub fn is_done(&self) -> bool {
            match *self {}
        }
    }

    /// A batch that has come back. There is none.
    #[derive(Debug)]
    pub enum Done {}

    impl Done {
        /// The results.
        pub fn results(&self) -> Result<&[u8], &super::GpuError> {
            match *self {}
        }

        /// Bytes of a result.
        pub fn result_bytes(&self) -> usize {
            match *self {}
        }
    }

    /// Slots of one size.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct SlotSize {
        /// The number of slots.
        pub slots: usize,
        /// The number of keys in a slot.
        pub keys: usize,
    }

    /// Options to start a device with.
    #[derive(Clone, Debug, Default)]
    pub struct GpuOptions {
        /// The slots.
        pub slots: Vec<SlotSize>,
        /// Bytes of the widest key.
        pub key_bytes: usize,
        /// Bytes of the widest result.
        pub result_bytes: usize,
        /// The most bytes of device memory that may be used.
        pub memory_cap: Option<u64>,
    }
}

/// Tables on GPUs beside the CPU's.
pub mod offload {
    use std::fmt;
    use std::marker::PhantomData;

    use wirespeed_image::device::OnDevice;
    use wirespeed_image::live::Follower;
    use wirespeed_image::{Patch, Table};
    use wirespeed_table::Domain;

    use super::GpuError;
    use super::dispatch::{Counts, Meter, Use, Why};
    use super::runtime::{Done, Fleet, Ticket};

    /// Keys that were sent. There are none.
    #[derive(Debug)]
    pub enum Sent {
        /// Keys in one slot.
        Slot(Ticket),
        /// Keys that no slot holds.
        Parts(Parts),
    }

    impl Sent {
        /// Whether the keys have come back.
        pub fn is_done(&self) -> bool {
            match self {
                Self::Slot(ticket) => ticket.is_done(),
                Self::Parts(parts) => match *parts {},
            }
        }
    }

    /// Keys that go in parts. There are none.
    #[derive(Debug)]
    pub enum Parts {}

    /// A table on GPUs, and the keys that it takes.
    pub trait RemoteTable: Clone + Send + Sync + 'static {
        /// The domain of the table.
        type Domain: Domain;

        /// A hint about future keys, given when a table is copied to GPUs.
        type KeyHint<'k>: Copy;

        /// Shows that there is no such table.
        fn never(&self) -> !;

        /// Copies a table to all GPUs.
        fn upload<T: OnDevice>(fleet: &Fleet, _: &T, _: Self::KeyHint<'_>) -> Result<Self, GpuError> {
            match *fleet {}
        }

        /// The GPUs that hold the table.
        fn copies(&self) -> &Copies {
            self.never()
        }

        /// Says that lookups will never depend on more leading bits of a key than now.
        fn fix_reach(&self) {
            self.never()
        }

        /// The follower that keeps the copies in step with a live table.
        fn follower(&self) -> RemoteFollower<Self> {
            self.never()
        }
    }

    /// Keys as a table on GPUs takes them, borrowed.
    pub type KeysOf<'k, T> = <<T as RemoteTable>::Domain as Domain>::Keys<'k>;

    /// The result of a key, as engines of the table's domain give it.
    pub type ResultOf<T> = <<T as RemoteTable>::Domain as Domain>::Result;

    /// A table on GPUs that gives results of some type.
    pub trait Answers<R>: RemoteTable {}

    /// A table on GPUs, whatever its keys are.
    #[derive(Debug)]
    pub enum Copies {}

    impl Copies {
        /// The GPUs.
        pub fn fleet(&self) -> &Fleet {
            match *self {}
        }

        /// The error that took the copies out of use, if they are.
        pub fn is_out(&self) -> Option<GpuError> {
            match *self {}
        }
    }

    /// Passes a live table's changes on to its copy on GPUs.
    pub struct RemoteFollower<R>(R);

    impl<R> fmt::Debug for RemoteFollower<R> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("RemoteFollower")
        }
    }

    impl<R: RemoteTable, T: Table> Follower<T> for RemoteFollower<R> {
        fn patch(&mut self, _: &Patch) {
            self.0.never()
        }

        fn replace(&mut self, _: &T) {
            self.0.never()
        }
    }

    /// A table on GPUs beside the same table on the CPU.
    pub struct Offload<T>(T);

    impl<T> fmt::Debug for Offload<T> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("Offload")
        }
    }

    impl<T: RemoteTable> Offload<T> {
        /// Joins a table on GPUs with the policy and the cost of lookups on the CPU.
        pub fn new(remote: T, _: Use, _: Meter) -> Self {
            Self(remote)
        }

        /// Joins a table, and measures what keys cost a core that feeds a GPU.
        pub fn measured(remote: T, by: Use, meter: Meter, _: KeysOf<'_, T>) -> Self {
            Self::new(remote, by, meter)
        }

        /// The table on GPUs.
        pub const fn remote(&self) -> &T {
            &self.0
        }

        /// Numbers of keys that each device looked up since the start.
        pub fn counts(&self) -> Counts {
            self.0.never()
        }

        /// Looks each key up, and writes its result to the same index of `found`.
        pub fn lookup_batch<'k, R>(
            &self,
            _: KeysOf<'k, T>,
            _: &mut [R],
            _: impl FnOnce(KeysOf<'k, T>, &mut [R]),
        ) where
            T: Answers<R>,
        {
            self.0.never()
        }

        /// Packs and sends keys, if the policy picks a GPU and a slot is free.
        pub fn try_send<R>(&self, _: KeysOf<'_, T>) -> Result<Sent, Why> {
            self.0.never()
        }

        /// Waits for keys that were sent.
        pub fn came<R>(&self, ticket: Ticket, _: KeysOf<'_, T>) -> Option<Done> {
            match ticket {}
        }

        /// Waits for keys that were sent in parts.
        pub fn parts_came<R>(&self, parts: Parts, _: KeysOf<'_, T>, _: &mut [R]) -> Result<(), Why> {
            match parts {}
        }

        /// Waits for a slot that was sent.
        pub fn slot_came<R>(&self, ticket: Ticket, _: &mut Option<Done>) -> bool {
            match ticket {}
        }

        /// Looks `keys` keys up on the CPU.
        pub fn on_cpu(&self, _: usize, _: Why, _: impl FnOnce()) {
            self.0.never()
        }

        /// Looks up keys that are not in the table's form yet.
        pub fn answer<R>(
            &self,
            _: &mut [R],
            _: impl FnOnce(&T, &mut [R]) -> Result<(), GpuError>,
            _: impl FnOnce(&mut [R]),
        ) {
            self.0.never()
        }
    }

    /// Batches of one thread, several under way at once.
    pub struct Pipeline<'o, 'k, T: Answers<R>, R> {
        offload: &'o Offload<T>,
        keys: PhantomData<(KeysOf<'k, T>, R)>,
    }

    impl<T: Answers<R>, R> fmt::Debug for Pipeline<'_, '_, T, R> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("Pipeline")
        }
    }

    impl<'o, 'k, T: Answers<R>, R: Copy + Default> Pipeline<'o, 'k, T, R> {
        /// Makes a pipeline with no batch under way.
        pub const fn new(offload: &'o Offload<T>) -> Self {
            Self { offload, keys: PhantomData }
        }

        /// The number of batches under way.
        pub fn under_way(&self) -> usize {
            self.offload.0.never()
        }

        /// Whether [`next`](Self::next) would not wait.
        pub fn is_ready(&self) -> bool {
            self.offload.0.never()
        }

        /// Sends keys.
        pub fn submit(&mut self, _: KeysOf<'k, T>) {
            self.offload.0.never()
        }

        /// Waits for the oldest batch.
        #[allow(clippy::should_implement_trait)] // it ends and goes on again, as no iterator should
        pub fn next(
            &mut self,
            _: &mut [R],
            _: impl FnOnce(KeysOf<'k, T>, &mut [R]),
        ) -> Option<KeysOf<'k, T>> {
            self.offload.0.never()
        }
    }
}

/// Addresses as keys.
pub mod ip {
    use std::convert::Infallible;
    use std::marker::PhantomData;

    use wirespeed_fib::{Address, NextHop};

    use super::GpuError;
    use super::offload::{Answers, RemoteTable};
    use super::runtime::{Fleet, GpuOptions};

    /// Starts every GPU.
    pub fn open_all(_: &GpuOptions) -> Result<Fleet, GpuError> {
        Err(GpuError)
    }

    /// A table of addresses on GPUs. There is none.
    #[derive(Clone, Debug)]
    pub struct Remote<A>(Infallible, PhantomData<A>);

    /// A table of addresses on GPUs beside the same table on the CPU.
    pub type Offload<A> = super::offload::Offload<Remote<A>>;

    impl<A: Address> Remote<A> {
        /// Looks addresses up.
        pub fn lookup_batch(&self, _: &[A], _: &mut [NextHop]) -> Result<(), GpuError> {
            match self.0 {}
        }
    }

    impl<A: Address> RemoteTable for Remote<A> {
        type Domain = A;
        type KeyHint<'k> = (u8, &'k [A]);

        fn never(&self) -> ! {
            match self.0 {}
        }
    }

    impl<A: Address> Answers<NextHop> for Remote<A> {}
}

/// Names as keys.
#[cfg(feature = "names")]
pub mod names {
    use wirespeed_namelookup::{Match, NameDomain, Names};

    use super::offload::{Answers, RemoteTable};

    /// A table of names on GPUs. There is none.
    #[derive(Clone, Debug)]
    pub enum Remote {}

    impl RemoteTable for Remote {
        type Domain = NameDomain;
        type KeyHint<'k> = Names<'k>;

        fn never(&self) -> ! {
            match *self {}
        }
    }

    impl Answers<u32> for Remote {}
    impl Answers<Match> for Remote {}
}

/// Tuples as keys.
#[cfg(feature = "rules")]
pub mod classify {
    use std::convert::Infallible;
    use std::marker::PhantomData;

    use wirespeed_classify::Tuple;

    use super::GpuError;
    use super::offload::{Answers, RemoteTable};

    /// Rules on GPUs. There are none.
    #[derive(Clone, Debug)]
    pub struct Remote<T>(Infallible, PhantomData<T>);

    impl<T: Tuple> Remote<T> {
        /// Looks tuples up.
        pub fn lookup_batch(&self, _: &[T], _: &mut [u32]) -> Result<(), GpuError> {
            match self.0 {}
        }
    }

    impl<T: Tuple> RemoteTable for Remote<T> {
        type Domain = T;
        type KeyHint<'k> = &'k [T];

        fn never(&self) -> ! {
            match self.0 {}
        }
    }

    impl<T: Tuple> Answers<u32> for Remote<T> {}
}
