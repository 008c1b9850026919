//! [`NameList`]: a list of domains whose entries have scopes and exceptions, compiled.

use std::fmt;
use std::hash::Hash;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use wirespeed_fib::NextHop;
use wirespeed_namelookup::list::{Answer, Answers, Precedence, Resolved, Scope, Suffix, Verdict};
use wirespeed_namelookup::read::lists::{DomainList, ListOptions};
use wirespeed_namelookup::read::{Former, Label, Labels as Values, NameFormat, NameReason, Source};
use wirespeed_namelookup::{Match, Name, Names};

use super::builder::NameBuilder;
use super::image_file::{self, NameImageFile};
use super::reader::NameReader;
use super::table::NameTable;
use crate::device::Device;
use crate::engine::EngineName;
use crate::error::Error;
use crate::gpu::runtime::Fleet;
use crate::labels::{Labels, parse};

/// A list of domains: hosts files, Adblock filter lists, dnsmasq configurations, response policy zones, the
/// Public Suffix List, or entries of the caller's own.
///
/// Each entry covers a name alone, names beneath it, or both ([`Scope`]), and has a value or is an exception
/// ([`Verdict`]). A lookup gives the entry that [wins](super::lists#which-entry-wins). The table is that of
/// the list's names, in any engine; a lookup costs one of the engine, and a look at the answers.
///
/// A list takes no updates, because one entry may change the answers of all names beneath it. To replace it,
/// build another one, and share it through an `Arc` that is exchanged.
///
/// Any number of threads look up in a list. Memory: the names, two copies of the compiled table (one for a
/// list that was opened), and a few dozen bytes for each different answer.
///
/// ```
/// use wirespeed::names::NameList;
/// use wirespeed::prelude::*;
///
/// # let dir = tempfile::tempdir()?;
/// # let (hosts, filter) = (dir.path().join("hosts"), dir.path().join("filter.txt"));
/// std::fs::write(&hosts, "0.0.0.0 tracker.example\n")?;
/// std::fs::write(&filter, "||ads.example^\n@@||good.ads.example^\n")?;
/// let list = NameList::builder().file(&hosts).file(&filter).build()?;
///
/// let verdict = |domain: &str| -> Result<&str, Box<dyn std::error::Error>> {
///     let name = NameBuf::from_domain(domain.as_bytes())?;
///     Ok(match list.lookup(&name) {
///         None => "not listed",
///         Some(answer) => list.value(answer).unwrap_or("an exception"),
///     })
/// };
/// assert_eq!(verdict("tracker.example")?, "blocked");
/// assert_eq!(verdict("www.tracker.example")?, "not listed"); // hosts files name each host
/// assert_eq!(verdict("www.ads.example")?, "blocked");
/// assert_eq!(verdict("www.good.ads.example")?, "an exception");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Public suffixes
///
/// A list of public suffixes answers with the suffix and the registrable domain of a name:
///
/// ```
/// use wirespeed::names::NameList;
/// use wirespeed::prelude::*;
///
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("public_suffix_list.dat");
/// std::fs::write(&path, "// ===BEGIN ICANN DOMAINS===\nuk\nco.uk\n// ===END ICANN DOMAINS===\n")?;
/// let list = NameList::builder().file(&path).build()?;
/// let name = NameBuf::from_domain(b"www.example.co.uk")?;
/// let found = list.suffix(&name).expect("a list of suffixes, and a name");
/// assert_eq!(found.suffix.to_string(), "/uk/co");
/// assert_eq!(found.registrable.map(|name| name.to_string()).as_deref(), Some("/uk/co/example"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct NameList {
    held: Held,
    reader: NameReader,
    answers: Answers,
    labels: Values,
    /// The number of names.
    len: usize,
}

/// What a list was made of.
enum Held {
    /// Entries. The table has the list's names.
    Table(NameTable),
    /// An image file.
    File(PathBuf),
}

impl NameList {
    /// Starts a list. The builder collects the entries and the settings.
    pub fn builder() -> NameListBuilder {
        NameListBuilder { read: DomainList::default(), table: NameTable::builder(), error: None }
    }

