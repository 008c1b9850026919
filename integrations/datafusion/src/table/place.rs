//! [`Placed`]: a place of a table as text: a file or a source of a merged table, and options for reading.

use std::path::{Path, PathBuf};

use wirespeed::content::How;
use wirespeed::fib::merge::MergeSource;
use wirespeed::fib::read::record::unescaped;

use crate::error::Error;

/// A place that was parsed.
#[derive(Debug)]
pub(crate) struct Placed {
    pub(crate) file: PathBuf,
    /// The source of a merged table that it is: `FIELD=FILE` or `FIELD:COLUMN+COLUMN=FILE`.
    pub(super) source: Option<MergeSource>,
    pub(super) how: How,
}

impl Placed {
    /// Parses `FILE`, `FIELD=FILE`, or either with options, as `FILE?OPTION=VALUE&OPTION`. The options are
    /// set beside those of `how`.
    pub(super) fn of(place: &Path, how: &How) -> Result<Self, Error> {
        let mut how = how.clone();
        let Some(text) = place.to_str() else {
            return Ok(Self { file: place.to_owned(), source: None, how });
        };
        let (text, options) = text.rsplit_once('?').unwrap_or((text, ""));
        for option in options.split('&').filter(|option| !option.is_empty()) {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            how.set(name, &unescaped(&value.replace('+', ",")))
                .map_err(|error| Error::Place { place: place.display().to_string(), source: error.into() })?;
        }
        let source = source(text);
        let file = source.as_ref().map_or_else(|| text.into(), |source| PathBuf::from(&source.file));
        Ok(Self { file, source, how })
    }

    pub(super) fn all<P: AsRef<Path>>(places: &[P], how: &How) -> Result<Vec<Self>, Error> {
        places.iter().map(|place| Self::of(place.as_ref(), how)).collect()
    }
}

/// The files of places.
pub(crate) fn files<P: AsRef<Path>>(places: &[P]) -> Result<Vec<PathBuf>, Error> {
    Ok(Placed::all(places, &How::default())?.into_iter().map(|placed| placed.file).collect())
}

/// The sources that all places are. None if no place is one.
pub(super) fn sources(places: &[Placed]) -> Result<Vec<(&MergeSource, &How)>, Error> {
    let sources: Vec<_> =
        places.iter().filter_map(|placed| Some((placed.source.as_ref()?, &placed.how))).collect();
    match places.iter().find(|placed| placed.source.is_none()) {
        Some(Placed { file, .. }) if !sources.is_empty() => {
            let reason = "the table is merged of sources, and this one has no field: name it FIELD=FILE";
            Err(Error::Join { path: file.clone(), reason })
        }
        _ => Ok(sources),
    }
}

fn source(text: &str) -> Option<MergeSource> {
    let (before, file) = text.split_once('=')?;
    let (name, columns) = match before.split_once(':') {
        Some((name, columns)) => (name, columns.split('+').map(str::to_owned).collect()),
        None => (before, Vec::new()),
    };
    let is_source = !before.contains(['/', '\\']) && !name.is_empty() && !file.is_empty();
    let source = MergeSource { name: name.to_owned(), columns, file: file.into() };
    (is_source && !source.columns.iter().any(String::is_empty)).then_some(source)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_sources_and_options() {
        let of = |text: &str| Placed::of(Path::new(text), &How::default());
        let placed = of("/a=b/rules.v4?chain=sg-1+a%2Bb%26c&assume=ct=new&lenient").unwrap();
        assert_eq!((placed.file.to_str(), placed.source), (Some("/a=b/rules.v4"), None));
        assert_eq!((placed.how.chain.as_deref(), placed.how.lenient), (Some("sg-1,a+b&c"), true));
        assert_eq!(placed.how.assume, ["ct=new"]);
        let placed = of("geo:asn+country=/geo.csv?range-columns=first+last").unwrap();
        assert_eq!((placed.source.unwrap().columns.len(), placed.how.routes.columns.is_given()), (2, true));
        // Without options, and with a question mark in the name.
        for (text, file) in [("/t/a.img", "/t/a.img"), ("/t/why?.txt?", "/t/why?.txt"), ("./a=b", "./a=b")] {
            let placed = of(text).unwrap();
            assert_eq!((placed.file.to_str(), placed.source), (Some(file), None));
        }
        for (text, said) in [
            ("/a?chains=x", "/a?chains=x: no option for reading is called \"chains\""),
            ("/a?lenient&lenient", "lenient is given twice"),
            ("/a?chain", "the option needs a value"),
            ("/why?.txt", "called \".txt\""),
        ] {
            let error = of(text).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
    }
}
