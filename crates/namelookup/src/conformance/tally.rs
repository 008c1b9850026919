//! [`Tally`]: which tables an engine held, and which it refused by a typed error.
//!
//! An engine whose structure ends somewhere (two dimensions of states by bytes) may refuse a table that is
//! large for it, and says with which numbers. Each test counts and prints these; small tables nobody may
//! refuse.

use std::cell::{Cell, RefCell};
use std::marker::PhantomData;

use wirespeed_image::ImageError;
use wirespeed_table::{BuildError, BuildOptions, Engine};

use crate::domain::NameDomain;
use crate::table::NameTable;

/// Counts the tables of one test.
#[derive(Debug)]
pub struct Tally<E> {
    test: &'static str,
    held: Cell<u64>,
    refused: RefCell<Vec<String>>,
    engine: PhantomData<fn() -> E>,
}

/// Tables of so many bytes of components, slashes included, are held by every engine.
const SMALL: usize = 4_096;

impl<E: Engine<NameDomain>> Tally<E> {
    /// A tally of a test.
    pub const fn new(test: &'static str) -> Self {
        Self { test, held: Cell::new(0), refused: RefCell::new(Vec::new()), engine: PhantomData }
    }

    /// Builds a table of the suite's seed; `None` where the engine may and does refuse it.
    pub fn build(&self, names: &NameTable, what: &str) -> Option<(E, E::Table)> {
        match E::build(names, &options()) {
            Ok(built) => {
                self.held.set(self.held.get() + 1);
                Some(built)
            }
            Err(error) => {
                self.refused(names, &error, what);
                None
            }
        }
    }

    /// Counts a refusal, after seeing that it is one that an engine may make.
    pub fn refused(&self, names: &NameTable, error: &BuildError, what: &str) {
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
        let bytes: usize = names.nodes().map(|node| node.component().len() + 1).sum();
        assert!(bytes > SMALL, "{test}, {what}: a table of {bytes} bytes of components is refused: {error}");
        self.refused.borrow_mut().push(format!("{what}: {error}"));
    }

    /// Says what was refused; panics where nothing was held.
    pub fn finish(self) {
        let (held, refused) = (self.held.get(), self.refused.into_inner());
        if let Some(first) = refused.first() {
            let (count, of) = (refused.len(), held + refused.len() as u64);
            eprintln!(
                "skipped: {} refuses {count} of {of} tables of {}, such as {first}",
                E::NAME,
                self.test
            );
        }
        assert!(held > 0, "{} holds no table of {}", E::NAME, self.test);
    }
}

/// What the suite builds with: a seed, so that every run is the same.
pub fn options() -> BuildOptions {
    BuildOptions { seed: Some(1), ..BuildOptions::default() }
}
