//! [`WireName`] and [`WireNameBuf`]: names on the wire, borrowed and owned.

use super::TlvError;
use super::component::{Component, ComponentType};
use super::element::{element, write_element};
use super::uri::{self, UriError};
use crate::name::{Name, NameBuf, NameError, SLASH};

/// The type of a Name.
pub(super) const NAME: u64 = 7;

/// A valid name on the wire: its components without the head of the Name element.
///
/// ```
/// use wirespeed_namelookup::tlv::{Component, WireName};
///
/// let bytes = b"\x07\x08\x08\x03com\x36\x01\x03";
/// let name = WireName::parse(bytes)?;
/// assert_eq!(name.components().next(), Some(Component::generic(b"com")));
/// assert_eq!(name.ends().collect::<Vec<_>>(), [5, 8]);
/// assert_eq!(name.prefix(1).as_value(), b"\x08\x03com");
/// assert_eq!(name.to_name()?.to_string(), "/com/54=%03");
/// let mut again = Vec::new();
/// name.encode(&mut again);
/// assert_eq!(again, bytes);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WireName<'b> {
    value: &'b [u8],
}

impl<'b> WireName<'b> {
    /// The name without components.
    pub const ROOT: Self = Self { value: &[] };

    /// Reads a Name element that takes all bytes. O(components).
    pub fn parse(bytes: &'b [u8]) -> Result<Self, TlvError> {
        let (name, rest) = Self::parse_first(bytes)?;
        match rest {
            [] => Ok(name),
            _ => Err(TlvError::Rest { offset: bytes.len() - rest.len(), left: rest.len() }),
        }
    }

    /// Reads the first element, a Name, and returns it with the remaining bytes.
    pub fn parse_first(bytes: &'b [u8]) -> Result<(Self, &'b [u8]), TlvError> {
        let outer = element(bytes, 0)?;
        if outer.kind != NAME {
            return Err(TlvError::Unexpected { offset: 0, found: outer.kind, wanted: "a Name" });
        }
        let name = Self::check(&bytes[..outer.end()], outer.body)?;
        Ok((name, &bytes[outer.end()..]))
    }

    /// Reads the value of a Name element: components without its head.
    pub fn from_value(value: &'b [u8]) -> Result<Self, TlvError> {
        Self::check(value, 0)
    }

    /// Checks the components from `start` to the end of `bytes`.
    pub(super) fn check(bytes: &'b [u8], start: usize) -> Result<Self, TlvError> {
        let mut at = start;
        while at < bytes.len() {
            let component = element(bytes, at)?;
            Component::of(&component)?;
            at = component.end();
        }
        Ok(Self { value: &bytes[start..] })
    }

    /// The components in order.
    pub const fn components(&self) -> Components<'b> {
        Components { value: self.value, at: 0 }
    }

    /// The end of each component in [`as_value`](Self::as_value): the places where forwarders cut prefixes.
    pub const fn ends(&self) -> Ends<'b> {
        Ends(self.components())
    }

    /// The first `components` components, or all.
    pub fn prefix(&self, components: usize) -> Self {
        let end =
            components.checked_sub(1).map_or(0, |last| self.ends().nth(last).unwrap_or(self.value.len()));
        Self { value: &self.value[..end] }
    }

    /// The prefix that a lookup of its [`Name`] matched, by the matched bytes
    /// ([`Match::length`](crate::Match)).
    pub fn matched(&self, name: &Name, length: u32) -> Self {
        let matched = &name.as_bytes()[..(length as usize).min(name.len())];
        self.prefix(matched.iter().filter(|&&b| b == SLASH).count())
    }

    /// The components in wire format.
    pub const fn as_value(&self) -> &'b [u8] {
        self.value
    }

    /// Whether it has no components.
    pub const fn is_empty(&self) -> bool {
        self.value.is_empty()
    }

    /// Writes the Name element, byte for byte as it was read.
    pub fn encode(&self, out: &mut Vec<u8>) {
        write_element(NAME, self.value, out);
    }

    /// Converts it to a [`Name`]: the canonical URI, at most about three times as long.
    pub fn to_name(&self) -> Result<NameBuf, NameError> {
        self.write_name(&mut Vec::new()).map(ToOwned::to_owned)
    }

    /// Converts it to a [`Name`] in the caller's memory, which is emptied first.
    pub fn write_name<'t>(&self, text: &'t mut Vec<u8>) -> Result<&'t Name, NameError> {
        text.clear();
        self.append_text(text);
        match text.len() {
            found @ ..=Name::MAX_LEN => {
                debug_assert!(found == 0 || Name::new(&*text).is_ok());
                Ok(Name::new_unchecked(text))
            }
            found => Err(NameError::TooLong { found, limit: Name::MAX_LEN }),
        }
    }

    pub(crate) fn append_text(&self, text: &mut Vec<u8>) {
        for component in self.components() {
            text.push(SLASH);
            uri::write_component(&component, text);
        }
    }

    /// Converts it to a URI, `ndn:/com/parc`.
    pub fn to_uri(&self) -> String {
        let mut text = b"ndn:".to_vec();
        self.append_text(&mut text);
        if self.is_empty() {
            text.push(SLASH);
        }
        String::from_utf8(text).expect("a canonical URI is ASCII")
    }
}

