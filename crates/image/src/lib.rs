//! Compiled lookup tables.
//!
//! An [`Image`] is a few named flat sections of plain integers under a versioned header. The CPU looks up in
//! the same bytes that a file holds and that a GPU gets. The data plane of an engine is a [`Table`]: an image
//! of the engine's kind, checked once and read in place.
//!
//! ```text
//! ImageBuilder ──► Image ──► write ──► file ──► open (copied) or map (in place) ──► Image ──► Table::from_image
//!                    ▲
//!   PatchBuilder ──► Patch: each location at most once, with its final value ──► every copy, in the same order
//! ```
//!
//! [`live`] keeps two copies of a table, so that readers never wait while patches are applied. With
//! [`device`] an engine says which kernels look up on a GPU, with which arguments.
//!
//! `unsafe` is used in six places: [`Image::map`], whose caller promises that nobody writes to the mapped
//! file; the pointer to an image's bytes, which saves lookups the indirection through the map; the sections
//! that two live copies share; the two copies themselves, which [`left_right`] keeps; the advice about pages
//! of [`HugeVec`]; and [`prefetch`]. A seventh is in the allocator that tests count by.

// Users print what they get, and keep it in types of their own that derive `Debug`.
#![warn(missing_debug_implementations)]

#[cfg(feature = "conformance")]
mod allocations;
mod changes;
pub mod device;
mod elements;
mod error;
mod fetch;
mod format;
mod front;
mod huge;
mod image;
mod index;
pub mod left_right;
pub mod live;
mod patch;
mod pool;
#[cfg(feature = "conformance")]
mod real_data;
mod replace_file;
#[cfg(feature = "conformance")]
pub mod rounds;
mod section;
mod shared;
#[cfg(any(test, feature = "conformance"))]
mod stop;
mod storage;
mod table;

#[cfg(feature = "conformance")]
pub use allocations::Counting;
pub use changes::{Changes, Elements, WORD};
pub use error::{ImageError, PatchError};
pub use fetch::{prefetch, prefetch_all, prefetch_at, prefetch_once_at, prefetch_outer_at};
pub use huge::HugeVec;
pub use image::{
    Column, Element, Image, ImageBuilder, Padded, SectionUsage, Shared, SharedColumn, number, width_for,
};
pub use index::{At, Index};
pub use patch::{Patch, PatchBuilder, Write};
pub use pool::Pool;
#[cfg(feature = "conformance")]
pub use real_data::real_data;
pub use replace_file::replace_file;
pub use section::SectionId;
pub use shared::{Placed, SharedPool};
#[cfg(feature = "conformance")]
pub use stop::Stop;
pub use table::{Checked, Outgrown, Step, Table};

#[cfg(target_endian = "big")]
compile_error!("images are little-endian and read in place: a big-endian target is not supported");
