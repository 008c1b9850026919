//! The engines by name. The list below is the only one in the project: an engine joins the façade, the
//! command line and the benches by a line there.

use std::fmt;

use wirespeed_fib::{Address, Engine, Family, InFib, Rib, Strides, V4, V6};
use wirespeed_image::Table;

/// A table that GPUs look up in, too: every engine's table is one.
pub use wirespeed_image::device::OnDevice;

use crate::key::Key;

engines! {
    /// [`SailL`](wirespeed_sail::SailL), the lookup-oriented SAIL.
    SailL { V4: wirespeed_sail::SailL, V6: wirespeed_sail::SailL }
    /// [`SailB`](wirespeed_sail::SailB), the basic SAIL.
    SailB { V4: wirespeed_sail::SailB }
    /// [`SailU`](wirespeed_sail::SailU), the update-oriented SAIL.
    SailU { V4: wirespeed_sail::SailU }
    /// [`SailM`](wirespeed_sail::SailM), the SAIL of many FIBs, with one.
    SailM { V4: wirespeed_sail::SailM, V6: wirespeed_sail::SailM }
    /// [`FoldV4`](wirespeed_fold::FoldV4) and [`FoldV6`](wirespeed_fold::FoldV6): SAIL's split, equal chunks
    /// stored once.
    Fold { V4: wirespeed_fold::FoldV4, V6: wirespeed_fold::FoldV6 }
    /// [`FoldHot`](wirespeed_fold::FoldHot): FOLD with a first level that fits a GPU's shared memory.
    FoldHot { V4: wirespeed_fold::FoldHot }
    /// [`Rank`](wirespeed_rank::Rank): SAIL's split over ranked runs, for many next hops.
    Rank { V4: wirespeed_rank::Rank }
    /// [`GamtT`](wirespeed_gamt::GamtT): GAMT_T, a multi-bit trie as a state-jump table, next hops in the
    /// trie.
    Gamt { V4: wirespeed_gamt::GamtT<V4>, V6: wirespeed_gamt::GamtT<V6> }
    /// [`GamtS`](wirespeed_gamt::GamtS): GAMT_S, GAMT_T with a separate table of next hops.
    GamtS { V4: wirespeed_gamt::GamtS<V4>, V6: wirespeed_gamt::GamtS<V6> }
    /// [`Dir24`](wirespeed_dir24::Dir24): DIR-24-8, one direct table and chunks beneath it.
    Dir24 { V4: wirespeed_dir24::Dir24 }
    /// [`Waldvogel`](wirespeed_waldvogel::Waldvogel), binary search on prefix lengths.
    Waldvogel { V4: wirespeed_waldvogel::Waldvogel<V4>, V6: wirespeed_waldvogel::Waldvogel<V6> }
}

/// The engine that suits a table best: what `auto` means.
///
/// Reasons are rows in `benches/record`: on the real tables, with batches of 1,024 keys, nothing that is
/// measured beside the one named is ahead of it for random keys and for those drawn by prefix both. Some
/// engines are faster for one kind of traffic: `dir24` for IPv4 keys that are drawn by prefix, `gamt` and
/// `waldvogel` for IPv6 keys most of which have no route.
///
/// Tables of scattered routes, such as host routes all over the address space, get `waldvogel`. It takes a
/// slot a route; chunks that nobody shares would take up to 22 kB each. What a table would take at most is
/// counted on its routes, in passes that take a small part of the time to build it.
pub fn best<A: Engines>(rib: &Rib<A>) -> EngineName {
    best_by(rib, &Strides::Fastest)
}

/// The engine that suits a table best where a GPU looks up in it.
///
/// The engine of [`best`], but for IPv4 tables whose next hops fit a byte. For these it is FOLD with hot
/// blocks, which keeps most of what traffic needs in a multiprocessor's own memory.
pub fn best_on_gpu<A: Engines>(rib: &Rib<A>) -> EngineName {
    match (A::FAMILY, best_by(rib, &Strides::FastestOnGpu)) {
        (Family::V4, EngineName::Fold) => EngineName::FoldHot,
        (_, other) => other,
    }
}

