//! The engines by name. This list is the only one in the project: a line in it brings an engine into the
//! façade, the command line and the benches.

mod auto;
mod best;
mod erased;
pub(crate) mod served;

use std::fmt;

#[cfg(feature = "rules")]
use wirespeed_classify::{Ipv4Tuple, Ipv6Tuple, OpenFlow13Tuple, OpenFlowTuple};
use wirespeed_fib::{Family, InFib, NextHop, V4, V6};
use wirespeed_image::Table;
#[cfg(feature = "names")]
use wirespeed_namelookup::NameDomain;
pub use wirespeed_table::{Domain, Engine, Keys, Standing};

#[cfg(feature = "names")]
pub use crate::owned_keys::NameKeys;
#[cfg(feature = "rules")]
pub use crate::owned_keys::TupleKeys;
pub use crate::owned_keys::{AddressKeys, OwnedKeys};
pub use erased::{AnyLive, AnyReader, AnyTable, Compiled, Entered};
pub(crate) use served::MEASURED;
pub use served::{Built, KeyHint, Served, Wanted};

/// A table that GPUs can look up in, too. Every engine's table is one.
pub use wirespeed_image::device::OnDevice;

#[cfg(feature = "rules")]
use crate::gpu::classify;
use crate::gpu::ip;
use crate::key::Key;

