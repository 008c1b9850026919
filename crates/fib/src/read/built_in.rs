//! Tables that are built in. Their names stand wherever the path of a table may.

use std::path::Path;

use super::Source;
use super::error::ReadError;
use crate::bogons;

/// The start of the name of a table that is built in. A file of such a name is `./builtin:NAME`.
const BUILT_IN: &str = "builtin:";

/// A table that is built in, as CSV.
pub(super) struct BuiltIn {
    /// Its name and date, for messages.
    pub(super) name: String,
    pub(super) csv: String,
}

/// Whether a path names a table that is built in, and no file. A file of such a name is `./builtin:NAME`.
///
/// ```
/// use wirespeed_fib::read::{ReadOptions, Source, is_built_in, read_fib};
///
/// assert!(is_built_in("builtin:bogons") && !is_built_in("./builtin:bogons"));
/// let (fib, _) = read_fib(&Source::from_arg("builtin:bogons"), &ReadOptions::default())?;
/// assert!(fib.v4.get("10.0.0.0/8".parse()?).is_some());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn is_built_in(path: impl AsRef<Path>) -> bool {
    name_of(path.as_ref()).is_some()
}

/// The table that a source names. `None` for a file. Fails if no such table is built in.
pub(super) fn of(source: &Source) -> Result<Option<BuiltIn>, ReadError> {
    let Source::Path(path) = source else { return Ok(None) };
    match name_of(path) {
        None => Ok(None),
        Some("bogons") => {
            let name = format!("{BUILT_IN}bogons of {}", bogons::DATE);
            Ok(Some(BuiltIn { name, csv: bogons::csv() }))
        }
        Some(_) => Err(ReadError::NotBuiltIn { name: source.to_string() }),
    }
}

fn name_of(path: &Path) -> Option<&str> {
    path.to_str()?.strip_prefix(BUILT_IN)
}
