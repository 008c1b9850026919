//! Controllers: what they ask and are answered, half messages, floods and lies, roles, and real controllers
//! where they are installed.

#![allow(clippy::cast_possible_truncation, clippy::unwrap_used)] // every function here is a test or helps one

mod messages;
mod requests;
mod tcp;
mod tools;