engines! {
    /// [`FoldV4`](wirespeed_fold::FoldV4) and [`FoldV6`](wirespeed_fold::FoldV6): SAIL's split, equal chunks
    /// stored once.
    Fold { V4: wirespeed_fold::FoldV4, V6: wirespeed_fold::FoldV6 }
    /// [`Rank`](wirespeed_rank::Rank): SAIL's split over ranked runs, for many next hops.
    Rank { V4: wirespeed_rank::Rank }
    /// [`FoldHot`](wirespeed_fold::FoldHot): FOLD with a first level that fits a GPU's shared memory.
    FoldHot { V4: wirespeed_fold::FoldHot }
    /// [`ForestOf`](wirespeed_forest::ForestOf): a trie of few kilobytes, for small tables.
    Forest { V4: wirespeed_forest::ForestOf<V4>, V6: wirespeed_forest::ForestOf<V6> }
    /// [`Waldvogel`](wirespeed_waldvogel::Waldvogel), binary search on prefix lengths.
    Waldvogel { V4: wirespeed_waldvogel::Waldvogel<V4>, V6: wirespeed_waldvogel::Waldvogel<V6> }
    /// [`GamtT`](wirespeed_gamt::GamtT): GAMT_T, a multi-bit trie as a state-jump table, next hops in the
    /// trie.
    Gamt if "papers" { V4: wirespeed_gamt::GamtT<V4>, V6: wirespeed_gamt::GamtT<V6> }
    /// [`GamtS`](wirespeed_gamt::GamtS): GAMT_S, GAMT_T with a separate table of next hops.
    GamtS if "papers" { V4: wirespeed_gamt::GamtS<V4>, V6: wirespeed_gamt::GamtS<V6> }
    /// [`Dir24`](wirespeed_dir24::Dir24): DIR-24-8, one direct table and chunks beneath it.
    Dir24 if "papers" { V4: wirespeed_dir24::Dir24 }
    /// [`SailM`](wirespeed_sail::SailM), the SAIL of many FIBs, here with one FIB.
    SailM if "papers" { V4: wirespeed_sail::SailM, V6: wirespeed_sail::SailM }
    /// [`SailL`](wirespeed_sail::SailL), the lookup-oriented SAIL.
    SailL if "papers" { V4: wirespeed_sail::SailL, V6: wirespeed_sail::SailL }
    /// [`SailB`](wirespeed_sail::SailB), the basic SAIL.
    SailB if "papers" { V4: wirespeed_sail::SailB }
    /// [`SailU`](wirespeed_sail::SailU), the update-oriented SAIL.
    SailU if "papers" { V4: wirespeed_sail::SailU }

    /// [`Acta`](wirespeed_namelookup::Acta): whole components as input, in buckets of a cache line.
    Acta if "names" { NameDomain: wirespeed_namelookup::Acta }
    /// [`Mata`](wirespeed_namelookup::mata::Mata): MATA, four bytes a step in several arrays of prime
    /// lengths.
    Mata if "names", "papers" { NameDomain: wirespeed_namelookup::mata::Mata }
    /// [`MataNw`](wirespeed_namelookup::mata::MataNw): MATA over interleaved names. Its images have MATA's
    /// kind, and a mark that tells them apart. On a GPU it is MATA, because transfers of names are faster
    /// without interleaving.
    MataNw if "names", "papers" { NameDomain: wirespeed_namelookup::mata::MataNw }
    /// [`Ata`](wirespeed_namelookup::ata::Ata): ATA, a byte a step in one array.
    Ata if "names", "papers" { NameDomain: wirespeed_namelookup::ata::Ata<1> }
    /// ATA, two bytes a step.
    Ata2 if "names", "papers" { NameDomain: wirespeed_namelookup::ata::Ata<2> }
    /// ATA, three bytes a step.
    Ata3 if "names", "papers" { NameDomain: wirespeed_namelookup::ata::Ata<3> }
    /// [`Stt`](wirespeed_namelookup::stt::Stt): STT, the two-dimensional table, for small tables to compare
    /// with.
    Stt if "names", "papers" { NameDomain: wirespeed_namelookup::stt::Stt }

    /// [`Quilt`](wirespeed_classify::quilt::Quilt): few merged classes, which a lookup tries all at once.
    Quilt if "rules" {
        Ipv4Tuple: wirespeed_classify::quilt::Quilt<Ipv4Tuple>,
        Ipv6Tuple: wirespeed_classify::quilt::Quilt<Ipv6Tuple>,
        OpenFlowTuple: wirespeed_classify::quilt::Quilt<OpenFlowTuple>,
        OpenFlow13Tuple: wirespeed_classify::quilt::Quilt<OpenFlow13Tuple>,
    }
    /// [`Linear`](wirespeed_classify::linear::Linear): rule after rule, sixteen at once.
    Linear if "rules" {
        Ipv4Tuple: wirespeed_classify::linear::Linear<Ipv4Tuple>,
        Ipv6Tuple: wirespeed_classify::linear::Linear<Ipv6Tuple>,
        OpenFlowTuple: wirespeed_classify::linear::Linear<OpenFlowTuple>,
        OpenFlow13Tuple: wirespeed_classify::linear::Linear<OpenFlow13Tuple>,
    }
    /// [`BloomSearch`](wirespeed_classify::bloom::BloomSearch): a cuckoo table and a Bloom filter for each
    /// mask.
    Bloom if "papers", "rules" {
        Ipv4Tuple: wirespeed_classify::bloom::BloomSearch<Ipv4Tuple>,
        Ipv6Tuple: wirespeed_classify::bloom::BloomSearch<Ipv6Tuple>,
        OpenFlowTuple: wirespeed_classify::bloom::BloomSearch<OpenFlowTuple>,
    }
    /// [`TupleSearch`](wirespeed_classify::tuple_search::TupleSearch): a cuckoo table for each mask.
    Tuple if "papers", "rules" {
        Ipv4Tuple: wirespeed_classify::tuple_search::TupleSearch<Ipv4Tuple>,
        Ipv6Tuple: wirespeed_classify::tuple_search::TupleSearch<Ipv6Tuple>,
        OpenFlowTuple: wirespeed_classify::tuple_search::TupleSearch<OpenFlowTuple>,
    }
}

/// The name that picks the best engine for a table.
pub const AUTO: &str = "auto";

/// A function over engine types, called for an engine whose name is known at run time.
pub trait Visitor<D: Domain>: Sized {
    /// The type of the function's result.
    type Output;

