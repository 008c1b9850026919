//! [`Served`]: what the façade knows of each domain beside its engines.

use std::fmt::Debug;
use std::sync::Arc;

use bytemuck::Pod;
#[cfg(feature = "rules")]
use wirespeed_classify::{Ipv4Tuple, Ipv6Tuple, OpenFlow13Tuple, OpenFlowTuple, RuleSet};
use wirespeed_fib::{Address, NextHop, Prefix, Rib, V4, V6};
use wirespeed_image::{Image, ImageError};
#[cfg(feature = "names")]
use wirespeed_namelookup::{Match, NameBatch, NameBuf, NameDomain, NameModel};
use wirespeed_rng::Rng;
use wirespeed_table::{BuildError, BuildOptions, Companion, Model};

#[cfg(feature = "names")]
use super::NameKeys;
#[cfg(feature = "rules")]
use super::TupleKeys;
use super::auto::{AutoV4, AutoV6};
use super::erased::{Adopt, AnyLive, AnyReader, AnyTable, Compile, Compiled, GoLive, Open, Resume};
use super::{EngineName, Engines, UnknownEngine, Visitor, visit};
#[cfg(feature = "rules")]
use crate::classify::RuleFacts;
#[cfg(feature = "rules")]
use crate::gpu::classify;
use crate::gpu::ip;
use crate::gpu::offload::{Answers, RemoteTable};
use crate::gpu::runtime::{Fleet, GpuOptions};
#[cfg(feature = "names")]
use crate::gpu::{names, runtime::SlotSize};
use crate::match_ids::MatchIds;
use crate::owned_keys::{AddressKeys, OwnedKeys};
use crate::uses::Counted;

/// Keys of a batch for measuring.
pub(crate) const MEASURED: usize = 4096;

/// The default bytes for a name in a GPU's slot: more than most names take on average, their positions
/// included. Batches of longer names go in smaller parts.
#[cfg(feature = "names")]
pub const NAME_BYTES: usize = 64;

/// A hint about the keys to come, given when a table is uploaded to GPUs.
pub type KeyHint<'k, D> = <<D as Served>::Remote as RemoteTable>::KeyHint<'k>;

/// The part of a domain's model that readers need to see.
pub type Wanted<D> = <<D as Served>::Beside as Companion<D>>::Wanted;

/// A table of an engine, or the engine's error. The outer error says that the domain has no such engine.
pub type Built<T, E> = Result<Result<T, E>, UnknownEngine>;

/// A domain as the façade serves it: compiled and live tables of engines that are chosen at run time, on CPUs
/// and GPUs. All engines of all domains are compiled here, once for every program.
///
/// ```
/// use wirespeed::engine::{EngineName, Served};
/// use wirespeed::fib::{BuildOptions, NextHop, Rib, V4};
///
/// let rib: Rib<V4> = [("10.0.0.0/8".parse()?, NextHop(1))].into_iter().collect();
/// let compiled = V4::compile(EngineName::Fold, &rib, &BuildOptions::default())??;
/// assert_eq!(compiled.table.lookup("10.1.2.3".parse()?), NextHop(1));
/// println!("{} bytes", compiled.table.image().bytes());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Served: Engines + Counted {
    /// Data that readers see beside the table.
    type Beside: Companion<Self>;

    /// A table on GPUs.
    type Remote: RemoteTable<Domain = Self> + Answers<Self::Result>;

    /// Keys of a batch in memory of their own.
    type Owned: OwnedKeys<Self::Remote>;

    /// The result of a key as readers give it: 32 bits, those of the engine's result.
    type Answer: Pod + Default + Debug + PartialEq + Send + Sync;

    /// Keys that the table is likely to be asked for, as many as GPUs take at a time.
    fn sample(model: &Self::Model, fleet: &Fleet) -> Self::Owned;

    /// The hint that a sample of keys gives, for a table whose lookups depend on the first `reach` bits.
    fn key_hint<'k>(keys: Self::Keys<'k>, reach: u8) -> KeyHint<'k, Self>;

    /// Views answers as results of an engine.
    fn results(answers: &mut [Self::Answer]) -> &mut [Self::Result];

    /// Replaces numbers of pairs in answers by their next hops, in domains that have such numbers.
    #[doc(hidden)]
    fn take_apart(_: &MatchIds, _: &mut [Self::Answer]) {}

    /// The default options of GPUs for this domain.
    fn gpu_options() -> GpuOptions;

    /// Bytes of `Beside` in memory, for one copy of a live table.
    fn memory_of(beside: &Self::Beside) -> u64 {
        let _ = beside;
        0
    }

    /// Compiles a table.
    fn compile(
        engine: EngineName,
        source: &Self::Source,
        options: &BuildOptions,
    ) -> Built<Compiled<Self>, BuildError>;

    /// Checks an image and makes its table.
    fn adopt(engine: EngineName, image: Image) -> Built<Box<dyn AnyTable<Self>>, ImageError>;

    /// Checks an image and makes a reader of its table and of `beside`.
    fn open(
        engine: EngineName,
        image: Image,
        beside: Self::Beside,
    ) -> Built<Arc<dyn AnyReader<Self>>, ImageError>;

    /// Builds a live table.
    fn live(
        engine: EngineName,
        model: Self::Model,
        options: BuildOptions,
        wanted: Wanted<Self>,
    ) -> Built<Box<dyn AnyLive<Self>>, BuildError>;

    /// Builds a live table of the engine `auto`. For addresses it chooses the engine again at each build. The
    /// kind of the table's image tells the engine: [`of_kind`](super::of_kind).
    fn live_auto(
        model: Self::Model,
        options: BuildOptions,
        wanted: Wanted<Self>,
    ) -> Result<Box<dyn AnyLive<Self>>, BuildError> {
        let engine = Self::best(model.source());
        Self::live(engine, model, options, wanted).expect("the best engine is of the domain")
    }

    /// Makes a live table of the engine `auto` like [`resume`](Self::resume). The first update chooses an
    /// engine.
    fn resume_auto(
        model: Self::Model,
        image: Image,
        options: BuildOptions,
        wanted: Wanted<Self>,
    ) -> Result<Box<dyn AnyLive<Self>>, ImageError> {
        let engine = Self::best(model.source());
        Self::resume(engine, model, image, options, wanted).expect("the best engine is of the domain")
    }

    /// Makes a live table of an image that was compiled from the same model. The first update builds it anew.
    fn resume(
        engine: EngineName,
        model: Self::Model,
        image: Image,
        options: BuildOptions,
        wanted: Wanted<Self>,
    ) -> Built<Box<dyn AnyLive<Self>>, ImageError>;
}

