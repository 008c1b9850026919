//! [`Name`]: a hierarchical name, as bytes.
//!
//! ```text
//! /com/parc/www      three components, each after a slash
//! (no bytes)         the root, written "/": the prefix of all names
//! ```
//!
//! A component is one or more bytes of any value except `/`. Percent-encoding is not decoded: `/a%2Fb` and
//! `/a%2fb` are two names. Normalise names first if these should be equal. Other forms (domains, URLs, NDN
//! packets) are converted to this form.

use std::borrow::{Borrow, Cow};
use std::fmt;
use std::ops::Deref;

/// The byte after every component except the last.
pub(crate) const SLASH: u8 = b'/';

/// A valid name, borrowed, like `str`.
#[derive(PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Name([u8]);

/// The reason why bytes are no name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// The name doesn't start with a slash.
    #[error("a name starts with a slash")]
    NoSlash,
    /// Two slashes in a row, or a slash at the end.
    #[error("component {0} is empty")]
    EmptyComponent(usize),
    /// A component that is added has a slash inside.
    #[error("component {0} has a slash inside")]
    SlashInside(usize),
    /// The name is longer than a batch or a table can hold.
    #[error("a name of {found} bytes, the limit is {limit}")]
    TooLong {
        /// Bytes of the name.
        found: usize,
        /// The limit in bytes.
        limit: usize,
    },
}

impl Name {
    /// The root, which has no component.
    pub const ROOT: &'static Self = Self::new_unchecked(&[]);

    /// The most bytes of a name.
    pub const MAX_LEN: usize = (1 << 24) - 1;

    /// Makes a name of its bytes: `/` for the root, otherwise a slash before each component. A slash at the
    /// end is ignored.
    pub fn new(bytes: &(impl AsRef<[u8]> + ?Sized)) -> Result<&Self, NameError> {
        let bytes = bytes.as_ref();
        if bytes.first() != Some(&SLASH) {
            return Err(NameError::NoSlash);
        }
        let bytes = bytes.strip_suffix(b"/").unwrap_or(bytes);
        if bytes.len() > Self::MAX_LEN {
            return Err(NameError::TooLong { found: bytes.len(), limit: Self::MAX_LEN });
        }
        if bytes.ends_with(b"/") || bytes.windows(2).any(|pair| pair == b"//") {
            let components = bytes.split(|&b| b == SLASH).skip(1);
            let empty = components.take_while(|component| !component.is_empty()).count();
            return Err(NameError::EmptyComponent(empty + 1));
        }
        Ok(Self::new_unchecked(bytes))
    }

    /// Makes a name of bytes that are known to be valid: none, or a slash before each component.
    #[allow(unsafe_code)] // a wrapper of bytes
    pub(crate) const fn new_unchecked(bytes: &[u8]) -> &Self {
        // SAFETY: `Name` is a transparent wrapper of `[u8]`, and any bytes are sound.
        unsafe { &*(std::ptr::from_ref(bytes) as *const Self) }
    }

    /// The bytes, none for the root.
    pub const fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The number of bytes.
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether it is the root.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The components in order.
    pub fn components(&self) -> Components<'_> {
        Components { rest: &self.0 }
    }

    /// Appends the domain of the name, its components in reverse order: `www.parc.com` of `/com/parc/www`.
    /// Bytes that are no UTF-8 become U+FFFD. The inverse of [`NameBuf::from_domain`].
    pub fn append_domain(&self, into: &mut String) {
        let labels: Vec<_> = self.components().map(String::from_utf8_lossy).collect();
        for (at, label) in labels.iter().rev().enumerate() {
            if at > 0 {
                into.push('.');
            }
            into.push_str(label);
        }
    }

    /// Whether `name` starts with the components of `self`.
    pub fn is_prefix_of(&self, name: &Self) -> bool {
        name.0.starts_with(&self.0) && name.0.get(self.len()).is_none_or(|&next| next == SLASH)
    }

    /// The name without its last component; `None` for the root.
    pub fn parent(&self) -> Option<&Self> {
        let end = self.0.iter().rposition(|&b| b == SLASH)?;
        Some(Self::new_unchecked(&self.0[..end]))
    }

    /// The name and all its prefixes, the longest first, the root last.
    pub fn prefixes(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |name| name.parent())
    }
}

