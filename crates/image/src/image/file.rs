//! Images as files: written beside the old one and put in its place, read or mapped, and checked before
//! anything else sees them.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use super::{Image, zeroed};
use crate::error::ImageError;
use crate::format::{Header, parse};
use crate::storage::Storage;

impl Image {
    /// Writes the image as a file, beside the old one and then in its place, so that no reader sees a part of
    /// it.
    pub fn save(&self, path: &Path) -> Result<(), ImageError> {
        let mut part = path.as_os_str().to_owned();
        part.push(format!(".part-{}", std::process::id()));
        let part = Path::new(&part);
        let done = (|| {
            let mut file = File::create(part)?;
            self.write(&mut file)?;
            file.sync_all()?;
            std::fs::rename(part, path)
        })();
        if done.is_err() {
            let _ = std::fs::remove_file(part);
        }
        Ok(done?)
    }

    /// Writes the bytes of the image.
    pub fn write(&self, to: &mut impl std::io::Write) -> std::io::Result<()> {
        let bytes = self.storage.bytes();
        let mut header = Header { checksum: 0, ..self.header };
        let mut hash = xxhash_rust::xxh3::Xxh3::new();
        hash.update(bytemuck::bytes_of(&header));
        hash.update(&bytes[size_of::<Header>()..]);
        header.checksum = hash.digest();
        to.write_all(bytemuck::bytes_of(&header))?;
        to.write_all(&bytes[size_of::<Header>()..])
    }

    /// Reads a file into memory of our own, huge pages where there are, and checks it.
    pub fn open(path: &Path) -> Result<Self, ImageError> {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        if length < size_of::<Header>() as u64 {
            return Self::check_short(&mut file);
        }
        let mut storage = zeroed(length)?;
        file.read_exact(storage.bytes_mut()?)?;
        Self::adopt(storage)
    }

    /// Reads an image from bytes, by copying them, and checks it.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ImageError> {
        parse(bytes)?;
        let mut storage = zeroed(bytes.len() as u64)?;
        storage.bytes_mut()?.copy_from_slice(bytes);
        Self::adopt(storage)
    }

    /// Maps a file and checks it; nothing is copied. Lookups then go through the small pages of the file
    /// cache: [`open`](Self::open) costs a copy once and is faster after it.
    ///
    /// # Safety
    /// Nobody may write to the file or shorten it while the image lives: what was checked must stay true. A
    /// lookup in a part that a file was shortened by ends the process (`SIGBUS`), one in a part that was
    /// written to may read outside of the image. To put another file in its place by renaming, as
    /// [`save`](Self::save) does, is safe: the old one stays while it is mapped. Who can't promise that
    /// [opens](Self::open) the file, as the façade does throughout.
    #[allow(unsafe_code)]
    pub unsafe fn map(path: &Path) -> Result<Self, ImageError> {
        let mut file = File::open(path)?;
        if file.metadata()?.len() < size_of::<Header>() as u64 {
            return Self::check_short(&mut file);
        }
        // SAFETY: our caller promises what `Storage::map` asks for.
        Self::adopt(unsafe { Storage::map(&file) }?)
    }

    /// The error for a file that is too short to hold a header.
    fn check_short(file: &mut File) -> Result<Self, ImageError> {
        let mut bytes = Vec::new();
        file.take(size_of::<Header>() as u64).read_to_end(&mut bytes)?;
        Self::from_bytes(&bytes)
    }

    fn adopt(storage: Storage) -> Result<Self, ImageError> {
        let (header, directory) = parse(storage.bytes())?;
        Ok(Self { storage, header, directory })
    }
}