    /// Opens an image file that [`save`](Self::save) or `lookupctl names build` wrote of a list.
    ///
    /// Fails if the file is damaged, does not hold a list, or is of an engine that is not in this build.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let (path, file) = (path.as_ref(), NameImageFile::open(path.as_ref())?);
        let of_names =
            || Error::ImageOf { path: path.to_owned(), found: "names", wanted: "a list of domains" };
        let (answers, labels) = (file.list()?.ok_or_else(of_names)?, file.labels()?);
        let len = usize::try_from(file.entries()).unwrap_or(usize::MAX);
        let reader = NameReader::of_file(file)?;
        Ok(Self { held: Held::File(path.to_owned()), reader, answers, labels, len })
    }

    /// Saves the compiled list, with its names, answers and values. An existing file is replaced completely
    /// or not at all.
    ///
    /// Fails for a list that was opened from an image, which is a copy of the file: the names are not held.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        let table = match &self.held {
            Held::Table(table) => table,
            Held::File(path) => return Err(Error::without(path, "names")),
        };
        let list = Resolved { names: table.entries().clone(), answers: self.answers.clone() };
        let engine = self.engine();
        let save = |image: &_| image_file::save_list(engine, image, &list, &self.labels, path.as_ref());
        table.core.with_image(save).map(drop)
    }

    /// The entry that wins for a name. `None` if no entry covers it.
    #[must_use]
    pub fn lookup(&self, name: impl AsRef<Name>) -> Option<Answer> {
        let name = name.as_ref();
        let found = self.reader.longest_match(name);
        let found = found.map_or(Match::NONE, |(prefix, result)| Match::new(result.0, prefix.len()));
        self.answers.answer(name, found)
    }

    /// Looks up names, and writes each answer to the same index of `answers`. Much faster than single
    /// lookups. Lookups run on the device that the list was built for ([`NameListBuilder::device`]). One
    /// allocation of 8 bytes for each name.
    ///
    /// Panics when the lengths differ.
    pub fn lookup_batch<'b>(&self, names: impl Into<Names<'b>>, answers: &mut [Option<Answer>]) {
        let names = names.into();
        assert_eq!(names.len(), answers.len(), "an answer for each name");
        let mut matches = vec![Match::NONE; names.len()];
        self.reader.match_batch(names, &mut matches);
        for ((name, found), answer) in names.iter().zip(matches).zip(answers) {
            *answer = self.answers.answer(name, found);
        }
    }

    /// Looks up names, and writes the number of each answer's value: [`NextHop::NONE`] for an exception and
    /// for no answer. [`labels`](Self::labels) has the values by number. Otherwise like
    /// [`lookup_batch`](Self::lookup_batch).
    pub fn lookup_values<'b>(&self, names: impl Into<Names<'b>>, numbers: &mut [NextHop]) {
        let names = names.into();
        let mut answers = vec![None; names.len()];
        self.lookup_batch(names, &mut answers);
        assert_eq!(answers.len(), numbers.len(), "a number for each name");
        for (number, answer) in numbers.iter_mut().zip(answers) {
            *number = answer.map_or(NextHop::NONE, |answer| NextHop(answer.verdict.result()));
        }
    }

    /// The values of the list as labels, by the numbers that [`lookup_values`](Self::lookup_values) gives.
    ///
    /// Fails if a value is no such label, or if two values are one.
    pub fn labels<T: FromStr<Err: ToString> + Eq + Hash>(&self) -> Result<Labels<T>, Error> {
        let labels = Labels::new();
        for (number, value) in self.labels.iter() {
            let value = value.to_string();
            if labels.intern(parse(&value)?)? != NextHop(number) {
                return Err(Error::LabelsAlike { text: value });
            }
        }
        Ok(labels)
    }

    /// The value of an answer of this list. `None` for an exception.
    #[must_use]
    pub fn value(&self, answer: Answer) -> Option<&str> {
        match self.labels.label(answer.verdict.result())? {
            Label::Word(word) => Some(word),
            Label::Line(_) => None,
        }
    }

    /// The public suffix and the registrable domain of a name. `None` if the list is not one of public
    /// suffixes, and for the root.
    #[must_use]
    pub fn suffix<'n>(&self, name: &'n Name) -> Option<Suffix<'n>> {
        if !self.answers.is_of_suffixes() {
            return None;
        }
        let found = self.reader.longest_match(name);
        let found = found.map_or(Match::NONE, |(prefix, result)| Match::new(result.0, prefix.len()));
        self.answers.suffix(name, found)
    }

    /// Appends the registrable domain of a domain in text, `example.co.uk` of `www.example.co.uk`, in small
    /// letters. Returns whether there is one: not of a public suffix itself, nor of an IP address, nor in a
    /// list that is not one of public suffixes. O(length); nothing is allocated where the buffers are kept.
    ///
    /// Fails if the text is no domain.
    ///
    /// ```
    /// use wirespeed::names::NameList;
    /// use wirespeed::names::read::Former;
    ///
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("public_suffix_list.dat");
    /// std::fs::write(&path, "// ===BEGIN ICANN DOMAINS===\n*.ck\n!www.ck\n// ===END ICANN DOMAINS===\n")?;
    /// let list = NameList::builder().file(&path).build()?;
    /// let (mut former, mut text) = (Former::default(), String::new());
    /// assert!(list.registrable("a.b.shop.ck", &mut former, &mut text)?);
    /// assert_eq!(text, "b.shop.ck");
    /// assert!(!list.registrable("shop.ck", &mut former, &mut text)?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn registrable(
        &self,
        domain: &str,
        former: &mut Former,
        into: &mut String,
    ) -> Result<bool, NameReason> {
        if domain.parse::<IpAddr>().is_ok() {
            return Ok(false);
        }
        let name = former.form(domain.as_bytes(), NameFormat::Domains)?;
        let found = self.suffix(name).and_then(|found| found.registrable);
        Ok(found.inspect(|name| name.append_domain(into)).is_some())
    }

    /// Whether the list is one of public suffixes.
    #[must_use]
    pub fn is_of_suffixes(&self) -> bool {
        self.answers.is_of_suffixes()
    }

    /// The number of names that the list has entries for.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the list has no entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The engine that looks up.
    #[must_use]
    pub fn engine(&self) -> EngineName {
        self.reader.engine()
    }

    /// Bytes that the list holds, without its file.
    #[must_use]
    pub fn memory_usage(&self) -> u64 {
        match &self.held {
            Held::Table(table) => table.memory_usage(),
            Held::File(_) => 0,
        }
    }
}

