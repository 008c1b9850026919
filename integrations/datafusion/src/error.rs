//! [`Error`]: what the functions refuse.

use std::path::PathBuf;

/// An error of a function or of a table.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No table has the name.
    #[error("there is no table {name:?}; {}", told(.known))]
    NoTable {
        /// The name that was asked for.
        name: String,
        /// The tables that are there.
        known: Vec<String>,
    },
    /// A function was called without the name of a table, and not exactly one table is of its kind.
    #[error("name a table of {wanted} as the first argument; {}", told(.known))]
    NameNeeded {
        /// The kind of table: addresses, names, rules or RPKI payloads.
        wanted: &'static str,
        /// The tables of that kind.
        known: Vec<String>,
    },
    /// The table is of another kind.
    #[error("the table {name:?} holds {found}; the function needs a table of {wanted}")]
    WrongTable {
        /// The table.
        name: String,
        /// The kind of table that it holds.
        found: &'static str,
        /// The kind of table that the function needs.
        wanted: &'static str,
    },
    /// A lookup in a table failed.
    #[error("the table {name:?}: {source}")]
    InTable {
        /// The table.
        name: String,
        /// The reason.
        source: Box<Error>,
    },
    /// A file can't be opened as a table.
    #[error(transparent)]
    Open(#[from] wirespeed::Error),
    /// A file is no table: its content is not known, or wrong.
    #[error(transparent)]
    File(#[from] wirespeed::content::FileError),
    /// A field that no label of the table has.
    #[error(transparent)]
    NoField(#[from] wirespeed::fib::read::record::NoField),
    /// An error of the operating system.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// The file was replaced while it was read, or since the table was opened.
    #[error("{}: the file has changed while a query needed it", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// An opener can't open a place that the option lists: [`Opener`](crate::Opener).
    #[error("{place}: {source}")]
    Place {
        /// The place, as the option has it.
        place: String,
        /// The reason.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Files that are to be one table do not fit together.
    #[error("{}: {reason}", path.display())]
    Join {
        /// The file that does not fit.
        path: PathBuf,
        /// The reason.
        reason: &'static str,
    },
    /// The table has no routes, which `lpm_all` needs.
    #[error("the image holds no routes: build it with them, or use `lpm`")]
    NoRoutes,
    /// The table has no labels, or none for this index.
    #[error(
        "no label for index {index}: build the table with labels, or use the function that gives the index"
    )]
    NoLabel {
        /// The index.
        index: u32,
    },
    /// A value that the function does not understand.
    #[error("{what}; `SET wirespeed.invalid = 'null'` makes such values null")]
    Invalid {
        /// The value, and what is wrong with it.
        what: String,
    },
    /// Arguments that planning should have refused.
    #[error("{0}")]
    Arguments(String),
    /// An option with a value that is not understood.
    #[error("{0}")]
    Option(String),
    /// An error of Arrow.
    #[error(transparent)]
    Arrow(#[from] arrow::error::ArrowError),
}

impl From<wirespeed_columns::Error> for Error {
    fn from(error: wirespeed_columns::Error) -> Self {
        match error {
            wirespeed_columns::Error::Invalid { what } => Self::Invalid { what },
            wirespeed_columns::Error::Arrow(error) => Self::Arrow(error),
            other => Self::Arguments(other.to_string()),
        }
    }
}

fn told(names: &[String]) -> String {
    match names {
        [] => "there are none: set wirespeed.tables, or register one".to_owned(),
        names => format!("there are: {}", names.join(", ")),
    }
}
