//! [`FileTable`]: the table of a file, whatever it holds.

use std::path::{Path, PathBuf};

use wirespeed_classify::read::RuleFormat;
use wirespeed_classify::{Ipv4Tuple, Ipv6Tuple};
use wirespeed_fib::merge::{Merge, MergeSource, SourceError};
use wirespeed_fib::read::{ReadError, ReadOptions, Source, open, read_fib, read_vrps};
use wirespeed_fib::rpki::Vrps;
use wirespeed_namelookup::merge::{NameSourceError, read_sources as read_name_sources};
use wirespeed_namelookup::read::lists::{ListOptions, TableOrList, read_table_or_list};
use wirespeed_namelookup::read::{NameFormat, ReadOptions as NameOptions};

use super::how::{How, HowError, check_all};
use super::{Content, ContentError, START};
use crate::classify::{Classifier, ClassifierBuilder, TupleName, read_file};
use crate::engine::RuleTuple;
use crate::error::Error;
use crate::ip::IpTable;
use crate::labels::Labels;
use crate::names::{AnyNames, NameTable};

/// A table of a file.
#[derive(Debug)]
pub enum FileTable {
    /// Prefixes of both families, for prefix lookups, too.
    Addresses(IpTable, Labels<String>),
    /// Names or a list of domains.
    Names(AnyNames, Labels<String>),
    /// Rules of the 5-tuple of IPv4.
    Ipv4Rules(Classifier<Ipv4Tuple>, Labels<String>),
    /// Rules of the 5-tuple of IPv6.
    Ipv6Rules(Classifier<Ipv6Tuple>, Labels<String>),
    /// Payloads of the RPKI.
    Payloads(Box<Vrps>),
}

