//! Files by their content: [`Content`] says what a file holds, and [`read`] makes a table of it.
//!
//! ```text
//! file ──► Content::of_file ──► read ──► FileTable { addresses, names, rules or payloads } ──► save: images
//! ```
//!
//! A program that knows what its files hold needs none of this: each builder reads the formats of its own
//! keys.

mod file_table;
mod how;

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use wirespeed_classify::read::RuleFormat;
use wirespeed_fib::read::parts::split_word;
use wirespeed_fib::read::{Format, OpenError, Source, is_built_in, open};
use wirespeed_image::Image;
use wirespeed_namelookup::read::lists::ListFormat;
use wirespeed_namelookup::read::{NameFormat, recognise_csv};

pub use file_table::{FileError, FileTable, merge, merge_names, read};
pub use how::{How, HowError};

/// The content of a file.
///
/// The text form is the name of a format as `lookupctl` has it: `mmdb`, `hosts`, `nft`. `plain` is one of
/// routes, and `rules` are rules as text.
///
/// ```
/// use wirespeed::content::Content;
/// use wirespeed::names::read::lists::ListFormat;
///
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("list");
/// std::fs::write(&path, "0.0.0.0 ads.example\n0.0.0.0 more.example\n")?;
/// assert_eq!(Content::of_file(&path)?, Content::List(ListFormat::Hosts));
/// std::fs::write(&path, "0.0.0.0/0 core\n10.0.0.0/8 edge\n")?;
/// assert_eq!(Content::of_file(&path)?.to_string(), "plain");
/// std::fs::write(&path, "nothing of the kind\n")?;
/// assert!(Content::of_file(&path).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Content {
    /// A compiled table.
    Image,
    /// Routes.
    Routes(Format),
    /// Validated payloads of the RPKI.
    Payloads(Format),
    /// Names, domains or URLs, each with all names beneath it.
    Names(NameFormat),
    /// A list of domains, with scopes and exceptions.
    List(ListFormat),
    /// Packet rules.
    Rules(RuleFormat),
}

/// The reason why the content of a file is not known.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ContentError {
    /// The file can't be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The file can't be read.
    #[error("{}: {cause}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The reason.
        cause: std::io::Error,
    },
    /// The file is of no known format.
    #[error(
        "{}: neither an image, nor routes, payloads of the RPKI, names, a list of domains or rules in a known format; it starts \
         with {start:?}", path.display()
    )]
    Unknown {
        /// The file.
        path: PathBuf,
        /// Its start.
        start: String,
    },
    /// The file may be of two kinds.
    #[error("{}: may be of the format {one} or {other}: name the format", path.display())]
    Ambiguous {
        /// The file.
        path: PathBuf,
        /// A format.
        one: Content,
        /// The other one.
        other: Content,
    },
    /// The text names no format.
    #[error("no format is called {name:?}: there are {}", Content::names().collect::<Vec<_>>().join(", "))]
    NoFormat {
        /// The text.
        name: String,
    },
}

/// The bytes by which a format is recognised.
const START: usize = 64 << 10;

impl Content {
    /// Recognises the content of a file by its first bytes, plain or compressed.
    ///
    /// Fails if the file can't be read, if it fits no format, or if it fits two that can't be told apart.
    /// Text without a line that tells is [unknown](ContentError::Unknown), too.
    pub fn of_file(path: &Path) -> Result<Self, ContentError> {
        if is_built_in(path) {
            return Ok(Self::Routes(Format::Csv));
        }
        if Image::is_at(path).map_err(|cause| ContentError::Io { path: path.to_owned(), cause })? {
            return Ok(Self::Image);
        }
        let mut input = open(&Source::Path(path.to_owned()))?;
        let (start, ends) = input.look_ahead(START);
        match of_start(start, ends) {
            Found::One(content) => Ok(content),
            Found::Two(one, other) => Err(ContentError::Ambiguous { path: path.to_owned(), one, other }),
            Found::None => {
                let start = String::from_utf8_lossy(&start[..start.len().min(SHOWN)]);
                Err(ContentError::Unknown { path: path.to_owned(), start: start.into_owned() })
            }
        }
    }

    /// The name of the format.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Image => "image",
            Self::Routes(format) | Self::Payloads(format) => format.name(),
            Self::Names(format) => format.name(),
            Self::List(format) => format.name(),
            Self::Rules(RuleFormat::Plain) => "rules",
            Self::Rules(format) => format.name(),
        }
    }

    /// The names of all formats but that of images, which need no name.
    pub fn names() -> impl Iterator<Item = &'static str> {
        Self::all().map(Self::name)
    }

    fn all() -> impl Iterator<Item = Self> {
        let routes = Format::ALL.into_iter().filter(|format| format.holds_routes()).map(Self::Routes);
        let payloads = Format::ALL.into_iter().filter(|format| format.holds_vrps()).map(Self::Payloads);
        let names = NameFormat::ALL.into_iter().map(Self::Names);
        let lists = ListFormat::ALL.into_iter().map(Self::List);
        routes.chain(payloads).chain(names).chain(lists).chain(RuleFormat::ALL.into_iter().map(Self::Rules))
    }
}

