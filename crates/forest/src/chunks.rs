//! [`Chunks`]: the chunk of each node. Numbers of chunks are dense when a table is built, whatever nodes came
//! and went before.

use wirespeed_fib::{Address, Outgrown};
use wirespeed_image::Pool;

use crate::fibs::{Change, Fibs};
use crate::nodes::NONE;

/// The chunks of a compiled table.
#[derive(Clone, Debug)]
pub(crate) struct Chunks {
    pool: Pool,
    /// By node; 0 for a number that no node has.
    of: Vec<u32>,
}

impl Chunks {
    /// Gives each node a chunk, of `capacity` chunks with chunk 0. There are enough.
    pub(crate) fn new<A: Address>(fibs: &Fibs<A>, capacity: u32) -> Self {
        let mut pool = Pool::new(capacity);
        let chunk = |node| fibs.nodes.content(node).and_then(|_| pool.take()).unwrap_or(NONE);
        let of = (0..fibs.nodes.end()).map(chunk).collect();
        Self { pool, of }
    }

    /// The chunk of a node.
    pub(crate) fn of(&self, node: u32) -> u32 {
        self.of[node as usize]
    }

    /// Takes back the chunks of nodes that are free, and gives chunks to new ones.
    pub(crate) fn assign<A: Address>(&mut self, fibs: &Fibs<A>, changed: &[Change]) -> Result<(), Outgrown> {
        self.of.resize(fibs.nodes.end() as usize, NONE);
        let nodes = || {
            changed
                .iter()
                .filter_map(|change| if let Change::Node(node) = change { Some(*node) } else { None })
        };
        for node in nodes().filter(|&node| fibs.nodes.content(node).is_none()) {
            let chunk = std::mem::replace(&mut self.of[node as usize], NONE);
            if chunk != NONE {
                self.pool.give_back(chunk);
            }
        }
        for node in nodes().filter(|&node| fibs.nodes.content(node).is_some()) {
            let chunk = &mut self.of[node as usize];
            if *chunk == NONE {
                *chunk = self.pool.take().ok_or(Outgrown("room for chunks"))?;
            }
        }
        Ok(())
    }

    /// Bytes held.
    pub(crate) fn memory_usage(&self) -> u64 {
        (self.of.capacity() * size_of::<u32>()) as u64 + self.pool.memory_usage()
    }
}
