//! The engines of names, by name. The list below is the only one in the project: an engine joins the façade,
//! the command line and the benches by a line there.

use std::fmt;

use wirespeed_image::Table;
use wirespeed_namelookup::NameEngine;

use super::NameRib;
pub use crate::engine::{AUTO, OnDevice};

engines! {
    /// [`Acta`](wirespeed_namelookup::Acta): whole components as input, in buckets of a cache line.
    Acta: wirespeed_namelookup::Acta,
    /// [`Mata`](wirespeed_namelookup::mata::Mata): MATA, four bytes a step in several arrays of prime
    /// lengths.
    Mata: wirespeed_namelookup::mata::Mata,
    /// [`MataNw`](wirespeed_namelookup::mata::MataNw): MATA over interleaved names. Its images are of MATA's
    /// kind, with a mark of their own. On a GPU it is MATA, as names travel faster the way they are.
    MataNw: wirespeed_namelookup::mata::MataNw,
    /// [`Ata`](wirespeed_namelookup::ata::Ata): ATA, a byte a step in one array.
    Ata: wirespeed_namelookup::ata::Ata<1>,
    /// ATA, two bytes a step.
    Ata2: wirespeed_namelookup::ata::Ata<2>,
    /// ATA, three bytes a step.
    Ata3: wirespeed_namelookup::ata::Ata<3>,
    /// [`Stt`](wirespeed_namelookup::stt::Stt): STT, the two-dimensional table, for small tables to compare
    /// with.
    Stt: wirespeed_namelookup::stt::Stt,
}

/// The engine that suits a table best: what `auto` means.
///
/// ACTA for all: it reads a cache line a component where the paper's structures read one every few bytes, and
/// is the smallest.
pub fn best(_: &NameRib) -> EngineName {
    EngineName::Acta
}

/// The engine that a user asks for: a name, or `auto`, which leaves it to [`best`].
pub fn choose(name: &str, names: &NameRib) -> Result<EngineName, UnknownEngine> {
    match name {
        AUTO => Ok(best(names)),
        name => EngineName::of(name).ok_or_else(|| UnknownEngine {
            name: name.to_owned(),
            known: EngineName::ALL.iter().map(|engine| engine.as_str()).collect(),
        }),
    }
}

/// The first engine that reads images of a kind; `None` where none does.
pub fn of_kind(kind: &str) -> Option<EngineName> {
    EngineName::ALL.iter().copied().find(|&engine| reads(engine, kind))
}

/// Whether an engine reads images of a kind.
pub(crate) fn reads(engine: EngineName, kind: &str) -> bool {
    visit(engine, Kind) == kind
}

/// An action on an engine whose name is known at run time: a function over engine types.
pub trait Visitor {
    /// What it yields.
    type Output;

    /// Does it.
    fn visit<E: NameEngine<Table: OnDevice>>(self) -> Self::Output;
}

/// A name that is no engine's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no engine {name:?} for names; there are {AUTO}, {}", known.join(", "))]
pub struct UnknownEngine {
    /// What was asked for.
    pub name: String,
    /// The names to choose from, beside `auto`.
    pub known: Vec<&'static str>,
}

impl EngineName {
    /// The engine of a name; `None` where there is none.
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|engine| engine.as_str() == name)
    }
}

impl AsRef<str> for EngineName {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl fmt::Display for EngineName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The kind of image that an engine reads.
struct Kind;

impl Visitor for Kind {
    type Output = &'static str;

    fn visit<E: NameEngine<Table: OnDevice>>(self) -> &'static str {
        E::Table::KIND
    }
}

/// Makes what there is for each engine, of its variant and its type.
macro_rules! engines {
    ($($(#[$doc:meta])* $variant:ident: $engine:ty,)+) => {
        /// An engine of names of this build. Where a name is wanted, such as
        /// [`NameBuilder::engine`](super::NameBuilder::engine), it can be given as it is.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum EngineName {
            $($(#[$doc])* $variant,)+
        }

        impl EngineName {
            /// All engines.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The name that users choose it by.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => <$engine as NameEngine>::NAME,)+
                }
            }
        }

        /// Visits an engine.
        pub fn visit<V: Visitor>(engine: EngineName, visitor: V) -> V::Output {
            match engine {
                $(EngineName::$variant => visitor.visit::<$engine>(),)+
            }
        }
    };
}
use engines;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_found_again() {
        let mut names: Vec<_> = EngineName::ALL.iter().map(|engine| engine.as_str()).collect();
        for &engine in EngineName::ALL {
            assert_eq!(choose(engine.as_str(), &NameRib::new()), Ok(engine));
        }
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), EngineName::ALL.len(), "two engines of one name");
        assert!(!names.contains(&AUTO));
        assert_eq!(choose(AUTO, &NameRib::new()), Ok(EngineName::Acta));
        let error = choose("sail-l", &NameRib::new()).unwrap_err().to_string();
        assert!(error.contains("\"sail-l\" for names; there are auto, acta, mata"), "{error}");
    }

    #[test]
    fn kinds_of_images_lead_to_engines_that_read_them() {
        for &engine in EngineName::ALL {
            let kind = visit(engine, Kind);
            assert_eq!(visit(of_kind(kind).unwrap(), Kind), kind);
            assert_eq!(crate::engine::of_kind::<wirespeed_fib::V4>(kind), None, "an engine of addresses");
        }
        assert_eq!(of_kind("mata"), Some(EngineName::Mata));
        assert_eq!(of_kind("sail-l-v4"), None);
    }
}
