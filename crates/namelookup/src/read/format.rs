//! [`NameFormat`]: how names are written, by name, and how each way is told from the others.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use wirespeed_fib::read::parts::split_word;

use super::form::Former;
use super::reason::NameReason;
use crate::name::NameBuf;

/// How names are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NameFormat {
    /// `/com/parc/www`, any bytes as they are. A slash at the end is let pass.
    Names,
    /// `www.parc.com`, which is `/com/parc/www`.
    ///
    /// ASCII letters are made small, as a domain is the same in either; a dot at the end is let pass. A
    /// domain beyond ASCII is made ASCII by UTS 46, so that `MÜNCHEN.de` and `xn--mnchen-3ya.de` are one
    /// name, `/de/xn--mnchen-3ya`; one in ASCII stays as it is. A label has letters, digits, `-` and `_`;
    /// other characters are a fault, and so are IP addresses. `*.example.com` and `.example.com` are the
    /// prefix `/com/example`, which matches the domain itself too; `*` and `.` are the root, and a `*`
    /// elsewhere is a fault.
    Domains,
    /// `http://www.example.com/a/b` or `www.example.com/a/b`, which are `/com/example/www/a/b`.
    ///
    /// The host as in [`Domains`](Self::Domains), an IPv4 address as one component, and an IPv6 one in
    /// brackets, too. User and password are dropped, and so is what comes after a `#`. A port is dropped
    /// where it is the scheme's (without a scheme: 80 and 443), otherwise it is a component after the host,
    /// `/com/example/:8080/a`, so that the host is a prefix of all its ports. Percent-encoding is kept. A
    /// query stays in the last component as it is but for its slashes, which become `%2F`; after a slash it
    /// is a component of its own. A slash at the end is let pass; slashes in a row are a fault.
    Urls,
    /// `ndn:/com/parc/54=%03` or `/com/parc/54=%03`, an NDN URI, which becomes canonical; see
    /// [`tlv`](crate::tlv).
    Ndn,
}

impl NameFormat {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Names, Self::Domains, Self::Urls, Self::Ndn];

    /// The name that the command line takes.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Names => "names",
            Self::Domains => "domains",
            Self::Urls => "urls",
            Self::Ndn => "ndn",
        }
    }

    /// The name that is written this way.
    ///
    /// ```
    /// use wirespeed_namelookup::read::NameFormat;
    ///
    /// let text = b"http://me@WWW.parc.com:80/a%20b/c?d=e/f#g";
    /// assert_eq!(NameFormat::Urls.parse(text)?.to_string(), "/com/parc/www/a%20b/c?d=e%2Ff");
    /// assert_eq!(NameFormat::Domains.parse(b"*.parc.com")?.to_string(), "/com/parc");
    /// # Ok::<(), wirespeed_namelookup::read::NameReason>(())
    /// ```
    pub fn parse(self, text: &[u8]) -> Result<NameBuf, NameReason> {
        Former::default().form(text, self).map(ToOwned::to_owned)
    }

    /// How words are written that are names, by the first of them; `None` where they can be no names.
    ///
    /// Names start with a slash, URIs of NDN with `ndn:`; of others those are URLs of which any has a scheme,
    /// a port or a path, and all else are domains. Words that are all prefixes of addresses are no names, as
    /// that is a file of routes.
    ///
    /// ```
    /// use wirespeed_namelookup::read::NameFormat;
    ///
    /// assert_eq!(NameFormat::recognise([&b"parc.com"[..], b"www.parc.com"]), Some(NameFormat::Domains));
    /// assert_eq!(NameFormat::recognise([&b"parc.com"[..], b"www.parc.com/a"]), Some(NameFormat::Urls));
    /// assert_eq!(NameFormat::recognise([&b"10.0.0.0/8"[..]]), None);
    /// ```
    pub fn recognise<'w>(words: impl IntoIterator<Item = &'w [u8]>) -> Option<Self> {
        let mut words = words.into_iter().peekable();
        match words.peek()? {
            [b'/', ..] => return Some(Self::Names),
            word if word.starts_with(b"ndn:") => return Some(Self::Ndn),
            word if word.iter().any(u8::is_ascii_control) => return None,
            _ => {}
        }
        let (mut has_urls, mut all_routes) = (false, true);
        for word in words {
            has_urls |= word.iter().any(|b| matches!(b, b'/' | b':'));
            all_routes &= is_route(word);
        }
        match (all_routes, has_urls) {
            (true, _) => None,
            (false, true) => Some(Self::Urls),
            (false, false) => Some(Self::Domains),
        }
    }
}

/// Whether a word is a prefix of addresses, with its length.
fn is_route(word: &[u8]) -> bool {
    let parts = std::str::from_utf8(word).ok().and_then(|word| word.split_once('/'));
    parts.is_some_and(|(address, len)| address.parse::<IpAddr>().is_ok() && len.parse::<u8>().is_ok())
}

/// The lines at the start of a file that are neither blank nor comments, and whole.
pub(super) fn significant_lines(start: &[u8], ends: bool) -> impl Iterator<Item = &[u8]> + Clone {
    let start = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start);
    let whole = match start.iter().rposition(|&b| b == b'\n') {
        Some(last) if !ends => &start[..last],
        _ => start,
    };
    whole.split(|&b| b == b'\n').filter(|line| !matches!(split_word(line).0.first(), None | Some(b'#')))
}

impl fmt::Display for NameFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Text that names no format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no format of names is called {0:?}: there are names, domains, urls and ndn")]
pub struct UnknownFormat(String);

impl FromStr for NameFormat {
    type Err = UnknownFormat;

    fn from_str(text: &str) -> Result<Self, UnknownFormat> {
        Self::ALL
            .into_iter()
            .find(|format| format.name() == text)
            .ok_or_else(|| UnknownFormat(text.to_owned()))
    }
}
