//! ACTA, the aligned component transition array: our own engine.
//!
//! The paper's aligned transition array (MATA, section 4) takes one or a few characters as input, and checks
//! a transition by its stored input. In ACTA the input is a whole component: the state plus a hash of the
//! component give the place, and the stored component verifies it, so no match depends on a hash alone. See
//! [`layout`] for the sections.
//!
//! Measured on one core of a Zen 4 with results of 3 bytes and of one byte (3,646,918 real domain names; each
//! query is one of them with a random path after it, 46 bytes on average; `benches/acta_speed.rs`; a shared
//! machine, so compare ratios only):
//!
//! | | line numbers as results | 62 results |
//! |---|---|---|
//! | bytes a name, buckets 84 % full | 22.4 | 20.0 |
//! | build on two cores | 1.2 s | 0.9 s |
//! | lookups in batches | 19.4 to 19.8 M/s | 20.6 M/s |
//! | removals, insertions of a live table, 4,096 a call | 2.1 to 2.4, 2.0 to 2.4 M/s | 2.1 to 2.4, 2.0 to 2.4 M/s |
//!
//! These insertions bring back names that were just removed, so each finds the room that it left. New names
//! find both their buckets full more often the fuller the table is, and then other entries must move:
//!
//! | fill of a live table | 76 to 82 % | 70 to 75 % | 65 to 70 % | 56 to 60 % |
//! |---|---|---|---|---|
//! | insertions that others move for | 0.46 to 0.56 | 0.31 to 0.37 | 0.24 to 0.25 | 0.13 |
//! | buckets that an insertion touches | 2.0 to 2.3 | 1.7 to 1.8 | 1.6 | 1.4 |
//!
//! So live tables have 30 in 100 of head room, with which they are 65 % full, and what is to move is planned
//! ahead (`room.rs`). With 40 in 100 a name took 4 bytes more, and a new name a tenth fewer instructions. A
//! new name takes 4,400 instructions, half of them in work on buckets.
//!
//! What was tried:
//! - Placing in order of the nodes: a long component that comes late needs the places of several others, and
//!   a search that moves one entry a step gave up at a third of the room. Throwing several out at once goes
//!   on to 86 %; so does placing long ones first.
//! - Searching for room from the smallest entry on, instead of the nearest bucket: 82 % instead of 86.
//!   Placing by five classes of size instead of two: no more than by two.
//! - Looking less full: at 30 % instead of 84, 3 % instead of 35 % of all transitions are in their second
//!   bucket, and lookups run at 17.8 M/s instead of 15.3.
//! - Fetching the buckets of 16 names one right after the other, two such groups in turn, instead of each as
//!   soon as it is known: 15.0 M/s instead of 15.3; groups of 32: 13.4. This was before the memo of first
//!   components, with which lookups went from 15.3 to 19.8 (with 24 names under way instead of 32, too).
//! - A probe without jumps, where what comes next is chosen by conditional moves: 10.6 M/s instead of 15.3;
//!   in groups of 16 that first all probe and then all hash: 11.3. The chains that jumps cut by foresight are
//!   longer than what those that go wrong cost.
//! - Bringing entries home after building, by chains of moves of up to 24 buckets: 32.8 % instead of 34.6 %
//!   are in their second, for 7 s more of building.
//! - Placing all that fit into their first choice before anything takes its second: 32.2 % instead of 34.6 %
//!   are in their second, and 26.6 % at 80 % full, with 23.5 bytes a name and 21.0 M/s. Not done: the suite's
//!   churn then rebuilds twice more in its second round.
//! - Fetching the places of a patch's later writes ahead while the copies are written: updates no faster.
//!
//! What updates owe their rate to; without any of it the table above says 1.2 and 1.0 M/s, in runs side by
//! side on the same machine, which was less busy in some than in others:
//! - Huge pages for what the control plane holds, components in the nodes of the table of names, and one walk
//!   of each name's nodes instead of two.
//! - The control plane's buckets in cache lines of their own: removals 1.70 to 1.80, insertions 1.65 to 1.91.
//! - Comparisons that don't read past a component into the next line, as `memcmp` does: for a table of 60,000
//!   names, which the cache holds, removals 2.2 to 2.6, insertions 2.2 to 2.3. More than half of an update is
//!   work, not memory.
//! - Buckets fetched 24 nodes ahead instead of 8, and the second one only where the first says that it is
//!   needed.
//! - Buckets edited as one value (`edit.rs`), two bits a node in place of a look at its state, and no search
//!   for what has just come: removals 1.76 to 1.92 in one run.
//! - Hashes of nodes that follow from their components alone, and changes walked one by one, each step some
//!   changes ahead of the next, instead of 32 at a time and level by level: removals 2.18 to 2.45, insertions
//!   2.04 to 2.33 in one run.
//!
//! How far ahead things are fetched hardly matters any more: 5, 8 and 12 changes were within what rounds of
//! one run differ by. What is left is about eight lines of memory a change, of which the image's two copies
//! and the check of one take a fifth.

mod beside;
mod build;
mod edit;
pub mod hash;
mod kernel;
pub mod layout;
mod long;
mod lookup;
mod memo;
mod place;
mod ring;
mod room;
mod simd;
mod states;
mod update;

pub use build::Acta;
pub use layout::ActaTable;
