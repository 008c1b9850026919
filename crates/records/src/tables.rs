//! [`TableFile`]: a table that records are looked up in, as a command line names it (`NAME=FILE`), and the
//! texts that it has for its indexes.
//!
//! Needs the feature `tables`.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;

use wirespeed::engine::Addresses;
use wirespeed::fib::read::{Columns, Format, NO_VALUE, ReadError, ReadOptions, Source, open, read_fib};
use wirespeed::fib::{Family, NextHops};
use wirespeed::image::Image;
use wirespeed::image_file::ImageFile;
use wirespeed::names::NameList;
use wirespeed::names::image_file::NameImageFile;
use wirespeed::names::read::lists::{ListOptions, TableOrList, TableOrListError, read_table_or_list};
use wirespeed::names::read::{self as names, Label};
use wirespeed::{IpReader, IpTable, NameReader, NameTable, Rib, Table};

/// A table as a command line names it.
///
/// ```
/// use wirespeed_records::TableFile;
///
/// let file = TableFile::parse("asn=rib.mrt.bz2")?;
/// assert_eq!((&*file.name, file.path.to_str()), ("asn", Some("rib.mrt.bz2")));
/// assert!(TableFile::parse("rib.mrt.bz2").is_err());
/// # Ok::<(), wirespeed_records::TableError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableFile {
    /// The name of the table and its columns: letters, digits, `-` and `_`.
    pub name: String,
    /// The file. `-` is standard input.
    pub path: OsString,
    /// The fields of its values. Empty for the whole value.
    pub fields: Vec<String>,
}

/// The way in which tables are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableReading {
    /// Whether wrong lines are passed over.
    pub lenient: bool,
    /// Whether matched prefixes are asked for.
    pub prefix: bool,
    /// Whether next hops of MRT and bgpdump are taken, and not origins.
    pub next_hops: bool,
}

/// A reader of addresses, and the families that its table has prefixes of.
#[derive(Debug)]
pub struct AddressTable {
    /// The reader. It looks IPv4-mapped addresses up as IPv4.
    pub reader: IpReader,
    /// Whether there is a prefix of IPv4, and one of IPv6.
    pub families: [bool; 2],
}

/// A reader of names, or a list of domains: the content of a file says which.
#[derive(Debug)]
pub enum NamesOrList {
    /// Names, each with all names beneath it.
    Names(NameReader),
    /// Entries of a list of domains, with scopes and exceptions.
    Domains(Box<NameList>),
}