    /// Calls the function.
    fn visit<E: Engine<D, Table: OnDevice>>(self) -> Self::Output;
}

/// A domain with engines: [`V4`], [`V6`], [`NameDomain`] and each type of tuple.
pub trait Engines: Domain {
    /// The keys of its engines, as errors name them.
    const WHAT: &'static str;

    /// Visits an engine. `None` if the engine belongs to another domain.
    fn visit<V: Visitor<Self>>(engine: EngineName, visitor: V) -> Option<V::Output>;

    /// The engine that suits a table best on the CPU: the meaning of `auto`.
    fn best(source: &Self::Source) -> EngineName;

    /// The engine that suits a table best when a GPU looks up: the meaning of `auto` on GPUs.
    fn best_on_gpu(source: &Self::Source) -> EngineName;
}

/// A family of addresses: a bound for code that works for both.
pub trait Addresses:
    Served<Beside = (), Remote = ip::Remote<Self>, Owned = AddressKeys<Self>, Answer = NextHop>
    + InFib
    + Key<Self>
{
}

impl Addresses for V4 {}
impl Addresses for V6 {}

/// A type of tuple: a bound for code that works for all.
#[cfg(feature = "rules")]
pub trait RuleTuple:
    Served<
        Beside = crate::classify::RuleFacts<Self>,
        Remote = classify::Remote<Self>,
        Owned = TupleKeys<Self>,
        Answer = u32,
    > + wirespeed_classify::Tuple
{
}

#[cfg(feature = "rules")]
impl RuleTuple for Ipv4Tuple {}
#[cfg(feature = "rules")]
impl RuleTuple for Ipv6Tuple {}
#[cfg(feature = "rules")]
impl RuleTuple for OpenFlowTuple {}
#[cfg(feature = "rules")]
impl RuleTuple for OpenFlow13Tuple {}

/// Finds the engine of a name. `auto` stands for [`Engines::best`], or for [`Engines::best_on_gpu`] if a GPU
/// looks up.
pub fn choose<D: Engines>(
    name: &str,
    source: &D::Source,
    has_gpu: bool,
) -> Result<EngineName, UnknownEngine> {
    match name {
        AUTO if has_gpu => Ok(D::best_on_gpu(source)),
        AUTO => Ok(D::best(source)),
        name => of_domain::<D>()
            .find(|engine| engine.as_str() == name)
            .ok_or_else(|| UnknownEngine::of::<D>(name)),
    }
}

/// Visits an engine. Fails if the engine does not belong to the domain.
pub fn visit<D: Engines, V: Visitor<D>>(engine: EngineName, visitor: V) -> Result<V::Output, UnknownEngine> {
    D::visit(engine, visitor).ok_or_else(|| UnknownEngine::of::<D>(engine.as_str()))
}

/// The engines of a domain, in the order of the list.
pub fn of_domain<D: Engines>() -> impl Iterator<Item = EngineName> {
    EngineName::ALL.iter().copied().filter(|&engine| D::visit(engine, Is).is_some())
}

/// The first engine that reads images of a kind. `None` if no engine of the domain does.
#[must_use]
pub fn of_kind<D: Engines>(kind: &str) -> Option<EngineName> {
    of_domain::<D>().find(|&engine| reads::<D>(engine, kind))
}

/// The domain of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ImageOf {
    /// Addresses of a family.
    Addresses(Family),
    #[cfg(feature = "names")]
    Names,
    #[cfg(feature = "rules")]
    Rules,
}

impl ImageOf {
    /// The family of addresses.
    pub(crate) fn family(self) -> Option<Family> {
        match self {
            Self::Addresses(family) => Some(family),
            #[cfg(any(feature = "names", feature = "rules"))]
            _ => None,
        }
    }

