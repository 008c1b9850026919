//! [`ws_names`] and [`ws_name_reader`]: a live table of names, and lookups in it.
#![allow(unsafe_code)]

use std::ffi::c_char;
use std::path::Path;

use wirespeed::content::Content;
use wirespeed::names::read::lists::{ListOptions, TableOrList, read_table_or_list};
use wirespeed::names::read::{Former, NameFormat, Source};
use wirespeed::names::{AnyNameReader, AnyNames, NameBuilder};
use wirespeed::prelude::*;

use crate::boundary::{Failure, batch, free, given, handle, input, status, text, ws_status};
use crate::labels::{Text, Texts, index, label_of, write_text};
use crate::live::{Held, Live};
use crate::options::{Options, is_image, with, ws_options};
use crate::reader::{label_field, text_of_text};

/// Table of names, live: it changes while its readers look up. The longest prefix of components wins. A list
/// of domains has scopes and exceptions, and takes no changes.
pub struct ws_names(Live<AnyNames>);

impl Held for AnyNames {
    type Live = NameTable;

    fn live(&mut self) -> Result<&mut NameTable, Failure> {
        let table = self.table_mut();
        table.ok_or_else(|| Failure::state("a list of domains takes no changes: open the file anew"))
    }

    fn attach_labels(live: &mut NameTable, labels: &Labels<Text>) {
        live.attach_labels(labels);
    }

    fn load(live: &mut NameTable, path: &Path, labels: &Labels<Text>) -> Result<(), Failure> {
        Ok(live.load(path, labels).map(drop)?)
    }

    fn save(&self, path: &Path, labels: &Labels<Text>) -> Result<(), wirespeed::Error> {
        self.save(path, labels)
    }

    fn len(&self) -> usize {
        self.len()
    }
}

/// Looks up names in a table or an image.
pub struct ws_name_reader {
    reader: AnyNameReader,
    labels: Labels<Text>,
}

/// Form that a name is written in.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ws_name_form {
    /// Components, as in /com/parc.
    Components = 0,
    /// Domain, as in www.parc.com or *.parc.com.
    Domain = 1,
    /// Address of the web, as in `http://parc.com/a/b`.
    Url = 2,
    /// URI of NDN, as in ndn:/com/parc.
    Ndn = 3,
}

/// Change of a name.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ws_name_change {
    /// Name, in the form that the call states.
    pub name: *const c_char,
    /// Result, from 1. 0 removes the name.
    pub result: u32,
}

/// Makes a table without names.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ws_names_new(options: *const ws_options) -> *mut ws_names {
    handle(|| {
        // SAFETY: the caller keeps the rules of the header.
        let builder = with_settings(NameTable::builder(), unsafe { Options::of(options) }?)?;
        Ok(ws_names(Live::of(AnyNames::Table(builder.build()?), Texts::new())))
    })
}

/// Makes a table of a file: an image that ws_names_save or lookupctl names build wrote, names in any form
/// with their results, or a list of domains: a hosts file, an Adblock list, a configuration of dnsmasq, a
/// response policy zone or the Public Suffix List. The content says which. The results of names and the
/// values of a list are labels. An exception of a list has the result 0, like a name that is not listed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ws_names_open(path: *const c_char, options: *const ws_options) -> *mut ws_names {
    handle(|| {
        // SAFETY: the caller keeps the rules of the header.
        let (path, options) = unsafe { (Path::new(text(path, "path")?), Options::of(options)?) };
        let (names, labels) = if is_image(path)? {
            options.none_for_image(path)?;
            AnyNames::open(path)?
        } else {
            read(path, options)?
        };
        Ok(ws_names(Live::of(names, Texts::of(labels))))
    })
}

/// Frees a table, or does nothing with NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ws_names_free(names: *mut ws_names) {
    // SAFETY: the caller keeps the rules of the header.
    unsafe { free(names) }
}

/// Writes the number of names to count.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ws_names_len(names: *const ws_names, count: *mut usize) -> ws_status {
    // SAFETY: the caller keeps the rules of the header.
    status(|| unsafe { given(names, "names")?.0.len(count) })
}

/// Inserts a name of a ws_name_form, or replaces the result of an equal name. The result is from 1 to
/// UINT32_MAX; in a table with labels it is the number of a label.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ws_names_insert(
    names: *const ws_names,
    form: u32,
    name: *const c_char,
    result: u64,
) -> ws_status {
    status(|| {
        // SAFETY: the caller keeps the rules of the header.
        let (names, name) = unsafe { (given(names, "names")?, text(name, "name")?) };
        let (name, result) = (parse(form, name)?, index(result, "the result")?);
        names.0.change(&[result], |names| names.insert(name, result))
    })
}