/// The methods of [`Served`] that make tables. They are not generic here, so this crate compiles them.
macro_rules! makers {
    () => {
        fn compile(
            engine: EngineName,
            source: &Self::Source,
            options: &BuildOptions,
        ) -> Built<Compiled<Self>, BuildError> {
            visit(engine, Compile { engine, source, options })
        }

        fn adopt(engine: EngineName, image: Image) -> Built<Box<dyn AnyTable<Self>>, ImageError> {
            visit(engine, Adopt(image))
        }

        fn open(
            engine: EngineName,
            image: Image,
            beside: Self::Beside,
        ) -> Built<Arc<dyn AnyReader<Self>>, ImageError> {
            visit(engine, Open { image, beside })
        }

        fn live(
            engine: EngineName,
            model: Self::Model,
            options: BuildOptions,
            wanted: Wanted<Self>,
        ) -> Built<Box<dyn AnyLive<Self>>, BuildError> {
            visit(engine, GoLive { model, options, wanted })
        }

        fn resume(
            engine: EngineName,
            model: Self::Model,
            image: Image,
            options: BuildOptions,
            wanted: Wanted<Self>,
        ) -> Built<Box<dyn AnyLive<Self>>, ImageError> {
            visit(engine, Resume { model, image, options, wanted })
        }
    };
}

macro_rules! addresses {
    ($address:ty, $auto:ty) => {
        impl Served for $address {
            type Beside = ();
            type Remote = ip::Remote<Self>;
            type Owned = AddressKeys<Self>;
            type Answer = NextHop;

            fn results(answers: &mut [NextHop]) -> &mut [NextHop] {
                answers
            }

            fn take_apart(ids: &MatchIds, answers: &mut [NextHop]) {
                ids.pairs().next_hops(answers);
            }

            /// Random addresses within random prefixes of the table: most random addresses of IPv6 are in
            /// none. For an empty table random addresses.
            fn sample(rib: &Rib<Self>, fleet: &Fleet) -> AddressKeys<Self> {
                let prefixes: Vec<_> = rib.iter().map(|(prefix, _)| prefix).collect();
                let mut rng = Rng::new(1);
                let mut address = || {
                    let random = rng.bits128();
                    let prefix = match &prefixes[..] {
                        [] => Prefix::DEFAULT,
                        prefixes => prefixes[rng.index(prefixes.len())],
                    };
                    let [first, last] =
                        [prefix.address(), prefix.last()].map(|address| u128::from(address.0));
                    Self::from_u128_low(first | random & (first ^ last))
                };
                (0..sample_size(fleet)).map(|_| address()).collect::<Vec<_>>().into()
            }

            fn key_hint<'k>(addresses: Self::Keys<'k>, reach: u8) -> KeyHint<'k, Self> {
                (reach, addresses)
            }

            fn gpu_options() -> GpuOptions {
                GpuOptions::default()
            }

            fn live_auto(
                model: Rib<Self>,
                options: BuildOptions,
                wanted: (),
            ) -> Result<Box<dyn AnyLive<Self>>, BuildError> {
                GoLive { model, options, wanted }.visit::<$auto>()
            }

            fn resume_auto(
                model: Rib<Self>,
                image: Image,
                options: BuildOptions,
                wanted: (),
            ) -> Result<Box<dyn AnyLive<Self>>, ImageError> {
                Resume { model, image, options, wanted }.visit::<$auto>()
            }

            makers!();
        }
    };
}

