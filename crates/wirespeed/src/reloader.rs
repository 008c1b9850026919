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
    /// One at least.
    paths: Vec<PathBuf>,
    loaded: Option<Vec<Stamp>>,
}

impl Reloader {
    /// Follows a file that was not loaded yet.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { paths: vec![path.into()], loaded: None }
    }

    /// Follows several files that make one table, and that were not loaded yet. `None` if there are none.
    pub fn of_all(paths: impl IntoIterator<Item = PathBuf>) -> Option<Self> {
        let paths: Vec<_> = paths.into_iter().collect();
        (!paths.is_empty()).then_some(Self { paths, loaded: None })
    }

    /// Calls `load` with the (first) file's path if a file has changed since the last call that succeeded: if
    /// it has another time of change, length, or place on the disk. `None` if it has not.
    ///
    /// Fails if there is no such file, or if `load` fails. The next call then tries again. Replace a file by
    /// renaming another one to its path: a file that is written in place may be loaded half written.
    pub fn if_changed<R>(
        &mut self,
        load: impl FnOnce(&Path) -> Result<R, Error>,
    ) -> Result<Option<R>, Error> {
        // A change after this moment is seen by the next call.
        let stamps = self.paths.iter().map(|path| stamp(path)).collect::<Result<Vec<_>, _>>()?;
        if self.loaded.as_ref() == Some(&stamps) {
            return Ok(None);
        }
        let loaded = load(self.path())?;
        self.loaded = Some(stamps);
        Ok(Some(loaded))
    }

    /// The file, or the first of several.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.paths[0]
    }
}

fn stamp(path: &Path) -> Result<Stamp, Error> {
    let metadata = std::fs::metadata(path)
        .map_err(|cause| Error::Image { path: path.to_owned(), cause: ImageError::from(cause) })?;
    Ok(Stamp::of(&metadata))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_of_several_files_counts() {
        let dir = tempfile::tempdir().unwrap();
        let paths = ["a", "b"].map(|name| dir.path().join(name));
        paths.iter().for_each(|path| std::fs::write(path, "1").unwrap());
        let mut reloader = Reloader::of_all(paths.clone()).unwrap();
        let mut is_changed = || reloader.if_changed(|_| Ok(())).map(|changed| changed.is_some());
        assert!(is_changed().unwrap() && !is_changed().unwrap());
        for path in &paths {
            std::fs::write(path, "22").unwrap();
            assert!(is_changed().unwrap() && !is_changed().unwrap());
            std::fs::remove_file(path).unwrap();
            assert!(is_changed().unwrap_err().to_string().contains(path.to_str().unwrap()));
            std::fs::write(path, "333").unwrap();
            assert!(is_changed().unwrap());
        }
        assert!(Reloader::of_all([]).is_none());
    }
}
