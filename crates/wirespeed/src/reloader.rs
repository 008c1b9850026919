//! [`Reloader`]: notices that a file was replaced.

use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use wirespeed_image::ImageError;

use crate::error::Error;

/// Follows a file, and loads it when it has changed: routes, names or rules into a table, or an image into a
/// reader. A service calls it from a timer, or when it gets a signal.
///
/// ```
/// use wirespeed::Reloader;
/// use wirespeed::prelude::*;
///
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("routes.txt");
/// std::fs::write(&path, "192.0.2.0/24 64496\n")?;
/// let labels = Labels::<u32>::new();
/// let (mut table, mut reloader) = (IpTable::builder().build()?, Reloader::new(&path));
/// assert!(reloader.if_changed(|path| table.load(path, &labels))?.is_some());
/// assert!(reloader.if_changed(|path| table.load(path, &labels))?.is_none());
/// assert_eq!(table.len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Reloader {
    path: PathBuf,
    loaded: Option<Stamp>,
}

impl Reloader {
    /// Follows a file that was not loaded yet.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), loaded: None }
    }

    /// Calls `load` with the file's path if the file has changed since the last call that succeeded: if it
    /// has another time of change, length, or place on the disk. `None` if it has not.
    ///
    /// Fails if there is no such file, or if `load` fails. The next call then tries again. Replace a file by
    /// renaming another one to its path: a file that is written in place may be loaded half written.
    pub fn if_changed<R>(
        &mut self,
        load: impl FnOnce(&Path) -> Result<R, Error>,
    ) -> Result<Option<R>, Error> {
        let metadata = std::fs::metadata(&self.path)
            .map_err(|cause| Error::Image { path: self.path.clone(), cause: ImageError::from(cause) })?;
        // A change after this moment is seen by the next call.
        let stamp = Stamp::of(&metadata);
        if self.loaded == Some(stamp) {
            return Ok(None);
        }
        let loaded = load(&self.path)?;
        self.loaded = Some(stamp);
        Ok(Some(loaded))
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// The properties of a file that tell one version of it from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    modified: Option<SystemTime>,
    length: u64,
    #[cfg(unix)]
    place: (u64, u64),
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        #[cfg(unix)]
        use std::os::unix::fs::MetadataExt;
        Self {
            modified: metadata.modified().ok(),
            length: metadata.len(),
            #[cfg(unix)]
            place: (metadata.dev(), metadata.ino()),
        }
    }
}
