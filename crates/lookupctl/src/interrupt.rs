//! Signals that end a run: Ctrl-C, and SIGTERM, by which `kill` and systemd ask a process to end.
//!
//! While a run lasts, the first of them ends it in good order: its results so far are printed, a router lets
//! its frames out, an unfinished file goes. A second one ends the process at once, and so does the first one
//! before and after a run.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

/// The signal that came, or 0.
static SIGNAL: OnceLock<Arc<AtomicUsize>> = OnceLock::new();
/// Whether a signal ends the process at once.
static ENDS: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// A run that a signal ends early. It lasts until this is dropped.
pub(crate) struct Running(());

impl Running {
    /// Makes signals end the run from now on.
    pub(crate) fn begin() -> Self {
        let ends = ENDS.get_or_init(Arc::default);
        SIGNAL.get_or_init(|| {
            let signal = Arc::default();
            // Without a handler a signal ends the process, as before.
            let _ = [SIGINT, SIGTERM].iter().try_for_each(|&number| await_signal(number, &signal, ends));
            signal
        });
        ends.store(signal() != 0, Ordering::SeqCst);
        Self(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        ENDS.get_or_init(Arc::default).store(true, Ordering::SeqCst);
    }
}

/// Says what a signal does, in this order.
fn await_signal(number: i32, signal: &Arc<AtomicUsize>, ends: &Arc<AtomicBool>) -> std::io::Result<()> {
    flag::register_conditional_shutdown(number, status_of(number), Arc::clone(ends))?;
    flag::register_usize(number, Arc::clone(signal), usize::try_from(number).unwrap_or_default())?;
    flag::register(number, Arc::clone(ends))?;
    Ok(())
}

/// 128 and the signal's number, as in shells.
const fn status_of(signal: i32) -> i32 {
    128 + signal
}

/// A signal came before there was a result. The text names the stage.
#[derive(Debug)]
pub(crate) struct Interrupted(pub(crate) &'static str);

impl std::fmt::Display for Interrupted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "interrupted before {}", self.0)
    }
}

impl std::error::Error for Interrupted {}

/// Whether a signal ended a run.
#[inline]
pub(crate) fn is_interrupted() -> bool {
    signal() != 0
}

/// The exit status after a signal: 130 after Ctrl-C, 143 after SIGTERM.
pub(crate) fn status() -> u8 {
    i32::try_from(signal()).ok().and_then(|signal| u8::try_from(status_of(signal)).ok()).unwrap_or(u8::MAX)
}

#[inline]
fn signal() -> usize {
    SIGNAL.get().map_or(0, |signal| signal.load(Ordering::Relaxed))
}
