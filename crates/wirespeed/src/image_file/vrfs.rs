//! [`VrfImageFile`]: image files of [`Vrfs`](crate::Vrfs), containers with an image of each family.
//!
//! ```text
//! ipv4         the compiled IPv4 tables of all VRFs, with their routes
//! ipv6         the compiled IPv6 tables of all VRFs, with their routes
//! match-ids    the pairs that results stand for, if they are no next hops
//! next-hops    a text for each index
//! ```
//!
//! Routes are the bytes of [`Fibs::to_bytes`]: routes that VRFs share are there once.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use wirespeed_fib::{Address, Family, NextHop, NextHops, V6};
use wirespeed_forest::{Fibs, ForestTable};
use wirespeed_image::{Image, ImageError, Table};
use wirespeed_table::Model;

use super::{MATCH_IDS, ROUTES, both, next_hops_of, opened};
use crate::engine::{VRFS, image_of};
use crate::error::Error;
use crate::match_ids::MatchIds;

/// An image file of [`Vrfs`](crate::Vrfs).
#[derive(Debug)]
pub struct VrfImageFile {
    path: PathBuf,
    container: Image,
}

impl VrfImageFile {
    /// Opens an image file. Its tables are checked when they are taken.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let (path, container) = (path.to_owned(), opened::read(path)?);
        match container.kind() {
            VRFS => Ok(Self { path, container }),
            kind => Err(match image_of(kind) {
                Some((found, _)) => Error::ImageOf { path, found: found.name(), wanted: "VRFs" },
                None => Error::of_kind(path, kind, "VRFs"),
            }),
        }
    }

    /// The texts of the next hops. Empty if the file has none.
    pub fn next_hops(&self) -> Result<NextHops, Error> {
        next_hops_of(&self.container, &self.path)
    }

    /// The compiled tables of a family, with their routes, not checked yet.
    pub fn image(&self, family: Family) -> Result<Image, Error> {
        both::image(&self.container, family).map_err(|source| self.in_file(source))
    }

    /// The pairs that results stand for. `None` if they are next hops.
    pub(crate) fn match_ids(&self) -> Result<Option<Arc<MatchIds>>, Error> {
        opened::attached(&self.container, &self.path, MATCH_IDS, |bytes| {
            MatchIds::from_bytes(bytes, V6::BITS).map(Arc::new)
        })
    }

    /// The compiled tables of a family, checked, whose results stand for these pairs.
    pub(crate) fn table<A: Address>(&self, ids: Option<&MatchIds>) -> Result<ForestTable<A>, Error> {
        let image = self.image(A::FAMILY)?;
        if ids.is_some_and(|ids| image.results() > ids.last().into()) {
            return Err(self.malformed(MATCH_IDS));
        }
        let image = image.without_attachments(&[ROUTES]);
        image.and_then(ForestTable::from_image).map_err(|source| self.in_file(source))
    }

    /// The routes of a family, whose results stand for these pairs.
    pub(crate) fn fibs<A: Address>(&self, ids: Option<&MatchIds>) -> Result<Fibs<A>, Error> {
        let image = self.image(A::FAMILY)?;
        let pairs = ids.map(MatchIds::pairs);
        let is_route = |result: NextHop, len| match pairs.map(|pairs| pairs.pair(result)) {
            None => result.is_some(),
            Some((next_hop, of_pair)) => next_hop.is_some() && len == of_pair,
        };
        let fibs = image.attachment(ROUTES).and_then(|bytes| Fibs::from_bytes(bytes, is_route));
        fibs.filter(|fibs| fibs.len() as u64 == image.entries()).ok_or_else(|| self.malformed(ROUTES))
    }

    pub(crate) fn malformed(&self, what: &str) -> Error {
        Error::attachment(&self.path, what)
    }

    fn in_file(&self, source: ImageError) -> Error {
        Error::in_image(&self.path, source)
    }
}