impl ToOwned for Name {
    type Owned = NameBuf;

    fn to_owned(&self) -> NameBuf {
        NameBuf(self.0.to_vec())
    }
}

impl AsRef<Name> for Name {
    fn as_ref(&self) -> &Name {
        self
    }
}

impl fmt::Display for Name {
    /// Writes the name as text, with replacement characters if it is not UTF-8.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() { f.write_str("/") } else { f.write_str(&self.0.escaped()) }
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_string())
    }
}

trait Escaped {
    fn escaped(&self) -> Cow<'_, str>;
}

impl Escaped for [u8] {
    fn escaped(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(self)
    }
}

/// An owned name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct NameBuf(Vec<u8>);

impl NameBuf {
    /// The root.
    pub const fn root() -> Self {
        Self(Vec::new())
    }

    /// Makes a name of its text; see [`Name::new`].
    pub fn new(bytes: &(impl AsRef<[u8]> + ?Sized)) -> Result<Self, NameError> {
        Name::new(bytes).map(ToOwned::to_owned)
    }

    /// Adds a component at the end.
    pub fn push(&mut self, component: &[u8]) -> Result<(), NameError> {
        let number = || self.components().count() + 1;
        if component.is_empty() {
            return Err(NameError::EmptyComponent(number()));
        }
        if component.contains(&SLASH) {
            return Err(NameError::SlashInside(number()));
        }
        let found = self.0.len() + 1 + component.len();
        if found > Name::MAX_LEN {
            return Err(NameError::TooLong { found, limit: Name::MAX_LEN });
        }
        self.0.push(SLASH);
        self.0.extend_from_slice(component);
        Ok(())
    }

    /// Makes a name of its components.
    pub fn from_components<'c>(components: impl IntoIterator<Item = &'c [u8]>) -> Result<Self, NameError> {
        let mut name = Self::root();
        components.into_iter().try_for_each(|component| name.push(component))?;
        Ok(name)
    }

    /// Makes the name of a domain: its labels in reverse order, `www.parc.com` as `/com/parc/www`. A dot at
    /// the end is ignored. Letters are not changed.
    pub fn from_domain(domain: &[u8]) -> Result<Self, NameError> {
        let domain = domain.strip_suffix(b".").unwrap_or(domain);
        Self::from_components(domain.rsplit(|&b| b == b'.'))
    }
}

impl Deref for NameBuf {
    type Target = Name;

    fn deref(&self) -> &Name {
        Name::new_unchecked(&self.0)
    }
}

impl Borrow<Name> for NameBuf {
    fn borrow(&self) -> &Name {
        self
    }
}

impl AsRef<Name> for NameBuf {
    fn as_ref(&self) -> &Name {
        self
    }
}

impl fmt::Display for NameBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl fmt::Debug for NameBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// The components of a name.
#[derive(Clone, Debug)]
pub struct Components<'n> {
    rest: &'n [u8],
}

impl<'n> Iterator for Components<'n> {
    type Item = &'n [u8];

    fn next(&mut self) -> Option<&'n [u8]> {
        let after = self.rest.get(1..)?;
        let len = up_to_slash(after);
        self.rest = &after[len..];
        Some(&after[..len])
    }
}

/// The number of bytes before the first slash, or of all bytes if there is none. It reads eight bytes at a
/// time: one jump for each word instead of one for each byte.
#[inline]
fn up_to_slash(bytes: &[u8]) -> usize {
    let (words, rest) = bytes.as_chunks();
    for (at, word) in words.iter().enumerate() {
        let found = slashes(u64::from_le_bytes(*word));
        if found != 0 {
            return 8 * at + found.trailing_zeros() as usize / 8;
        }
    }
    let before = 8 * words.len();
    let last = match bytes.last_chunk() {
        // These are the last eight bytes, of which the first ones were read before.
        Some(word) if !rest.is_empty() => u64::from_le_bytes(*word) >> (8 * (8 - rest.len())),
        _ => rest.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte)),
    };
    let found = slashes(last);
    if found == 0 { bytes.len() } else { before + found.trailing_zeros() as usize / 8 }
}

