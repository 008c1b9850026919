//! [`Format`]: the format of a file of records, by name or by content.

use std::fmt;
use std::str::FromStr;

/// The format of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// Cells with commas, semicolons or bars between them, quoted as in RFC 4180; the first record names the
    /// columns.
    Csv,
    /// CSV with tabs.
    Tsv,
    /// CSV as nfdump writes it (`-o csv`): no quotes, and a summary after a line `Summary`.
    Nfdump,
    /// Zeek's logs with tabs: lines that start with `#` name the columns.
    Zeek,
    /// One JSON object on each line.
    NdJson,
}

impl Format {
    /// All formats.
    pub const ALL: [Self; 5] = [Self::Csv, Self::Tsv, Self::Nfdump, Self::Zeek, Self::NdJson];

    /// The name on a command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Tsv => "tsv",
            Self::Nfdump => "nfdump",
            Self::Zeek => "zeek",
            Self::NdJson => "ndjson",
        }
    }

    /// Recognises the format by the first line that is not blank, without its end.
    ///
    /// ```
    /// use wirespeed_records::Format;
    ///
    /// assert_eq!(Format::recognise(b"{\"src_ip\":\"192.0.2.1\"}"), Format::NdJson);
    /// assert_eq!(Format::recognise(b"#separator \\x09"), Format::Zeek);
    /// assert_eq!(Format::recognise(b"ts,te,td,sa,da,sp,dp,pr"), Format::Nfdump);
    /// assert_eq!(Format::recognise(b"time,src_ip,dst_ip"), Format::Csv);
    /// ```
    #[must_use]
    pub fn recognise(line: &[u8]) -> Self {
        let line = without_mark(line).trim_ascii_start();
        let starts = |words: &[&str]| words.iter().any(|word| line.starts_with(word.as_bytes()));
        if line.starts_with(b"{") {
            Self::NdJson
        } else if starts(&["#separator", "#fields\t"]) {
            Self::Zeek
        } else if starts(&["ts,te,td,sa,da", "ts,te,td,pr,val,", "firstSeen,duration,proto,srcAddr,"]) {
            Self::Nfdump
        } else if line.contains(&b'\t') {
            Self::Tsv
        } else {
            Self::Csv
        }
    }
}

/// The byte-order mark that may start a file.
pub(crate) const MARK: &[u8] = b"\xef\xbb\xbf";

/// The bytes without a byte-order mark at their start.
pub(crate) fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(MARK).unwrap_or(bytes)
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|format| format.name() == name);
        found.ok_or_else(|| {
            format!("no format {name:?}; the formats are {}", Self::ALL.map(Self::name).join(", "))
        })
    }
}
