//! [`Paths`]: each path once.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use hashbrown::HashTable;

use crate::model::{Hop, Path, PathKind};

/// The paths in use. Equal paths are one, so a million routes take few, and a comparison is one of pointers.
#[derive(Debug, Default)]
pub(crate) struct Paths {
    table: HashTable<Arc<Path>>,
    hasher: RandomState,
    /// The size at which unused paths are looked for.
    full_at: usize,
}

/// Below this number of paths nothing is looked for.
const FEW: usize = 4_096;

impl Paths {
    /// The path with this content.
    pub(crate) fn intern(&mut self, kind: PathKind, hops: &[Hop], origin_as: Option<u32>) -> Arc<Path> {
        let hash = self.hasher.hash_one((kind, hops, origin_as));
        let found = self.table.find(hash, |path| {
            path.kind == kind && path.origin_as == origin_as && *path.hops == *hops
        });
        if let Some(path) = found {
            return Arc::clone(path);
        }
        let path = Arc::new(Path { kind, hops: hops.into(), origin_as });
        let hasher = &self.hasher;
        self.table.insert_unique(hash, Arc::clone(&path), |path| {
            hasher.hash_one((path.kind, &*path.hops, path.origin_as))
        });
        path
    }

    /// Drops paths that nobody else holds, each time that their number doubled.
    pub(crate) fn forget_unused(&mut self) {
        if self.table.len() >= self.full_at.max(FEW) {
            self.table.retain(|path| Arc::strong_count(path) > 1);
            self.full_at = 2 * self.table.len();
        }
    }
}