/// Bytes a prefix that chunks may take at most in a table over [`SMALL`], by family. The real tables are at 6
/// and 61 (128 by the strides for GPUs), random hosts at some 300 and 6,000.
const MOST_EACH: [u64; 2] = [96, 768];
/// Tables that take no more than this may take what they want.
const SMALL: u64 = 16 << 20;

fn best_by<A: Engines>(rib: &Rib<A>, strides: &Strides) -> EngineName {
    let most_each = MOST_EACH[usize::from(A::FAMILY == Family::V6)];
    let is_scattered = A::most_chunks(rib, strides) > (rib.len() as u64).saturating_mul(most_each).max(SMALL);
    // As long as a byte holds a next hop FOLD's chunks fit the caches; RANK's words don't grow with what they
    // lead to.
    match A::FAMILY {
        _ if is_scattered => EngineName::Waldvogel,
        Family::V4 if rib.max_next_hop().0 > 254 => EngineName::Rank,
        _ => EngineName::Fold,
    }
}

/// The engine that a user asks for: a name, or `auto`, which leaves it to [`best`].
pub fn choose<A: Engines>(name: &str, rib: &Rib<A>) -> Result<EngineName, UnknownEngine> {
    choose_by::<A>(name, || best(rib))
}

/// The engine that a user asks for: a name, or `auto`, which leaves it to a function such as [`best_on_gpu`].
pub fn choose_by<A: Engines>(
    name: &str,
    best: impl FnOnce() -> EngineName,
) -> Result<EngineName, UnknownEngine> {
    match name {
        AUTO => Ok(best()),
        name => of_family::<A>()
            .find(|engine| engine.as_str() == name)
            .ok_or_else(|| UnknownEngine::of::<A>(name)),
    }
}

/// Visits an engine by its name in a family, which has to be one.
pub fn visit<A: Engines, V: Visitor<A>>(engine: EngineName, visitor: V) -> Result<V::Output, UnknownEngine> {
    A::visit(engine, visitor).ok_or_else(|| UnknownEngine::of::<A>(engine.as_str()))
}

/// The name that stands for the best engine of a table.
pub const AUTO: &str = "auto";

/// The engines of a family.
pub fn of_family<A: Engines>() -> impl Iterator<Item = EngineName> {
    EngineName::ALL.iter().copied().filter(|&engine| A::visit(engine, Is).is_some())
}

/// The engine that reads images of a kind; `None` where none of the family does.
pub fn of_kind<A: Engines>(kind: &str) -> Option<EngineName> {
    of_family::<A>().find(|&engine| A::visit(engine, Kind) == Some(kind))
}

/// Whether an engine of either family reads images of a kind.
pub(crate) fn is_kind(kind: &str) -> bool {
    of_kind::<V4>(kind).is_some() || of_kind::<V6>(kind).is_some()
}

/// An action on an engine whose name is known at run time: a function over engine types.
pub trait Visitor<A: Address> {
    /// What it yields.
    type Output;

    /// Does it.
    fn visit<E: Engine<A, Table: OnDevice>>(self) -> Self::Output;
}

/// A family that there are engines for.
pub trait Engines: InFib + Key<Self> {
    /// Visits an engine; `None` where it doesn't take the family.
    fn visit<V: Visitor<Self>>(engine: EngineName, visitor: V) -> Option<V::Output>;

    /// Bytes that chunks of a table take at most, if no two of them are equal.
    fn most_chunks(rib: &Rib<Self>, strides: &Strides) -> u64;
}

/// A name that is no engine's of the family.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no engine {name:?} for {family}; there are {AUTO}, {}", known.join(", "))]
pub struct UnknownEngine {
    /// What was asked for.
    pub name: String,
    /// The family that it was asked for.
    pub family: Family,
    /// The names to choose from, beside `auto`.
    pub known: Vec<&'static str>,
}

