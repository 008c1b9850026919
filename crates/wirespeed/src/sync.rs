//! Atomics and locks of the code that readers run without a lock, named in one place: those of the standard
//! library, and in models those of loom.
//!
//! A model is a test in a module `models`. It runs the code of this crate in every order that its threads'
//! steps can have, up to [`PREEMPTIONS`] changes of the thread that no step asks for. Loom also lets a load
//! return each value that the memory model allows. `cargo xtask sanitize loom` runs all models.

#[cfg(not(all(loom, test)))]
pub(crate) use std::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering},
};

#[cfg(all(loom, test))]
pub(crate) use loom::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering},
};

/// The seeds of hashes: random ones. In models they are always the same, because loom goes through a run
/// again and again and expects the steps that it knows.
#[cfg(not(all(loom, test)))]
pub(crate) type Seeds = std::hash::RandomState;
#[cfg(all(loom, test))]
pub(crate) type Seeds = std::hash::BuildHasherDefault<std::hash::DefaultHasher>;

/// Changes of the thread that keep a model to seconds. Faults need one or two, as a rule.
/// `LOOM_MAX_PREEMPTIONS` sets another bound.
#[cfg(all(loom, test))]
const PREEMPTIONS: usize = 2;

/// Runs a model in all orders.
#[cfg(all(loom, test))]
pub(crate) fn model(run: impl Fn() + Send + Sync + 'static) {
    model_within(PREEMPTIONS, run);
}

/// Runs a model in all orders with so many changes of the thread.
#[cfg(all(loom, test))]
pub(crate) fn model_within(preemptions: usize, run: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound.get_or_insert(preemptions);
    builder.max_branches = 100_000;
    builder.check(run);
}