    /// The domain's name in errors.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Addresses(_) => "addresses",
            #[cfg(feature = "names")]
            Self::Names => "names",
            #[cfg(feature = "rules")]
            Self::Rules => "rules",
        }
    }
}

/// The kind of images of both families, which no engine reads as a whole.
pub(crate) const BOTH_FAMILIES: &str = "ip";
/// The kind of images of [`Vrfs`](crate::Vrfs), which no engine reads as a whole.
pub(crate) const VRFS: &str = "vrfs";

/// The domain of images of a kind, and the first engine that reads them. `None` if no engine of this build
/// reads them.
pub(crate) fn image_of(kind: &str) -> Option<(ImageOf, EngineName)> {
    let of = |of, engine: Option<EngineName>| engine.map(|engine| (of, engine));
    let found = of(ImageOf::Addresses(Family::V4), of_kind::<V4>(kind))
        .or_else(|| of(ImageOf::Addresses(Family::V6), of_kind::<V6>(kind)));
    #[cfg(feature = "names")]
    let found = found.or_else(|| of(ImageOf::Names, of_kind::<NameDomain>(kind)));
    // All engines of rules take all tuples.
    #[cfg(feature = "rules")]
    let found = found.or_else(|| of(ImageOf::Rules, of_kind::<Ipv4Tuple>(kind)));
    found
}

/// Whether an engine of a domain reads images of a kind.
pub(crate) fn reads<D: Engines>(engine: EngineName, kind: &str) -> bool {
    D::visit(engine, Kind) == Some(kind)
}

/// An engine name that the domain does not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no engine {name:?} for {what}; there are {AUTO}, {}{}", known.join(", "), of_papers())]
pub struct UnknownEngine {
    /// The name that was given.
    pub name: String,
    /// The keys that an engine was wanted for: a family, names or rules.
    pub what: &'static str,
    /// The names to choose from, beside `auto`.
    pub known: Vec<&'static str>,
}

/// The note of an error about engines that the build leaves out.
fn of_papers() -> &'static str {
    if cfg!(feature = "papers") { "" } else { "; those of papers need the feature `papers`" }
}

impl UnknownEngine {
    fn of<D: Engines>(name: &str) -> Self {
        let known = of_domain::<D>().map(EngineName::as_str).collect();
        Self { name: name.to_owned(), what: D::WHAT, known }
    }
}

impl EngineName {
    /// The engine with this name. `None` if there is none.
    #[must_use]
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

/// A visitor that does nothing: it tells whether the domain has an engine.
struct Is;

impl<D: Domain> Visitor<D> for Is {
    type Output = ();

    fn visit<E: Engine<D, Table: OnDevice>>(self) {}
}

/// The kind of image that an engine reads.
struct Kind;

impl<D: Domain> Visitor<D> for Kind {
    type Output = &'static str;

    fn visit<E: Engine<D, Table: OnDevice>>(self) -> &'static str {
        E::Table::KIND
    }
}