const SHOWN: usize = 40;

impl fmt::Display for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Content {
    type Err = ContentError;

    fn from_str(name: &str) -> Result<Self, ContentError> {
        Self::all()
            .find(|content| content.name() == name)
            .ok_or_else(|| ContentError::NoFormat { name: name.to_owned() })
    }
}

/// What the start of a file may be.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    None,
    One(Content),
    Two(Content, Content),
}

fn of_start(start: &[u8], ends: bool) -> Found {
    let (routes, rules) = (Format::recognise(start), RuleFormat::recognise(start));
    match ListFormat::recognise(start, ends) {
        None => {}
        Some(ListFormat::Hosts) => return hosts_or_routes(start, ends, routes),
        // Signs of lists that nothing else has.
        Some(format) => return Found::One(Content::List(format)),
    }
    match (routes, rules) {
        (Some(Format::NftSets), Some(rules)) => return rules_or_sets(start, rules),
        // Any other JSON may be FRR's.
        (Some(Format::FrrJson), Some(rules)) | (None | Some(Format::Plain), Some(rules)) => {
            return Found::One(Content::Rules(rules));
        }
        (Some(format), _) if format.holds_vrps() => return Found::One(Content::Payloads(format)),
        (Some(Format::Plain) | None, None) => {}
        (Some(format), _) => {
            return if format.holds_routes() { Found::One(Content::Routes(format)) } else { Found::None };
        }
    }
    names_or_plain(start, ends, routes)
}

/// The lines that say something.
fn lines(start: &[u8], ends: bool) -> impl Iterator<Item = &[u8]> {
    let start = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start);
    let whole = match start.iter().rposition(|&b| b == b'\n') {
        Some(last) if !ends => &start[..last],
        _ => start,
    };
    let lines = whole.split(|&b| b == b'\n').map(<[u8]>::trim_ascii);
    lines.filter(|line| !matches!(line.first(), None | Some(b'#')))
}

/// A file of addresses and words: a hosts file, or host routes with their next hops.
fn hosts_or_routes(start: &[u8], ends: bool, routes: Option<Format>) -> Found {
    let hosts = Content::List(ListFormat::Hosts);
    let Some(format) = routes.filter(|format| format.holds_routes()) else { return Found::One(hosts) };
    let (mut has_names, mut has_hops) = (false, false);
    for line in lines(start, ends) {
        let (word, rest) = split_word(line);
        let (Some(address), name) = (address(word), split_word(rest).0) else { continue };
        let is_hop = self::address(name).is_some() || name.iter().all(u8::is_ascii_digit);
        has_hops |= is_hop;
        // Nothing has such an address, and no network's name has a dot.
        has_names |= !is_hop && (address.is_unspecified() || address.is_loopback() || name.contains(&b'.'));
    }
    match (has_names, has_hops) {
        (true, false) => Found::One(hosts),
        (false, true) => Found::One(Content::Routes(format)),
        // Words that fit no hosts file, such as `via`.
        (false, false) if format != Format::Plain => Found::One(Content::Routes(format)),
        _ => Found::Two(hosts, Content::Routes(format)),
    }
}

fn address(word: &[u8]) -> Option<IpAddr> {
    std::str::from_utf8(word).ok()?.parse().ok()
}

/// The JSON of nft, which has rules, sets, or both.
fn rules_or_sets(start: &[u8], rules: RuleFormat) -> Found {
    let has = |key: &[u8]| start.windows(key.len()).any(|part| part == key);
    let (rules, sets) = (Content::Rules(rules), Content::Routes(Format::NftSets));
    match (has(b"\"rule\""), has(b"\"set\"")) {
        (true, false) => Found::One(rules),
        (false, true) => Found::One(sets),
        _ => Found::Two(rules, sets),
    }
}

/// Plain text: prefixes or names, each with something or nothing.
fn names_or_plain(start: &[u8], ends: bool, routes: Option<Format>) -> Found {
    /// The most lines that are looked at.
    const LINES: usize = 512;
    if let Some(form) = recognise_csv(start, ends) {
        return Found::One(Content::Names(form));
    }
    let words = || lines(start, ends).take(LINES).map(|line| split_word(line).0);
    let (mut count, mut names, mut prefixes) = (0, 0, 0);
    let format = NameFormat::recognise(words());
    for word in words() {
        count += 1;
        if is_prefix(word) {
            prefixes += 1;
        } else if format.is_some_and(|format| is_name(word, format)) {
            names += 1;
        }
    }
    let plain = Content::Routes(Format::Plain);
    match (format.map(Content::Names), routes) {
        (Some(of_names), _) if 2 * names > count => Found::One(of_names),
        (_, Some(_)) if 2 * prefixes > count => Found::One(plain),
        (Some(of_names), Some(_)) if names > 0 && prefixes > 0 => Found::Two(of_names, plain),
        (None, Some(_)) if prefixes > 0 => Found::One(plain),
        _ => Found::None,
    }
}