impl UnknownEngine {
    fn of<A: Engines>(name: &str) -> Self {
        let known = of_family::<A>().map(EngineName::as_str).collect();
        Self { name: name.to_owned(), family: A::FAMILY, known }
    }
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

/// Nothing: whether an engine is there to be visited.
struct Is;

impl<A: Address> Visitor<A> for Is {
    type Output = ();

    fn visit<E: Engine<A, Table: OnDevice>>(self) {}
}

/// The kind of image that an engine reads.
struct Kind;

impl<A: Address> Visitor<A> for Kind {
    type Output = &'static str;

    fn visit<E: Engine<A, Table: OnDevice>>(self) -> &'static str {
        E::Table::KIND
    }
}

/// Makes what there is for each engine, of its variant, the families it takes and its type for each.
macro_rules! engines {
    ($($(#[$doc:meta])* $variant:ident { $($address:ident: $engine:ty),+ $(,)? })+) => {
        /// An engine of this build. Where a name is wanted, such as
        /// [`Builder::engine`](crate::Builder::engine), it can be given as it is.
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
                    $(Self::$variant => [$(<$engine as Engine<$address>>::NAME),+][0],)+
                }
            }
        }

        impl Engines for V4 {
            fn most_chunks(rib: &Rib<Self>, _: &Strides) -> u64 {
                wirespeed_fold::v4::most_bytes(rib)
            }

            #[allow(unreachable_code)] // the end, while every engine takes the family
            fn visit<V: Visitor<Self>>(engine: EngineName, visitor: V) -> Option<V::Output> {
                match engine {
                    $(EngineName::$variant => {
                        $(if_same!(V4 $address return Some(visitor.visit::<$engine>()));)+
                    })+
                }
                None
            }
        }

        impl Engines for V6 {
            fn most_chunks(rib: &Rib<Self>, strides: &Strides) -> u64 {
                wirespeed_fold::v6::most_bytes(rib, strides)
            }

            #[allow(unreachable_code)] // the end, while every engine takes the family
            fn visit<V: Visitor<Self>>(engine: EngineName, visitor: V) -> Option<V::Output> {
                match engine {
                    $(EngineName::$variant => {
                        $(if_same!(V6 $address return Some(visitor.visit::<$engine>()));)+
                    })+
                }
                None
            }
        }
    };
}
use engines;

/// Expands to what follows if two families are one, and to nothing if they are not.
macro_rules! if_same {
    (V4 V4 $($then:tt)*) => { $($then)* };
    (V6 V6 $($then:tt)*) => { $($then)* };
    ($wanted:ident $given:ident $($then:tt)*) => {};
}
use if_same;

#[cfg(test)]
mod tests {
    use wirespeed_fib::synth::rng::Rng;
    use wirespeed_fib::synth::{self, TableSpec};
    use wirespeed_fib::{NextHop, Prefix};

    use super::*;

    struct Name;

    impl<A: Address> Visitor<A> for Name {
        type Output = &'static str;

