//! Image files: they are opened, checked, and handed to the engine that reads their kind.
//!
//! The file may hold two attachments beside the engine's sections: the routes, and the texts of their next
//! hops. With these a lookup in an image can report as much as a lookup in the source.
//!
//! ```text
//! bcn16 … n32      the engine's sections
//! routes           prefix and next hop of each route
//! next-hops        a text for each index, from 1
//! left-out         how many lines a lenient reading left out, if it did
//! ```
//!
//! Images of both families ([`IpTable`](crate::IpTable)) and of VRFs ([`VrfImageFile`]) hold a whole image of
//! each family.
//!
//! Opening copies the file into memory. Mapping the file would save the copy, but nobody may write to a
//! mapped file, and a safe function can't promise that for its caller.

pub(crate) mod both;
mod left_out;
pub(crate) mod opened;
mod vrfs;

use std::path::{Path, PathBuf};

use wirespeed_fib::{Address, Family, NextHop, NextHops, Prefix, Rib, V4, V6};
use wirespeed_image::{Image, ImageError};

#[cfg(feature = "rules")]
use crate::classify::image_file::RuleImageFile;
use crate::engine::{Addresses, AnyTable, BOTH_FAMILIES, ImageOf, VRFS, image_of};
use crate::error::Error;
use crate::labels::saved;
use crate::match_ids::MatchIds;
#[cfg(feature = "names")]
use crate::names::image_file::NameImageFile;
use crate::route_list::{self, RouteList};
use crate::routes::Routes;
use crate::taken_apart::TakenApart;

pub(crate) use left_out::noted;
pub use left_out::with_left_out;
use opened::{Opened, image_file_methods};
pub use vrfs::VrfImageFile;

/// The attachment that [`NextHops::to_bytes`] writes.
const NEXT_HOPS: &str = "next-hops";
/// The attachment that [`route_list::to_bytes`] writes.
pub(crate) const ROUTES: &str = "routes";
/// The attachment that [`MatchIds::to_bytes`] writes.
pub(crate) const MATCH_IDS: &str = "match-ids";
const ATTACHMENTS: [&str; 3] = [NEXT_HOPS, ROUTES, MATCH_IDS];

/// Writes a compiled table as a file, with its routes and the texts of their next hops, if there are any.
/// Replaces an existing file. The table was compiled from these routes, or from their
/// [numbered](NumberedRoutes) form.
pub fn save<A: Address>(
    image: &Image,
    routes: Routes<'_, A>,
    next_hops: &NextHops,
    path: &Path,
) -> Result<Image, Error> {
    let image = with_routes(image, routes).map_err(|source| Error::in_image(path, source))?;
    opened::write(&image, &[(NEXT_HOPS, &next_hops.to_bytes())], path)
}

/// Writes the compiled tables of both families as one file, each with its routes like [`save`], and the texts
/// of their next hops. Replaces an existing file. Returns the images of the two tables, and the length of the
/// file.
pub fn save_both(
    (v4, v4_routes): (&Image, Routes<'_, V4>),
    (v6, v6_routes): (&Image, Routes<'_, V6>),
    next_hops: &NextHops,
    path: &Path,
) -> Result<([Image; 2], u64), Error> {
    let named = |source| Error::in_image(path, source);
    let v4 = with_routes(v4, v4_routes).map_err(named)?;
    let v6 = with_routes(v6, v6_routes).map_err(named)?;
    let length = both::save(&both::container(BOTH_FAMILIES, &v4, &v6).map_err(named)?, next_hops, path)?;
    Ok(([v4, v6], length))
}

/// A compiled table with its routes, and with the pairs that its results stand for, if they are no next hops.
pub(crate) fn with_routes<A: Address>(image: &Image, routes: Routes<'_, A>) -> Result<Image, ImageError> {
    let image = image.with_attachment(ROUTES, &route_list::to_bytes(routes.iter()))?;
    match routes.ids() {
        None => Ok(image),
        Some(ids) => image.with_attachment(MATCH_IDS, &ids.to_bytes()),
    }
}

/// Routes in the form that an image for [prefix lookups](crate::Builder::prefix_lookups) is compiled from. A
/// number stands for each pair of a next hop and a prefix length.
///
/// ```
/// use wirespeed::engine::{EngineName, Served};
/// use wirespeed::fib::{BuildOptions, NextHops};
/// use wirespeed::image_file::{NumberedRoutes, save};
/// use wirespeed::prelude::*;
/// use wirespeed::Rib;
///
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("table.img");
/// let rib: Rib<V4> = [("10.0.0.0/8".parse()?, NextHop(1))].into_iter().collect();
/// let numbered = NumberedRoutes::new(&rib)?;
/// let compiled = V4::compile(EngineName::Fold, numbered.source(), &BuildOptions::default())??;
/// save(compiled.table.image(), numbered.routes(), &NextHops::new(), &path)?;
/// let found = Ipv4Reader::open(&path)?.lookup_prefix(Ipv4Addr::new(10, 1, 2, 3))?;
/// assert_eq!(found, Some(("10.0.0.0/8".parse()?, NextHop(1))));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct NumberedRoutes<A: Address> {
    numbered: Rib<A>,
    ids: MatchIds,
}

impl<A: Address> NumberedRoutes<A> {
    /// Numbers the pairs of routes. Fails if there are more pairs than numbers.
    pub fn new(rib: &Rib<A>) -> Result<Self, Error> {
        let ids = MatchIds::new();
        Ok(Self { numbered: ids.rib(rib)?, ids })
    }

    /// The routes to compile.
    pub fn source(&self) -> &Rib<A> {
        &self.numbered
    }

    /// The routes with their next hops, to save beside the compiled table.
    pub fn routes(&self) -> Routes<'_, A> {
        Routes::of(&self.numbered, Some(&self.ids))
    }
}