/// Inserts a name of a ws_name_form with a label. Fails if the table has names with numbers of the caller's
/// own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ws_names_insert_label(
    names: *const ws_names,
    form: u32,
    name: *const c_char,
    label: *const c_char,
) -> ws_status {
    status(|| {
        // SAFETY: the caller keeps the rules of the header.
        let (names, name, label) =
            unsafe { (given(names, "names")?, text(name, "name")?, text(label, "label")?) };
        let name = parse(form, name)?;
        names.0.change_to(label, |names, result| Ok(names.insert(name, result).map(drop)?))
    })
}

/// Removes a name of a ws_name_form. It is no error if it is not there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ws_names_remove(
    names: *const ws_names,
    form: u32,
    name: *const c_char,
) -> ws_status {
    status(|| {
        // SAFETY: the caller keeps the rules of the header.
        let (names, name) = unsafe { (given(names, "names")?, text(name, "name")?) };
        let name = parse(form, name)?;
        names.0.change(&[], |names| names.remove(name))
    })
}

/// Makes count changes of names of one ws_name_form, in order: all or, if it fails, none. Readers see them at
/// once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ws_names_apply(
    names: *const ws_names,
    form: u32,
    changes: *const ws_name_change,
    count: usize,
) -> ws_status {
    status(|| {
        // SAFETY: the caller keeps the rules of the header.
        let (names, changes) = unsafe { (given(names, "names")?, input(changes, count, "changes")?) };
        let results: Vec<NextHop> = changes.iter().map(|change| NextHop(change.result)).collect();
        let updates = changes.iter().enumerate().map(|(at, change)| {
            // SAFETY: the caller keeps the rules of the header, also for texts in arrays.
            let name = unsafe { text(change.name, "name") }.and_then(|name| parse(form, name));
            let name = name.map_err(|failure| failure.at(at))?;
            Ok(match NextHop(change.result) {
                NextHop::NONE => NameUpdate::remove(name),
                result => NameUpdate::insert(name, result),
            })
        });
        let updates = updates.collect::<Result<Vec<_>, Failure>>()?;
        names.0.change(&results, |names| names.apply(&updates))
    })
}

/// Replaces all names by those of a file of names or an image of them, in one step. The form of the names is
/// recognised by content. Fails if the table has names with numbers of the caller's own, and for a list of
/// domains. Labels keep their numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ws_names_load(names: *const ws_names, path: *const c_char) -> ws_status {
    // SAFETY: the caller keeps the rules of the header.
    status(|| unsafe { given(names, "names")?.0.load(path) })
}

/// Saves the table as an image file, with its names and labels. An existing file is replaced as a whole or
/// not at all.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ws_names_save(names: *const ws_names, path: *const c_char) -> ws_status {
    // SAFETY: the caller keeps the rules of the header.
    status(|| unsafe { given(names, "names")?.0.save(path) })
}

/// Lets labels end that no name leads to: see ws_table_forget_labels.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ws_names_forget_labels(names: *const ws_names) -> ws_status {
    // SAFETY: the caller keeps the rules of the header.
    status(|| unsafe { given(names, "names")?.0.forget_labels() })
}

/// Makes a reader of a table. It sees all later changes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ws_names_reader(names: *const ws_names) -> *mut ws_name_reader {
    handle(|| {
        // SAFETY: the caller keeps the rules of the header.
        let names = unsafe { given(names, "names") }?;
        let state = names.0.lock()?;
        Ok(ws_name_reader { reader: state.table.reader(), labels: state.texts.labels().clone() })
    })
}

/// Opens an image file of names or of a list of domains for lookups alone. Memory holds one copy of the
/// table.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ws_name_reader_open(path: *const c_char) -> *mut ws_name_reader {
    handle(|| {
        // SAFETY: the caller keeps the rules of the header.
        let path = Path::new(unsafe { text(path, "path") }?);
        let reader = AnyNameReader::open(path)?;
        let labels = reader.labels_of(path)?;
        Ok(ws_name_reader { reader, labels })
    })
}

/// Frees a reader, or does nothing with NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ws_name_reader_free(reader: *mut ws_name_reader) {
    // SAFETY: the caller keeps the rules of the header.
    unsafe { free(reader) }
}

