//! [`replace_file`]: a file that is written whole, or stays as it was.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// Writes a file in place of the one at `path`, if there is one. The new file is written beside it, and takes
/// its name once it is whole and on the disk: no reader sees a part of it, and a failure leaves what was
/// there. A link keeps its place, and the file that it leads to is replaced. A pipe or a device is written
/// to.
pub fn replace_file<E: From<io::Error>>(
    path: &Path,
    write: impl FnOnce(&mut File) -> Result<(), E>,
) -> Result<(), E> {
    // A path that leads nowhere yet, a link among them, is taken as it stands.
    let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if std::fs::metadata(&path).is_ok_and(|there| !there.is_file()) {
        return write(&mut File::create(&path)?);
    }
    let part = part_of(&path);
    let written = (|| {
        let mut file = File::create(&part)?;
        write(&mut file)?;
        file.sync_all()?;
        Ok(std::fs::rename(&part, &path)?)
    })();
    if written.is_err() {
        // The first error says more than one of the removal would.
        let _ = std::fs::remove_file(&part);
    }
    written
}

/// The name of a file while it is written, beside the one that it becomes.
fn part_of(path: &Path) -> PathBuf {
    let mut part = path.as_os_str().to_owned();
    part.push(format!(".part-{}", std::process::id()));
    part.into()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
        replace_file(path, |file| file.write_all(bytes))
    }

    #[test]
    fn a_failure_leaves_the_file_that_was_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("table");
        write(&path, b"old").unwrap();
        let failed = replace_file(&path, |file| {
            file.write_all(b"new")?;
            Err(io::Error::other("no more"))
        });
        assert_eq!(failed.unwrap_err().to_string(), "no more");
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "the part is gone");
        write(&path, b"new").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
        assert!(write(&folder.path().join("none/table"), b"new").is_err());
    }

    #[cfg(unix)]
    #[test]
    fn links_lead_to_the_new_file_and_devices_stay() {
        let folder = tempfile::tempdir().unwrap();
        let [path, link] = ["table", "latest"].map(|name| folder.path().join(name));
        write(&path, b"old").unwrap();
        std::os::unix::fs::symlink("table", &link).unwrap();
        write(&link, b"new").unwrap();
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
        write(Path::new("/dev/null"), b"nothing").unwrap();
        assert!(!std::fs::metadata("/dev/null").unwrap().is_file());
    }
}
