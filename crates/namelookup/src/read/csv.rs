//! Tables of names from CSV and TSV whose first line names the columns (RFC 4180).
//!
//! ```text
//! domain,category,risk              the name              its result
//! ads.example,ads,3          ──►    /example/ads          category=ads,risk=3
//! "news.example",news,              /example/news         category=news
//! ```
//!
//! One column has the name, in any [`NameFormat`]. The result is the text that
//! [routes](wirespeed_fib::read) of CSV have for a next hop: the value of one column, or a record of several.
//! Without value columns the result of a name is the number of its line, as in a list. A record whose values
//! are all empty has the result [`NO_VALUE`]: left out, it would leave its name to one above it.

use wirespeed_fib::read::NO_VALUE;
use wirespeed_fib::read::parts::csv::{
    Cells, Separator, column, each_record, listed, usual_column, write_label,
};

use super::foreign::check_line;
use super::form::Former;
use super::format::significant_lines;
use super::labels::Labels;
use super::reason::{NameReason, result_word};
use super::{End, Fault, Input, LOOK_AHEAD, Ledger, NameFormat, Place, ReadError};
use crate::name::Name;

/// The columns of a CSV file to read, by the names on its first line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NameColumns {
    /// The column of the name. By default found by usual names (domain, fqdn, host, url, name, ...).
    pub name: Option<String>,
    /// The columns of the result. By default all others.
    pub values: Vec<String>,
}

impl NameColumns {
    /// Whether a column is named.
    pub fn is_given(&self) -> bool {
        *self != Self::default()
    }
}

/// Usual names of the column, without case, blanks and punctuation; the second ones if there is none of the
/// first.
const USUAL: [&[&str]; 2] = [
    &["domain", "domainname", "fqdn", "hostname", "host", "url", "uri", "dnsname", "ndnname"],
    &["name", "site", "website", "query", "prefix"],
];

/// The columns of a file.
struct Header {
    separator: Separator,
    names: Vec<String>,
    /// The column of the name.
    key: usize,
    /// The columns of the result.
    values: Vec<usize>,
}

impl Header {
    fn find(line: &str, wanted: &NameColumns) -> Result<Self, String> {
        let separator = Separator::of(line.as_bytes());
        let mut cells = Cells::default();
        cells.split(line, separator).map_err(|_| "quotes that don't fit".to_owned())?;
        let names = cells.as_slice().to_vec();
        let unfit = |problem: String| format!("{problem}; the columns are {}", listed(&names));
        let key = match &wanted.name {
            Some(name) => column(&names, name).map_err(unfit)?,
            None => {
                let find = |usual| usual_column(&names, usual, "the name");
                let found =
                    find(USUAL[0]).and_then(|one| one.map_or_else(|| find(USUAL[1]), |one| Ok(Some(one))));
                let none = || unfit("no column is named like a name (domain, host, url, name)".into());
                found.map_err(unfit)?.ok_or_else(none)?
            }
        };
        let values = match &*wanted.values {
            [] => (0..names.len()).filter(|&at| at != key).collect(),
            values => {
                values.iter().map(|name| column(&names, name)).collect::<Result<_, _>>().map_err(unfit)?
            }
        };
        Ok(Self { separator, names, key, values })
    }
}

/// The form of the names of a CSV file by its first bytes; `ends` says that they are the whole file. `None`
/// if it is none: its first line has not two columns at least, of which one has a usual name. If columns are
/// named, any first line will do.
pub(super) fn recognise(start: &[u8], ends: bool, wanted: &NameColumns) -> Option<NameFormat> {
    let mut lines = significant_lines(start, ends);
    let first = std::str::from_utf8(lines.next()?).ok()?;
    let header = Header::find(first, wanted);
    if !wanted.is_given() {
        // A line of a table, with tabs: www.example.com 192.0.2.1.
        let is_word =
            |name: &String| !name.contains(|b: char| b.is_ascii_digit() || matches!(b, '.' | '/' | ':'));
        header.as_ref().ok().filter(|header| header.names.len() > 1 && header.names.iter().all(is_word))?;
    }
    let Ok(header) = header else { return Some(NameFormat::Domains) };
    let (mut cells, mut names) = (Cells::default(), Vec::new());
    for line in lines.filter_map(|line| std::str::from_utf8(line).ok()) {
        let name = cells.split(line, header.separator).ok().and_then(|()| cells.as_slice().get(header.key));
        names.extend(name.filter(|name| !name.is_empty()).cloned());
    }
    let form = NameFormat::recognise(names.iter().map(String::as_bytes));
    form.or_else(|| names.is_empty().then_some(NameFormat::Domains))
}

/// The form of the names of a CSV file. `None` if the input is none.
pub(super) fn form_of(input: &mut Input<'_>, wanted: &NameColumns) -> Option<NameFormat> {
    let (start, ends) = input.look_ahead(LOOK_AHEAD);
    recognise(start, ends, wanted)
}