/// The reason why a table can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TableError {
    /// The text is not `NAME=FILE`.
    #[error("{0:?}: a table is named NAME=FILE, such as asn=rib.mrt")]
    NotNamed(String),
    /// The name has other characters than it may have.
    #[error("{0:?}: the name of a table has letters, digits, - and _ only")]
    Name(String),
    /// Two tables of a kind have one name.
    #[error("two tables have the name {0:?}")]
    Twice(String),
    /// The text is not `NAME=FIELD,FIELD`.
    #[error("--fields {0}: fields are named NAME=FIELD,FIELD, such as geo=country.iso_code")]
    NoFields(String),
    /// The fields of a table are named twice.
    #[error("--fields {0}=... is given twice")]
    FieldsTwice(String),
    /// There is no table of addresses of this name.
    #[error("--fields {text}: there is no --table {name}=FILE")]
    FieldsOf {
        /// The fields as they were named.
        text: String,
        /// The name that no table has.
        name: String,
    },
    /// An image of plain lookups is asked for prefixes.
    #[error("{0}: an image that gives no prefixes: name the routes, not an image, for --prefix")]
    WithoutPrefixes(String),
    /// An image has no texts.
    #[error("{0}: the image has no texts of its next hops")]
    WithoutTexts(String),
    /// No label of an image has a field.
    #[error("{path}: no field {field}; {}", there_are(.names))]
    NoField {
        /// The image.
        path: String,
        /// The field that was named.
        field: String,
        /// The fields of its labels, not more than 40.
        names: BTreeSet<String>,
    },
    /// The file could not be read by fields.
    #[error(
        "--fields {name}=... is for tables whose records have fields (CSV, MaxMind DB, clouds, delegations, \
         images)"
    )]
    ByFields {
        /// The name of the table.
        name: String,
        /// The reason.
        source: ReadError,
    },
    /// A file of routes could not be read.
    #[error(transparent)]
    Routes(#[from] ReadError),
    /// A file of names could not be read.
    #[error(transparent)]
    Names(#[from] TableOrListError),
    /// The table could not be built, or the image not opened.
    #[error(transparent)]
    Table(#[from] wirespeed::Error),
}

impl TableFile {
    /// Parses `NAME=FILE`.
    pub fn parse(text: &str) -> Result<Self, TableError> {
        let (name, path) = text
            .split_once('=')
            .filter(|(name, path)| !name.is_empty() && !path.is_empty())
            .ok_or_else(|| TableError::NotNamed(text.to_owned()))?;
        if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')) {
            return Err(TableError::Name(name.to_owned()));
        }
        Ok(Self { name: name.to_owned(), path: path.into(), fields: Vec::new() })
    }

    /// Parses tables of one kind. Fails if two have one name.
    pub fn parse_all(texts: &[String]) -> Result<Vec<Self>, TableError> {
        let mut files: Vec<Self> = Vec::with_capacity(texts.len());
        for text in texts {
            let file = Self::parse(text)?;
            if files.iter().any(|other| other.name == file.name) {
                return Err(TableError::Twice(file.name));
            }
            files.push(file);
        }
        Ok(files)
    }

    /// Gives tables of addresses the fields that `NAME=FIELD,FIELD` names.
    pub fn name_fields(files: &mut [Self], texts: &[String]) -> Result<(), TableError> {
        for text in texts {
            let (name, fields) = text.split_once('=').unwrap_or((text, ""));
            let fields: Vec<_> = fields.split(',').map(str::to_owned).collect();
            if fields.iter().any(String::is_empty) {
                return Err(TableError::NoFields(text.clone()));
            }
            match files.iter_mut().find(|file| file.name == name) {
                Some(file) if file.fields.is_empty() => file.fields = fields,
                Some(_) => return Err(TableError::FieldsTwice(name.to_owned())),
                None => return Err(TableError::FieldsOf { text: text.clone(), name: name.to_owned() }),
            }
        }
        Ok(())
    }

    /// Reads routes in any format, or opens an image. `add` gets the text of each index, from 1 on, for
    /// [`each_field`](Self::each_field). Returns the report of a file that was read, too.
    ///
    /// Fails if a field is named that no record of the table has.
    pub fn read_addresses(
        &self,
        reading: TableReading,
        add: &mut dyn FnMut(&str),
    ) -> Result<(AddressTable, Option<String>), TableError> {
        let path = Path::new(&self.path);
        if self.is_image() {
            let files = ImageFile::open_all(path)?;
            if reading.prefix && files.iter().any(|file| !file.has_prefix_lookups()) {
                return Err(TableError::WithoutPrefixes(path.display().to_string()));
            }
            let texts = files.first().map(ImageFile::next_hops).transpose()?.unwrap_or_default();
            if texts.is_empty() {
                return Err(TableError::WithoutTexts(path.display().to_string()));
            }
            self.check_fields(&texts)?;
            texts.iter().for_each(|(_, text)| add(self.text_of(text)));
            let has = |family| files.iter().any(|file| file.family() == family && file.image().entries() > 0);
            let families = [Family::V4, Family::V6].map(has);
            let reader = IpReader::open(path)?.mapped_as_v4(true);
            return Ok((AddressTable { reader, families }, None));
        }
        let options = ReadOptions {
            lenient: reading.lenient,
            origins: !reading.next_hops,
            columns: Columns { values: self.fields.clone(), ..Columns::default() },
            ..ReadOptions::default()
        };
        let read = read_fib(&Source::from_arg(&self.path), &options);
        let (fib, report) = read.map_err(|source| match (&*self.fields, &source) {
            // The reader takes any text for CSV if columns are named.
            ([_, ..], ReadError::Columns { .. } | ReadError::Bad { .. }) if !self.has_fields() => {
                TableError::ByFields { name: self.name.clone(), source }
            }
            _ => TableError::Routes(source),
        })?;
        fib.next_hops.iter().for_each(|(_, text)| add(text));
        let families = [!fib.v4.is_empty(), !fib.v6.is_empty()];
        let (v4, v6) = (table(fib.v4, reading.prefix)?, table(fib.v6, reading.prefix)?);
        let reader = IpTable::new(v4, v6).reader().mapped_as_v4(true);
        Ok((AddressTable { reader, families }, Some(report.to_string())))
    }

    /// Whether the content of the file is of a format with fields.
    fn has_fields(&self) -> bool {
        /// Bytes by which a format is recognised.
        const START: usize = 64 << 10;
        let Ok(mut input) = open(&Source::from_arg(&self.path)) else { return false };
        Format::recognise(input.look_ahead(START).0).is_some_and(Format::has_fields)
    }

    /// Reads names or a list of domains in any format, or opens an image. `add` gets the text of each index,
    /// from 1 on. Returns the report of a file that was read, too.
    pub fn read_names(
        &self,
        reading: TableReading,
        add: &mut dyn FnMut(&str),
    ) -> Result<(NamesOrList, Option<String>), TableError> {
        let path = Path::new(&self.path);
        let mut add = |label: Label<'_>| match label {
            // A list without results, like routes without next hops.
            Label::Line(_) => add("member"),
            Label::Word(word) => add(word),
        };
        if self.is_image() {
            let image = NameImageFile::open(path)?;
            image.labels()?.iter().for_each(|(_, label)| add(label));
            let opened = match image.list()? {
                Some(_) => NamesOrList::Domains(Box::new(NameList::open(path)?)),
                None => NamesOrList::Names(NameReader::open(path)?),
            };
            return Ok((opened, None));
        }
        let lenient = reading.lenient;
        let options = names::ReadOptions { lenient, ..names::ReadOptions::default() };
        let of_list = ListOptions { lenient, ..ListOptions::default() };
        Ok(match read_table_or_list(&names::Source::from_arg(&self.path), &options, &of_list)? {
            TableOrList::Table(fib, report) => {
                fib.labels.iter().for_each(|(_, label)| add(label));
                let reader = NameTable::builder().rib(fib.names).build()?.reader();
                (NamesOrList::Names(reader), Some(report.to_string()))
            }
            TableOrList::List(read, report) => {
                read.labels.iter().for_each(|(_, label)| add(label));
                let list = NameList::builder().read(read).build()?;
                (NamesOrList::Domains(Box::new(list)), Some(report.to_string()))
            }
        })
    }

    /// Calls `give` with each field of a text that this table's reading gave, or with the whole text if no
    /// fields are named. A field that the text lacks is empty.
    pub fn each_field(&self, text: &str, mut give: impl FnMut(&str)) {
        match &*self.fields {
            [] => give(text),
            // A record of CSV that is empty.
            [_] if text == NO_VALUE => give(""),
            [_] => give(&unescaped(text)),
            // The reader's text of several: asn=13335,country=US.
            fields => fields.iter().for_each(|field| {
                give(&value_of(text, field).map(unescaped).unwrap_or_default());
            }),
        }
    }

    /// The text of an image's label as a reader of these fields gives it. The image was compiled without
    /// knowing the fields, so its labels are whole records.
    fn text_of<'t>(&self, label: &'t str) -> &'t str {
        match &*self.fields {
            [field] => match value_of(label, field) {
                // The value, and not the sign that there is none.
                Some(NO_VALUE) => "%2D",
                value => value.unwrap_or(NO_VALUE),
            },
            _ => label,
        }
    }

    /// Refuses a field that no label of an image has.
    fn check_fields(&self, labels: &NextHops) -> Result<(), TableError> {
        const SHOWN: usize = 40;
        let is_missing = |field: &&String| labels.iter().all(|(_, label)| value_of(label, field).is_none());
        let Some(field) = self.fields.iter().find(is_missing) else { return Ok(()) };
        let mut names = BTreeSet::new();
        for (name, _) in labels.iter().flat_map(|(_, label)| pairs(label)) {
            if names.len() < SHOWN {
                names.insert(unescaped(name).into_owned());
            }
        }
        let path = Path::new(&self.path).display().to_string();
        Err(TableError::NoField { path, field: field.clone(), names })
    }

    /// Whether the file is an image. One that can't be read is none: whatever reads it says why.
    fn is_image(&self) -> bool {
        self.path != "-" && Image::is_at(Path::new(&self.path)).unwrap_or_default()
    }
}

