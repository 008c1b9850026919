//! Files and streams for the readers of routes, names and rules.
//!
//! ```text
//! Source ─► open ─► gzip, bzip2, zstd by magic number ─► Input: bytes and lines that know their place
//!    └────► Again: the same from its start more than once, kept where it can't be opened twice
//! ```
//!
//! The features `gzip`, `bzip2` and `zstd`, together `compression` and on by default, decompress. A file with
//! a compression that the build leaves out is refused by an error that names the feature.
//!
//! The readers report the content of files and its errors. This crate only opens files, and fails with an
//! [`OpenError`].
//!
//! ```
//! use wirespeed_input::{Input, Line};
//!
//! let mut input = Input::new(Box::new(&b"10.0.0.0/8 a\n::/0 b"[..]), "routes".into())?;
//! let mut lengths = Vec::new();
//! while let Some(Line::Whole(line)) = input.next_line()? {
//!     lengths.push(line.len());
//! }
//! assert_eq!((lengths, input.lines_read()), (vec![12, 6], 2));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod input;
mod plural;
mod replay;
mod source;

pub use input::{Compression, Input, Line};
pub use plural::plural;
pub use source::{Again, OpenError, Source, open};
