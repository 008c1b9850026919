//! Ctrl-C while something is measured: the measurement ends, and what there is of it is told.
//!
//! Before that and after it Ctrl-C ends the process as it ends any other. A second one always does.

use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

static MEASURING: AtomicBool = AtomicBool::new(false);
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// The exit status of what Ctrl-C has ended, as shells have it: 128 and the signal's number.
pub(crate) const STATUS: u8 = 130;

/// A measurement that may be interrupted, as long as this lives.
pub(crate) struct Measuring(());

impl Measuring {
    /// Makes Ctrl-C ask to end it from here on.
    pub(crate) fn begin() -> Self {
        static HANDLER: Once = Once::new();
        // Without a handler Ctrl-C ends the process, as before.
        HANDLER.call_once(|| drop(ctrlc::set_handler(on_signal)));
        MEASURING.store(true, Ordering::SeqCst);
        Self(())
    }
}

impl Drop for Measuring {
    fn drop(&mut self) {
        MEASURING.store(false, Ordering::SeqCst);
    }
}

/// Ctrl-C came before there was anything to tell: before this.
#[derive(Debug)]
pub(crate) struct Interrupted(pub(crate) &'static str);

impl std::fmt::Display for Interrupted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "interrupted before {}", self.0)
    }
}

impl std::error::Error for Interrupted {}

/// Whether Ctrl-C has ended a measurement.
#[inline]
pub(crate) fn is_interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

fn on_signal() {
    let was_interrupted = INTERRUPTED.swap(true, Ordering::SeqCst);
    if was_interrupted || !MEASURING.load(Ordering::SeqCst) {
        std::process::exit(i32::from(STATUS));
    }
}