fn table<A: Addresses>(routes: Rib<A>, prefix: bool) -> Result<Table<A>, wirespeed::Error> {
    let builder = Table::<A>::builder().rib(routes);
    if prefix { builder.prefix_lookups() } else { builder }.build()
}

/// The names and values of a record `asn=13335,country=US`, as they stand there. None of any other text.
fn pairs(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let pairs = text.split(',').map(|part| part.split_once('='));
    let is_record = pairs.clone().all(|pair| pair.is_some());
    pairs.flatten().filter(move |_| is_record)
}

/// The value of a field as it stands in a record. A field of this very name comes before one that differs in
/// case.
fn value_of<'t>(text: &'t str, field: &str) -> Option<&'t str> {
    let same = pairs(text).find(|(name, _)| unescaped(name) == field);
    let alike = || pairs(text).find(|(name, _)| unescaped(name).eq_ignore_ascii_case(field));
    same.or_else(alike).map(|(_, value)| value)
}

fn there_are(names: &BTreeSet<String>) -> String {
    match names.is_empty() {
        true => "the labels have no fields".to_owned(),
        false => format!("there are {}", names.iter().map(String::as_str).collect::<Vec<_>>().join(", ")),
    }
}

/// A text of a reader without its `%HH`.
fn unescaped(text: &str) -> Cow<'_, str> {
    if !text.contains('%') {
        return text.into();
    }
    let (mut plain, mut rest) = (String::new(), text);
    while let Some(at) = rest.find('%') {
        plain.push_str(&rest[..at]);
        let digits = rest.get(at + 1..at + 3).filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()));
        // The reader escapes ASCII alone.
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()).filter(u8::is_ascii) {
            Some(byte) => {
                plain.push(char::from(byte));
                rest = &rest[at + 3..];
            }
            None => {
                plain.push('%');
                rest = &rest[at + 1..];
            }
        }
    }
    (plain + rest).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_by_field() {
        let of = |text: &str, fields: &[&str]| {
            let fields = fields.iter().map(|&field| field.to_owned()).collect();
            let file = TableFile { name: "t".to_owned(), path: "x".into(), fields };
            let mut values = Vec::new();
            file.each_field(text, |value| values.push(value.to_owned()));
            values
        };
        assert_eq!(of("a=1,b=2", &[]), ["a=1,b=2"]);
        assert_eq!(of("United%20States%", &["country"]), ["United States%"]);
        assert_eq!(of("%C3%A9 %zz", &["x"]), ["%C3%A9 %zz"]);
        assert_eq!((of("-", &["x"]), of("-", &["x", "y"])), (vec![String::new()], vec![String::new(); 2]));
        assert_eq!(
            of("asn=1,org%20name=A%2C%20B%3D\u{e9}", &["Org name", "x", "asn"]),
            ["A, B=\u{e9}", "", "1"]
        );
        assert_eq!(of("asn=1,ASN=2", &["ASN", "asn", "Asn"]), ["2", "1", "1"]);
    }

    #[test]
    fn one_field_of_an_image_and_fields_that_it_lacks() {
        let named = |fields: &[&str]| TableFile {
            name: "t".into(),
            path: "x.img".into(),
            fields: fields.iter().map(|&field| field.to_owned()).collect(),
        };
        let labels = ["country=DE,asn=2", "asn=3", "-", "country=-,org%20name=A%2CB"];
        let of = |field: &str| {
            let (file, mut values) = (named(&[field]), Vec::new());
            labels.iter().for_each(|label| {
                file.each_field(file.text_of(label), |value| values.push(value.to_owned()));
            });
            values
        };
        assert_eq!(of("country"), ["DE", "", "", "-"]);
        assert_eq!(of("org name"), ["", "", "", "A,B"]);
        assert_eq!(named(&[]).text_of(labels[0]), labels[0]);
        let check = |fields: &[&str], labels: &[&str]| {
            let mut texts = NextHops::new();
            for label in labels {
                texts.intern(label).unwrap();
            }
            named(fields).check_fields(&texts).map_err(|error| error.to_string())
        };
        assert_eq!(check(&["org name", "asn"], &labels), Ok(()));
        assert_eq!(check(&[], &["192.0.2.1"]), Ok(()));
        let said = "x.img: no field nosuch; there are asn, country, org name";
        assert_eq!(check(&["asn", "nosuch"], &labels), Err(said.to_owned()));
        let said = "x.img: no field asn; the labels have no fields";
        assert_eq!(check(&["asn"], &["192.0.2.1", "x,asn=1", "-"]), Err(said.to_owned()));
    }

    #[test]
    fn names_of_tables_and_fields() {
        let file = TableFile::parse("asn=a=b").unwrap();
        assert_eq!((&*file.name, &*file.path), ("asn", std::ffi::OsStr::new("a=b")));
        for wrong in ["asn", "=a", "asn=", "a.b=c", "a b=c"] {
            assert!(TableFile::parse(wrong).is_err(), "{wrong}");
        }
        let texts = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
        assert!(TableFile::parse_all(&texts(&["a=x", "a=y"])).is_err());
        let mut files = TableFile::parse_all(&texts(&["a=x", "b=y"])).unwrap();
        TableFile::name_fields(&mut files, &texts(&["b=c,d.e"])).unwrap();
        assert_eq!((&*files[0].fields, &*files[1].fields), (&[][..], &texts(&["c", "d.e"])[..]));
        for wrong in ["b=c", "c=d", "a", "a=", "a=b,,c"] {
            assert!(TableFile::name_fields(&mut files, &texts(&[wrong])).is_err(), "{wrong}");
        }
    }
}