/// Sets the highest bit of each byte that is a slash. Only the lowest set bit is reliable.
#[inline]
const fn slashes(word: u64) -> u64 {
    const ONES: u64 = u64::MAX / 0xff;
    let zero_where_slash = word ^ (ONES * SLASH as u64);
    zero_where_slash.wrapping_sub(ONES) & !zero_where_slash & (ONES << 7)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_what_is_none() {
        let name = Name::new("/com/parc/www").unwrap();
        assert_eq!(name.components().collect::<Vec<_>>(), [&b"com"[..], b"parc", b"www"]);
        assert_eq!(Name::new("/com/parc/www/").unwrap(), name);
        assert_eq!(Name::new("/").unwrap(), Name::ROOT);
        assert_eq!(Name::ROOT.components().next(), None);
        assert_eq!(Name::ROOT.to_string(), "/");
        assert_eq!(Name::new("com"), Err(NameError::NoSlash));
        assert_eq!(Name::new(""), Err(NameError::NoSlash));
        assert_eq!(Name::new("//"), Err(NameError::EmptyComponent(1)));
        assert_eq!(Name::new("/com//www"), Err(NameError::EmptyComponent(2)));
        assert_eq!(Name::new("/com/parc//"), Err(NameError::EmptyComponent(3)));
        assert!(Name::new(&vec![SLASH; 1 << 25]).is_err());
        let mut name = NameBuf::new("/com").unwrap();
        assert_eq!(name.push(b""), Err(NameError::EmptyComponent(2)));
        assert_eq!(name.push(b"a/b"), Err(NameError::SlashInside(2)));
        assert_eq!(&*name, Name::new("/com").unwrap());
        let long = [&b"/"[..], &vec![0xff; Name::MAX_LEN]].concat();
        assert!(matches!(Name::new(&long), Err(NameError::TooLong { .. })));
    }

    #[test]
    fn a_component_ends_at_the_first_slash() {
        for len in 0..40 {
            for before in 0..len {
                let mut bytes = vec![SLASH ^ 1; len];
                assert_eq!(up_to_slash(&bytes), len);
                bytes[before..].fill(SLASH);
                assert_eq!(up_to_slash(&bytes), before);
                bytes[before + 1..].fill(0x80 | SLASH);
                assert_eq!(up_to_slash(&bytes), before);
            }
        }
    }

    #[test]
    fn prefixes_go_by_components() {
        let name = |text: &str| NameBuf::new(text).unwrap();
        assert!(name("/com/a").is_prefix_of(&name("/com/a/b")));
        assert!(name("/com/a").is_prefix_of(&name("/com/a")));
        assert!(!name("/com/a").is_prefix_of(&name("/com/ab")));
        assert!(Name::ROOT.is_prefix_of(&name("/com")));
        let all: Vec<_> = name("/com/a/b").prefixes().map(ToString::to_string).collect();
        assert_eq!(all, ["/com/a/b", "/com/a", "/com", "/"]);
    }

    #[test]
    fn domains_are_reversed() {
        assert_eq!(NameBuf::from_domain(b"www.parc.com").unwrap().to_string(), "/com/parc/www");
        assert_eq!(NameBuf::from_domain(b"com.").unwrap().to_string(), "/com");
        let mut domain = "of ".to_owned();
        Name::new("/uk/co/example").unwrap().append_domain(&mut domain);
        Name::ROOT.append_domain(&mut domain);
        assert_eq!(domain, "of example.co.uk");
        assert!(NameBuf::from_domain(b"www..com").is_err());
        assert!(NameBuf::from_domain(b"").is_err());
    }
}