/// Generates [`EngineName`] and the visits from the list: for each engine its variant, the features that it
/// needs, its domains, and its type in each domain.
macro_rules! engines {
    ($($(#[$doc:meta])* $variant:ident $(if $($feature:literal),+)? { $($domain:ident: $engine:ty),+ $(,)? })+) => {
        /// An engine of this build. It can be given wherever a name is wanted, such as to
        /// [`Builder::engine`](crate::Builder::engine).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum EngineName {
            $($(#[$doc])* $(#[cfg(all($(feature = $feature),+))])? $variant,)+
        }

        impl EngineName {
            /// All engines of all domains, in the order of the list.
            pub const ALL: &'static [Self] = &[$($(#[cfg(all($(feature = $feature),+))])? Self::$variant),+];

            /// The name that users choose it by.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $($(#[cfg(all($(feature = $feature),+))])?
                    Self::$variant => [$(<$engine as Engine<$domain>>::NAME),+][0],)+
                }
            }

            /// The engine's standing: whether it is one to pick.
            pub const fn standing(self) -> Standing {
                match self {
                    $($(#[cfg(all($(feature = $feature),+))])?
                    Self::$variant => [$(<$engine as Engine<$domain>>::STANDING),+][0],)+
                }
            }
        }

        engines_in! { V4, "IPv4", |rib| best::addresses(rib, 0), |rib| best::addresses_on_gpu(rib, 0); $($variant $(if $($feature),+)? { $($domain: $engine),+ })+ }
        engines_in! { V6, "IPv6", |rib| best::addresses(rib, 0), |rib| best::addresses_on_gpu(rib, 0); $($variant $(if $($feature),+)? { $($domain: $engine),+ })+ }
        #[cfg(feature = "names")]
        engines_in! { NameDomain, "names", best::names, best::names; $($variant $(if $($feature),+)? { $($domain: $engine),+ })+ }
        #[cfg(feature = "rules")]
        engines_in! { Ipv4Tuple, "rules", best::rules, best::rules_on_gpu; $($variant $(if $($feature),+)? { $($domain: $engine),+ })+ }
        #[cfg(feature = "rules")]
        engines_in! { Ipv6Tuple, "rules", best::rules, best::rules_on_gpu; $($variant $(if $($feature),+)? { $($domain: $engine),+ })+ }
        #[cfg(feature = "rules")]
        engines_in! { OpenFlowTuple, "rules", best::rules, best::rules_on_gpu; $($variant $(if $($feature),+)? { $($domain: $engine),+ })+ }
        #[cfg(feature = "rules")]
        engines_in! { OpenFlow13Tuple, "rules", best::rules, best::rules_on_gpu; $($variant $(if $($feature),+)? { $($domain: $engine),+ })+ }
    };
}
use engines;

/// Implements [`Engines`] for a domain: its name in errors, and the functions that pick the best engine on
/// the CPU and on a GPU.
macro_rules! engines_in {
    (
        $in:ident, $what:literal, $best:expr, $best_on_gpu:expr;
        $($variant:ident $(if $($feature:literal),+)? { $($domain:ident: $engine:ty),+ })+
    ) => {
        impl Engines for $in {
            const WHAT: &'static str = $what;

            fn visit<V: Visitor<Self>>(engine: EngineName, visitor: V) -> Option<V::Output> {
                match engine {
                    $($(#[cfg(all($(feature = $feature),+))])?
                    EngineName::$variant => visited!($in visitor $($domain: $engine),+),)+
                }
            }

            fn best(source: &Self::Source) -> EngineName {
                let best: fn(&Self::Source) -> EngineName = $best;
                best(source)
            }

            fn best_on_gpu(source: &Self::Source) -> EngineName {
                let best: fn(&Self::Source) -> EngineName = $best_on_gpu;
                best(source)
            }
        }
    };
}
use engines_in;

/// Expands to the visit of the engine that belongs to a domain, and to `None` if no engine does.
macro_rules! visited {
    ($in:ident $visitor:ident) => { None };
    ($in:ident $visitor:ident $domain:ident: $engine:ty $(, $others:ident: $theirs:ty)*) => {
        if_same!($in $domain { Some($visitor.visit::<$engine>()) } { visited!($in $visitor $($others: $theirs),*) })
    };
}
use visited;

/// Expands to the first block if the two domains are equal, and to the second block otherwise.
macro_rules! if_same {
    (V4 V4 { $($then:tt)* } $otherwise:tt) => { $($then)* };
    (V6 V6 { $($then:tt)* } $otherwise:tt) => { $($then)* };
    (NameDomain NameDomain { $($then:tt)* } $otherwise:tt) => { $($then)* };
    (Ipv4Tuple Ipv4Tuple { $($then:tt)* } $otherwise:tt) => { $($then)* };
    (Ipv6Tuple Ipv6Tuple { $($then:tt)* } $otherwise:tt) => { $($then)* };
    (OpenFlowTuple OpenFlowTuple { $($then:tt)* } $otherwise:tt) => { $($then)* };
    (OpenFlow13Tuple OpenFlow13Tuple { $($then:tt)* } $otherwise:tt) => { $($then)* };
    ($wanted:ident $given:ident $then:tt { $($otherwise:tt)* }) => { $($otherwise)* };
}
use if_same;

#[cfg(test)]
mod tests {
    use super::*;

    struct Name;

    impl<D: Domain> Visitor<D> for Name {
        type Output = &'static str;

        fn visit<E: Engine<D, Table: OnDevice>>(self) -> &'static str {
            E::NAME
        }
    }

    fn domain<D: Engines<Source: Default>>() {
        let none = D::Source::default();
        assert!(of_domain::<D>().any(|engine| engine == D::best(&none)));
        assert!(of_domain::<D>().any(|engine| engine == D::best_on_gpu(&none)));
        assert_eq!(choose::<D>(AUTO, &none, false), Ok(D::best(&none)));
        assert_eq!(choose::<D>(AUTO, &none, true), Ok(D::best_on_gpu(&none)));
        for engine in of_domain::<D>() {
            assert_eq!(D::visit(engine, Name), Some(engine.as_str()));
            assert_eq!(choose::<D>(engine.as_str(), &none, false), Ok(engine));
            let kind = D::visit(engine, Kind).expect("it is of the domain");
            assert!(reads::<D>(of_kind::<D>(kind).expect("the engine reads it"), kind));
        }
        let error = choose::<D>("sail-x", &none, true).unwrap_err();
        assert_eq!((error.name.as_str(), error.what), ("sail-x", D::WHAT));
        for engine in EngineName::ALL {
            let is_its = of_domain::<D>().any(|its| its == *engine);
            assert_eq!(is_its, error.known.contains(&engine.as_str()), "{error}");
            assert_eq!(is_its, visit::<D, _>(*engine, Name).is_ok());
        }
        assert_eq!(of_kind::<D>("other"), None);
    }

    #[test]
    fn every_name_is_found_again() {
        domain::<V4>();
        domain::<V6>();
        domain::<NameDomain>();
        domain::<Ipv4Tuple>();
        domain::<Ipv6Tuple>();
        domain::<OpenFlowTuple>();
        domain::<OpenFlow13Tuple>();
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
    fn kinds_of_images_lead_back_to_their_engines() {
        assert_eq!(of_kind::<V4>("sail-l-v4"), Some(EngineName::SailL));
        assert_eq!(of_kind::<V4>("sail-l-v6"), None);
        assert_eq!(of_kind::<V6>("sail-l-v6"), Some(EngineName::SailL));
        assert_eq!(of_kind::<NameDomain>("mata"), Some(EngineName::Mata));
        assert_eq!(of_kind::<NameDomain>("sail-l-v4"), None);
        assert_eq!(of_kind::<V4>("mata"), None);
        for engine in of_domain::<OpenFlowTuple>() {
            let kind = OpenFlowTuple::visit(engine, Kind).expect("it is of the domain");
            assert_eq!(of_kind::<Ipv4Tuple>(kind), Some(engine), "one kind for all tuples");
        }
    }

    #[test]
    fn an_unknown_engine_names_the_known() {
        let error = UnknownEngine { name: "x".into(), what: "IPv4", known: vec!["a", "b"] };
        assert_eq!(error.to_string(), "no engine \"x\" for IPv4; there are auto, a, b");
        let error = choose::<NameDomain>("sail-l", &Default::default(), false).unwrap_err().to_string();
        assert!(error.contains("\"sail-l\" for names; there are auto, acta, mata"), "{error}");
        let error = choose::<Ipv4Tuple>("sail-l", &Default::default(), false).unwrap_err().to_string();
        assert!(error.contains("\"sail-l\" for rules; there are auto, quilt, linear"), "{error}");
    }
}