/// Looks up count names of a ws_name_form, and writes their results, 0 where no prefix matches. The batch
/// sees one state of the table. A text that is no name makes the call fail; the message has its place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ws_lookup_names_bulk(
    reader: *const ws_name_reader,
    form: u32,
    names: *const *const c_char,
    results: *mut u64,
    count: usize,
) -> ws_status {
    status(|| {
        // SAFETY: the caller keeps the rules of the header.
        let (reader, (texts, results)) =
            unsafe { (given(reader, "reader")?, batch((names, results), count, ("names", "results"))?) };
        let (form, mut former, mut names) = (form_of(form)?, Former::default(), NameBatch::new());
        for (at, &name) in texts.iter().enumerate() {
            // SAFETY: the caller keeps the rules of the header, also for texts in arrays.
            let name = unsafe { text(name, "name") }.map_err(|failure| failure.at(at))?;
            let name = former.form(name.as_bytes(), form).map_err(|why| wrong(name, &why).at(at))?;
            names.push(name).map_err(|why| wrong("the batch", &why).at(at))?;
        }
        let mut found = vec![NextHop::NONE; count];
        reader.reader.lookup_batch(&names, &mut found);
        results.iter_mut().zip(found).for_each(|(to, found)| _ = to.write(found.0.into()));
        Ok(())
    })
}

/// Label of a result, or NULL if it has none: see ws_reader_label.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ws_name_reader_label(reader: *const ws_name_reader, result: u64) -> *const c_char {
    // SAFETY: the caller keeps the rules of the header.
    label_of(|| Ok(&unsafe { given(reader, "reader") }?.labels), result)
}

/// Writes the value of a field of a result's label: see ws_reader_label_field.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ws_name_reader_label_field(
    reader: *const ws_name_reader,
    result: u64,
    field: *const c_char,
    value: *mut c_char,
    size: usize,
    length: *mut usize,
) -> ws_status {
    status(|| {
        // SAFETY: the caller keeps the rules of the header.
        unsafe { label_field(&given(reader, "reader")?.labels, result, field, (value, size), length) }
    })
}

/// Writes the registrable domain of a domain, by a table of the Public Suffix List: example.co.uk of
/// www.example.co.uk. At most size bytes are written to value, with the zero that ends them; length gets the
/// bytes of the whole text without that zero, 0 for a public suffix itself and for an IP address. Fails if
/// the names are not a list of public suffixes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ws_name_reader_registrable(
    reader: *const ws_name_reader,
    domain: *const c_char,
    value: *mut c_char,
    size: usize,
    length: *mut usize,
) -> ws_status {
    status(|| {
        // SAFETY: the caller keeps the rules of the header.
        let reader = unsafe { given(reader, "reader") }?;
        let write = |domain: &str, value: &mut [_]| {
            let (suffixes, mut found) = (reader.reader.suffixes()?, String::new());
            suffixes
                .registrable(domain, &mut Former::default(), &mut found)
                .map_err(|why| wrong(domain, &why))?;
            Ok(write_text(&found, value))
        };
        // SAFETY: the caller keeps the rules of the header.
        unsafe { text_of_text((domain, "domain"), (value, size), length, write) }
    })
}

/// Builds a table or a list of a file.
fn read(path: &Path, options: Options<'_>) -> Result<(AnyNames, Labels<Text>), Failure> {
    let (mut names, mut list) = (options.how.names.clone(), ListOptions::default());
    list.icann_only = options.how.icann_only;
    (names.format, list.format) = options
        .format(|content| match content {
            Content::Names(format) => Some((Some(format), None)),
            Content::List(format) => Some((None, Some(format))),
            _ => None,
        })?
        .unwrap_or_default();
    let read = read_table_or_list(&Source::Path(path.to_owned()), &names, &list);
    let read = read.map_err(wirespeed::Error::from)?;
    options.check(
        path,
        match &read {
            TableOrList::Table(_, report) => Content::Names(report.format),
            TableOrList::List(_, report) => Content::List(report.format),
        },
    )?;
    Ok(with_settings(NameTable::builder(), options)?.build_read(read)?)
}

fn with_settings(builder: NameBuilder, options: Options<'_>) -> Result<NameBuilder, Failure> {
    let options = options.only_for("names")?;
    let builder = with(builder, options.engine, NameBuilder::engine);
    Ok(with(builder, options.memory_cap, NameBuilder::memory_cap))
}

fn parse(form: u32, name: &str) -> Result<NameBuf, Failure> {
    form_of(form)?.parse(name.as_bytes()).map_err(|why| wrong(name, &why))
}

fn form_of(form: u32) -> Result<NameFormat, Failure> {
    [NameFormat::Names, NameFormat::Domains, NameFormat::Urls, NameFormat::Ndn]
        .get(usize::try_from(form).unwrap_or(usize::MAX))
        .copied()
        .ok_or_else(|| Failure::argument(format!("{form} is no ws_name_form")))
}

fn wrong(name: &str, why: &impl std::fmt::Display) -> Failure {
    Failure::argument(format!("{name:?}: {why}"))
}
