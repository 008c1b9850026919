//! [`SharedFile`]: a file that threads read at the same time.
//!
//! A `File` that is cloned shares its offset with the clone, so threads would read at each other's places. A
//! reader of a [`SharedFile`] has a place of its own.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use bytes::Bytes;
use parquet::errors::Result;
use parquet::file::reader::{ChunkReader, Length};

/// A file for all threads.
#[derive(Clone)]
pub(crate) struct SharedFile(Arc<File>);

/// A place in a file, from which it is read on.
pub(crate) struct Place {
    file: Arc<File>,
    at: u64,
}

impl SharedFile {
    pub(crate) fn new(file: File) -> Self {
        Self(Arc::new(file))
    }

    fn from(&self, at: u64) -> Place {
        Place { file: Arc::clone(&self.0), at }
    }
}

impl Read for Place {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(into, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

impl Length for SharedFile {
    fn len(&self) -> u64 {
        self.0.len()
    }
}

impl ChunkReader for SharedFile {
    type T = BufReader<Place>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        Ok(BufReader::new(self.from(start)))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        // A damaged file may say any length.
        if length as u64 > self.len().saturating_sub(start) {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        let mut bytes = vec![0; length];
        self.0.read_exact_at(&mut bytes, start)?;
        Ok(bytes.into())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn readers_have_places_of_their_own() {
        let mut file = tempfile::tempfile().unwrap();
        let bytes: Vec<u8> = (0..60_000).map(|at: u32| at.to_le_bytes()[at as usize % 2]).collect();
        file.write_all(&bytes).unwrap();
        let file = SharedFile::new(file);
        let (mut one, mut other) = (file.get_read(0).unwrap(), file.get_read(20_000).unwrap());
        for at in (0..40_000).step_by(10_000) {
            for (reader, from) in [(&mut one, at), (&mut other, 20_000 + at)] {
                let mut read = [0; 10_000];
                reader.read_exact(&mut read).unwrap();
                assert_eq!(read, bytes[from..from + 10_000]);
            }
            assert_eq!(file.get_bytes(at as u64, 7).unwrap(), bytes[at..at + 7]);
        }
        for (start, length) in [(59_999, 2), (60_001, 1), (0, usize::MAX)] {
            assert!(file.get_bytes(start, length).is_err(), "{start} {length}");
        }
    }
}