/// The reason why a file is no table.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// The content is not known.
    #[error(transparent)]
    Content(#[from] ContentError),
    /// The file can't be read as what it is.
    #[error(transparent)]
    Routes(#[from] ReadError),
    /// A source of a merged table can't be read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// A source of a merged table of names can't be read.
    #[error(transparent)]
    NameSource(#[from] NameSourceError),
    /// The table can't be built.
    #[error(transparent)]
    Table(#[from] Error),
    /// An option for reading is not for this file.
    #[error("{}: {cause}", path.display())]
    How {
        /// The file.
        path: PathBuf,
        /// The reason.
        cause: HowError,
    },
    /// The file holds something that no table of this kind is made of.
    #[error("{}: {reason}", path.display())]
    Unfit {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: &'static str,
    },
}

/// Reads a file by its content, and builds its table. The labels are the texts of next hops, results and
/// actions; those of names and routes without any are `member`.
///
/// Fails if the content is not known or not right; the message has file and line. An image is refused: the
/// types of tables open their own.
///
/// ```
/// use wirespeed::content::{FileTable, How, read};
///
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("list");
/// std::fs::write(&path, "||ads.example^\n")?;
/// let table = read(&path, &How::default())?;
/// assert!(matches!(table, FileTable::Names(..)));
/// table.save(&dir.path().join("list.img"))?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read(path: &Path, how: &How) -> Result<FileTable, FileError> {
    let content = how.content_of(path)?;
    let source = Source::Path(path.to_owned());
    let unfit = |reason| FileError::Unfit { path: path.to_owned(), reason };
    how.check(content).map_err(|cause| FileError::How { path: path.to_owned(), cause })?;
    match content {
        Content::Image => Err(unfit("an image is opened as it is")),
        Content::Routes(format) => {
            let options = ReadOptions { format: Some(format), lenient: how.lenient, ..how.routes.clone() };
            addresses(read_fib(&source, &options)?.0)
        }
        Content::Payloads(format) => {
            let options =
                ReadOptions { format: Some(format), lenient: how.lenient, ..ReadOptions::default() };
            Ok(FileTable::Payloads(Box::new(read_vrps(&source, &options)?.0)))
        }
        Content::Names(_) | Content::List(_) => {
            let (mut names, mut list) = (how.names.clone(), ListOptions::default());
            (names.lenient, list.lenient, list.icann_only) = (how.lenient, how.lenient, how.icann_only);
            match content {
                Content::List(format) => list.format = Some(format),
                Content::Names(format) => names.format = Some(format),
                _ => {}
            }
            let read = match read_table_or_list(&source, &names, &list).map_err(Error::from)? {
                TableOrList::Table(fib, report) => {
                    TableOrList::Table(fib.with_members().map_err(Error::from)?, report)
                }
                list @ TableOrList::List(..) => list,
            };
            let (names, labels) = NameTable::builder().build_read(read).map_err(|e| e.in_file(path))?;
            Ok(FileTable::Names(names, labels))
        }
        Content::Rules(format) => match how.tuple.map_or_else(|| tuple(path), Ok)? {
            TupleName::Ipv4 => rules::<Ipv4Tuple>(path, format, how).map(|(r, l)| FileTable::Ipv4Rules(r, l)),
            TupleName::Ipv6 => rules::<Ipv6Tuple>(path, format, how).map(|(r, l)| FileTable::Ipv6Rules(r, l)),
            _ => Err(unfit("rules of OpenFlow, where rules of the 5-tuple of IPv4 or IPv6 are wanted")),
        },
    }
}

/// Reads sources, each with options of its own, in order of precedence, and merges them to one table of
/// addresses whose labels are records: [`fib::merge`](crate::fib::merge).
pub fn merge<'s>(
    sources: impl IntoIterator<Item = (&'s MergeSource, &'s How)>,
) -> Result<FileTable, FileError> {
    let (mut merge, mut paths, mut read) = (Merge::new(), Vec::new(), Vec::new());
    for (source, how) in sources {
        let path = PathBuf::from(&source.file);
        let format = match how.content {
            None => None,
            Some(Content::Routes(format)) => Some(format),
            Some(_) => return Err(FileError::Unfit { path, reason: "a source that is merged has routes" }),
        };
        let options = ReadOptions { format, lenient: how.lenient, ..how.routes.clone() };
        let (fib, report) = read_fib(&Source::from_arg(&source.file), &source.options(&options))?;
        merge.add_read(source, &fib, &report)?;
        read.push((how, Content::Routes(report.format)));
        paths.push(path);
    }
    check_all(&read).map_err(|(at, cause)| FileError::How { path: paths.swap_remove(at), cause })?;
    addresses(merge.build().map_err(SourceError::from)?.fib)
}

/// Reads sources in order of precedence, and merges them to one table of names whose labels are records:
/// [`names::merge`](crate::names::merge).
pub fn merge_names(sources: &[MergeSource], how: &How) -> Result<FileTable, FileError> {
    let path = || sources.first().map(|source| PathBuf::from(&source.file)).unwrap_or_default();
    let format = match how.content {
        None => None,
        Some(Content::Names(form)) => Some(form),
        Some(_) => return Err(FileError::Unfit { path: path(), reason: "a source of names has names" }),
    };
    let content = Content::Names(format.unwrap_or(NameFormat::Domains));
    how.check(content).map_err(|cause| FileError::How { path: path(), cause })?;
    let options = NameOptions { format, lenient: how.lenient, ..how.names.clone() };
    let (merged, _) = read_name_sources(sources, &options)?;
    let labels = Labels::new();
    let table = NameTable::builder().fib(merged.fib, &labels).build()?;
    Ok(FileTable::Names(AnyNames::Table(table), labels))
}

impl FileTable {
    /// Saves the table as an image file. An existing file is replaced completely or not at all.
    ///
    /// Fails for payloads of the RPKI, which have no image, and if the file can't be written.
    pub fn save(&self, path: &Path) -> Result<(), FileError> {
        match self {
            Self::Addresses(table, labels) => table.save_labelled(path, labels)?,
            Self::Names(names, labels) => names.save(path, labels)?,
            Self::Ipv4Rules(rules, labels) => rules.save_labelled(path, labels)?,
            Self::Ipv6Rules(rules, labels) => rules.save_labelled(path, labels)?,
            Self::Payloads(_) => {
                let reason = "payloads of the RPKI have no image";
                return Err(FileError::Unfit { path: path.to_owned(), reason });
            }
        }
        Ok(())
    }
}

fn addresses(fib: crate::Fib) -> Result<FileTable, FileError> {
    let labels = Labels::new();
    let table = IpTable::builder().fib(fib, &labels).prefix_lookups().build()?;
    Ok(FileTable::Addresses(table, labels))
}

/// The tuple of the rules of a file.
fn tuple(path: &Path) -> Result<TupleName, FileError> {
    let mut input = open(&Source::Path(path.to_owned())).map_err(ContentError::from)?;
    Ok(TupleName::recognise(&String::from_utf8_lossy(input.look_ahead(START).0)))
}

/// What chooses the rules of one family, in Rust and for programs that take images.
const CHOOSE_TUPLE: &str =
    "choose the tuple, or build an image of each family by lookupctl classify build --tuple";

fn rules<T: RuleTuple>(
    path: &Path,
    format: RuleFormat,
    how: &How,
) -> Result<(Classifier<T>, Labels<String>), FileError> {
    use wirespeed_classify::read::{Assumptions, ReadOptions};

    let labels = Labels::new();
    let mut assume = Assumptions::default();
    for fact in &how.assume {
        assume = fact.parse().and_then(|fact| assume.with(fact)).map_err(Error::from)?;
    }
    let options = ReadOptions {
        format: Some(format),
        lenient: how.lenient,
        assume,
        chain: how.chain.clone(),
        table_name: how.rule_table.clone(),
        ..ReadOptions::default()
    };
    let read = read_file::<T>(path, &options)?;
    if how.tuple.is_none() && !how.lenient {
        read.1.refuse_other_family(CHOOSE_TUPLE).map_err(Error::from)?;
    }
    // They count for files that are loaded later, too.
    let mut builder = how.assume.iter().fold(Classifier::<T>::builder(), ClassifierBuilder::assume);
    if let Some(chain) = &how.chain {
        builder = builder.chain(chain);
    }
    if let Some(table) = &how.rule_table {
        builder = builder.rule_table(table);
    }
    let rules =
        builder.leave_out(how.lenient).read(read, &labels).build().map_err(|error| error.in_file(path))?;
    Ok((rules, labels))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_built_and_saved_as_an_image_of_its_kind() {
        let dir = tempfile::tempdir().unwrap();
        let (path, image) = (dir.path().join("file"), dir.path().join("table.img"));
        for (text, kind) in [
            ("10.0.0.0/8 64496\n2001:db8::/32 64497\n", "addresses"),
            ("0.0.0.0 ads.example\n", "list"),
            ("ads.example\nmore.example\n", "names"),
            ("dport=443 proto=tcp action=1\n", "rules"),
            ("src=2001:db8::/32 dport=443 proto=tcp action=1\n", "rules of IPv6"),
        ] {
            std::fs::write(&path, text).unwrap();
            let table = read(&path, &How::default()).unwrap();
            let found = match &table {
                FileTable::Addresses(..) => "addresses",
                FileTable::Names(AnyNames::List(_), _) => "list",
                FileTable::Names(..) => "names",
                FileTable::Ipv4Rules(..) => "rules",
                FileTable::Ipv6Rules(..) => "rules of IPv6",
                FileTable::Payloads(_) => "payloads",
            };
            assert_eq!(found, kind, "{text}");
            table.save(&image).unwrap();
            assert_eq!(Content::of_file(&image).unwrap(), Content::Image);
        }
        let error = read(&image, &How::default()).unwrap_err().to_string();
        assert!(error.contains("table.img") && error.contains("an image"), "{error}");
    }

    #[test]
    fn a_wrong_file_is_refused_with_its_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let refused = |text: &str, how: &How| {
            std::fs::write(&path, text).unwrap();
            read(&path, how).unwrap_err().to_string()
        };
        let default = How::default();
        assert!(refused("0.0.0.0 ads.example\n0.0.0.0 a..b\n", &default).contains("file:2"));
        assert!(refused("10.0.0.0/8 a\n10.0.0.0/33 a\n", &default).contains("file:2"));
        assert!(refused("dport=443\ndport=x\n", &default).contains('2'));
        assert!(refused("priority=1 actions=drop\n", &default).contains("OpenFlow"));
        assert!(refused("the quick brown fox\n", &default).contains("in a known format"));
        let two = refused("192.0.2.1 core\n", &default);
        assert!(two.contains("hosts or plain") && two.contains("name the format"), "{two}");
        let rules =
            "*filter\n:INPUT DROP [0:0]\n-A INPUT -i lo -j ACCEPT\n-A INPUT -p tcp -j ACCEPT\nCOMMIT\n";
        assert!(refused(rules, &default).contains("interface"));
        let both = r#"{"SecurityGroups": [{"GroupId": "sg-1", "IpPermissions": [{"IpProtocol": "6",
            "IpRanges": [{"CidrIp": "10.0.0.0/8"}], "Ipv6Ranges": [{"CidrIpv6": "2001:db8::/32"}]}]}]}"#;
        let (new, four) = (vec!["ct=new".to_owned()], Some(TupleName::Ipv4));
        let error = refused(both, &How { assume: new.clone(), ..How::default() });
        assert!(
            error.contains("1 entry is of the other family") && error.contains("choose the tuple"),
            "{error}"
        );
        // A format that is named, facts, a tuple, and lenience decide.
        for (text, how) in [
            ("192.0.2.1 core\n", How { content: Some("hosts".parse().unwrap()), ..How::default() }),
            (rules, How { assume: vec!["in=eth0".to_owned()], ..How::default() }),
            (rules, How { lenient: true, ..How::default() }),
            (both, How { assume: new, tuple: four, ..How::default() }),
            (both, How { lenient: true, ..How::default() }),
            ("10.0.0.0/8 a\n10.0.0.0/33 a\n", How { lenient: true, ..How::default() }),
        ] {
            std::fs::write(&path, text).unwrap();
            read(&path, &how).unwrap();
        }
    }

    #[test]
    fn one_of_several_groups_and_policies_is_chosen() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let groups = r#"{"SecurityGroups": [
            {"GroupId": "sg-1", "IpPermissions": [{"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22,
                "IpRanges": [{"CidrIp": "10.0.0.0/8"}]}], "IpPermissionsEgress": []},
            {"GroupId": "sg-2", "IpPermissions": [{"IpProtocol": "tcp", "FromPort": 80, "ToPort": 90,
                "IpRanges": [{"CidrIp": "10.0.0.0/8"}, {"CidrIp": "192.0.2.0/24"}]}],
             "IpPermissionsEgress": []}]}"#;
        std::fs::write(&path, groups).unwrap();
        let how = How { assume: vec!["ct=new".to_owned()], ..How::default() };
        let rules = |chain: &str, table: Option<&str>| {
            let (chain, rule_table) = (Some(chain.to_owned()), table.map(str::to_owned));
            match read(&path, &How { chain, rule_table, ..how.clone() }) {
                Ok(FileTable::Ipv4Rules(mut rules, labels)) => {
                    let read = rules.len();
                    assert_eq!(rules.load(&path, &labels).unwrap().changes, 0);
                    Ok(read)
                }
                Ok(other) => panic!("{other:?}"),
                Err(error) => Err(error.to_string()),
            }
        };
        let (one, two) = (rules("sg-1", None).unwrap(), rules("sg-2", None).unwrap());
        assert!(one < two && rules("sg-2", Some("egress")).unwrap() < two, "{one} {two}");
        assert!(rules("sg-3", None).unwrap_err().contains("sg-3"));
        assert!(read(&path, &how).unwrap_err().to_string().contains("file"));
        std::fs::write(&path, "dport=443 proto=tcp action=1\n").unwrap();
        let said = rules("sg-1", None).unwrap_err();
        assert!(said.contains("file: chain is for ") && said.ends_with("of the format rules"), "{said}");
    }

    #[test]
    fn sources_are_merged() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = dir.path().join(name);
            std::fs::write(&path, text).unwrap();
            path.into_os_string()
        };
        let source = |name: &str, file| MergeSource { name: name.to_owned(), columns: Vec::new(), file };
        let sources =
            [source("asn", file("asn", "10.0.0.0/8 64496\n")), source("list", file("list", "10.1.0.0/16\n"))];
        let how = How::default();
        let merge = |sources: &[MergeSource]| merge(sources.iter().map(|source| (source, &how)));
        let FileTable::Addresses(table, labels) = merge(&sources).unwrap() else { panic!() };
        let found = table.reader().lookup("10.1.2.3".parse::<std::net::IpAddr>().unwrap());
        assert_eq!(labels.get(found).as_deref().map(String::as_str), Some("asn=64496,list=true"));
        let sources = [
            source("site", file("names.csv", "domain,site\nads.example,Kiel\n")),
            source("bad", file("bad", "x.ads.example\n")),
        ];
        let FileTable::Names(AnyNames::Table(table), labels) =
            merge_names(&sources, &How::default()).unwrap()
        else {
            panic!()
        };
        let found = table.reader().lookup(crate::names::Name::new("/example/ads/x/y").unwrap());
        assert_eq!(labels.get(found).as_deref().map(String::as_str), Some("site=Kiel,bad=true"));
        let wrong = [source("bad", file("hosts", "0.0.0.0 a.example\n"))];
        assert!(merge_names(&wrong, &How::default()).unwrap_err().to_string().contains("hosts: a list"));
        for (how, said) in [
            (How { chain: Some("x".to_owned()), ..How::default() }, "chain is for"),
            (How { content: Some("mrt".parse().unwrap()), ..How::default() }, "has names"),
        ] {
            let refused = merge_names(&sources, &how).unwrap_err().to_string();
            assert!(refused.contains(said), "{refused}");
        }
        let wrong = [source("asn", file("wrong", "10.0.0.0/33 1\n"))];
        assert!(merge(&wrong).unwrap_err().to_string().contains("wrong:1"));
    }
}
