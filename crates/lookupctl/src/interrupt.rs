//! Signals that end a run: Ctrl-C, and SIGTERM, by which `kill` and systemd ask a process to end.
//!
//! While a run lasts, the first of them ends it in good order: its results so far are printed, a router lets
//! its frames out, an unfinished file goes. A second one ends the process at once, and so does the first one
//! before and after a run.

use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

/// What the handlers of signals set. Made when the first run begins.
static SIGNALS: OnceLock<Signals> = OnceLock::new();

#[derive(Default)]
struct Signals {
    /// The signal that came, or 0.
    came: Arc<AtomicUsize>,
    /// Whether a signal ends the process at once.
    ends: Arc<AtomicBool>,
}

impl Signals {
    /// Says what a signal does, in this order.
    fn handle(&self, signal: i32) -> std::io::Result<()> {
        flag::register_conditional_shutdown(signal, status_of(signal), Arc::clone(&self.ends))?;
        flag::register_usize(signal, Arc::clone(&self.came), usize::try_from(signal).unwrap_or_default())?;
        flag::register(signal, Arc::clone(&self.ends))?;
        Ok(())
    }
}

/// A run that a signal ends early. It lasts until this is dropped.
pub(crate) struct Running(&'static Signals);

impl Running {
    /// Makes signals end the run from now on.
    pub(crate) fn begin() -> Self {
        let signals = SIGNALS.get_or_init(|| {
            let signals = Signals::default();
            // Without a handler a signal ends the process, as before.
            let _ = [SIGINT, SIGTERM].into_iter().try_for_each(|signal| signals.handle(signal));
            signals
        });
        signals.ends.store(is_interrupted(), Ordering::SeqCst);
        Self(signals)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.ends.store(true, Ordering::SeqCst);
    }
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

/// A writer that fails once a signal came.
pub(crate) struct UntilSignal<'w>(pub(crate) &'w mut dyn Write);

impl Write for UntilSignal<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if is_interrupted() {
            return Err(std::io::Error::other("a signal came"));
        }
        self.0.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

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
    SIGNALS.get().map_or(0, |signals| signals.came.load(Ordering::Relaxed))
}
