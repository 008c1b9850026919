//! [`Error`]: what a cluster and its client refuse.

use std::path::PathBuf;

/// An error of the cluster, of its client, or of a published table.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A place is not there, or is not what it has to be.
    #[error("{place}: {reason}")]
    Place {
        /// The place: a path or an address of an object store.
        place: String,
        /// The reason.
        reason: String,
    },
    /// A place of a table in `wirespeed.tables` is not there, or is not what it has to be.
    #[error("the table {table:?}: {source}")]
    InTable {
        /// The table.
        table: String,
        /// The reason.
        source: Box<Error>,
    },
    /// An argument that is not understood.
    #[error("{0}")]
    Argument(String),
    /// An error of the operating system.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// An address that can't be listened on, or a process that can't be reached.
    #[error("{address}: {reason}")]
    Network {
        /// The address, with its port.
        address: String,
        /// The reason.
        reason: String,
    },
    /// A file that is to be published is no table.
    #[error(transparent)]
    Table(#[from] wirespeed_datafusion::Error),
    /// An error of DataFusion: in a query, or in the files of its tables.
    #[error(transparent)]
    Query(#[from] datafusion::error::DataFusionError),
    /// An error of Ballista.
    #[error(transparent)]
    Ballista(#[from] ballista_core::error::BallistaError),
    /// An error in the writing of results.
    #[error(transparent)]
    Arrow(#[from] arrow::error::ArrowError),
}

impl Error {
    /// The error in one line.
    #[must_use]
    pub fn line(&self) -> String {
        let text = self.to_string();
        // Plans and messages of remote processes come in several lines, some indented.
        told_inside(&text).unwrap_or(text).split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

/// What an executor told, which comes back as the debug form of its error:
/// `… DataFusionError(Shared(Execution("lpm: there is no table \"ris\"")))`.
fn told_inside(text: &str) -> Option<String> {
    let (_, quoted) = text.split_once("(Execution(\"")?;
    let (mut told, mut characters) = (String::new(), quoted.chars());
    loop {
        match characters.next()? {
            '"' => return Some(told),
            '\\' => match characters.next()? {
                'n' | 'r' | 't' => told.push(' '),
                escaped @ ('"' | '\\' | '\'') => told.push(escaped),
                // Another escape: the text is told as it came.
                _ => return None,
            },
            other => told.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_executors_are_told_plainly() {
        let line = |text: &str| Error::Argument(text.to_owned()).line();
        let task = r#"Job 1 failed: DataFusionError(Shared(Execution("lpm: no \"a\\b\";\nthere are: ris")))"#;
        assert_eq!(line(task), r#"lpm: no "a\b"; there are: ris"#);
        for whole in [r#"(Execution("a \u{7f}"))"#, r#"(Execution("no end"#, "a: (Execution(b))"] {
            assert_eq!(line(whole), whole);
        }
        assert_eq!(line("a\n  b"), "a b");
    }
}
