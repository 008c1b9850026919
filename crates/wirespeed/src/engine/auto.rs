//! The engine `auto` of addresses: one of several engines, chosen again whenever the table is built.
//!
//! A table that outgrows its engine asks to be rebuilt, like a table that outgrows a section. So another
//! engine comes beside the readers as a rebuilt table does: they look up in the old table until the new one
//! is ready, copies on GPUs follow, caps hold, and a build that fails leaves the old table.

use wirespeed_fib::{
    BuildError, BuildOptions, Engine, Lookup, NextHop, Outgrown, Prefix, Rib, Standing, Step, Strides, V4, V6,
};
use wirespeed_image::device::{Constants, OnDevice, Programs, Sections, Stem};
use wirespeed_image::{Checked, Image, ImageError, Patch, PatchError, SectionId, Table};

use super::best::{SMALL_TABLE, addresses, addresses_on_gpu};
use super::{AUTO, EngineName};

/// A table that shrinks below this part of a small table's routes gets the engine of small tables, so that a
/// table near the limit does not change engines again and again.
const SHRUNK: usize = SMALL_TABLE / 2;

/// Whether a table of this many routes should have the engine of small tables, if it has it now or not.
fn is_small(is_now: bool, routes: usize) -> bool {
    routes < if is_now { SMALL_TABLE + 1 } else { SHRUNK }
}

/// The engines to try, in order and with whether they leave almost no head room, for a table that is over a
/// stated cap with `best`. A default cap has none: it is so far over the table's needs that the routes are
/// wrong, and not the engine.
fn smaller_than(best: EngineName, options: &BuildOptions) -> impl Iterator<Item = (EngineName, bool)> {
    let is_stated = options.memory_by_entries.is_none();
    let others =
        [EngineName::Waldvogel, EngineName::Forest].into_iter().filter(move |&engine| engine != best);
    let all = std::iter::once((best, true)).chain(others.map(|engine| (engine, options.tight)));
    all.filter(move |_| is_stated)
}