impl fmt::Debug for NameList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NameList")
            .field("engine", &self.engine())
            .field("answers", &self.answers.len())
            .finish_non_exhaustive()
    }
}

/// Collects the entries of a list, and builds it. Of equal names and scopes the last entry stays, unless its
/// format ranks them. [`build`](Self::build) reports the first error of all calls.
#[derive(Debug)]
#[must_use = "a builder makes nothing until `build`"]
pub struct NameListBuilder {
    read: DomainList,
    table: NameBuilder,
    error: Option<Error>,
}

impl NameListBuilder {
    /// A list that was read, with the settings of a builder without names.
    pub(super) fn of(table: NameBuilder, read: DomainList) -> Self {
        Self { read, table, error: None }
    }

    /// Adds the entries of a file. The [format](super::read::lists::ListFormat) is recognised by content,
    /// plain or compressed.
    ///
    /// A line that is not understood makes [`build`](Self::build) fail, with the file and the line.
    pub fn file(self, path: impl AsRef<Path>) -> Self {
        self.file_with(path, &ListOptions::default())
    }

    /// Adds the entries of a file with other options, for example of a format that is not recognised, or to
    /// pass over lines that are not understood.
    pub fn file_with(mut self, path: impl AsRef<Path>, options: &ListOptions) -> Self {
        if self.error.is_none() {
            let source = Source::Path(path.as_ref().to_owned());
            self.error = self.read.add(&source, options).err().map(|error| Box::new(error).into());
        }
        self
    }

    /// Adds entries that were read, to an empty builder or to others. The entries of `read` win over equal
    /// ones that are there already.
    pub fn read(mut self, read: DomainList) -> Self {
        if self.read.list.is_empty() {
            self.read = read;
            return self;
        }
        for (name, scope, precedence, verdict) in read.list.iter() {
            self = match read.labels.label(verdict.result()) {
                Some(label) => self.with(&name, scope, precedence, Some(&label.to_string())),
                None => self.with(&name, scope, precedence, None),
            };
        }
        self
    }

