//! [`Paths`]: each path once.

use std::hash::BuildHasher;
use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use crate::model::{Hop, Path, PathKind};

/// The paths in use. Equal paths are one, so a million routes take few, and a comparison is one of pointers.
#[derive(Debug, Default)]
pub(crate) struct Paths {
    table: HashTable<Arc<Path>>,
    hasher: RandomState,
    /// The hops of all paths.
    hops: usize,
    /// The number of hops at which unused paths are looked for.
    full_at: usize,
}

/// Below this number of hops nothing is looked for.
const FEW: usize = 4_096;

/// Hops of all paths at most, about half a gigabyte. A table of a million routes with 512 hops each, in a
/// thousand groups, has half a million.
const CAP: usize = 16 << 20;

impl Paths {
    /// The path with this content.
    pub(crate) fn intern(&mut self, kind: PathKind, hops: &[Hop], origin_as: Option<u32>) -> Arc<Path> {
        let hash = self.hasher.hash_one((kind, hops, origin_as));
        let found = self
            .table
            .find(hash, |path| path.kind == kind && path.origin_as == origin_as && *path.hops == *hops);
        if let Some(path) = found {
            return Arc::clone(path);
        }
        let path = Arc::new(Path { kind, hops: hops.into(), origin_as });
        self.hops += cost(&path);
        let hasher = &self.hasher;
        self.table.insert_unique(hash, Arc::clone(&path), |path| {
            hasher.hash_one((path.kind, &*path.hops, path.origin_as))
        });
        path
    }

    /// Drops paths that nobody else holds, each time that the hops doubled.
    pub(crate) fn forget_unused(&mut self) {
        if self.hops >= self.full_at.max(FEW) {
            self.table.retain(|path| Arc::strong_count(path) > 1);
            self.hops = self.table.iter().map(|path| cost(path)).sum();
            self.full_at = (2 * self.hops).min(CAP.max(self.hops + CAP / 8));
        }
    }

    /// Whether the paths have more hops than there may be.
    pub(crate) fn are_too_many(&self) -> bool {
        self.hops >= CAP
    }
}

/// The hops of a path, and one for the path itself.
fn cost(path: &Path) -> usize {
    1 + path.hops.len()
}