/// An image whose engine is in this build.
#[derive(Debug)]
pub struct ImageFile {
    file: Opened,
    family: Family,
}

impl ImageFile {
    image_file_methods!();

    /// Opens the table of a family in an image file of one family or of both. Fails if the file has no such
    /// table.
    pub fn open_family(path: &Path, family: Family) -> Result<Self, Error> {
        let image = opened::read(path)?;
        if both::holds(&image) {
            return both::part(path, &image, family);
        }
        match Self::of(path, image)? {
            file if file.family == family => Ok(file),
            file => Err(Error::ImageFamily { path: path.to_owned(), found: file.family, wanted: family }),
        }
    }

    /// Opens all tables of an image file: one, or an IPv4 and an IPv6 table.
    pub fn open_all(path: &Path) -> Result<Vec<Self>, Error> {
        Self::all_of(path, opened::read(path)?)
    }

    pub(crate) fn all_of(path: &Path, image: Image) -> Result<Vec<Self>, Error> {
        match both::holds(&image) {
            true => {
                [Family::V4, Family::V6].map(|family| both::part(path, &image, family)).into_iter().collect()
            }
            false => Ok(vec![Self::of(path, image)?]),
        }
    }

    /// The image with its attachments.
    #[must_use]
    pub fn image(&self) -> &Image {
        &self.file.image
    }

    pub(crate) fn of(path: &Path, image: Image) -> Result<Self, Error> {
        if both::holds(&image) {
            return Err(Error::ImageOfBoth { path: path.to_owned() });
        }
        let (file, family) = Opened::of(path, image, "addresses", ImageOf::family)?;
        Ok(Self { file, family })
    }

    /// The family of its addresses.
    #[must_use]
    pub fn family(&self) -> Family {
        self.family
    }

    /// Makes the engine's table, checked, with the attachments that [`longest_match`] needs. The table of an
    /// image for [prefix lookups](crate::Builder::prefix_lookups) can't be copied to GPUs.
    pub fn into_table<A: Addresses>(self) -> Result<Box<dyn AnyTable<A>>, Error> {
        let ids = self.match_ids()?;
        let Opened { path, image, engine } = self.file;
        let table = A::adopt(engine, image)?.map_err(|cause| Error::Image { path, cause })?;
        Ok(match ids {
            None => table,
            Some(ids) => Box::new(TakenApart { table, ids }),
        })
    }

    /// Takes the engine's sections, not checked yet, without attachments; and the file.
    ///
    /// Fails for an image for [prefix lookups](crate::Builder::prefix_lookups): its results are no next hops.
    pub fn into_bare(self) -> Result<(PathBuf, Image), Error> {
        match self.has_prefix_lookups() {
            false => self.into_sections(),
            true => Err(Error::ForPrefixLookups { path: self.file.path }),
        }
    }

    /// Takes the engine's sections like [`into_bare`](Self::into_bare), whatever its results are.
    pub(crate) fn into_sections(self) -> Result<(PathBuf, Image), Error> {
        self.file.into_bare(&ATTACHMENTS)
    }

