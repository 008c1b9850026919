//! Image files of [`Vrfs`] and [`VrfReader`]: one file for all VRFs, of both families.

use std::path::Path;
use std::sync::Arc;

use wirespeed_fib::InFib;
use wirespeed_forest::LiveFibs;
use wirespeed_image::{Image, ImageError, Table};

use super::{Tables, VrfReader, Vrfs};
use crate::engine::VRFS;
use crate::error::Error;
use crate::image_file::{MATCH_IDS, ROUTES, VrfImageFile, both};
use crate::labels::saved::SavedLabels;
use crate::match_ids::MatchIds;
use crate::memory::Cap;
use crate::methods::save_methods;
use crate::uses::TableUses;

impl Vrfs {
    /// Opens an image file with the routes of all its VRFs. Lookups can start as soon as the file is read and
    /// checked. The first change of a family rebuilds its compiled tables, which takes as long as a build
    /// from the routes.
    ///
    /// Fails if the file is damaged, or not an image of VRFs.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let file = VrfImageFile::open(path.as_ref())?;
        let ids = file.match_ids()?;
        let (v4, v6) = (Tables::of_image(&file, ids.as_ref())?, Tables::of_image(&file, ids.as_ref())?);
        let opened = Self { v4, v6, ids, cap: Cap::Named, refused: 0 };
        match opened.ids().eq(opened.v6.live.model().ids()) {
            true => Ok(opened),
            false => Err(file.malformed(ROUTES)),
        }
    }

    save_methods! {
        /// Saves the compiled tables and the routes of all VRFs as one image file. An existing file is
        /// replaced completely or not at all.
        ///
        /// ```
        /// use wirespeed::prelude::*;
        ///
        /// # let dir = tempfile::tempdir()?;
        /// # let path = dir.path().join("vrfs.img");
        /// let (red, net) = (VrfId(7), "10.0.0.0/8".parse::<IpNet>()?);
        /// Vrfs::builder().vrf(red, [(net, NextHop(1))]).build()?.save(&path)?;
        /// assert_eq!(VrfReader::open(&path)?.lookup(red, "10.1.2.3".parse()?), NextHop(1));
        ///
        /// let mut vrfs = Vrfs::open(&path)?;
        /// vrfs.insert(red, "10.1.0.0/16".parse::<IpNet>()?, NextHop(2))?;
        /// assert_eq!(vrfs.reader().lookup(red, "10.1.2.3".parse()?), NextHop(2));
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
    }

    fn save_with(&self, labels: &SavedLabels, path: &Path) -> Result<(), Error> {
        let container = self.to_image().map_err(|source| Error::in_image(path, source))?;
        labels.save_beside(&container, 0, path, |image| both::save(image, &labels.texts, path).map(drop))
    }

    fn to_image(&self) -> Result<Image, ImageError> {
        let container = both::container(VRFS, &self.v4.to_image()?, &self.v6.to_image()?)?;
        match &self.ids {
            None => Ok(container),
            Some(ids) => container.with_attachment(MATCH_IDS, &ids.to_bytes()),
        }
    }
}

impl<A: InFib> Tables<A> {
    fn of_image(file: &VrfImageFile, ids: Option<&Arc<MatchIds>>) -> Result<Self, Error> {
        let by_number = ids.map(Arc::as_ref);
        let (fibs, table) = (file.fibs(by_number)?, file.table(by_number)?);
        let live = LiveFibs::resume(fibs, table, Cap::Named.options());
        Ok(Self { live, uses: Arc::new(TableUses::of_pairs(ids.cloned())) })
    }

    fn to_image(&self) -> Result<Image, ImageError> {
        let reader = self.live.reader();
        reader.enter().image().with_attachment(ROUTES, &self.live.model().to_bytes())
    }
}

impl VrfReader {
    /// Opens an image file that [`Vrfs::save`] wrote, for lookups only. The reader is ready as soon as the
    /// file is read and checked. Memory holds one copy of the tables.
    ///
    /// Fails if the file is damaged, or not an image of VRFs.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let file = VrfImageFile::open(path.as_ref())?;
        let ids = file.match_ids()?;
        let (v4, v6) = (file.table(ids.as_deref())?, file.table(ids.as_deref())?);
        Ok(Self::of_tables(v4, v6, ids))
    }
}