/// Whether a word is an address, alone or with a length or a netmask. The host of a URL may be one, too.
fn is_prefix(word: &[u8]) -> bool {
    let Some(slash) = word.iter().position(|&b| b == b'/') else { return address(word).is_some() };
    let (before, after) = (&word[..slash], &word[slash + 1..]);
    let is_length = matches!(after.len(), 1..=3) && after.iter().all(u8::is_ascii_digit);
    address(before).is_some() && (is_length || address(after).is_some())
}

/// Whether a word is surely a name: of several parts, and right in its form.
fn is_name(word: &[u8], format: NameFormat) -> bool {
    let has_parts = word.iter().any(|b| matches!(b, b'.' | b'/' | b':'));
    has_parts && format.parse(word).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_by_their_start() {
        for (start, name) in [
            ("10.0.0.0/8 192.0.2.1\n", "plain"),
            ("10.0.0.0/8\n2001:db8::/32\n", "plain"),
            ("oops\n10.0.0.0/8 a\n10.1.0.0/16 b\n", "plain"),
            ("192.0.2.1 198.51.100.1\n192.0.2.2 198.51.100.1\n", "plain"),
            ("192.0.2.7 dev eth0 scope link\n", "ip-route"),
            ("1.0.0.0\t24\t13335\n", "pfx2as"),
            ("prefix,asn\n10.0.0.0/8,1\n", "csv"),
            ("{\"10.0.0.0/8\":[", "frr-json"),
            ("\x00\x00\x01\x00\x00\x02", "mmdb"),
            ("ASN,IP Prefix,Max Length,Trust Anchor\nAS1,10.0.0.0/8,8,ripe\n", "vrp-csv"),
            ("0.0.0.0 ads.example\n", "hosts"),
            ("127.0.0.1 localhost\n::1 localhost\n", "hosts"),
            ("192.0.2.1 www.example.com www\n", "hosts"),
            ("[Adblock Plus 2.0]\n||ads.example^\n", "adblock"),
            ("! mine\n@@||ads.example^\n", "adblock"),
            ("address=/ads.example/0.0.0.0\n", "dnsmasq"),
            ("$TTL 60\n@ SOA a. b. 1 2 3 4 5\nads.example CNAME .\n", "rpz"),
            ("// ===BEGIN ICANN DOMAINS===\ncom\n", "psl"),
            ("ads.example\nmore.example\n", "domains"),
            ("*.ads.example 7\n", "domains"),
            ("ads.example\nmore.example\n192.0.2.1\n", "domains"),
            ("example.com/a?b=c 7\n", "urls"),
            ("a.example/b\n192.0.2.1/c/d\n192.0.2.2/e.vbs\n", "urls"),
            ("10.0.0.0/255.0.0.0 core\n", "plain"),
            ("/com/example\n", "names"),
            ("domain,category\nads.example,ads\n", "domains"),
            ("category;url\nads;a.example/b\n", "urls"),
            ("ndn:/com/example 1\n", "ndn"),
            ("dport=443 proto=tcp action=1\n", "rules"),
            ("@10.0.0.0/8\t0.0.0.0/0\t0 : 65535\t80 : 80\t0x06/0xFF\n", "classbench"),
            ("priority=1,ip actions=drop\n", "ovs"),
            ("*filter\n:INPUT DROP [0:0]\n", "iptables"),
            ("{\"nftables\": [{\"chain\": {}}, {\"rule\": {}}", "nft"),
            ("{\"nftables\": [{\"set\": {\"elem\": []}}", "nft-sets"),
            ("{\"SecurityGroups\": [", "security-groups"),
        ] {
            match of_start(start.as_bytes(), true) {
                Found::One(found) => assert_eq!(found.name(), name, "{start}"),
                other => panic!("{start}: {other:?}"),
            }
        }
    }

    #[test]
    fn what_fits_nothing_or_two() {
        for none in [
            "",
            "# a\n",
            "the quick brown fox\n",
            "a,b\n1,2\n",
            "\x7fELF\x02",
            "A 10.0.0.0/8 1\n",
            "server=/a\n",
        ] {
            assert_eq!(of_start(none.as_bytes(), true), Found::None, "{none}");
        }
        for two in [
            "192.0.2.1 core\n192.0.2.2 edge\n",
            "192.0.2.1 www.example.com\n192.0.2.2 198.51.100.1\n",
            "ads.example\n10.0.0.0/8\n",
            "{\"nftables\": [{\"set\": {}}, {\"rule\": {}}",
        ] {
            assert!(matches!(of_start(two.as_bytes(), true), Found::Two(..)), "{two}");
        }
    }

    #[test]
    fn every_name_is_of_one_format() {
        let mut names: Vec<_> = Content::names().collect();
        for name in &names {
            assert_eq!(name.parse::<Content>().unwrap().name(), *name);
        }
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
        let error = "nosuch".parse::<Content>().unwrap_err().to_string();
        assert!(error.contains("nosuch") && error.contains("mmdb"), "{error}");
    }
}