    /// Adds an entry with a value.
    pub fn entry(self, name: impl AsRef<Name>, scope: Scope, value: &str) -> Self {
        self.with(name.as_ref(), scope, Precedence::default(), Some(value))
    }

    /// Adds an exception, which wins like any entry: over those of shorter names, and of wider scopes. With
    /// a higher [level](Precedence::level) it wins over all: see [`entry_with`](Self::entry_with).
    pub fn exception(self, name: impl AsRef<Name>, scope: Scope) -> Self {
        self.with(name.as_ref(), scope, Precedence::default(), None)
    }

    /// Adds an entry with a precedence. Without a value it is an exception.
    pub fn entry_with(
        self,
        name: impl AsRef<Name>,
        scope: Scope,
        precedence: Precedence,
        value: Option<&str>,
    ) -> Self {
        self.with(name.as_ref(), scope, precedence, value)
    }

    fn with(mut self, name: &Name, scope: Scope, precedence: Precedence, value: Option<&str>) -> Self {
        let verdict = value.map_or(Ok(Verdict::Exception), |value| {
            let result = self.read.labels.intern(value).map_err(Error::from)?;
            Ok(Verdict::value(result).expect("results start at 1"))
        });
        match verdict {
            Ok(verdict) => {
                self.read.list.insert(name, scope, precedence, verdict);
            }
            Err(error) => {
                self.error.get_or_insert(error);
            }
        }
        self
    }

    /// Sets the engine: a name, an [`EngineName`], or `auto`. The default is `auto`.
    pub fn engine(mut self, engine: impl AsRef<str>) -> Self {
        self.table = self.table.engine(engine);
        self
    }

    /// Sets the seed of engines that hash; see [`NameBuilder::seed`].
    pub fn seed(mut self, seed: u64) -> Self {
        self.table = self.table.seed(seed);
        self
    }

    /// Limits the bytes that both copies of the compiled table may take together; see
    /// [`NameBuilder::memory_cap`].
    pub fn memory_cap(mut self, bytes: u64) -> Self {
        self.table = self.table.memory_cap(bytes);
        self
    }

    /// Sets the device that looks batches up; see [`NameBuilder::device`].
    pub fn device(mut self, device: Device) -> Self {
        self.table = self.table.device(device);
        self
    }

    /// Gives the GPUs for the table, if they are started already; see [`NameBuilder::fleet`]. Their slots
    /// must hold match lengths, or the CPU answers.
    pub fn fleet(mut self, fleet: Fleet) -> Self {
        self.table = self.table.fleet(fleet);
        self
    }

    /// Builds the list. O(bytes of all names), beside the engine's build.
    ///
    /// Fails like [`NameBuilder::build`], and if a file could not be read.
    pub fn build(self) -> Result<NameList, Error> {
        if let Some(error) = self.error {
            return Err(error);
        }
        let Resolved { names, answers } = self.read.list.resolve();
        let table = self.table.rib(names).build()?;
        let (reader, len) = (table.reader(), table.len());
        Ok(NameList { held: Held::Table(table), reader, answers, labels: self.read.labels, len })
    }
}

#[cfg(test)]
mod tests {
    use wirespeed_namelookup::list::oracle::Oracle;
    use wirespeed_namelookup::{NameBatch, NameBuf};

    use super::*;

    fn of(domain: &str) -> NameBuf {
        NameBuf::from_domain(domain.as_bytes()).unwrap()
    }

    const FILTER: &str = "||ads.example^\n@@||good.ads.example^\n0.0.0.0 one.example\n||*.wild.example^\n";
    const DOMAINS: [&str; 8] = [
        "ads.example",
        "x.ads.example",
        "a.good.ads.example",
        "one.example",
        "x.one.example",
        "wild.example",
        "a.b.wild.example",
        "example",
    ];

