//! Options, readers and messages that the programs of Wirespeed share: `lookupctl`, and `wirespeed-parquet`
//! in a workspace of its own.
//!
//! ```text
//! options ─► enrich::TableArguments ─► Spec, one for each table ─► Followed ─► Versions: what answers
//!                 │
//! names of columns ─► enrich::Shape: keys to look up, columns to add
//! ```
//!
//! [`enrich`] has what adds columns to records, whatever their format. [`rules`] reads sets of rules, and
//! says of each answer whether it is certain. The other modules are for messages.

/// Prints a line to stderr, with control characters escaped. A closed stderr is ignored, where std's
/// `eprintln!` panics.
#[macro_export]
macro_rules! tell {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), "{}", $crate::escaped::Escaped(format_args!($($text)*)));
    }};
}

pub mod busy;
pub mod enrich;
pub mod escaped;
pub mod family;
pub mod number;
pub mod one_line;
pub mod refuse;
pub mod routes;
pub mod rules;
pub mod stdin;
