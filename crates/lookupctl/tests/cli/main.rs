//! The binary as its users run it: every verb on small tables, its exit status, its JSON, and what it says of
//! bad input.

#![allow(clippy::unwrap_used)] // every function here is a test or helps one

mod bad_input;
#[path = "../../../feeds/tests/senders/bmp.rs"]
#[allow(dead_code, reason = "tests of feeds use more of it")]
mod bmp;
mod build;
mod classify;
mod common;
mod completions;
mod csv;
mod devices;
mod documents;
mod enrich;
mod generate;
mod info;
mod inputs;
mod lookup;
mod mmdb;
mod names;
mod published;
mod refused;
mod replay;
mod route;
mod route_esp;
mod route_openflow;
mod route_sources;
mod rov;
mod several;
mod strides;
mod verify;
