//! [`Chunks`]: the chunk or leaf of each node. Numbers are dense when a table is built, whatever nodes came
//! and went before.

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
}

impl Chunks {
    /// Counts the chunks and leaves that the nodes need, number 0 included.
    pub(crate) fn needed<A: Address>(fibs: &Fibs<A>) -> (u64, u64) {
        let contents = (0..fibs.nodes.end()).filter_map(|node| fibs.nodes.content(node));
        let leaves = contents.filter(|content| content.is_leaf()).count() as u64;
        (u64::from(fibs.nodes.len()) - leaves + 1, leaves + 1)
    }

    /// Gives each node a chunk or leaf, of so many, which are enough.
    pub(crate) fn new<A: Address>(fibs: &Fibs<A>, chunks: u32, leaves: u32) -> Self {
        let (chunks, leaves) = (Pool::new(chunks), Pool::new(leaves));
        let mut all = Self { chunks, leaves, of: vec![NONE; fibs.nodes.end() as usize] };
        (0..fibs.nodes.end()).for_each(|node| all.give(fibs, node).expect("there are enough"));
        all
    }

    /// The number of a node's chunk or leaf, with the bit [`LEAF`] for a leaf.
    pub(crate) fn of(&self, node: u32) -> u32 {
        self.of[node as usize]
    }

    /// Takes back the chunks of nodes that are free or of the other kind now, and gives nodes without one a
    /// chunk.
    pub(crate) fn assign<A: Address>(&mut self, fibs: &Fibs<A>, changed: &[Change]) -> Result<(), Outgrown> {
        self.of.resize(fibs.nodes.end() as usize, NONE);
        let nodes = || changed.iter().filter_map(Change::node);
        for node in nodes() {
            let link = self.of[node as usize];
            let is_leaf = link & LEAF != 0;
            if link != NONE && fibs.nodes.content(node).is_none_or(|content| content.is_leaf() != is_leaf) {
                self.of[node as usize] = NONE;
                if is_leaf { self.leaves.give_back(link & !LEAF) } else { self.chunks.give_back(link) }
            }
        }
        nodes().try_for_each(|node| self.give(fibs, node))
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
        (self.of.capacity() * size_of::<u32>()) as u64
            + self.chunks.memory_usage()
            + self.leaves.memory_usage()
    }
}
