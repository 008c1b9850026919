//! [`Stop`]: the end of readers in tests.

use std::sync::atomic::{AtomicBool, Ordering};

/// A guard that tells threads to stop when it is dropped, also by a panic. A test's writer holds it while
/// readers on other threads go on until the flag is set: without it a writer that fails would wait for them
/// for ever.
#[derive(Debug)]
pub struct Stop<'s>(pub &'s AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
