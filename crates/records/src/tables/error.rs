//! [`TableError`]: why a table can't be used.

use wirespeed::fib::merge::SourceError;
use wirespeed::fib::read::record::NoField;
use wirespeed::fib::read::{BadOption, ReadError, Unheeded};
use wirespeed::names::merge::NameSourceError;
use wirespeed::names::read::lists::TableOrListError;

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