        fn visit<E: Engine<A, Table: OnDevice>>(self) -> &'static str {
            E::NAME
        }
    }

    fn family<A: Engines>() {
        let rib = Rib::<A>::new();
        assert!(of_family::<A>().any(|engine| engine == best(&rib)));
        assert!(of_family::<A>().any(|engine| engine == best_on_gpu(&rib)));
        assert_eq!(choose_by::<A>(AUTO, || best_on_gpu(&rib)), Ok(best_on_gpu(&rib)));
        for engine in of_family::<A>() {
            assert_eq!(A::visit(engine, Name), Some(engine.as_str()));
            assert_eq!(choose(engine.as_str(), &rib), Ok(engine));
            assert_eq!(A::visit(engine, Kind).and_then(of_kind::<A>), Some(engine));
        }
        let error = choose("sail-x", &rib).unwrap_err();
        assert_eq!((error.name.as_str(), error.family), ("sail-x", A::FAMILY));
        for engine in of_family::<A>() {
            assert!(error.to_string().contains(engine.as_str()), "{error}");
        }
        assert_eq!(of_kind::<A>("other"), None);
    }

    #[test]
    fn every_name_is_found_again() {
        family::<V4>();
        family::<V6>();
        for &engine in EngineName::ALL {
            assert_eq!(EngineName::of(engine.as_str()), Some(engine));
        }
        let mut names: Vec<_> = EngineName::ALL.iter().map(|engine| engine.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), EngineName::ALL.len(), "two engines of one name");
        assert!(!names.contains(&AUTO));
    }

    #[test]
    fn next_hops_that_fit_a_byte_decide() {
        let of = |next_hop| -> Rib<V4> { [("10.0.0.0/8".parse().unwrap(), next_hop)].into_iter().collect() };
        let (few, many) = (of(NextHop(254)), of(NextHop(255)));
        assert_eq!((best(&few), best_on_gpu(&few)), (EngineName::Fold, EngineName::FoldHot));
        assert_eq!((best(&many), best_on_gpu(&many)), (EngineName::Rank, EngineName::Rank));
        assert_eq!(best_on_gpu(&Rib::<V6>::new()), EngineName::Fold);
    }

    fn scattered<A: Engines>(routes: u32, len: u8) -> Rib<A> {
        let mut rng = Rng::new(u64::from(len));
        // Within 2000::/3, as all that is routed.
        let mut address =
            || A::from_u128_low(rng.bits128()).with_octet(0, 0x20 | rng.bits().to_le_bytes()[0] >> 3);
        (0..routes).map(|_| (Prefix::around(address(), len), NextHop(1))).collect()
    }

    /// Chunks would take up to 22 kB for each of these routes.
    #[test]
    fn scattered_routes_are_hashed() {
        for len in [64, 128] {
            let rib = scattered::<V6>(20_000, len);
            assert_eq!(
                (best(&rib), best_on_gpu(&rib)),
                (EngineName::Waldvogel, EngineName::Waldvogel),
                "/{len}"
            );
        }
        let hosts = scattered::<V4>(200_000, 32);
        assert_eq!((best(&hosts), best_on_gpu(&hosts)), (EngineName::Waldvogel, EngineName::Waldvogel));
        // So few that it makes no difference.
        assert_eq!(best(&scattered::<V6>(500, 128)), EngineName::Fold);
        assert_eq!(best(&scattered::<V4>(10_000, 32)), EngineName::Fold);
    }

    #[test]
    fn tables_like_real_ones_are_folded() {
        for family in [Family::V4, Family::V6] {
            for prefixes in [20_000, 250_000] {
                let spec = TableSpec { prefixes, ..TableSpec::full(family) };
                let fib = match family {
                    Family::V4 => synth::fib(Some(&spec), None),
                    Family::V6 => synth::fib(None, Some(&spec)),
                }
                .expect("a table is made");
                let (four, six) = (&fib.v4, &fib.v6);
                assert!(matches!(best(four), EngineName::Fold | EngineName::Rank), "{family} {prefixes}");
                assert_eq!(
                    (best(six), best_on_gpu(six)),
                    (EngineName::Fold, EngineName::Fold),
                    "{family} {prefixes}"
                );
            }
        }
    }

    #[test]
    fn kinds_of_images_lead_back_to_their_engines() {
        assert_eq!(of_kind::<V4>("sail-l-v4"), Some(EngineName::SailL));
        assert_eq!(of_kind::<V4>("sail-l-v6"), None);
        assert_eq!(of_kind::<V6>("sail-l-v6"), Some(EngineName::SailL));
    }

    #[test]
    fn an_unknown_engine_names_the_known() {
        let error = UnknownEngine { name: "x".into(), family: Family::V4, known: vec!["a", "b"] };
        assert_eq!(error.to_string(), "no engine \"x\" for IPv4; there are auto, a, b");
    }
}