    /// What a list says of each domain.
    fn answers(list: &NameList) -> Vec<Option<Answer>> {
        let names: Vec<_> = DOMAINS.iter().map(|domain| of(domain)).collect();
        let batch: NameBatch = names.iter().map(|name| &**name).collect();
        let mut answers = vec![None; batch.len()];
        list.lookup_batch(&batch, &mut answers);
        for (name, answer) in names.iter().zip(&answers) {
            assert_eq!(list.lookup(name), *answer, "{name} alone");
        }
        answers
    }

    #[test]
    fn a_list_answers_as_the_walk_over_its_entries_and_so_does_its_image() {
        let folder = tempfile::tempdir().unwrap();
        let (file, image) = (folder.path().join("filter"), folder.path().join("list.img"));
        std::fs::write(&file, FILTER).unwrap();
        let (read, _) = wirespeed_namelookup::read::lists::read_list(
            &Source::Path(file.clone()),
            &ListOptions::default(),
        )
        .unwrap();
        let oracle = Oracle(read.list.iter().collect());
        let right: Vec<_> = DOMAINS.iter().map(|domain| oracle.lookup(&of(domain))).collect();
        for engine in ["auto", "acta", "mata", "stt"] {
            let list = NameList::builder().file(&file).engine(engine).build().unwrap();
            assert_eq!(answers(&list), right, "{engine}");
            list.save(&image).unwrap();
            let opened = NameList::open(&image).unwrap();
            assert_eq!((answers(&opened), opened.engine()), (right.clone(), list.engine()));
            let value =
                |list: &NameList, domain| list.lookup(of(domain)).map(|found| list.value(found).is_some());
            for list in [&list, &opened] {
                assert_eq!(value(list, "one.example"), Some(true));
                assert_eq!(value(list, "good.ads.example"), Some(false));
            }
            assert!(matches!(opened.save(&image), Err(Error::ImageWithout { .. })));
        }
        // Results of a list are no labels: what reads labels refuses the file.
        let says = "holds a table of a list of domains, a table of names is wanted";
        assert!(NameReader::open(&image).unwrap_err().to_string().contains(says));
        assert!(NameTable::open(&image).unwrap_err().to_string().contains(says));
        let labels = crate::Labels::<String>::new();
        assert!(NameTable::builder().build().unwrap().load(&image, &labels).is_err());
        NameTable::builder().names([(of("a"), crate::NextHop(1))]).build().unwrap().save(&image).unwrap();
        assert!(matches!(NameList::open(&image), Err(Error::ImageOf { found: "names", .. })));
    }

    #[test]
    fn entries_of_every_source_meet() {
        let filter = wirespeed_namelookup::read::lists::read_list_from(
            FILTER.as_bytes(),
            "list",
            &ListOptions::default(),
        );
        let high = Precedence { level: 9, weight: 0 };
        let list = NameList::builder()
            .entry(of("one.example"), Scope::Subtree, "mine")
            .exception(of("x.ads.example"), Scope::Exact)
            .read(filter.unwrap().0)
            .entry_with(of("good.ads.example"), Scope::Exact, high, Some("never good"))
            .build()
            .unwrap();
        let value = |domain| list.lookup(of(domain)).map(|answer| list.value(answer).unwrap_or("exception"));
        assert_eq!(value("one.example"), Some("blocked"));
        assert_eq!(value("x.one.example"), Some("mine"));
        assert_eq!(value("x.ads.example"), Some("exception"));
        assert_eq!(value("good.ads.example"), Some("never good"));
        assert_eq!(value("a.good.ads.example"), Some("exception"));
        assert_eq!(list.suffix(&of("a.example")), None, "no list of suffixes");
    }

    #[test]
    fn a_wrong_file_is_an_error_with_its_line() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("hosts");
        std::fs::write(&file, "0.0.0.0 a.example\n0.0.0.0 b..example\n").unwrap();
        let error = NameList::builder().file(&file).build().unwrap_err();
        assert!(error.to_string().ends_with("hosts:2: a label is empty: \"0.0.0.0 b..example\""), "{error}");
        let lenient = ListOptions { lenient: true, ..ListOptions::default() };
        let list = NameList::builder().file_with(&file, &lenient).build().unwrap();
        assert!(list.lookup(of("a.example")).is_some());
    }
}
