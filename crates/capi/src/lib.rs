//! Wirespeed for C and C++: the façade behind the functions of `include/wirespeed.h`.
//!
//! ```text
//! C ──► boundary: pointers become references and slices, panics and errors become a status ──► façade
//! ```
//!
//! The header's head has the rules for all functions, and each function's documentation is its comment there.
//! `README.md` shows the way from `rte_fib`, `examples/lookup.c` a whole program.
//!
//! Errors come as text by thread, as those of `dlopen` do, and not by a parameter. So a lookup keeps the
//! shape of `rte_fib_lookup_bulk`, and no caller has to free a message.
//!
//! Next hops, results and actions are numbers. A table has either numbers of the caller's own, or labels:
//! texts, each with a number that the table gives. A label keeps its number until the caller says that it
//! holds none any more, so a text that a function returned stays where it is.

#![allow(non_camel_case_types)] // as C writes them
#![allow(clippy::missing_safety_doc)] // the rules for all pointers are in the header's head

mod boundary;
mod labels;
mod live;
mod names;
mod options;
mod reader;
mod rules;
mod table;

pub use boundary::{ws_last_error, ws_status, ws_version};
pub use names::*;
pub use options::ws_options;
pub use reader::*;
pub use rules::*;
pub use table::*;
