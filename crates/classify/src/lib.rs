//! Packet classification: which of many rules with masks and priorities a packet's header fields match.
//!
//! ```text
//! filters, flows, ACLs ──► RuleSet ──build──► (ClassifyEngine, Table)     Table: an image that looks up
//!                             │ updates
//!                             └──► the rules that changed ──ClassifyEngine::update──► Patch ──► every copy of the Table
//! ```
//!
//! A packet's header fields are a [`Tuple`]: the 5-tuple of [`Ipv4Tuple`] or [`Ipv6Tuple`], or the 12 fields of [`OpenFlowTuple`]. A
//! [`Rule`] says which bits it looks at and what they are, with a priority and an action that is the user's own. A lookup gives the
//! [number](RuleNumber) of the best rule that matches, 0 where none does. Best is, everywhere alike: the highest priority, and
//! among equals the lowest number, which is the rule that was inserted first ([`Rank`]).

mod classes;
mod expand;
mod live;
mod lookup;
pub mod oracle;
mod rank;
mod rule;
mod rules;
mod text;
pub mod tuple;

pub use classes::{Class, Classes};
pub use expand::{FieldRange, MOST_PATTERNS};
pub use live::{LiveRules, RuleUpdate, UpdateError};
pub use lookup::{BuildError, BuildOptions, Classify, ClassifyEngine, Load, Outgrown, Step};
pub use rank::{Rank, RuleNumber};
pub use rule::{Pattern, Rule, RuleError};
pub use rules::{Changed, Entry, RuleSet};
pub use text::RuleTextError;
pub use tuple::{FrameError, Ipv4Tuple, Ipv6Tuple, OpenFlowTuple, Tuple, TupleError};
pub use wirespeed_fib::Applied;
