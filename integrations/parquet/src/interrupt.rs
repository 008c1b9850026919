//! Ctrl-C and SIGTERM: they end the work, and the unfinished file is removed.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use anyhow::{Context, Result};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

/// The signal that came, or 0.
static SIGNAL: OnceLock<Arc<AtomicUsize>> = OnceLock::new();

/// The work was interrupted.
#[derive(Debug)]
pub(crate) struct Interrupted;

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("interrupted")
    }
}

impl std::error::Error for Interrupted {}

/// Makes signals end the work from now on, and no longer the process.
pub(crate) fn await_signals() -> Result<()> {
    let signal = SIGNAL.get_or_init(Arc::default);
    for number in [SIGINT, SIGTERM] {
        let value = usize::try_from(number)?;
        flag::register_usize(number, Arc::clone(signal), value).context("signals can't be awaited")?;
    }
    Ok(())
}

/// Fails after a signal.
pub(crate) fn check() -> Result<(), Interrupted> {
    if signal() == 0 { Ok(()) } else { Err(Interrupted) }
}

/// The exit status after a signal: 128 and its number, as in shells.
pub(crate) fn status() -> u8 {
    u8::try_from(128 + signal()).unwrap_or(u8::MAX)
}

fn signal() -> usize {
    SIGNAL.get().map_or(0, |signal| signal.load(Ordering::Relaxed))
}
