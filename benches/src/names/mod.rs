//! Names: tables, traces, engines beside rivals, and updates.
//!
//! ```text
//! real domains, made ones ──► NameTable ──► Lane (one per engine and rival)          lineup
//!       (data)                   └─► trace ──► expected results ──check──► rounds    contest ──► crate::report
//!                                └─► churn ──► engine alone, LiveNames, beside lookups   update
//! ```
//!
//! ```text
//! cargo xtask record names      all of it on a core       ──► record/MACHINE/DATE-names.csv
//! cargo xtask mata-paper        the MATA paper's figures  ──► record/MACHINE/DATE-mata-paper-….csv and .svg
//! ```

pub mod contest;
pub mod data;
pub mod lane;
pub mod lineup;
pub mod rivals;
pub mod update;
