//! [`Place`]: where an image lies, and [`ContentHash`], which names it.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use object_store::path::Path as ObjectPath;
use object_store::{ObjectStore, ObjectStoreExt};
use sha2::{Digest, Sha256};
use url::Url;

use crate::error::Error;
use crate::stores::Stores;

/// The SHA-256 of a file, as `sha256sum` prints it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ContentHash([u8; 32]);

impl ContentHash {
    /// The hash of these bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Ends a hash that was fed in pieces.
    pub(crate) fn finish(hasher: Sha256) -> Self {
        Self(hasher.finalize().into())
    }

    /// The hash in the name of a file: `ris-<64 hexadecimal digits>.img`.
    #[must_use]
    pub fn in_name(file: &str) -> Option<Self> {
        let (_, rest) = file.rsplit_once('-')?;
        let hex = rest.split_once('.').map_or(rest, |(hex, _)| hex).as_bytes();
        let (pairs, []) = hex.as_chunks::<2>() else { return None };
        let digit = |digit: u8| match digit {
            b'0'..=b'9' => Some(digit - b'0'),
            b'a'..=b'f' => Some(digit - b'a' + 10),
            _ => None,
        };
        let bytes = pairs.iter().map(|&[high, low]| Some(digit(high)? << 4 | digit(low)?));
        Some(Self(bytes.collect::<Option<Vec<u8>>>()?.try_into().ok()?))
    }
}

impl fmt::Display for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The place of an image: a path, or an address of an object store (`s3://bucket/tables/…`).
///
/// | last part | is |
/// |---|---|
/// | `ris-<SHA-256>.img` | an image by its content, which never changes |
/// | `ris@latest` | the image that was published last under the name `ris` |
/// | another | a file that may change |
#[derive(Clone, PartialEq, Eq)]
pub struct Place {
    /// The place, less `@latest`.
    url: Url,
    latest: bool,
}

