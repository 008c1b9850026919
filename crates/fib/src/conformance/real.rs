//! Full real tables.

use crate::address::Address;
use crate::lpm::Engine;

/// Every table of `../shared/data/fib` of this family.
pub fn real_tables<A: Address, E: Engine<A>>() {}