/// Makes an engine and its table of a choice of engines.
macro_rules! auto {
    ($family:ty, $kind:literal, $engine:ident, $chosen:ident, $table:ident { $($variant:ident: $of:ty),+ $(,)? }) => {
        /// The engine that suits the routes, chosen at each build.
        pub(super) struct $engine {
            chosen: $chosen,
            /// Whether the number of routes may ask for another engine: no GPU looks up, as the engine of
            /// small tables is not for GPUs, and the table does not have that engine for another reason.
            is_by_size: bool,
        }

        /// An engine that was chosen.
        #[allow(clippy::large_enum_variant)] // a table has one
        enum $chosen {
            $($variant($of)),+
        }

        /// The table of the engine that was chosen.
        #[derive(Clone)]
        pub(super) enum $table {
            $($variant(<$of as Engine<$family>>::Table)),+
        }

        impl Engine<$family> for $engine {
            const NAME: &'static str = AUTO;
            const STANDING: Standing = Standing::Recommended;
            type Table = $table;

            fn build(rib: &Rib<$family>, options: &BuildOptions) -> Result<(Self, $table), BuildError> {
                let has_gpu = options.strides == Strides::FastestOnGpu;
                let of = if has_gpu { addresses_on_gpu } else { addresses };
                let best = of(rib, options.results);
                let mut built = Self::of(best, rib, options);
                for (smaller, tight) in smaller_than(best, options) {
                    if !matches!(built, Err(BuildError::Image(ImageError::OverCap { .. }))) {
                        break;
                    }
                    // If nothing fits, the error is that of the best engine.
                    built = Self::of(smaller, rib, &BuildOptions { tight, ..options.clone() }).or(built);
                }
                let (chosen, table) = built?;
                let is_small = rib.len() <= SMALL_TABLE;
                let is_by_size = !has_gpu && (is_small || !matches!(chosen, $chosen::Forest(_)));
                Ok((Self { chosen, is_by_size }, table))
            }

            fn take(
                &mut self,
                table: &$table,
                rib: &Rib<$family>,
                changed: &[Prefix<$family>],
            ) -> Result<(), Outgrown> {
                match (&mut self.chosen, table) {
                    $(($chosen::$variant(engine), $table::$variant(table)) => engine.take(table, rib, changed),)+
                    _ => Err(Outgrown("engine")),
                }
            }

            fn patch(
                &mut self,
                table: &$table,
                rib: &Rib<$family>,
                changed: &[Prefix<$family>],
            ) -> Result<Patch, Outgrown> {
                let is_now = matches!(self.chosen, $chosen::Forest(_));
                if self.is_by_size && is_small(is_now, rib.len()) != is_now {
                    return Err(Outgrown("engine"));
                }
                match (&mut self.chosen, table) {
                    $(($chosen::$variant(engine), $table::$variant(table)) => engine.patch(table, rib, changed),)+
                    _ => Err(Outgrown("engine")),
                }
            }

            fn unpublished(&mut self) {
                match &mut self.chosen {
                    $($chosen::$variant(engine) => engine.unpublished()),+
                }
            }

            fn memory_usage(&self) -> u64 {
                match &self.chosen {
                    $($chosen::$variant(engine) => engine.memory_usage()),+
                }
            }
        }

        impl $engine {
            /// Builds the table with an engine.
            fn of(
                engine: EngineName,
                rib: &Rib<$family>,
                options: &BuildOptions,
            ) -> Result<($chosen, $table), BuildError> {
                $(if engine == EngineName::$variant {
                    let (engine, table) = <$of>::build(rib, options)?;
                    return Ok(($chosen::$variant(engine), $table::$variant(table)));
                })+
                unreachable!("{engine} is not one of {}", stringify!($($variant),+))
            }
        }

        impl Table for $table {
            const KIND: &'static str = $kind;
            const LAYOUT: u32 = 0;

            fn from_image(image: Image) -> Result<Self, ImageError> {
                $(if image.kind() == <$of as Engine<$family>>::Table::KIND {
                    return Table::from_image(image).map(Self::$variant);
                })+
                Err(ImageError::Kind { found: image.kind().to_owned(), wanted: Self::KIND })
            }

            fn image(&self) -> &Image {
                match self {
                    $(Self::$variant(table) => table.image()),+
                }
            }

            fn image_mut(&mut self, checked: Checked) -> &mut Image {
                match self {
                    $(Self::$variant(table) => table.image_mut(checked)),+
                }
            }

            fn share(&mut self, checked: Checked) {
                match self {
                    $(Self::$variant(table) => table.share(checked)),+
                }
            }

            fn twin(&self, checked: Checked) -> Self {
                match self {
                    $(Self::$variant(table) => Self::$variant(table.twin(checked))),+
                }
            }

            fn admits(&self, section: SectionId, value: u64, results: u64) -> bool {
                match self {
                    $(Self::$variant(table) => table.admits(section, value, results)),+
                }
            }

            fn admits_at(&self, section: SectionId, index: u64, value: u64, results: u64) -> bool {
                match self {
                    $(Self::$variant(table) => table.admits_at(section, index, value, results)),+
                }
            }

            fn admits_any(&self, section: SectionId) -> bool {
                match self {
                    $(Self::$variant(table) => table.admits_any(section)),+
                }
            }

            // Without the choice of an engine for each write.
            fn check(&self, patch: &Patch) -> Result<(), PatchError> {
                match self {
                    $(Self::$variant(table) => table.check(patch)),+
                }
            }
        }

        impl Lookup<$family> for $table {
            #[inline]
            fn lookup(&self, key: $family) -> NextHop {
                match self {
                    $(Self::$variant(table) => Lookup::<$family>::lookup(table, key)),+
                }
            }

            fn lookup_batch(&self, keys: &[$family], results: &mut [NextHop]) {
                match self {
                    $(Self::$variant(table) => Lookup::<$family>::lookup_batch(table, keys, results)),+
                }
            }

            fn shape(&self) -> Option<String> {
                match self {
                    $(Self::$variant(table) => Lookup::<$family>::shape(table)),+
                }
            }

            fn explain(&self, key: $family) -> Vec<Step> {
                match self {
                    $(Self::$variant(table) => Lookup::<$family>::explain(table, key)),+
                }
            }
        }

        impl OnDevice for $table {
            fn kernels() -> Vec<Stem> {
                [$(<$of as Engine<$family>>::Table::kernels()),+].concat()
            }

            fn constants() -> Vec<Constants> {
                [$(<$of as Engine<$family>>::Table::constants()),+].concat()
            }

            fn programs(&self, sections: Sections<'_>) -> Programs {
                match self {
                    $(Self::$variant(table) => table.programs(sections)),+
                }
            }
        }
    };
}

auto! { V4, "auto-v4", AutoV4, ChosenV4, AutoTableV4 {
    Forest: wirespeed_forest::ForestOf<V4>,
    Fold: wirespeed_fold::FoldV4,
    Rank: wirespeed_rank::Rank,
    FoldHot: wirespeed_fold::FoldHot,
    Waldvogel: wirespeed_waldvogel::Waldvogel<V4>,
} }

auto! { V6, "auto-v6", AutoV6, ChosenV6, AutoTableV6 {
    Forest: wirespeed_forest::ForestOf<V6>,
    Fold: wirespeed_fold::FoldV6,
    Waldvogel: wirespeed_waldvogel::Waldvogel<V6>,
} }
