//! Attachments: sections of bytes that belong to a table and that lookups don't use.

use super::{Image, ImageBuilder, range};
use crate::error::ImageError;
use crate::format::{SectionEntry, unpack_name};

impl Image {
    /// Copies the image and adds a section of bytes after its own: data that belongs to a table but is not
    /// looked up in, such as the names of its results. Panics if the name is taken.
    pub fn with_attachment(&self, name: &str, bytes: &[u8]) -> Result<Self, ImageError> {
        self.with_attachments(&[(name, bytes)])
    }

    /// Copies the image once and adds several sections like [`with_attachment`](Self::with_attachment).
    pub fn with_attachments(&self, attachments: &[(&str, &[u8])]) -> Result<Self, ImageError> {
        let section = |builder: ImageBuilder, (name, bytes): &(&str, &[u8])| {
            builder.section::<u8>(name, bytes.len() as u64)
        };
        let mut image = self.copied(|_| true, |builder| attachments.iter().fold(builder, section))?;
        let own = image.directory.len() - attachments.len();
        let to = image.storage.bytes_mut()?;
        for (entry, (_, bytes)) in image.directory[own..].iter().zip(attachments) {
            to[range(entry)].copy_from_slice(bytes);
        }
        Ok(image)
    }

    /// Copies the image without the attachments of these names, if there are any.
    pub fn without_attachments(&self, names: &[&str]) -> Result<Self, ImageError> {
        self.copied(|name| !names.contains(&name), |builder| builder)
    }

    /// The bytes of an attachment. `None` if there is none with this name.
    pub fn attachment(&self, name: &str) -> Option<&[u8]> {
        let id = self.find(name)?;
        (self.width(id) == Some(1)).then(|| self.section::<u8>(id))
    }

    /// Copies the sections whose names are kept, in order. `more` adds sections after them.
    fn copied(
        &self,
        stays: impl Fn(&str) -> bool,
        more: impl FnOnce(ImageBuilder) -> ImageBuilder,
    ) -> Result<Self, ImageError> {
        let whole = self.whole();
        let name_of = |entry: &SectionEntry| unpack_name(&entry.name).unwrap_or_default().to_owned();
        let old: Vec<_> = whole.directory.iter().filter(|entry| stays(&name_of(entry))).collect();
        let mut builder = ImageBuilder::new(self.kind(), self.layout());
        for entry in &old {
            builder = builder.section_of_width(&name_of(entry), entry.width as usize, entry.len);
        }
        let mut image = more(builder).build(None)?;
        image.set_counts(whole.entries(), whole.results());
        let to = image.storage.bytes_mut()?;
        let from = whole.storage.bytes();
        for (old, new) in old.into_iter().zip(&image.directory) {
            to[range(new)].copy_from_slice(&from[range(old)]);
        }
        Ok(image)
    }
}
