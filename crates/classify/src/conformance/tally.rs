//! [`Tally`]: which sets an engine held, and which it refused by a typed error.
//!
//! An engine whose structure ends somewhere may refuse a set that is large for it, and says with which
//! numbers. Each test counts and prints these; small sets nobody may refuse.

use std::cell::{Cell, RefCell};
use std::marker::PhantomData;

use wirespeed_image::ImageError;
use wirespeed_table::{BuildError, BuildOptions, Engine};

use crate::rules::RuleSet;
use crate::tuple::Tuple;

/// Counts the sets of one test.
#[derive(Debug)]
pub struct Tally<T, E> {
    test: &'static str,
    held: Cell<u64>,
    refused: RefCell<Vec<String>>,
    engine: PhantomData<fn() -> (T, E)>,
}

/// Sets of so many entries are held by every engine.
const SMALL: u64 = 4_096;

impl<T: Tuple, E: Engine<T>> Tally<T, E> {
    /// A tally of a test.
    pub const fn new(test: &'static str) -> Self {
        Self { test, held: Cell::new(0), refused: RefCell::new(Vec::new()), engine: PhantomData }
    }

    /// Builds a table with the suite's seed; `None` where the engine may and does refuse it.
    pub fn build(&self, rules: &RuleSet<T>, what: &str) -> Option<(E, E::Table)> {
        match E::build(rules, &options()) {
            Ok(built) => {
                self.held.set(self.held.get() + 1);
                Some(built)
            }
            Err(error) => {
                self.refused(rules, &error, what);
                None
            }
        }
    }

    /// Counts a refusal, after seeing that it is one that an engine may make.
    pub fn refused(&self, rules: &RuleSet<T>, error: &BuildError, what: &str) {
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
        let entries = rules.entries_len();
        assert!(entries > SMALL, "{test}, {what}: a set of {entries} entries is refused: {error}");
        self.refused.borrow_mut().push(format!("{what}: {error}"));
    }

    /// Says what was refused; panics where nothing was held.
    pub fn finish(self) {
        let (held, refused) = (self.held.get(), self.refused.into_inner());
        if let Some(first) = refused.first() {
            let (count, of) = (refused.len(), held + refused.len() as u64);
            eprintln!("skipped: {} refuses {count} of {of} sets of {}, such as {first}", E::NAME, self.test);
        }
        assert!(held > 0, "{} holds no set of {}", E::NAME, self.test);
    }
}

/// What the suite builds with: a seed, so that every run is the same.
pub fn options() -> BuildOptions {
    BuildOptions { seed: Some(1), ..BuildOptions::default() }
}
