//! [`TableFile`]: a table that records are looked up in, as a command line names it (`NAME=FILE`), and the
//! texts that it has for its indexes.
//!
//! Needs the feature `tables`.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::sync::Arc;

use wirespeed::engine::Addresses;
use wirespeed::fib::merge::{MergeSource, SourceError, read_sources};
use wirespeed::fib::read::parts::Reason;
use wirespeed::fib::read::record::{self, NoField};
use wirespeed::fib::read::{
    BadOption, Format, MEMBER, NO_VALUE, ReadError, ReadOptions, ReadReport, Source, Unheeded, open, read_fib,
};
use wirespeed::fib::{Family, Fib};
use wirespeed::image::Image;
use wirespeed::image_file::ImageFile;
use wirespeed::names::image_file::NameImageFile;
use wirespeed::names::merge::{NameSourceError, read_sources as read_name_sources};
use wirespeed::names::read::lists::{
    ListFormat, ListOptions, TableOrList, TableOrListError, read_table_or_list,
};
use wirespeed::names::read::{self as names, Label};
use wirespeed::names::{AnyNameReader, NameList};
use wirespeed::{IpReader, IpTable, NameTable, Rib, Table};

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
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableFile {
    /// The name of the table and its columns: letters, digits, `-` and `_`.
    pub name: String,
    /// The file. `-` is standard input. Not heeded with sources.
    pub path: OsString,
    /// The fields of its values. Empty for the whole value.
    pub fields: Vec<String>,
    /// Sources that are merged to the table, in order of precedence, in place of a file.
    pub sources: Vec<MergeSource>,
    /// Options for reading its routes, or those of its sources.
    pub options: ReadOptions,
    /// Options for reading its names, or those of its sources.
    pub names: names::ReadOptions,
    /// The format of a list of domains.
    pub list: Option<ListFormat>,
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
    /// The text is not `TABLE=NAME=FILE`.
    #[error(
        "{0:?}: a source is named TABLE=NAME=FILE or TABLE=NAME:COLUMN,COLUMN=FILE, such as net=asn=rib.mrt"
    )]
    NoSource(String),
    /// A table has a file and sources.
    #[error("the table {0:?} has a file, and sources to merge")]
    FileAndSources(String),
    /// The text is not `NAME=FIELD,FIELD`.
    #[error("--fields {0}: fields are named NAME=FIELD,FIELD, such as geo=country.iso_code")]
    NoFields(String),
    /// The fields of a table are named twice.
    #[error("--fields {0}=... is given twice")]
    FieldsTwice(String),
    /// A table of addresses and one of names have the name that fields are for.
    #[error("--fields {0}=...: a table of addresses and one of names have this name: name one otherwise")]
    FieldsOfTwo(String),
    /// There is no table of this name.
    #[error("--fields {text}: there is no --table {name}=FILE, --merge {name}=FILE or --names {name}=FILE")]
    FieldsOf {
        /// The fields as they were named.
        text: String,
        /// The name that no table has.
        name: String,
    },
    /// The text names no form of names and no format of lists.
    #[error(
        "{table}: no format of names is called {text:?}: there are names, domains, urls, ndn, hosts, adblock, dnsmasq, rpz and psl"
    )]
    NameFormat {
        /// The name of the table.
        table: String,
        /// The text.
        text: String,
    },
    /// Sources of names could not be read or merged.
    #[error(transparent)]
    NameSources(#[from] NameSourceError),
    /// An option for reading a table can't be stated.
    #[error("{table}: {source}")]
    Option {
        /// The name of the table.
        table: String,
        /// The reason.
        source: BadOption,
    },
    /// An option is for something that the table's file does not have.
    #[error("{table}: {source}")]
    Unheeded {
        /// The name of the table.
        table: String,
        /// The option, and the reason.
        source: Unheeded,
    },
    /// An image is read already.
    #[error(
        "{table}: {path} is an image, and options for reading are for the files that images are built of"
    )]
    OptionsOfImage {
        /// The name of the table.
        table: String,
        /// The image.
        path: String,
    },
    /// An image of plain lookups is asked for prefixes.
    #[error("{0}: an image that gives no prefixes: name the routes, not an image, for --prefix")]
    WithoutPrefixes(String),
    /// An image has no texts.
    #[error("{0}: the image has no texts of its next hops")]
    WithoutTexts(String),
    /// No label of an image or of merged sources has a field.
    #[error("{path}: {source}")]
    NoField {
        /// The image, or the sources.
        path: String,
        /// The field, and those that are there.
        source: NoField,
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
    /// Sources could not be read or merged.
    #[error(transparent)]
    Sources(#[from] SourceError),
    /// A file of names could not be read.
    #[error(transparent)]
    Names(#[from] TableOrListError),
    /// Nothing of a file was taken: it is empty, or all of it is wrong.
    #[error("{name}: nothing of it was taken: {why}")]
    Nothing {
        /// The file.
        name: String,
        /// The reason.
        why: String,
    },
    /// The table could not be built, or the image not opened.
    #[error(transparent)]
    Table(#[from] wirespeed::Error),
}

/// Bytes by which a format is recognised.
const START: usize = 64 << 10;

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
        Ok(Self { name: name.to_owned(), path: path.into(), ..Self::default() })
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

    /// Adds tables whose sources are named `TABLE=NAME=FILE` or `TABLE=NAME:COLUMN,COLUMN=FILE`. Several
    /// texts of one table are its sources, in order of precedence.
    pub fn add_sources(files: &mut Vec<Self>, texts: &[String]) -> Result<(), TableError> {
        for text in texts {
            let (name, source) = text.split_once('=').unwrap_or((text, ""));
            let source: MergeSource = source.parse().map_err(|_| TableError::NoSource(text.clone()))?;
            match files.iter_mut().find(|file| file.name == name) {
                Some(file) if file.sources.is_empty() => {
                    return Err(TableError::FileAndSources(name.to_owned()));
                }
                Some(file) => file.sources.push(source),
                None => {
                    let path = source.file.to_string_lossy();
                    let file = Self::parse(&format!("{name}={path}"))?;
                    files.push(Self { sources: vec![source], ..file });
                }
            }
        }
        Ok(())
    }

    /// The files that the table is made of.
    pub fn paths(&self) -> impl Iterator<Item = &OsStr> {
        let of_sources = self.sources.iter().map(|source| &*source.file);
        of_sources.chain(self.sources.is_empty().then_some(&*self.path))
    }

    /// The files, for messages.
    fn shown(&self) -> String {
        self.paths().map(|path| Path::new(path).display().to_string()).collect::<Vec<_>>().join(", ")
    }

    /// Gives tables of addresses and of names the fields that `NAME=FIELD,FIELD` names.
    pub fn name_fields<'f>(
        files: impl IntoIterator<Item = &'f mut Self>,
        texts: &[String],
    ) -> Result<(), TableError> {
        let mut files: Vec<_> = files.into_iter().collect();
        for text in texts {
            let (name, fields) = text.split_once('=').unwrap_or((text, ""));
            let fields: Vec<_> = fields.split(',').map(str::to_owned).collect();
            if fields.iter().any(String::is_empty) {
                return Err(TableError::NoFields(text.clone()));
            }
            let mut of_name = files.iter_mut().filter(|file| file.name == name);
            match (of_name.next(), of_name.next()) {
                (Some(_), Some(_)) => return Err(TableError::FieldsOfTwo(name.to_owned())),
                (Some(file), None) if file.fields.is_empty() => file.fields = fields,
                (Some(_), None) => return Err(TableError::FieldsTwice(name.to_owned())),
                (None, _) => return Err(TableError::FieldsOf { text: text.clone(), name: name.to_owned() }),
            }
        }
        Ok(())
    }

    /// States an [option](ReadOptions::state) for tables of addresses. A text is `NAME=VALUE` for the table
    /// of this name, or `VALUE` for all tables without a value of their own.
    pub fn state(files: &mut [Self], option: &str, texts: &[String]) -> Result<(), TableError> {
        each_of(files, texts, |file, value| {
            let stated = file.options.state(option, value);
            stated.map_err(|source| TableError::Option { table: file.name.clone(), source })
        })
    }

    /// States the form of names or the format of a list, in texts as [`state`](Self::state) takes them.
    pub fn state_name_format(files: &mut [Self], texts: &[String]) -> Result<(), TableError> {
        each_of(files, texts, |file, value| {
            let bad = || TableError::NameFormat { table: file.name.clone(), text: value.to_owned() };
            let is_new = match (value.parse::<names::NameFormat>(), value.parse::<ListFormat>()) {
                (Ok(format), _) => file.names.format.replace(format).is_none() && file.list.is_none(),
                (_, Ok(format)) => file.list.replace(format).is_none() && file.names.format.is_none(),
                _ => return Err(bad()),
            };
            twice_unless(is_new, file, "the format of names")
        })
    }

    /// States the column of CSV that has the names, in texts as [`state`](Self::state) takes them.
    pub fn state_name_column(files: &mut [Self], texts: &[String]) -> Result<(), TableError> {
        each_of(files, texts, |file, value| {
            let is_new = file.names.columns.name.replace(value.to_owned()).is_none();
            twice_unless(is_new, file, "the column of names")
        })
    }

    /// Refuses an option for what no file of these reports has.
    fn check_heeded(&self, reports: &[ReadReport]) -> Result<(), TableError> {
        let formats: Vec<_> = reports.iter().map(|report| report.format).collect();
        let heeded = self.options.check_heeded(&formats, None);
        heeded.map_err(|source| TableError::Unheeded { table: self.name.clone(), source })
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
            if self.options != ReadOptions::default() {
                let (table, path) = (self.name.clone(), path.display().to_string());
                return Err(TableError::OptionsOfImage { table, path });
            }
            let files = ImageFile::open_all(path)?;
            if reading.prefix && files.iter().any(|file| !file.has_prefix_lookups()) {
                return Err(TableError::WithoutPrefixes(path.display().to_string()));
            }
            let texts = files.first().map(ImageFile::next_hops).transpose()?.unwrap_or_default();
            if texts.is_empty() {
                return Err(TableError::WithoutTexts(path.display().to_string()));
            }
            self.check_fields(|| texts.iter().map(|(_, label)| label))?;
            texts.iter().for_each(|(_, text)| add(self.text_of(text)));
            let has = |family| files.iter().any(|file| file.family() == family && file.image().entries() > 0);
            let families = [Family::V4, Family::V6].map(has);
            let reader = IpReader::open(path)?.mapped_as_v4(true);
            return Ok((AddressTable { reader, families }, None));
        }
        let options = ReadOptions {
            lenient: reading.lenient,
            origins: self.options.origins || !reading.next_hops,
            ..self.options.clone()
        };
        if !self.sources.is_empty() {
            let (merged, reports) = read_sources(&self.sources, &options)?;
            reports.iter().try_for_each(check_taken)?;
            self.check_heeded(&reports)?;
            self.check_fields(|| merged.fib.next_hops.iter().map(|(_, label)| label))?;
            let report = reports.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
            return Ok((self.routes(merged.fib, reading.prefix, add)?, Some(report)));
        }
        let mut columns = options.columns.clone();
        if !self.fields.is_empty() {
            columns.values.clone_from(&self.fields);
        }
        let options = ReadOptions { columns, ..options };
        let read = read_fib(&Source::from_arg(&self.path), &options);
        let (fib, report) = read.map_err(|source| match (&*self.fields, &source) {
            // The reader takes any text for CSV if columns are named.
            ([_, ..], ReadError::Columns { .. } | ReadError::Bad { .. }) if !self.has_fields() => {
                TableError::ByFields { name: self.name.clone(), source }
            }
            _ => TableError::Routes(source),
        })?;
        check_taken(&report)?;
        self.check_heeded(std::slice::from_ref(&report))?;
        Ok((self.routes(fib, reading.prefix, add)?, Some(report.to_string())))
    }

    /// A table of routes that were read. `add` gets the texts of their next hops.
    fn routes(&self, fib: Fib, prefix: bool, add: &mut dyn FnMut(&str)) -> Result<AddressTable, TableError> {
        // A reader of one file has taken the fields already.
        let is_whole = !self.sources.is_empty();
        fib.next_hops.iter().for_each(|(_, text)| add(if is_whole { self.text_of(text) } else { text }));
        let families = [!fib.v4.is_empty(), !fib.v6.is_empty()];
        let (v4, v6) = (table(fib.v4, prefix)?, table(fib.v6, prefix)?);
        Ok(AddressTable { reader: IpTable::new(v4, v6).reader().mapped_as_v4(true), families })
    }

    /// Whether the content of the file is of a format with fields.
    fn has_fields(&self) -> bool {
        let Ok(mut input) = open(&Source::from_arg(&self.path)) else { return false };
        Format::recognise(input.look_ahead(START).0).is_some_and(Format::has_fields)
    }

    /// Reads names or a list of domains in any format, or opens an image. `add` gets the text of each index,
    /// from 1 on, for [`each_field`](Self::each_field). Returns the report of a file that was read, too.
    ///
    /// Fails if a field is named that no label of the table has.
    pub fn read_names(
        &self,
        reading: TableReading,
        add: &mut dyn FnMut(&str),
    ) -> Result<(AnyNameReader, Option<String>), TableError> {
        let path = Path::new(&self.path);
        let add_text = add;
        let mut add = |labels: &names::Labels| {
            self.check_fields(|| {
                labels.iter().filter_map(|(_, label)| match label {
                    Label::Line(_) => None,
                    Label::Word(word) => Some(word),
                })
            })?;
            each_label(labels, &mut |text| add_text(self.text_of(text)));
            Ok::<_, TableError>(())
        };
        if self.is_image() {
            if self.names != names::ReadOptions::default() || self.list.is_some() {
                let (table, path) = (self.name.clone(), path.display().to_string());
                return Err(TableError::OptionsOfImage { table, path });
            }
            let image = NameImageFile::open(path)?;
            add(&image.labels()?)?;
            return Ok((AnyNameReader::open(path)?, None));
        }
        let lenient = reading.lenient;
        let mut options = names::ReadOptions { lenient, ..self.names.clone() };
        if !self.sources.is_empty() {
            let (merged, reports) = read_name_sources(&self.sources, &options)?;
            reports.iter().try_for_each(check_taken)?;
            add(&merged.fib.labels)?;
            let report = reports.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
            let reader = NameTable::builder().rib(merged.fib.names).build()?.reader();
            return Ok((AnyNameReader::Names(reader), Some(report)));
        }
        // The reader takes the fields of CSV, and gives their values as it does for addresses.
        let is_csv = self.list.is_none() && self.names_are_csv();
        if is_csv {
            options.columns.values.clone_from(&self.fields);
        }
        let of_list = ListOptions { format: self.list, lenient, ..ListOptions::default() };
        Ok(match read_table_or_list(&names::Source::from_arg(&self.path), &options, &of_list)? {
            TableOrList::Table(fib, report) => {
                check_taken(&report)?;
                match is_csv && !self.fields.is_empty() {
                    true => each_label(&fib.labels, &mut *add_text),
                    false => add(&fib.labels)?,
                }
                let reader = NameTable::builder().rib(fib.names).build()?.reader();
                (AnyNameReader::Names(reader), Some(report.to_string()))
            }
            TableOrList::List(read, report) => {
                check_taken(&report)?;
                add(&read.labels)?;
                let list = NameList::builder().read(read).build()?;
                (AnyNameReader::List(Arc::new(list)), Some(report.to_string()))
            }
        })
    }

    /// Whether the file is a table of names in CSV, by the column that is named or by its content.
    fn names_are_csv(&self) -> bool {
        if self.names.columns.is_given() {
            return true;
        }
        // Standard input is read once.
        let input = if self.path == "-" { None } else { open(&Source::from_arg(&self.path)).ok() };
        input.is_some_and(|mut input| {
            let (start, ends) = input.look_ahead(START);
            names::recognise_csv(start, ends).is_some()
        })
    }

    /// Calls `give` with each field of a text that this table's reading gave, or with the whole text if no
    /// fields are named. A field that the text lacks is empty.
    pub fn each_field(&self, text: &str, mut give: impl FnMut(&str)) {
        match &*self.fields {
            [] => give(text),
            // A record of CSV that is empty.
            [_] if text == NO_VALUE => give(""),
            [_] => give(&record::unescaped(text)),
            // The reader's text of several: asn=13335,country=US.
            fields => fields.iter().for_each(|field| {
                give(&record::field(text, field).unwrap_or_default());
            }),
        }
    }

    /// The text of a label of an image or of merged sources as a reader of these fields gives it. These were
    /// made without knowing the fields, so their labels are whole records.
    fn text_of<'t>(&self, label: &'t str) -> &'t str {
        match &*self.fields {
            [field] => match record::escaped_field(label, field) {
                // The value, and not the sign that there is none.
                Some(NO_VALUE) => "%2D",
                value => value.unwrap_or(NO_VALUE),
            },
            _ => label,
        }
    }

    /// Refuses a field that no label has.
    fn check_fields<'l, L>(&self, labels: impl Fn() -> L) -> Result<(), TableError>
    where
        L: Iterator<Item = &'l str>,
    {
        self.fields.iter().try_for_each(|field| {
            record::check_field(&labels, field)
                .map_err(|source| TableError::NoField { path: self.shown(), source })
        })
    }

    /// Whether the file is an image. One that can't be read is none: whatever reads it says why.
    fn is_image(&self) -> bool {
        self.sources.is_empty() && self.path != "-" && Image::is_at(Path::new(&self.path)).unwrap_or_default()
    }
}

