//! Packet classification: which of many rules with masks and priorities a packet's header fields match.
//!
//! ```text
//! filters, flows, ACLs ──► RuleSet ──build──► (Engine, Table)     Table: an image that looks up
//!                             │ updates
//!                             └──► the rules that changed ──Engine::patch──► Patch ──► every copy of the Table
//! ```
//!
//! A packet's header fields are a [`Tuple`]: the 5-tuple of [`Ipv4Tuple`] or [`Ipv6Tuple`], the 12 fields of
//! [`OpenFlowTuple`], or the fields of OpenFlow 1.3 in an [`OpenFlow13Tuple`]. A [`Rule`] has the bits that
//! it looks at and their values, a priority, and an action that the user defines. A lookup gives the
//! [number](RuleNumber) of the best rule that matches, or 0 if no rule matches. The best rule has the highest
//! priority, and among equal priorities the lowest number: that rule was inserted first ([`Rank`]).
//!
//! # An ACL in a proxy
//!
//! Rules come from a file or from an administrator. Each connection is a lookup.
//!
//! ```
//! use wirespeed_classify::linear::Linear;
//! use wirespeed_classify::{BuildOptions, EditRules, Ipv4Tuple, LiveRules, Lookup, Rule, RuleSet};
//!
//! const ALLOW: u32 = 1;
//! const DENY: u32 = 0;
//! let mut rules = RuleSet::new();
//! for (text, action) in [
//!     ("src=10.0.0.0/8 dport=443 proto=tcp priority=20", ALLOW),
//!     ("src=10.66.0.0/16 priority=30", DENY),
//!     ("dport=1024-65535 proto=udp priority=10", ALLOW),
//! ] {
//!     rules.insert(text.parse::<Rule<Ipv4Tuple>>()?.with_action(action))?;
//! }
//! let mut acl: LiveRules<Ipv4Tuple, Linear<Ipv4Tuple>> = LiveRules::new(rules, BuildOptions::default())?;
//!
//! // Any thread:
//! let reader = acl.reader();
//! let connection: Ipv4Tuple = "src=10.66.1.2 dst=192.0.2.1 sport=40000 dport=443 proto=tcp".parse()?;
//! let number = reader.enter().lookup(&connection);
//! assert_eq!(acl.model().action(number).unwrap_or(DENY), DENY);
//!
//! // The administrator takes the second rule out, and lookups go on all the while.
//! acl.remove(number)?;
//! let number = reader.enter().lookup(&connection);
//! assert_eq!(acl.model().action(number), Some(ALLOW));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # An OpenFlow-like switch
//!
//! Frames come in batches. Each frame becomes a tuple, and one call looks up the batch.
//!
//! ```
//! use wirespeed_classify::linear::Linear;
//! use wirespeed_classify::{BuildOptions, Engine, Lookup, OpenFlowTuple, Rule, RuleSet, Tuple};
//!
//! let flows = ["in_port=1 dl_type=0x0800 nw_dst=10.0.0.0/8 priority=100 action=2", "priority=0 action=9"];
//! let flows: Vec<Rule<OpenFlowTuple>> = flows.iter().map(|flow| flow.parse()).collect::<Result<_, _>>()?;
//! let rules: RuleSet<OpenFlowTuple> = flows.into_iter().collect();
//! let (_, table) = Linear::<OpenFlowTuple>::build(&rules, &BuildOptions::default())?;
//!
//! let mut frame = [0; 60];
//! frame[12..14].copy_from_slice(&[0x08, 0x00]);
//! frame[14] = 0x45;
//! frame[30..34].copy_from_slice(&[10, 1, 2, 3]);
//! let tuples = [OpenFlowTuple::of_frame(1, &frame)?, OpenFlowTuple::of_frame(2, &frame)?];
//! let mut numbers = [0; 2];
//! table.lookup_batch(&tuples, &mut numbers);
//! assert_eq!(numbers, [1, 2]);
//! assert_eq!(numbers.map(|number| rules.action(number)), [Some(2), Some(9)]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

// Users print what they get, and keep it in types of their own that derive `Debug`.
#![warn(missing_debug_implementations)]

mod actions;
#[cfg(feature = "papers")]
pub mod bloom;
mod classes;
#[cfg(feature = "conformance")]
pub mod conformance;
mod domain;
pub mod drawn;
mod error;
mod expand;
mod free;
#[cfg(feature = "synth")]
pub mod generate;
pub mod kernel;
mod limits;
pub mod linear;
mod numbers;
pub mod oracle;
mod pattern;
mod patterns;
pub mod quilt;
mod rank;
#[cfg(feature = "text")]
pub mod read;
mod regions;
mod rule;
mod rules;
mod seeded;
mod spans;
mod text;
#[cfg(feature = "papers")]
pub mod tss;
pub mod tuple;
#[cfg(feature = "papers")]
pub mod tuple_search;
mod update;
pub mod write;

pub use actions::{Actions, ActionsChange};
pub use classes::{Class, Classes};
pub use domain::{EditRules, LiveRules, UpdateError};
pub use error::RuleError;
pub use expand::{FieldRange, MOST_PATTERNS};
pub use limits::{ENTRIES_A_RULE, MOST_ENTRIES};
pub use pattern::Pattern;
pub use patterns::Patterns;
pub use rank::{Rank, RuleNumber};
pub use rule::Rule;
pub use rules::{Changed, Entry, RuleSet};
pub use text::RuleTextError;
pub use tuple::{
    FrameError, Ipv4Tuple, Ipv6Tuple, OpenFlow13Tuple, OpenFlowTuple, Tuple, TupleError, VLAN_NONE,
};
pub use update::RuleUpdate;
pub use wirespeed_table::{
    Applied, BuildError, BuildOptions, Companion, Engine, Load, Lookup, Outgrown, Standing, Step,
};

wirespeed_table::whole! {
    Ipv4Tuple, linear::Linear<Ipv4Tuple>;
    Ipv4Tuple, quilt::Quilt<Ipv4Tuple>;
    Ipv6Tuple, linear::Linear<Ipv6Tuple>;
    Ipv6Tuple, quilt::Quilt<Ipv6Tuple>;
    OpenFlowTuple, linear::Linear<OpenFlowTuple>;
    OpenFlowTuple, quilt::Quilt<OpenFlowTuple>;
    OpenFlow13Tuple, linear::Linear<OpenFlow13Tuple>;
    OpenFlow13Tuple, quilt::Quilt<OpenFlow13Tuple>;
}
#[cfg(feature = "papers")]
wirespeed_table::whole! {
    Ipv4Tuple, tuple_search::TupleSearch<Ipv4Tuple>;
    Ipv4Tuple, bloom::BloomSearch<Ipv4Tuple>;
    Ipv6Tuple, tuple_search::TupleSearch<Ipv6Tuple>;
    Ipv6Tuple, bloom::BloomSearch<Ipv6Tuple>;
    OpenFlowTuple, tuple_search::TupleSearch<OpenFlowTuple>;
    OpenFlowTuple, bloom::BloomSearch<OpenFlowTuple>;
}
