//! [`Tally`]: which tables an engine held, and which it refused by a typed error.
//!
//! An engine whose structure ends somewhere (two dimensions of states by bytes) may refuse a table that is
//! large for it, and says with which numbers. Each test counts and prints these; small tables nobody may
//! refuse.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::marker::PhantomData;

use wirespeed_image::ImageError;

use super::suite::Suite;
use crate::domain::Domain;
use crate::engine::Engine;
use crate::error::BuildError;

/// Whose test it is.
type Of<D, S, E> = fn() -> (D, S, E);

/// Counts the tables of one test.
pub struct Tally<D, S, E> {
    test: &'static str,
    held: Cell<u64>,
    refused: RefCell<Vec<String>>,
    of: PhantomData<Of<D, S, E>>,
}

impl<D, S, E> fmt::Debug for Tally<D, S, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tally").field("test", &self.test).finish_non_exhaustive()
    }
}

impl<D: Domain, S: Suite<D>, E: Engine<D>> Tally<D, S, E> {
    /// A tally of a test.
    pub const fn new(test: &'static str) -> Self {
        Self { test, held: Cell::new(0), refused: RefCell::new(Vec::new()), of: PhantomData }
    }

    /// Builds a table with the suite's options; `None` where the engine may and does refuse it.
    pub fn build(&self, source: &D::Source, what: &str) -> Option<(E, E::Table)> {
        match E::build(source, &S::options()) {
            Ok(built) => {
                self.held.set(self.held.get() + 1);
                Some(built)
            }
            Err(error) => {
                self.refused(source, &error, what);
                None
            }
        }
    }

    /// Counts a refusal, after seeing that it is one that an engine may make.
    pub fn refused(&self, source: &D::Source, error: &BuildError, what: &str) {
        let test = self.test;
        let is_typed = match error {
            BuildError::Limit { limit, found, .. } => found > limit,
            BuildError::Image(image) => {
                matches!(image, ImageError::OverCap { needed, cap } if needed > cap)
                    || matches!(image, ImageError::Memory { .. })
            }
            _ => false,
        };
        assert!(is_typed, "{test}, {what}: {error}");
        if let Some(small) = S::small(source) {
            panic!("{test}, {what}: {small} is refused: {error}");
        }
        self.refused.borrow_mut().push(format!("{what}: {error}"));
    }

    /// Says what was refused; panics where nothing was held.
    pub fn finish(self) {
        let (held, refused) = (self.held.get(), self.refused.into_inner());
        let (test, tables) = (self.test, S::TABLES);
        if let Some(first) = refused.first() {
            let (count, of) = (refused.len(), held + refused.len() as u64);
            eprintln!("skipped: {} refuses {count} of {of} {tables} of {test}, such as {first}", E::NAME);
        }
        assert!(held > 0, "{} holds none of the {tables} of {test}", E::NAME);
    }
}