    /// Whether the table was built with [`prefix_lookups`](crate::Builder::prefix_lookups).
    #[must_use]
    pub fn has_prefix_lookups(&self) -> bool {
        self.file.image.attachment(MATCH_IDS).is_some()
    }

    /// The pairs that results stand for. `None` if they are next hops.
    pub(crate) fn match_ids(&self) -> Result<Option<MatchIds>, Error> {
        let longest = match self.family {
            Family::V4 => V4::BITS,
            Family::V6 => V6::BITS,
        };
        let results = self.file.image.results();
        self.file.attached(MATCH_IDS, |bytes| {
            MatchIds::from_bytes(bytes, longest).filter(|ids| results <= ids.last().into())
        })
    }

    /// The number of lines that a lenient reading left out of the table. 0 of a whole table, and if the file
    /// does not tell it, as older ones don't.
    pub fn left_out(&self) -> Result<u64, Error> {
        self.file.left_out()
    }

    /// The texts of the next hops. Empty if the file has none.
    pub fn next_hops(&self) -> Result<NextHops, Error> {
        next_hops_of(&self.file.image, &self.file.path)
    }

    /// The routes. `None` if the file holds the compiled table alone.
    pub fn routes<A: Address>(&self) -> Result<Option<Rib<A>>, Error> {
        let entries = self.file.image.entries();
        self.file.attached(ROUTES, |bytes| {
            RouteList(bytes).routes::<A>().filter(|rib| rib.len() as u64 == entries)
        })
    }

    pub(crate) fn malformed(&self, name: &str) -> Error {
        self.file.malformed(name)
    }
}

/// The texts of next hops beside an image.
fn next_hops_of(image: &Image, path: &Path) -> Result<NextHops, Error> {
    let texts = opened::attached(image, path, NEXT_HOPS, NextHops::from_bytes)?;
    Ok(texts.unwrap_or_default())
}

/// Calls `give` with the text of each index of an image file of any domain, in order from 1, or with `None`
/// for an index without a label. Fails if the texts are not of this type.
pub(crate) fn each_label(
    path: &Path,
    of_type: Option<&str>,
    mut give: impl FnMut(Option<&str>) -> Result<(), Error>,
) -> Result<(), Error> {
    let image = opened::read(path)?;
    let texts: Vec<_> = match image_of(image.kind()).map(|(of, _)| of) {
        #[cfg(feature = "names")]
        Some(ImageOf::Names) => {
            let labels = NameImageFile::of(path, image.clone())?.labels()?;
            labels.iter().map(|(_, label)| label.to_string()).collect()
        }
        #[cfg(feature = "rules")]
        Some(ImageOf::Rules) => owned(&RuleImageFile::of(path, image.clone())?.labels()?),
        None if [BOTH_FAMILIES, VRFS].contains(&image.kind()) => owned(&next_hops_of(&image, path)?),
        // An image of an unknown kind gives an error here.
        Some(ImageOf::Addresses(_)) | None => owned(&ImageFile::of(path, image.clone())?.next_hops()?),
    };
    if !texts.is_empty() {
        saved::check_type(&image, path, of_type)?;
    }
    saved::fill_gaps(&image, path, texts)?.iter().try_for_each(|text| give(text.as_deref()))
}

fn owned(texts: &NextHops) -> Vec<String> {
    texts.iter().map(|(_, text)| text.to_owned()).collect()
}

/// Bytes of an image without its attachments.
#[must_use]
pub fn bytes_of_table(image: &Image) -> u64 {
    let names = ATTACHMENTS.into_iter().chain([left_out::LEFT_OUT]);
    let beside = names.filter_map(|name| image.attachment(name));
    image.bytes() - beside.map(|bytes| bytes.len() as u64).sum::<u64>()
}

/// The longest prefix of a table that contains an address, found in the routes beside its image. O(lengths ×
/// log routes).
pub fn longest_match<A: Address>(image: &Image, address: A) -> Option<Prefix<A>> {
    RouteList(image.attachment(ROUTES)?).longest_match(address)
}

/// Every prefix of a table that contains an address, with its next hop, shortest first, found in the routes
/// beside its image. `None` without routes. O(lengths × log routes).
pub fn lookup_all<A: Address>(image: &Image, address: A) -> Option<Vec<(Prefix<A>, NextHop)>> {
    Some(RouteList(image.attachment(ROUTES)?).covering(address).collect())
}
