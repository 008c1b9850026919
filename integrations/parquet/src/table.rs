//! The tables that answer, and what they say of each index.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use arrow::array::{Array, ArrayRef, StringArray, StringBuilder, UInt32Array};
use arrow::compute::take;
use wirespeed::engine::Addresses;
use wirespeed::fib::read::{Columns, ReadOptions, Source, read_fib};
use wirespeed::image::Image;
use wirespeed::image_file::ImageFile;
use wirespeed::names::NameList;
use wirespeed::names::image_file::NameImageFile;
use wirespeed::names::read::lists::{ListOptions, TableOrList, read_table_or_list};
use wirespeed::names::read::{self as names, Label};
use wirespeed::{IpReader, IpTable, NameReader, NameTable, Rib, Table};

/// The keys of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Addresses,
    /// Names, each with all names beneath it.
    Names,
    /// Entries of a list of domains, with scopes and exceptions.
    Domains,
}

/// A table as the command line names it.
#[derive(Clone, Debug)]
pub(crate) struct Spec {
    pub(crate) name: String,
    path: String,
    /// Whether it is a table of addresses.
    pub(crate) of_addresses: bool,
    /// The fields of its values. Empty for the whole value.
    pub(crate) fields: Vec<String>,
}

/// The way in which all tables are read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    pub(crate) lenient: bool,
    /// Whether matched prefixes are asked for.
    pub(crate) prefix: bool,
    /// Whether next hops of MRT and bgpdump are taken, and not origins.
    pub(crate) next_hops: bool,
}

/// A table that was read.
pub(crate) struct ReadTable {
    pub(crate) spec: Spec,
    pub(crate) lookup: Lookup,
    pub(crate) values: Values,
}

/// What looks up.
pub(crate) enum Lookup {
    Addresses(IpReader),
    Names(NameReader),
    Domains(NameList),
}

impl Spec {
    /// Parses `NAME=FILE`.
    pub(crate) fn parse(text: &str, of_addresses: bool) -> Result<Self> {
        let (name, path) =
            text.split_once('=')
                .filter(|(name, path)| !name.is_empty() && !path.is_empty())
                .with_context(|| format!("{text:?}: a table is named NAME=FILE, such as asn=rib.mrt"))?;
        if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')) {
            bail!("{name:?}: the name of a table has letters, digits, - and _ only");
        }
        Ok(Self { name: name.to_owned(), path: path.to_owned(), of_addresses, fields: Vec::new() })
    }

    /// Reads the table.
    pub(crate) fn read(self, reading: Reading) -> Result<ReadTable> {
        let mut values = Builder::new(self.fields.len().max(1));
        let lookup = match self.of_addresses {
            true => Lookup::Addresses(self.read_addresses(&mut values, reading)?.mapped_as_v4(true)),
            false => self.read_names(&mut values, reading)?,
        };
        Ok(ReadTable { spec: self, lookup, values: values.finish() })
    }

    fn read_addresses(&self, values: &mut Builder, reading: Reading) -> Result<IpReader> {
        let path = Path::new(&self.path);
        if is_image(path) {
            let files = ImageFile::open_all(path)?;
            if reading.prefix && files.iter().any(|file| !file.has_prefix_lookups()) {
                bail!("{}: an image that gives no prefixes: name the routes for --prefix", self.path);
            }
            let texts = files.first().map(ImageFile::next_hops).transpose()?.unwrap_or_default();
            if texts.is_empty() {
                bail!("{}: the image has no texts of its next hops", self.path);
            }
            texts.iter().for_each(|(_, text)| values.add(text, &self.fields));
            return Ok(IpReader::open(path)?);
        }
        let options = ReadOptions {
            lenient: reading.lenient,
            origins: !reading.next_hops,
            columns: Columns { values: self.fields.clone(), ..Columns::default() },
            ..ReadOptions::default()
        };
        let read = read_fib(&Source::from_arg(&self.path), &options);
        let (fib, report) = match &*self.fields {
            [] => read?,
            // The reader takes any text for CSV if columns are named.
            _ => read.with_context(|| format!("--fields {}=... is for CSV and MaxMind DB", self.name))?,
        };
        eprintln!("{}: {report}", self.name);
        fib.next_hops.iter().for_each(|(_, text)| values.add(text, &self.fields));
        Ok(IpTable::new(table(fib.v4, reading.prefix)?, table(fib.v6, reading.prefix)?).reader())
    }

    fn read_names(&self, values: &mut Builder, reading: Reading) -> Result<Lookup> {
        let path = Path::new(&self.path);
        let mut add = |label: Label<'_>| match label {
            // A list without results, like routes without next hops.
            Label::Line(_) => values.add("member", &[]),
            Label::Word(word) => values.add(word, &[]),
        };
        if is_image(path) {
            let image = NameImageFile::open(path)?;
            image.labels()?.iter().for_each(|(_, label)| add(label));
            return Ok(match image.list()? {
                Some(_) => Lookup::Domains(NameList::open(path)?),
                None => Lookup::Names(NameReader::open(path)?),
            });
        }
        let lenient = reading.lenient;
        let options = names::ReadOptions { lenient, ..names::ReadOptions::default() };
        let of_list = ListOptions { lenient, ..ListOptions::default() };
        match read_table_or_list(&names::Source::from_arg(&self.path), &options, &of_list)? {
            TableOrList::Table(fib, report) => {
                eprintln!("{}: {report}", self.name);
                fib.labels.iter().for_each(|(_, label)| add(label));
                Ok(Lookup::Names(NameTable::builder().rib(fib.names).build()?.reader()))
            }
            TableOrList::List(read, report) => {
                eprintln!("{}: {report}", self.name);
                read.labels.iter().for_each(|(_, label)| add(label));
                Ok(Lookup::Domains(NameList::builder().read(read).build()?))
            }
        }
    }
}

