//! Ctrl-C during a measurement: the measurement ends, and its results so far are printed.
//!
//! Before and after a measurement Ctrl-C ends the process as usual. A second Ctrl-C always ends it.

use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

static MEASURING: AtomicBool = AtomicBool::new(false);
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// The exit status after Ctrl-C: 128 and the signal's number, as in shells.
pub(crate) const STATUS: u8 = 130;

/// A measurement that Ctrl-C ends early. It lasts until this is dropped.
pub(crate) struct Measuring(());

impl Measuring {
    /// Makes Ctrl-C end the measurement from now on.
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

/// Ctrl-C came before there was a result. The text names the stage.
#[derive(Debug)]
pub(crate) struct Interrupted(pub(crate) &'static str);

impl std::fmt::Display for Interrupted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "interrupted before {}", self.0)
    }
}

impl std::error::Error for Interrupted {}

/// Whether Ctrl-C ended a measurement.
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