impl Place {
    /// Parses a place. A path that does not begin at the root begins at the current directory.
    ///
    /// Fails if the text is no address, or names no file.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let failed = |reason: &str| Error::Place { place: text.to_owned(), reason: reason.to_owned() };
        let (bare, latest) = text.strip_suffix("@latest").map_or((text, false), |bare| (bare, true));
        let url = if bare.contains("://") {
            Url::parse(bare).map_err(|error| failed(&error.to_string()))?
        } else {
            let path = std::path::absolute(bare).map_err(|error| failed(&error.to_string()))?;
            Url::from_file_path(path).map_err(|()| failed("is no path of a file"))?
        };
        let place = Self { url, latest };
        if place.file_name().is_empty() {
            return Err(failed("names no file"));
        }
        if place.url.query().or(place.url.fragment()).is_some() {
            return Err(failed("has a part after '?' or '#'"));
        }
        Ok(place)
    }

    /// The last part, without `@latest`.
    pub(crate) fn file_name(&self) -> &str {
        self.url.path_segments().and_then(|mut parts| parts.next_back()).unwrap_or_default()
    }

    /// Whether the place is the image that was published last.
    pub(crate) fn is_latest(&self) -> bool {
        self.latest
    }

    /// The hash of the content, if the place is named by it.
    #[must_use]
    pub fn content(&self) -> Option<ContentHash> {
        if self.latest { None } else { ContentHash::in_name(self.file_name()) }
    }

    /// The path, if the place is a file of this machine.
    #[must_use]
    pub fn path(&self) -> Option<PathBuf> {
        if self.url.scheme() == "file" { self.url.to_file_path().ok() } else { None }
    }

    /// A file beside this one.
    pub(crate) fn beside(&self, file: &str) -> Result<Self, Error> {
        let url = self.url.join(file).map_err(|error| self.failed(error))?;
        Ok(Self { url, latest: false })
    }

    pub(crate) fn failed(&self, reason: impl ToString) -> Error {
        Error::Place { place: self.to_string(), reason: reason.to_string() }
    }

    /// The store where the place is, and the path in it.
    pub(crate) fn in_store(&self, stores: &Stores) -> Result<(Arc<dyn ObjectStore>, ObjectPath), Error> {
        let store =
            stores.registry().get_store(&self.url).map_err(|error| self.failed(error.strip_backtrace()))?;
        let path = ObjectPath::from_url_path(self.url.path()).map_err(|error| self.failed(error))?;
        Ok((store, path))
    }

    /// All bytes of the place.
    pub(crate) async fn read(&self, stores: &Stores) -> Result<Vec<u8>, Error> {
        let (store, path) = self.in_store(stores)?;
        let found = store.get(&path).await.map_err(|error| self.not_read(&error))?;
        Ok(found.bytes().await.map_err(|error| self.not_read(&error))?.into())
    }

    pub(crate) fn not_read(&self, error: &object_store::Error) -> Error {
        match error {
            object_store::Error::NotFound { .. } => self.failed("no such file"),
            error => self.failed(error),
        }
    }

    /// The images by their content that the place is now: itself, or what is published as the latest.
    ///
    /// Fails if the place can change, or if what tells the latest is not there or is damaged.
    pub async fn pinned(&self, stores: &Stores) -> Result<Vec<Self>, Error> {
        if self.content().is_some() {
            return Ok(vec![self.clone()]);
        }
        if !self.latest {
            let wanted = "the name has no hash of the content, so processes could see several states; \
                          publish the file and list …@latest";
            return Err(self.failed(wanted));
        }
        let pointer = self.beside(&format!("{}.latest", self.file_name()))?;
        let text =
            String::from_utf8(pointer.read(stores).await?).map_err(|_| pointer.failed("is no text"))?;
        let files =
            text.lines().zip(1..).map(|(file, line)| {
                let is_content = is_plain(file) && ContentHash::in_name(file).is_some();
                match is_content {
                    true => self.beside(file),
                    false => Err(pointer
                        .failed(format!("line {line}: {file:?} is no file that is named by its content"))),
                }
            });
        let files = files.collect::<Result<Vec<_>, _>>()?;
        if files.is_empty() {
            return Err(pointer.failed("lists no file"));
        }
        Ok(files)
    }
}

/// Whether a name means the same in a path and in the address of an object store, and names nothing
/// elsewhere.
pub(crate) fn is_plain(name: &str) -> bool {
    let known = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    !name.is_empty() && !name.starts_with('.') && name.bytes().all(known)
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path() {
            Some(path) => write!(f, "{}", path.display())?,
            None => write!(f, "{}", self.url)?,
        }
        f.write_str(if self.latest { "@latest" } else { "" })
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn places_are_parsed_or_refused() {
        let hash = ContentHash::of(b"abc");
        assert_eq!(hash.to_string(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        let by_content = Place::parse(&format!("/t/of-ris-{hash}.img")).unwrap();
        assert_eq!(by_content.content(), Some(hash));
        assert_eq!(by_content.to_string(), format!("/t/of-ris-{hash}.img"));

        let latest = Place::parse("s3://bucket/t/ris@latest").unwrap();
        assert!(latest.is_latest() && latest.content().is_none() && latest.path().is_none());
        assert_eq!(latest.beside("ris.latest").unwrap().to_string(), "s3://bucket/t/ris.latest");
        let odd = Place::parse("/t/a b%41.img").unwrap();
        assert_eq!(odd.path().unwrap(), Path::new("/t/a b%41.img"));

        let upper = hash.to_string().to_uppercase();
        for other in [
            "ris.img".to_owned(),
            format!("ris-{}.img", &upper),
            format!("{hash}.img"),
            "ris-ab.img".to_owned(),
        ] {
            assert_eq!(ContentHash::in_name(&other), None, "{other}");
        }
        for wrong in ["/", "s3://bucket/", "://x", "s3://bucket/a?b", "s3://bucket/a#b@latest"] {
            let error = Place::parse(wrong).unwrap_err().to_string();
            assert!(error.starts_with(wrong), "{error}");
        }
    }
}
