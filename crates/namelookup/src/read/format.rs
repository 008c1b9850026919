//! [`NameFormat`]: the forms of names in text, by name, and their recognition.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use wirespeed_fib::read::parts::split_word;

/// A form of names in text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NameFormat {
    /// `/com/parc/www`, any bytes unchanged. A slash at the end is ignored.
    Names,
    /// `www.parc.com`, which is `/com/parc/www`.
    ///
    /// ASCII letters become lower case, because domains ignore case. A dot at the end is ignored. A domain
    /// with other letters becomes ASCII by UTS 46, so that `MÜNCHEN.de` and `xn--mnchen-3ya.de` are one name,
    /// `/de/xn--mnchen-3ya`. A label has letters, digits, `-` and `_`; other characters are errors, and so
    /// are IP addresses. `*.example.com` and `.example.com` are the prefix `/com/example`, which also matches
    /// the domain itself. `*` and `.` are the root. A `*` elsewhere is an error.
    Domains,
    /// `http://www.example.com/a/b` or `www.example.com/a/b`, which become `/com/example/www/=a/b`.
    ///
    /// The host has the form of [`Domains`](Self::Domains), or is an IPv4 address or a bracketed IPv6 address
    /// in the form of RFC 5952, which become one component. The first segment of the path has `=` before it:
    /// `example.com/www` is not `www.example.com`. User, password and fragment are dropped; a user without a
    /// scheme is an error, as an e-mail address is no URL. The port of the scheme (without a scheme: 80 and
    /// 443) is dropped. Any other port becomes a component after the host, `/com/example/:8080/=a`, so that
    /// the host is a prefix of all its ports. Segments of one or two dots are taken out as by RFC 3986
    /// (section 5.2.4). Other percent-encoding is kept. A query stays in the last component, with its slashes
    /// changed to `%2F`; after a slash it is a component of its own. A slash at the end is ignored. Slashes
    /// in a row and backslashes are errors.
    Urls,
    /// `ndn:/com/parc/54=%03` or `/com/parc/54=%03`: an NDN URI, which is converted to canonical form; see
    /// [`tlv`](crate::tlv).
    Ndn,
}

impl NameFormat {
    /// All forms.
    pub const ALL: [Self; 4] = [Self::Names, Self::Domains, Self::Urls, Self::Ndn];

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Names => "names",
            Self::Domains => "domains",
            Self::Urls => "urls",
            Self::Ndn => "ndn",
        }
    }

    /// Recognises the form of words, by the first words. `None` if they can't be names.
    ///
    /// Names start with a slash, and NDN URIs with `ndn:`. Other words are URLs if any of them has a scheme,
    /// a port or a path; otherwise they are domains. If all words are address prefixes they are not names,
    /// because the file has routes.
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

/// Whether a word is an address prefix with its length.
fn is_route(word: &[u8]) -> bool {
    let parts = std::str::from_utf8(word).ok().and_then(|word| word.split_once('/'));
    parts.is_some_and(|(address, len)| address.parse::<IpAddr>().is_ok() && len.parse::<u8>().is_ok())
}

/// The complete lines at the start of a file that are neither empty nor comments.
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

/// A text that names no format.
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