addresses!(V4, AutoV4);
addresses!(V6, AutoV6);

#[cfg(feature = "names")]
impl Served for NameDomain {
    type Beside = ();
    type Remote = names::Remote;
    type Owned = NameKeys;
    type Answer = NextHop;

    fn results(answers: &mut [NextHop]) -> &mut [u32] {
        bytemuck::cast_slice_mut(answers)
    }

    /// Random names of the table, each with two random components after it, so that lookups pass the end of
    /// the name that matches. For an empty table these components alone.
    fn sample(model: &NameModel, fleet: &Fleet) -> NameKeys {
        let (mut entries, mut sample) = (NameBatch::new(), NameBatch::new());
        for (name, _) in model.names().iter() {
            if entries.push(&name).is_err() {
                break; // those before are enough
            }
        }
        let mut rng = Rng::new(1);
        for _ in 0..sample_size(fleet) {
            let mut name = NameBuf::root();
            if !entries.is_empty() {
                name = entries.names().name(rng.index(entries.len())).to_owned();
            }
            for _ in 0..2 {
                // A name that has the greatest length stays as it is.
                name.push(format!("{:010x}", rng.bits() >> 24).as_bytes()).ok();
            }
            if sample.push(&name).is_err() {
                break;
            }
        }
        #[allow(clippy::useless_conversion)] // without GPUs there is one kind of memory
        sample.into()
    }

    fn key_hint<'k>(names: Self::Keys<'k>, _: u8) -> KeyHint<'k, Self> {
        names
    }

    fn gpu_options() -> GpuOptions {
        GpuOptions {
            slots: vec![
                SlotSize { slots: 64, keys: 1 << 14 },
                SlotSize { slots: 48, keys: 1 << 16 },
                SlotSize { slots: 8, keys: 1 << 18 },
            ],
            key_bytes: NAME_BYTES,
            result_bytes: size_of::<Match>(),
            ..GpuOptions::default()
        }
    }

    makers!();
}

#[cfg(feature = "rules")]
macro_rules! tuples {
    ($tuple:ty) => {
        impl Served for $tuple {
            type Beside = RuleFacts<Self>;
            type Remote = classify::Remote<Self>;
            type Owned = TupleKeys<Self>;
            type Answer = u32;

            fn results(answers: &mut [u32]) -> &mut [u32] {
                answers
            }

            fn sample(rules: &RuleSet<Self>, fleet: &Fleet) -> TupleKeys<Self> {
                wirespeed_classify::drawn::tuples(rules, sample_size(fleet), 1.0, 1).into()
            }

            fn key_hint<'k>(tuples: Self::Keys<'k>, _: u8) -> KeyHint<'k, Self> {
                tuples
            }

            fn gpu_options() -> GpuOptions {
                GpuOptions {
                    key_bytes: <Self as wirespeed_classify::Tuple>::PACKED,
                    result_bytes: size_of::<u32>(),
                    ..GpuOptions::default()
                }
            }

            fn memory_of(beside: &RuleFacts<Self>) -> u64 {
                beside.memory_usage()
            }

            makers!();
        }
    };
}

#[cfg(feature = "rules")]
tuples!(Ipv4Tuple);
#[cfg(feature = "rules")]
tuples!(Ipv6Tuple);
#[cfg(feature = "rules")]
tuples!(OpenFlowTuple);
#[cfg(feature = "rules")]
tuples!(OpenFlow13Tuple);

/// Keys of a sample that GPUs are measured with.
fn sample_size(fleet: &Fleet) -> usize {
    fleet.largest_batch().clamp(MEASURED, 1 << 18)
}
