//! The façade against the oracle: every engine in the list, both families, before, during and after updates,
//! from every source, and through every kind of reader and key.

#![allow(clippy::unwrap_used)] // in what the tests share, too

mod batches;
mod batches_of_all;
mod batches_of_results;
mod changing;
mod classify;
mod classify_doubts;
mod classify_gpu;
mod collector;
mod common;
mod gpu;
mod images;
mod ip_images;
mod ip_table;
mod labels;
mod live;
mod longest_prefix;
mod names;
mod names_gpu;
mod old_images;
mod on_device;
mod prefixes;
mod refused;
mod replace;
mod replace_names;
mod replace_rules;
mod scattered;
mod sharing;
mod sources;
mod vrf_images;
mod vrfs;
