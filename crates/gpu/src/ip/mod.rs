//! IP lookup: a program for each engine's image. One file an engine, beside its kernel's source in `kernels`.

mod dir24;
mod gamt;
mod sail_l;
mod sail_m;

pub use sail_m::programs_with_fibs;
