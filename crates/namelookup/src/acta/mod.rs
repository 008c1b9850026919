//! ACTA, the aligned component transition array: the engine of our own.
//!
//! The paper's aligned transition array (MATA, section 4) takes characters, or a few at a time, and checks a transition by the
//! input that is stored with it. Here the input is a whole component: state plus hash of the component is the place, and the stored
//! component verifies it, so that nothing is ever matched by a hash alone. See [`layout`] for the sections.

mod build;
pub mod hash;
pub mod layout;
mod long;
mod lookup;
mod place;
mod simd;
#[cfg(test)]
mod tests;
mod update;

pub use build::Acta;
pub use layout::ActaTable;
