//! The figures of the MATA paper (Wang et al., "Wire Speed Name Lookup: A GPU-based Approach", NSDI 2013),
//! made anew with this project's engines: the paper's structures and ours beside them.
//!
//! | here | in the paper |
//! |---|---|
//! | [`device::whole_batches`], [`device::streams`], [`model`] | Figures 4 and 5, section 3: batches whole and by streams, and formulas 1 and 2 |
//! | [`memory`] | Section 6.1: memory; section 6.2.2's one thread of a CPU |
//! | [`device::points`] | Figures 9 to 16: throughput and latency over blocks, threads and streams |
//! | [`device::bus`] | Figures 17 and 18: whole trips beside the bus |
//! | [`device::kernels`] | Figures 19 and 20: kernels alone |
//! | [`growth`] | Figures 21 to 24: growth of throughput, memory, latency and update rates |
//!
//! ```text
//! cargo xtask mata-paper                              all; writes benches/record/MACHINE/DATE-mata-paper-….csv and .svg
//! cargo xtask mata-paper -- --figures growth,memory   some; these two are also made without a GPU
//! cargo xtask mata-paper -- --names 2000000 --dry     a smaller large table; prints, and writes nothing
//! ```
//!
//! What stands for what: real domains for the paper's 3M table, the same and made ones up to ten million for
//! its 10M table. `stt`, `ata` (one byte a step) and `mata` get names as they lie, with an end of each;
//! `mata-nw` gets MATA's table and interleaved names; `acta` is ours, with packed names. A "stream" is a part
//! of a batch that is copied, looked up and copied back by itself, as in Algorithm 1.

pub mod device;
pub mod growth;
pub mod memory;
pub mod model;
pub mod pipeline;
pub mod subject;
