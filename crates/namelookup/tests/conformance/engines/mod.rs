//! Tests of single engines beside the suite: names that are hard for their layouts, and what only they have.

mod acta;
mod aligned;
mod lists;
mod long_components;
