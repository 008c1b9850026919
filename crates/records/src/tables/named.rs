//! Tables, fields, sources and options for reading out of the words of a command line.

use wirespeed::fib::merge::MergeSource;
use wirespeed::fib::read::BadOption;
use wirespeed::names::read as names;
use wirespeed::names::read::lists::ListFormat;

use super::error::TableError;
use super::file::TableFile;

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

    /// States an [option](wirespeed::fib::read::ReadOptions::state) for tables of addresses. A text is
    /// `NAME=VALUE` for the table of this name, or `VALUE` for all tables without a value of their own.
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

fn twice_unless(is_new: bool, file: &TableFile, what: &str) -> Result<(), TableError> {
    let source = BadOption::Twice(what.to_owned());
    if is_new { Ok(()) } else { Err(TableError::Option { table: file.name.clone(), source }) }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