pub(super) fn read(
    input: &mut Input<'_>,
    ledger: &mut Ledger,
    labels: &mut Labels,
    wanted: &NameColumns,
    mut give: impl FnMut(&Name, u32, &mut Ledger) -> Result<(), Fault>,
) -> Result<(), End> {
    let mut header: Option<Header> = None;
    let (mut cells, mut text, mut former) = (Cells::default(), String::new(), Former::default());
    each_record(input, ledger, |record, place, ledger| {
        let Some(header) = &header else {
            ledger.report.records -= 1;
            let found = Header::find(record, wanted).map_err(|what| {
                let (name, what) = (ledger.report.name.clone(), what.into());
                Fault::Ended(Box::new(ReadError::Columns { name, place, what }))
            })?;
            ledger.report.names_fields = found.values.len() > 1;
            header = Some(found);
            return Ok(());
        };
        cells.split(record, header.separator).map_err(|_| NameReason::Quotes)?;
        let cells = cells.as_slice();
        match cells.len().cmp(&header.names.len()) {
            std::cmp::Ordering::Less => return Err(NameReason::TooFewColumns.into()),
            std::cmp::Ordering::Greater => return Err(NameReason::TooManyColumns.into()),
            std::cmp::Ordering::Equal => {}
        }
        let word = cells[header.key].as_bytes();
        check_line(word, b"", ledger.report.format)?;
        let name = former.form(word, ledger.report.format)?;
        let result = match (&*header.values, place) {
            ([], Place::Line(line)) => labels.line(line)?,
            (values, _) => {
                let fields = values.iter().map(|&at| (&*header.names[at], &*cells[at]));
                write_label(&mut text, values.len() == 1, fields);
                if text.is_empty() {
                    text.push_str(NO_VALUE);
                }
                match labels.again(text.as_bytes()) {
                    Some(result) => result,
                    None => labels.intern(result_word(text.as_bytes())?)?,
                }
            }
        };
        ledger.report.routes += 1;
        give(name, result, ledger)
    })
}

#[cfg(test)]
mod tests {
    use super::super::{ReadOptions, read_table_from};
    use super::*;

    fn read(text: &str, options: &ReadOptions) -> Result<Vec<String>, String> {
        let (fib, _) =
            read_table_from(text.as_bytes(), "test", options).map_err(|error| error.to_string())?;
        let mut all: Vec<_> = fib
            .names
            .iter()
            .map(|(name, result)| format!("{name} {}", fib.labels.label(result).expect("a label")))
            .collect();
        all.sort_unstable();
        Ok(all)
    }

    fn columns(name: Option<&str>, values: &[&str]) -> ReadOptions {
        let values = values.iter().map(|&value| value.to_owned()).collect();
        ReadOptions {
            columns: NameColumns { name: name.map(str::to_owned), values },
            ..ReadOptions::default()
        }
    }

    const TEXT: &str =
        "# lists\nDomain,category,risk\nads.example,ads,3\n\"*.News.example\",\"a, b\",\nx.example,,\n";

    #[test]
    fn names_with_records_values_or_nothing() {
        let all = read(TEXT, &ReadOptions::default()).unwrap();
        assert_eq!(
            all,
            ["/example/ads category=ads,risk=3", "/example/news category=a%2C%20b", "/example/x -"]
        );
        assert_eq!(
            read(TEXT, &columns(None, &["category"])).unwrap(),
            ["/example/ads ads", "/example/news a,%20b", "/example/x -"]
        );
        assert_eq!(
            read("url\tn\nhttp://a.example/x\t7\n", &ReadOptions::default()).unwrap(),
            ["/example/a/=x 7"]
        );
        assert_eq!(read("who;name\n1;/a/b\n", &ReadOptions::default()).unwrap(), ["/a/b 1"]);
        assert_eq!(read("which\na.example\n", &columns(Some("which"), &[])).unwrap(), ["/example/a 2"]);
        // Lines of tables, whose first word is no name of a column or stands alone.
        assert_eq!(read("host\t192.0.2.1\n", &ReadOptions::default()).unwrap(), ["/host 192.0.2.1"]);
        assert_eq!(read("name\na.example\n", &ReadOptions::default()).unwrap(), ["/example/a 2", "/name 1"]);
    }

    #[test]
    fn what_is_wrong_is_refused_with_its_line() {
        for (text, options, said) in [
            ("domain,v\na..b,1\n", ReadOptions::default(), "test:2: a label is empty"),
            ("domain,v\n192.0.2.1,1\na.b,2\n", ReadOptions::default(), "test:2: an IP address"),
            ("domain,v\na.b\n", ReadOptions::default(), "test:2: too few columns"),
            ("domain,v\na.b,1,2\n", ReadOptions::default(), "test:2: too many columns"),
            ("domain,v\n\"a.b,1\n", ReadOptions::default(), "test:2: quotes that don't fit"),
            (
                "domain,host,v\na.b,c,1\n",
                columns(None, &["v"]),
                "test:1: both domain and host may hold the name",
            ),
            (
                TEXT,
                columns(Some("nosuch"), &[]),
                "test:2: no column nosuch; the columns are Domain, category, risk",
            ),
            (TEXT, columns(None, &["nosuch"]), "test:2: no column nosuch"),
            ("a,b\nx.y,1\n", columns(None, &["b"]), "test:1: no column is named like a name"),
            ("domain,v\n", ReadOptions::default(), "no names in test"),
        ] {
            let error = read(text, &options).unwrap_err();
            assert!(error.starts_with(said), "{error}");
        }
        let lenient = ReadOptions { lenient: true, ..ReadOptions::default() };
        assert_eq!(read("domain,v\na..b,1\nc.d,2\n", &lenient).unwrap(), ["/d/c 2"]);
    }
}
