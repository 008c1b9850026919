//! [`Chunks`]: the chunk or leaf of each node. Numbers are dense when a table is built, whatever nodes came
//! and went before.
//!
//! A patch writes in one of two ways:
//!
//! - *in place*: a node keeps its chunk. Each live copy then needs chunks of its own.
//! - *to new chunks*: each changed node gets a chunk that no reader reads, as do all nodes above it, since
//!   every node above a changed one changes, too. The chunk that it had stays for readers of the state
//!   before. It is free at the next patch, because the writer waits for those readers before it writes that.
//!   So live copies share all chunks.

use wirespeed_fib::{Address, Outgrown};
use wirespeed_image::Pool;

use crate::content::NONE;
use crate::fibs::{Change, Fibs};
use crate::layout::LEAF;

/// The chunks and leaves of a compiled table.
#[derive(Clone, Debug)]
pub(crate) struct Chunks {
    chunks: Pool,
    leaves: Pool,
    /// The number of each node's chunk or leaf, with the bit [`LEAF`] for leaves; 0 for a number that no node
    /// has.
    of: Vec<u32>,
    /// Whether patches write in place.
    in_place: bool,
    /// Chunks and leaves that the last patch gave up and did not write.
    given_up: Vec<u32>,
    /// Whether the last patch was not published, so that the state before it is current.
    is_unpublished: bool,
}

/// The most chunks given up whose memory is kept.
const MUCH: usize = 1 << 12;

impl Chunks {
    /// Counts the chunks and leaves that the nodes need, number 0 included.
    pub(crate) fn needed<A: Address>(fibs: &Fibs<A>) -> (u64, u64) {
        let contents = (0..fibs.nodes.end()).filter_map(|node| fibs.nodes.content(node));
        let leaves = contents.filter(|content| content.is_leaf()).count() as u64;
        (u64::from(fibs.nodes.len()) - leaves + 1, leaves + 1)
    }

    /// Gives each node a chunk or leaf, of so many, which are enough.
    pub(crate) fn new<A: Address>(fibs: &Fibs<A>, chunks: u32, leaves: u32, in_place: bool) -> Self {
        let (chunks, leaves) = (Pool::new(chunks), Pool::new(leaves));
        let of = vec![NONE; fibs.nodes.end() as usize];
        let mut all = Self { chunks, leaves, of, in_place, given_up: Vec::new(), is_unpublished: false };
        (0..fibs.nodes.end()).for_each(|node| all.give(fibs, node).expect("there are enough"));
        all
    }

    /// The number of a node's chunk or leaf, with the bit [`LEAF`] for a leaf.
    pub(crate) fn of(&self, node: u32) -> u32 {
        self.of[node as usize]
    }

    /// Gives each changed node the chunk or leaf that the next patch writes, and takes back those that are
    /// not needed any more.
    pub(crate) fn assign<A: Address>(&mut self, fibs: &Fibs<A>, changed: &[Change]) -> Result<(), Outgrown> {
        if !std::mem::take(&mut self.is_unpublished) {
            let mut given_up = std::mem::take(&mut self.given_up);
            given_up.drain(..).for_each(|link| self.give_back(link));
            given_up.shrink_to(MUCH);
            self.given_up = given_up;
        }
        self.of.resize(fibs.nodes.end() as usize, NONE);
        let nodes = || changed.iter().filter_map(Change::node);
        for node in nodes() {
            let link = self.of[node as usize];
            let is_of_kind = |leaf| fibs.nodes.content(node).is_some_and(|now| now.is_leaf() == leaf);
            if link == NONE || self.in_place && is_of_kind(link & LEAF != 0) {
                continue;
            }
            self.of[node as usize] = NONE;
            if self.in_place { self.give_back(link) } else { self.given_up.push(link) }
        }
        nodes().try_for_each(|node| self.give(fibs, node))
    }

    /// Says that the last patch was not published, and will be part of the next one.
    pub(crate) fn unpublished(&mut self) {
        self.is_unpublished = true;
    }

    fn give_back(&mut self, link: u32) {
        if link & LEAF != 0 { self.leaves.give_back(link & !LEAF) } else { self.chunks.give_back(link) }
    }

    /// Gives a node a chunk or leaf if it has none.
    fn give<A: Address>(&mut self, fibs: &Fibs<A>, node: u32) -> Result<(), Outgrown> {
        let link = &mut self.of[node as usize];
        match fibs.nodes.content(node) {
            Some(content) if *link == NONE => {
                *link = match content.is_leaf() {
                    true => self.leaves.take().ok_or(Outgrown("room for leaves"))? | LEAF,
                    false => self.chunks.take().ok_or(Outgrown("room for chunks"))?,
                };
            }
            _ => {}
        }
        Ok(())
    }

    /// Bytes held.
    pub(crate) fn memory_usage(&self) -> u64 {
        ((self.of.capacity() + self.given_up.capacity()) * size_of::<u32>()) as u64
            + self.chunks.memory_usage()
            + self.leaves.memory_usage()
    }
}
