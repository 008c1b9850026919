//! The data plane: tables of flows, groups, meters, ports, and packets on their way through them.
//!
//! ```text
//! controller ─► Control: checks ─ changes ─► Versions of State, two ◄─ read ─ workers: Run over chunks
//!                  ▲ timers                     tables, groups, meters, ports, front
//!                  └──── counters by worker, in the flows, groups, meters and ports themselves ────┘
//! ```

pub(crate) mod answers;
pub(crate) mod class;
pub(crate) mod control;
pub(crate) mod counts;
pub(crate) mod edit;
mod extract;
pub(crate) mod flow;
pub(crate) mod front;
mod gathered;
mod group;
mod groups;
pub(crate) mod hit;
pub(crate) mod hot;
pub(crate) mod journal;
pub(crate) mod learn;
mod meter;
pub(crate) mod numbering;
mod parse;
pub(crate) mod row;
pub(crate) mod run;
mod set;
pub(crate) mod state;
pub(crate) mod table;
mod timers;
mod turns;
mod uses;
mod versions;
