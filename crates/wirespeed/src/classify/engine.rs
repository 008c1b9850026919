//! The engines of rules, by name. The list below is the only one in the project: an engine joins the façade,
//! the command line and the benches by a line there.

use std::fmt;

use wirespeed_classify::{ClassifyEngine, Ipv4Tuple, RuleSet, Tuple};
use wirespeed_image::Table;

pub use crate::engine::{AUTO, OnDevice};

engines! {
    /// [`Quilt`](wirespeed_classify::quilt::Quilt): few merged classes, whose keys are all tried at once.
    Quilt: wirespeed_classify::quilt::Quilt,
    /// [`BloomSearch`](wirespeed_classify::bloom::BloomSearch): a cuckoo table and a Bloom filter for each
    /// mask.
    Bloom: wirespeed_classify::bloom::BloomSearch,
    /// [`TupleSearch`](wirespeed_classify::tuple_search::TupleSearch): a cuckoo table for each mask.
    Tuple: wirespeed_classify::tuple_search::TupleSearch,
    /// [`Linear`](wirespeed_classify::linear::Linear): rule after rule, sixteen at once.
    Linear: wirespeed_classify::linear::Linear,
}

/// The engine that suits a set best on the CPU: what `auto` means.
///
/// Quilt for all, whatever there is of rules when it is built: a live set grows. On one core of a Zen 4
/// (`classify_speed` of `wirespeed-classify`, batches of 8,192, M lookups/s of linear, tuple, Bloom search
/// and quilt; a shared machine, so take ratios):
///
/// | set | linear | tuple | Bloom | quilt |
/// |---|---|---|---|---|
/// | OpenFlow, 16 rules of 8 masks | 110 | 19 | 23 | 67 |
/// | OpenFlow, 64 of 16 | 22 | 9 | 12 | 71 |
/// | OpenFlow, 1,024 of 128 | 4.7 | 2.5 | 2.7 | 21 |
/// | OpenFlow, 16,384 of 64 | 0.2 | 3.0 | 6.1 | 36 |
/// | ClassBench fw1 of 1 K | 3.6 | 1.6 | 2.7 | 31 |
/// | ClassBench acl1 of 10 K | 1.5 | 8.0 | 12 | 37 |
///
/// Ask for linear search where there will never be more than a few dozen rules.
pub fn best<T: Tuple>(_: &RuleSet<T>) -> EngineName {
    EngineName::Quilt
}

/// The engine that suits a set best if a GPU looks up in it: `auto` means this one there.
///
/// Quilt for all: G lookups/s of kernels alone on an H200
/// (`benches/record/nvidia-h200/2026-11-23-classify-gpu.txt`), where the bus carries 4.2 of IPv4's tuples and
/// 1.5 of OpenFlow's:
///
/// | set | Bloom search | quilt |
/// |---|---|---|
/// | ClassBench acl1 of 10 K: 103 masks, its trace shuffled | 4.6 | 13.1 |
/// | ClassBench fw1 of 10 K: 237, shuffled | 2.0 | 10.0 |
/// | ClassBench ipc1 of 10 K: 348, shuffled | 1.5 | 7.2 |
/// | OpenFlow, 16,384 rules of 64 masks | 5.1 | 11.0 |
/// | OpenFlow, 131,072 of 512 | 0.69 | 7.1 |
///
/// Bloom search is as fast for up to a few thousand OpenFlow rules with up to 16 masks, and no trip is bound
/// by either. Quilt is the faster one on the CPU too, for the lookups that don't go to a GPU.
pub fn best_on_gpu<T: Tuple>(_: &RuleSet<T>) -> EngineName {
    EngineName::Quilt
}

/// The engine that a user asks for: a name, or `auto`, which leaves it to [`best`].
pub fn choose<T: Tuple>(name: &str, rules: &RuleSet<T>) -> Result<EngineName, UnknownEngine> {
    choose_by(name, || best(rules))
}

/// The engine that a user asks for: a name, or `auto`, which leaves it to a function such as [`best_on_gpu`].
pub fn choose_by(name: &str, best: impl FnOnce() -> EngineName) -> Result<EngineName, UnknownEngine> {
    match name {
        AUTO => Ok(best()),
        name => EngineName::of(name).ok_or_else(|| UnknownEngine {
            name: name.to_owned(),
            known: EngineName::ALL.iter().map(|engine| engine.as_str()).collect(),
        }),
    }
}

