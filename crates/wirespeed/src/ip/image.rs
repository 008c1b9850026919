//! Image files of [`IpTable`] and [`IpReader`]: one file for both families.

use std::path::Path;

use wirespeed_fib::{Family, V4, V6};

use super::{IpReader, IpTable};
use crate::engine::{Addresses, BOTH_FAMILIES};
use crate::error::Error;
use crate::image_file::{ImageFile, both, opened};
use crate::labels::saved::SavedLabels;
use crate::methods::save_methods;
use crate::reader::Reader;
use crate::table::Table;

impl IpTable {
    /// Opens an image file with its routes, of both families or of one: [`Table::open`]. A family that the
    /// file lacks has an empty table.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let Families { v4, v6, prefix_lookups } = families(path.as_ref())?;
        let v4 = v4.map_or_else(|| empty::<V4>(prefix_lookups), Table::of_image)?;
        Ok(Self::new(v4, v6.map_or_else(|| empty::<V6>(prefix_lookups), Table::of_image)?))
    }

    save_methods! {
        /// Saves both compiled tables and their routes as one image file. An existing file is replaced
        /// completely or not at all.
        ///
        /// ```
        /// use wirespeed::prelude::*;
        ///
        /// # let dir = tempfile::tempdir()?;
        /// # let path = dir.path().join("both.img");
        /// let routes = [("10.0.0.0/8".parse::<IpNet>()?, NextHop(1)), ("2001:db8::/32".parse()?, NextHop(2))];
        /// IpTable::builder().routes(routes).build()?.save(&path)?;
        /// let reader = IpReader::open(&path)?;
        /// assert_eq!(reader.lookup("2001:db8::1".parse()?), NextHop(2));
        /// assert_eq!(Ipv4Reader::open(&path)?.lookup(Ipv4Addr::new(10, 1, 2, 3)), NextHop(1));
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
    }

    fn save_with(&self, labels: &SavedLabels, path: &Path) -> Result<(), Error> {
        let made =
            self.v4.to_image().and_then(|v4| both::container(BOTH_FAMILIES, &v4, &self.v6.to_image()?));
        let made = made.map_err(|source| Error::in_image(path, source))?;
        labels.save_beside(&made, 0, path, |image| both::save(image, &labels.texts, path).map(drop))
    }
}

impl IpReader {
    /// Opens an image file for lookups only, of both families or of one: [`Reader::open`]. A family that the
    /// file lacks has an empty table.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let Families { v4, v6, prefix_lookups } = families(path.as_ref())?;
        let v4 = v4.map_or_else(|| Ok(empty::<V4>(prefix_lookups)?.reader()), Reader::of_image)?;
        Ok(Self::new(v4, v6.map_or_else(|| Ok(empty::<V6>(prefix_lookups)?.reader()), Reader::of_image)?))
    }
}

/// The families of an image file.
struct Families {
    v4: Option<ImageFile>,
    v6: Option<ImageFile>,
    /// Whether its tables give prefixes.
    prefix_lookups: bool,
}

fn families(path: &Path) -> Result<Families, Error> {
    let image = opened::read(path)?;
    let (mut v4, mut v6) = (None, None);
    for file in ImageFile::all_of(path, image)? {
        match file.family() {
            Family::V4 => v4 = Some(file),
            Family::V6 => v6 = Some(file),
        }
    }
    let prefix_lookups = [&v4, &v6].into_iter().flatten().any(ImageFile::has_prefix_lookups);
    Ok(Families { v4, v6, prefix_lookups })
}

/// The table of a family that a file lacks.
fn empty<A: Addresses>(prefix_lookups: bool) -> Result<Table<A>, Error> {
    let builder = Table::builder();
    if prefix_lookups { builder.prefix_lookups() } else { builder }.build()
}
