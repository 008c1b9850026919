//! Images as files. They are read or mapped, and checked before anything else uses them.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use super::{Image, zeroed};
use crate::error::ImageError;
use crate::format::{Header, MAGIC, parse};
use crate::replace_file::replace_file;
use crate::storage::Storage;

impl Image {
    /// Writes the image to a file, as [`replace_file`] does: no reader sees a part of it.
    pub fn save(&self, path: &Path) -> Result<(), ImageError> {
        replace_file(path, |file| Ok(self.write(file)?))
    }

    /// Writes the bytes of the image.
    pub fn write(&self, to: &mut impl std::io::Write) -> std::io::Result<()> {
        let whole = self.whole();
        let bytes = whole.storage.bytes();
        let mut header = Header { checksum: 0, ..whole.header };
        let mut hash = xxhash_rust::xxh3::Xxh3::new();
        hash.update(bytemuck::bytes_of(&header));
        hash.update(&bytes[size_of::<Header>()..]);
        header.checksum = hash.digest();
        to.write_all(bytemuck::bytes_of(&header))?;
        to.write_all(&bytes[size_of::<Header>()..])
    }

    /// Whether a file starts like an image file. Fails if it can't be read. A pipe is none, and is not read:
    /// whoever reads it then gets all its bytes.
    pub fn is_at(path: &Path) -> io::Result<bool> {
        if !path.metadata()?.is_file() {
            return Ok(false);
        }
        let mut start = Vec::new();
        File::open(path)?.take(MAGIC.len() as u64).read_to_end(&mut start)?;
        Ok(Self::is_start(&start))
    }

    /// Reads a file into memory, huge pages if possible, and checks it.
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

    /// Copies an image from bytes, and checks it.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ImageError> {
        parse(bytes)?;
        let mut storage = zeroed(bytes.len() as u64)?;
        storage.bytes_mut()?.copy_from_slice(bytes);
        Self::adopt(storage)
    }

    /// Maps a file without a copy, and checks it. Lookups then use the small pages of the file cache:
    /// [`open`](Self::open) costs one copy, and its lookups are faster.
    ///
    /// # Safety
    /// Nobody may write to the file or shorten it while the image lives, because the check must stay valid. A
    /// lookup in a part that was cut off ends the process (`SIGBUS`). A lookup in a part that was written to
    /// may read outside of the image. Renaming another file to this path, as [`save`](Self::save) does, is
    /// safe: the old file stays while it is mapped. If you can't promise this, [open](Self::open) the file,
    /// as the façade always does.
    #[allow(unsafe_code)]
    pub unsafe fn map(path: &Path) -> Result<Self, ImageError> {
        let mut file = File::open(path)?;
        if file.metadata()?.len() < size_of::<Header>() as u64 {
            return Self::check_short(&mut file);
        }
        // SAFETY: the caller promises what `Storage::map` asks for.
        Self::adopt(unsafe { Storage::map(&file) }?)
    }

    /// Returns the error for a file that is too short for a header.
    fn check_short(file: &mut File) -> Result<Self, ImageError> {
        let mut bytes = Vec::new();
        file.take(size_of::<Header>() as u64).read_to_end(&mut bytes)?;
        Self::from_bytes(&bytes)
    }

    fn adopt(storage: Storage) -> Result<Self, ImageError> {
        let (header, directory) = parse(storage.bytes())?;
        Ok(Self::of(storage, header, directory))
    }
}