/// Gives each table its values of an option: those for the table of this name, or else those for all.
fn each_of(
    files: &mut [TableFile],
    texts: &[String],
    mut state: impl FnMut(&mut TableFile, &str) -> Result<(), TableError>,
) -> Result<(), TableError> {
    let own = |files: &[TableFile], text: &str| {
        let (name, value) = text.split_once('=')?;
        Some((files.iter().position(|file| file.name == name)?, value.len()))
    };
    let mut has_own = vec![false; files.len()];
    let (of_one, of_all): (Vec<_>, Vec<_>) = texts.iter().partition(|text| own(files, text).is_some());
    for text in of_one {
        let (at, len) = own(files, text).expect("a text of one table");
        state(&mut files[at], &text[text.len() - len..])?;
        has_own[at] = true;
    }
    for text in of_all {
        let others = files.iter_mut().zip(&has_own).filter(|(_, has_own)| !**has_own);
        others.map(|(file, _)| file).try_for_each(|file| state(file, text))?;
    }
    Ok(())
}

/// Gives the text of each label.
fn each_label(labels: &names::Labels, add: &mut dyn FnMut(&str)) {
    labels.iter().for_each(|(_, label)| match label {
        // A list without results, like routes without next hops.
        Label::Line(_) => add(MEMBER),
        Label::Word(word) => add(word),
    });
}