impl ReadTable {
    /// The keys. The content of a file of names says which.
    pub(crate) fn kind(&self) -> Kind {
        match self.lookup {
            Lookup::Addresses(_) => Kind::Addresses,
            Lookup::Names(_) => Kind::Names,
            Lookup::Domains(_) => Kind::Domains,
        }
    }

    /// Whether it is a list of public suffixes.
    pub(crate) fn is_of_suffixes(&self) -> bool {
        matches!(&self.lookup, Lookup::Domains(list) if list.is_of_suffixes())
    }
}

fn table<A: Addresses>(routes: Rib<A>, prefix: bool) -> Result<Table<A>, wirespeed::Error> {
    let builder = Table::<A>::builder().rib(routes);
    if prefix { builder.prefix_lookups() } else { builder }.build()
}

/// Whether a file is an image. One that can't be read is none: whatever reads it says why.
fn is_image(path: &Path) -> bool {
    use std::io::Read;
    let mut start = Vec::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(8).read_to_end(&mut start));
    read.is_ok() && Image::is_start(&start)
}

/// The values of each index, a column for each field. Index 0 is no match, and an empty value is null.
pub(crate) struct Values(Vec<Arc<StringArray>>);

impl Values {
    /// A field of the values of these indexes.
    pub(crate) fn of(&self, indexes: &UInt32Array, field: usize) -> Result<ArrayRef> {
        let values = &self.0[field];
        // u32 fits in usize on all targets.
        let has_text = |index: u32| (index as usize) < values.len();
        if indexes.values().iter().all(|&index| has_text(index)) {
            return Ok(take(values.as_ref(), indexes, None)?);
        }
        // An index without a text is shown as a number.
        let texts = indexes.iter().map(|index| match index {
            Some(index) if has_text(index) => {
                let index = index as usize;
                values.is_valid(index).then(|| values.value(index).to_owned())
            }
            index => index.map(|index| index.to_string()),
        });
        Ok(Arc::new(texts.collect::<StringArray>()))
    }
}

struct Builder(Vec<StringBuilder>);

impl Builder {
    fn new(fields: usize) -> Self {
        let mut columns: Vec<_> = (0..fields).map(|_| StringBuilder::new()).collect();
        columns.iter_mut().for_each(StringBuilder::append_null);
        Self(columns)
    }

    /// Adds the fields of the next index.
    fn add(&mut self, text: &str, fields: &[String]) {
        for (at, column) in self.0.iter_mut().enumerate() {
            let value = match fields {
                [] => text.to_owned(),
                [_] => unescaped(text),
                fields => field(text, &fields[at]),
            };
            column.append_option((!value.is_empty()).then_some(value));
        }
    }

    fn finish(mut self) -> Values {
        Values(self.0.iter_mut().map(|column| Arc::new(column.finish())).collect())
    }
}

/// The value of a field in a reader's text of several: `asn=13335,country=US`.
fn field(text: &str, name: &str) -> String {
    let pairs = text.split(',').filter_map(|part| part.split_once('='));
    let of_name = pairs.filter(|(of, _)| unescaped(of).eq_ignore_ascii_case(name));
    of_name.map(|(_, value)| unescaped(value)).collect()
}

/// A text of a reader without its `%HH`.
fn unescaped(text: &str) -> String {
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
    plain + rest
}

#[cfg(test)]
mod tests {
    use arrow::array::AsArray;

    use super::*;

    #[test]
    fn values_by_field() {
        let of = |text: &str, fields: &[&str]| {
            let fields: Vec<_> = fields.iter().map(|&field| field.to_owned()).collect();
            let mut values = Builder::new(fields.len().max(1));
            values.add(text, &fields);
            let values = values.finish();
            let indexes = UInt32Array::from(vec![Some(1), Some(0), None]);
            let texts = (0..fields.len().max(1)).map(|field| values.of(&indexes, field).unwrap());
            let rows = texts.map(|column| {
                let column = column.as_string::<i32>();
                assert!(column.is_null(1) && column.is_null(2));
                column.is_valid(0).then(|| column.value(0).to_owned())
            });
            rows.collect::<Vec<_>>()
        };
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(of("a=1,b=2", &[]), [text("a=1,b=2")]);
        assert_eq!(of("United%20States%", &["country"]), [text("United States%")]);
        assert_eq!(
            of("asn=1,org%20name=A%2C%20B%3D\u{e9}", &["Org name", "x", "asn"]),
            [text("A, B=\u{e9}"), None, text("1")]
        );
    }

    #[test]
    fn an_index_without_a_text_is_a_number() {
        let mut values = Builder::new(1);
        values.add("a", &[]);
        let column = values.finish().of(&UInt32Array::from(vec![Some(1), Some(7), Some(0)]), 0).unwrap();
        let rows: Vec<_> = column.as_string::<i32>().iter().collect();
        assert_eq!(rows, [Some("a"), Some("7"), None]);
    }

    #[test]
    fn names_of_tables() {
        let spec = Spec::parse("asn=a=b", true).unwrap();
        assert_eq!((&*spec.name, &*spec.path), ("asn", "a=b"));
        for wrong in ["asn", "=a", "asn=", "a.b=c", "a b=c"] {
            assert!(Spec::parse(wrong, true).is_err(), "{wrong}");
        }
    }
}