/// The components of a name on the wire.
#[derive(Clone, Debug)]
pub struct Components<'b> {
    value: &'b [u8],
    at: usize,
}

impl<'b> Iterator for Components<'b> {
    type Item = Component<'b>;

    #[inline]
    fn next(&mut self) -> Option<Component<'b>> {
        if self.at == self.value.len() {
            return None;
        }
        let element = element(self.value, self.at).ok()?;
        self.at = element.end();
        Component::of(&element).ok()
    }
}

/// The ends of components.
#[derive(Clone, Debug)]
pub struct Ends<'b>(Components<'b>);

impl Iterator for Ends<'_> {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        self.0.next().map(|_| self.0.at)
    }
}

/// An owned name on the wire.
///
/// ```
/// use wirespeed_namelookup::tlv::{ComponentType, WireNameBuf};
///
/// let mut name = WireNameBuf::from_uri(b"ndn:/com/parc%2Fwww")?;
/// name.push(ComponentType::VERSION, &[3])?;
/// assert_eq!(name.as_wire().as_value(), b"\x08\x03com\x08\x08parc/www\x36\x01\x03");
/// assert_eq!(name.as_wire().to_uri(), "ndn:/com/parc%2Fwww/54=%03");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct WireNameBuf {
    value: Vec<u8>,
}

impl WireNameBuf {
    /// Makes the name without components.
    pub const fn new() -> Self {
        Self { value: Vec::new() }
    }

    /// Adds a component.
    pub fn push(&mut self, kind: ComponentType, value: &[u8]) -> Result<(), TlvError> {
        Component::new(kind, value)?;
        write_element(u64::from(kind.number()), value, &mut self.value);
        Ok(())
    }

    /// Parses a URI, `ndn:/com/parc` or without `ndn:`. Other than canonical URIs are accepted, too:
    /// unnecessary or missing percent-encoding; `8=`; `1=` and `2=` for digests; `seq=`, `seg=`, `off=`, `v=`
    /// and `t=` with decimal numbers. A slash at the end and an authority are ignored.
    pub fn from_uri(uri: &[u8]) -> Result<Self, UriError> {
        let path = uri::path(uri)?;
        let path = path.strip_suffix(b"/").unwrap_or(path);
        let mut name = Self::new();
        let mut value = Vec::new();
        for text in path.split(|&b| b == SLASH).skip(1) {
            value.clear();
            let kind = uri::read_component(text, &mut value)?;
            write_element(u64::from(kind.number()), &value, &mut name.value);
        }
        Ok(name)
    }

    /// Converts a [`Name`] to the wire, like [`from_uri`](Self::from_uri). Converting back gives the same
    /// name if it is canonical.
    pub fn from_name(name: &Name) -> Result<Self, UriError> {
        if name.is_empty() { Ok(Self::new()) } else { Self::from_uri(name.as_bytes()) }
    }

    /// The borrowed name.
    pub fn as_wire(&self) -> WireName<'_> {
        WireName { value: &self.value }
    }
}

impl From<WireName<'_>> for WireNameBuf {
    fn from(name: WireName<'_>) -> Self {
        Self { value: name.value.to_vec() }
    }
}