fn twice_unless(is_new: bool, file: &TableFile, what: &str) -> Result<(), TableError> {
    let source = BadOption::Twice(what.to_owned());
    if is_new { Ok(()) } else { Err(TableError::Option { table: file.name.clone(), source }) }
}

/// Refuses a file of which a lenient reading took nothing: it is another one than is meant.
fn check_taken<F, R: Reason>(report: &ReadReport<F, R>) -> Result<(), TableError> {
    if report.routes > 0 {
        return Ok(());
    }
    let (name, fault) = (&report.name, report.skipped.iter().find(|skipped| skipped.reason.is_fault()));
    let why = fault.map_or_else(
        || "it is empty".to_owned(),
        |fault| format!("{} (first at {name}{})", fault.reason, fault.first),
    );
    Err(TableError::Nothing { name: name.clone(), why })
}

fn table<A: Addresses>(routes: Rib<A>, prefix: bool) -> Result<Table<A>, wirespeed::Error> {
    let builder = Table::<A>::builder().rib(routes);
    if prefix { builder.prefix_lookups() } else { builder }.build()
}

#[cfg(test)]
mod tests {
    use wirespeed::fib::NextHops;

    use super::*;

    #[test]
    fn values_by_field() {
        let of = |text: &str, fields: &[&str]| {
            let fields = fields.iter().map(|&field| field.to_owned()).collect();
            let file = TableFile { name: "t".to_owned(), fields, ..TableFile::default() };
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
            ..TableFile::default()
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
            let labels = || texts.iter().map(|(_, label)| label);
            named(fields).check_fields(labels).map_err(|error| error.to_string())
        };
        assert_eq!(check(&["org name", "asn"], &labels), Ok(()));
        assert_eq!(check(&[], &["192.0.2.1"]), Ok(()));
        let said = "x.img: no field nosuch; there are asn, country, org name";
        assert_eq!(check(&["asn", "nosuch"], &labels), Err(said.to_owned()));
        let said = "x.img: no field asn; the labels have no fields";
        assert_eq!(check(&["asn"], &["192.0.2.1", "x,asn=1", "-"]), Err(said.to_owned()));
    }

