//! [`guarded`]: calls of the Parquet library, which panics at some damaged files.

use std::any::Any;
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

use anyhow::{Result, anyhow};

thread_local! {
    /// Whether this thread is in a call whose panic becomes an error.
    static IS_GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Makes a call, and turns a panic into an error that has the place and the panic's message. Nothing that the
/// call has changed may be used after an error.
pub(crate) fn guarded<T>(place: impl FnOnce() -> String, call: impl FnOnce() -> Result<T>) -> Result<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let tell = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if !IS_GUARDED.get() {
                tell(panic);
            }
        }));
    });
    IS_GUARDED.set(true);
    let done = panic::catch_unwind(AssertUnwindSafe(call));
    IS_GUARDED.set(false);
    done.unwrap_or_else(|why| {
        Err(anyhow!("{}: a damaged Parquet file, or one that is not read: {}", place(), message(&*why)))
    })
}

fn message(why: &(dyn Any + Send)) -> &str {
    let text = why.downcast_ref::<&str>().copied();
    text.or_else(|| why.downcast_ref::<String>().map(String::as_str)).unwrap_or("no reason is known")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error_with_its_message() {
        let place = || "in".to_owned();
        let error = guarded::<()>(place, || panic!("page {}", 7)).unwrap_err().to_string();
        assert_eq!(error, "in: a damaged Parquet file, or one that is not read: page 7");
        assert!(guarded::<()>(place, || panic!("bits")).unwrap_err().to_string().ends_with(": bits"));
        assert_eq!(guarded(place, || Ok(1)).unwrap(), 1);
    }
}