/// The engine that reads images of a kind; `None` where none does. All engines take all tuples. The kind of
/// an image does not tell its tuple: [`RuleImageFile`](super::image_file::RuleImageFile) does.
pub fn of_kind(kind: &str) -> Option<EngineName> {
    EngineName::ALL.iter().copied().find(|&engine| visit::<Ipv4Tuple, _>(engine, Kind) == kind)
}

/// An action on an engine whose name is known at run time: a function over engine types.
pub trait Visitor<T: Tuple>: Sized {
    /// What it yields.
    type Output;

    /// Does it.
    fn visit<E: ClassifyEngine<T, Table: OnDevice>>(self) -> Self::Output;
}

/// A name that is no engine's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no engine {name:?} for rules; there are {AUTO}, {}", known.join(", "))]
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

impl<T: Tuple> Visitor<T> for Kind {
    type Output = &'static str;

    fn visit<E: ClassifyEngine<T, Table: OnDevice>>(self) -> &'static str {
        E::Table::KIND
    }
}

/// Makes what there is for each engine, of its variant and its type without the tuple.
macro_rules! engines {
    ($($(#[$doc:meta])* $variant:ident: $($engine:ident)::+,)+) => {
        /// An engine of rules of this build. Where a name is wanted, such as
        /// [`ClassifierBuilder::engine`](super::ClassifierBuilder::engine), it can be given as it is.
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
                    $(Self::$variant => <$($engine)::+<Ipv4Tuple> as ClassifyEngine<Ipv4Tuple>>::NAME,)+
                }
            }
        }

        /// Visits an engine.
        pub fn visit<T: Tuple, V: Visitor<T>>(engine: EngineName, visitor: V) -> V::Output {
            match engine {
                $(EngineName::$variant => visitor.visit::<$($engine)::+<T>>(),)+
            }
        }
    };
}
use engines;

#[cfg(test)]
mod tests {
    use wirespeed_classify::{OpenFlowTuple, Rule};

    use super::*;

    /// The name that an engine has itself.
    struct OwnName;

    impl<T: Tuple> Visitor<T> for OwnName {
        type Output = &'static str;

        fn visit<E: ClassifyEngine<T, Table: OnDevice>>(self) -> &'static str {
            E::NAME
        }
    }

    fn set(rules: u32) -> RuleSet<Ipv4Tuple> {
        let rule = |n| format!("dport={n} proto=tcp").parse::<Rule<Ipv4Tuple>>().unwrap();
        (0..rules).map(rule).collect()
    }

    #[test]
    fn every_name_is_found_again() {
        let mut names: Vec<_> = EngineName::ALL.iter().map(|engine| engine.as_str()).collect();
        for &engine in EngineName::ALL {
            assert_eq!(choose(engine.as_str(), &set(0)), Ok(engine));
            assert_eq!(visit::<Ipv4Tuple, _>(engine, OwnName), engine.as_str());
            assert_eq!(visit::<OpenFlowTuple, _>(engine, OwnName), engine.as_str());
        }
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), EngineName::ALL.len(), "two engines of one name");
        assert!(!names.contains(&AUTO));
        let error = choose("sail-l", &set(0)).unwrap_err().to_string();
        assert!(error.contains("\"sail-l\" for rules; there are auto, quilt, bloom"), "{error}");
    }

    #[test]
    fn auto_is_the_best_where_lookups_run() {
        assert_eq!(choose(AUTO, &set(3)), Ok(EngineName::Quilt));
        assert_eq!(choose_by(AUTO, || best_on_gpu(&set(3))), Ok(EngineName::Quilt));
    }

    #[test]
    fn kinds_of_images_lead_to_engines_that_read_them() {
        for &engine in EngineName::ALL {
            let kind = visit::<OpenFlowTuple, _>(engine, Kind);
            assert_eq!(of_kind(kind), Some(engine));
            assert!(!crate::engine::is_kind(kind) && crate::names::engine::of_kind(kind).is_none());
        }
        assert_eq!(of_kind("acta"), None);
    }
}