    #[test]
    fn fields_of_names() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("names");
        std::fs::write(&path, "a.example category=ads,risk=3\nb.example category=news\n").unwrap();
        let read = |fields: &[&str]| {
            let fields = fields.iter().map(|&field| field.to_owned()).collect();
            let file =
                TableFile { name: "n".into(), path: path.clone().into(), fields, ..TableFile::default() };
            let mut values = Vec::new();
            let add = &mut |text: &str| file.each_field(text, |value| values.push(value.to_owned()));
            let read = file.read_names(TableReading::default(), add).map(|_| ());
            read.map(|()| values).map_err(|error| error.to_string())
        };
        assert_eq!(read(&["risk"]).unwrap(), ["3", ""]);
        assert_eq!(read(&["risk", "category"]).unwrap(), ["3", "ads", "", "news"]);
        assert_eq!(read(&[]).unwrap(), ["category=ads,risk=3", "category=news"]);
        assert!(read(&["x"]).unwrap_err().ends_with("no field x; there are category, risk"));
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
        let mut of_both = TableFile::parse_all(&texts(&["n=x"])).unwrap();
        let mut names = TableFile::parse_all(&texts(&["n=x", "l=y"])).unwrap();
        TableFile::name_fields(of_both.iter_mut().chain(&mut names), &texts(&["l=c"])).unwrap();
        assert_eq!(&*names[1].fields, &texts(&["c"])[..]);
        let two = TableFile::name_fields(of_both.iter_mut().chain(&mut names), &texts(&["n=c"]));
        assert!(two.unwrap_err().to_string().contains("and one of names have this name"));
        for wrong in ["b=c", "c=d", "a", "a=", "a=b,,c"] {
            assert!(TableFile::name_fields(&mut files, &texts(&[wrong])).is_err(), "{wrong}");
        }
    }
    #[test]
    fn options_are_for_one_table_or_for_all() {
        let texts = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
        let mut files = TableFile::parse_all(&texts(&["a=x", "b=y"])).unwrap();
        TableFile::state(&mut files, "set", &texts(&["c=d", "b=e=f"])).unwrap();
        let sets: Vec<_> = files.iter().map(|file| file.options.set.as_deref().unwrap()).collect();
        assert_eq!(sets, ["c=d", "e=f"]);
        for (option, values, said) in [
            ("set", &["b=g"][..], "b: set is stated twice"),
            ("vrf", &["a=red", "a=blue"], "a: vrf is stated twice"),
            ("vrf", &["red", "blue"], "a: vrf is stated twice"),
            ("peer", &["a=x.y"], "a: peer \"x.y\": "),
        ] {
            let error = TableFile::state(&mut files.clone(), option, &texts(values)).unwrap_err();
            assert!(error.to_string().starts_with(said), "{error}");
        }
    }

    #[test]
    fn sources_of_a_table_are_merged() {
        let texts = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            std::fs::write(dir.path().join(name), text).unwrap();
            dir.path().join(name).display().to_string()
        };
        let own = file("own.csv", "prefix,site,rack\n10.1.0.0/16,Kiel,7\n");
        let asn = file("asn.txt", "10.0.0.0/8 64496\n");
        let mut files = TableFile::parse_all(&texts(&["geo=x"])).unwrap();
        let named = [format!("net=own:site={own}"), format!("net=asn={asn}")];
        TableFile::add_sources(&mut files, &named).unwrap();
        assert_eq!((files.len(), files[1].paths().count()), (2, 2));
        TableFile::name_fields(&mut files, &texts(&["net=asn,own"])).unwrap();
        let read = |file: &TableFile| {
            let (mut values, reading) = (Vec::new(), TableReading::default());
            let read = file.read_addresses(reading, &mut |text| values.push(text.to_owned()));
            read.map(|(table, _)| (table, values)).map_err(|error| error.to_string())
        };
        let (table, values) = read(&files[1]).unwrap();
        let found = table.reader.lookup("10.1.2.3".parse::<std::net::IpAddr>().unwrap());
        let mut fields = Vec::new();
        files[1].each_field(&values[found.0 as usize - 1], |value| fields.push(value.to_owned()));
        assert_eq!((fields, table.families), (texts(&["64496", "Kiel"]), [true, false]));
        files[1].fields = texts(&["rack"]);
        let error = read(&files[1]).unwrap_err();
        assert!(
            error.contains("own.csv, ") && error.contains("no field rack; there are asn, own"),
            "{error}"
        );
        for wrong in ["geo=a=b", "net", "net=a", "net==b", "n.t=a=b"] {
            assert!(TableFile::add_sources(&mut files, &texts(&[wrong])).is_err(), "{wrong}");
        }
    }
}
