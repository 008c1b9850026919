//! IP lookup: a program for each engine's image. One file an engine, beside its kernel's source in `kernels`.

mod dir24;
mod fold_hot;
