//! Reading of tables: addresses, names and lists of domains, out of files, of several sources, or of images.

use std::path::Path;
use std::sync::Arc;

use wirespeed::engine::Addresses;
use wirespeed::fib::merge::read_sources;
use wirespeed::fib::read::parts::Reason;
use wirespeed::fib::read::{Format, MEMBER, ReadError, ReadOptions, ReadReport, Source, open, read_fib};
use wirespeed::fib::{Family, Fib};
use wirespeed::image::Image;
use wirespeed::image_file::ImageFile;
use wirespeed::names::image_file::NameImageFile;
use wirespeed::names::merge::read_sources as read_name_sources;
use wirespeed::names::read::lists::{ListOptions, TableOrList, read_table_or_list};
use wirespeed::names::read::{self as names, Label};
use wirespeed::names::{AnyNameReader, NameList};
use wirespeed::{IpReader, IpTable, NameTable, Rib, Table};

use super::error::TableError;
use super::file::{TableFile, TableReading};

/// A reader of addresses, and the families that its table has prefixes of.
#[derive(Debug)]
pub struct AddressTable {
    /// The reader. It looks IPv4-mapped addresses up as IPv4.
    pub reader: IpReader,
    /// Whether there is a prefix of IPv4, and one of IPv6.
    pub families: [bool; 2],
}

/// Bytes by which a format is recognised.
const START: usize = 64 << 10;

impl TableFile {
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

    /// Refuses an option for what no file of these reports has.
    fn check_heeded(&self, reports: &[ReadReport]) -> Result<(), TableError> {
        let formats: Vec<_> = reports.iter().map(|report| report.format).collect();
        let heeded = self.options.check_heeded(&formats, None);
        heeded.map_err(|source| TableError::Unheeded { table: self.name.clone(), source })
    }

    /// Whether the file is an image. One that can't be read is none: whatever reads it says why.
    fn is_image(&self) -> bool {
        self.sources.is_empty() && self.path != "-" && Image::is_at(Path::new(&self.path)).unwrap_or_default()
    }
}

/// Gives the text of each label.
fn each_label(labels: &names::Labels, add: &mut dyn FnMut(&str)) {
    labels.iter().for_each(|(_, label)| match label {
        // A list without results, like routes without next hops.
        Label::Line(_) => add(MEMBER),
        Label::Word(word) => add(word),
    });
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
    use super::*;

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
