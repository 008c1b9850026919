//! [`Tables`]: the tables that functions find by name, registered or listed in an option.
//!
//! ```text
//! Tables::insert(name, table) ─┐
//!                              ├─► State: name ──► table, what a query sees from its planning on
//! wirespeed.tables = 'a=…' ────┘
//! ```

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::error::Error;
use crate::table::{Stamp, Table, files};

/// A registry of tables. Clones share it, and all threads use it at once.
///
/// A query sees the tables that are there when it is planned, whatever is inserted and removed while it runs.
/// Files that an option lists are opened once and kept. A query that is planned after a file was replaced
/// opens the new one.
#[derive(Clone)]
pub struct Tables(Arc<Shared>);

struct Shared {
    registered: Mutex<Arc<ByName>>,
    opener: Box<dyn Opener>,
    labels_are_text: bool,
    /// The states of queries that were planned last.
    planned: Mutex<VecDeque<Planned>>,
}

type ByName = BTreeMap<String, Arc<Table>>;

/// Opens the tables that the option `wirespeed.tables` lists.
pub trait Opener: Send + Sync {
    /// Opens the table of these places: what the option lists under one name, in its order.
    ///
    /// Many threads call it at once. Where a process runs a part of a plan, each batch calls it, so an opener
    /// keeps what it has opened; and a place in such plans has one state for ever, or the batches of a query
    /// see several.
    ///
    /// Fails if a place is not there or is not understood. The query ends with the name of the table and this
    /// error.
    fn open(&self, places: &[PathBuf]) -> Result<Arc<Table>, Error>;
}

struct Planned {
    query: i64,
    listed: Listed,
    state: Weak<ByName>,
}

/// Queries whose states are found again: more than are planned at once.
const PLANNED: usize = 64;

impl Tables {
    /// Makes an empty registry. The option lists [`Files`].
    #[must_use]
    pub fn new() -> Self {
        Self::with_opener(Files::default())
    }

    /// Makes an empty registry which leaves the tables of the option to an opener.
    #[must_use]
    pub fn with_opener(opener: impl Opener + 'static) -> Self {
        Self::of(Box::new(opener), false)
    }

    /// Makes an empty registry whose functions give labels as columns of text (`Utf8`), not as dictionaries.
    /// Engines need it that send columns between processes and lose there that they are dictionaries.
    #[must_use]
    pub fn with_labels_as_text(opener: impl Opener + 'static) -> Self {
        Self::of(Box::new(opener), true)
    }

    fn of(opener: Box<dyn Opener>, labels_are_text: bool) -> Self {
        let (registered, planned) = (Mutex::default(), Mutex::default());
        Self(Arc::new(Shared { registered, opener, labels_are_text, planned }))
    }

    pub(crate) fn labels_are_text(&self) -> bool {
        self.0.labels_are_text
    }

    /// Registers a table, for queries that are planned from now on. Returns the table that had the name.
    pub fn insert(&self, name: impl Into<String>, table: Table) -> Option<Arc<Table>> {
        let mut registered = lock(&self.0.registered);
        Arc::make_mut(&mut registered).insert(name.into(), Arc::new(table))
    }

    /// Removes a table. Queries that were planned before keep it.
    pub fn remove(&self, name: &str) -> Option<Arc<Table>> {
        Arc::make_mut(&mut lock(&self.0.registered)).remove(name)
    }

    /// Opens a file and registers it: [`Table::open`].
    pub fn open(&self, name: impl Into<String>, path: impl AsRef<Path>) -> Result<Option<Arc<Table>>, Error> {
        Ok(self.insert(name, Table::open(&[path])?))
    }

    /// The names of the registered tables, in order.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        lock(&self.0.registered).keys().cloned().collect()
    }

    /// All tables as they are now: those registered, and those that an option lists, which come first.
    pub(crate) fn state(&self, listed: &Listed) -> Result<State, Error> {
        let registered = Arc::clone(&lock(&self.0.registered));
        if listed.0.is_empty() {
            return Ok(State(registered));
        }
        let mut all = ByName::clone(&registered);
        for (name, paths) in &*listed.0 {
            let table = self.0.opener.open(paths).map_err(|error| in_table(name, error))?;
            all.insert(name.clone(), table);
        }
        Ok(State(Arc::new(all)))
    }

    /// The state of a query, by the time when its planning began. All functions of the query have one state.
    pub(crate) fn state_of_query(&self, query: i64, listed: &Listed) -> Result<State, Error> {
        let mut planned = lock(&self.0.planned);
        planned.retain(|one| one.state.strong_count() > 0);
        let known = planned.iter().find(|one| one.query == query && one.listed == *listed);
        if let Some(state) = known.and_then(|one| one.state.upgrade()) {
            return Ok(State(state));
        }
        // A copy of its own, which ends with the query: the registry's own is never let go.
        let state = Arc::new(ByName::clone(&self.state(listed)?.0));
        if planned.len() == PLANNED {
            planned.pop_front();
        }
        planned.push_back(Planned { query, listed: listed.clone(), state: Arc::downgrade(&state) });
        Ok(State(state))
    }
}

impl Default for Tables {
    fn default() -> Self {
        Self::new()
    }
}

/// Opens files of this machine and keeps them open. A file that was replaced is opened again.
#[derive(Default)]
pub struct Files(Mutex<Opened>);

impl Opener for Files {
    fn open(&self, paths: &[PathBuf]) -> Result<Arc<Table>, Error> {
        lock(&self.0).table(paths)
    }
}

impl fmt::Debug for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(lock(&self.0).tables.keys()).finish()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is behind these locks is whole after each step.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn in_table(name: &str, source: Error) -> Error {
    Error::InTable { name: name.to_owned(), source: Box::new(source) }
}

/// Tables by name, in one state.
#[derive(Clone)]
pub(crate) struct State(Arc<ByName>);

impl State {
    /// The table of a name, or the only table of the kind that `pick` takes.
    pub(crate) fn find<'s, T>(
        &'s self,
        name: Option<&'s str>,
        wanted: &'static str,
        pick: impl Fn(&Table) -> Option<&T>,
    ) -> Result<(&'s str, &'s T), Error> {
        if let Some(name) = name {
            let Some(table) = self.0.get(name) else {
                return Err(Error::NoTable {
                    name: name.to_owned(),
                    known: self.0.keys().cloned().collect(),
                });
            };
            let wrong = || Error::WrongTable { name: name.to_owned(), found: table.holds(), wanted };
            return pick(table).map(|table| (name, table)).ok_or_else(wrong);
        }
        let of_kind: Vec<_> =
            self.0.iter().filter_map(|(name, table)| Some((name.as_str(), pick(table)?))).collect();
        match of_kind[..] {
            [only] => Ok(only),
            _ => {
                let known = of_kind.iter().map(|(name, _)| (*name).to_owned()).collect();
                Err(Error::NameNeeded { wanted, known })
            }
        }
    }
}

// Plans are printed with the functions in them: names are enough.
impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl fmt::Debug for Tables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}

impl PartialEq for State {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for State {}

impl Hash for State {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        Arc::as_ptr(&self.0).hash(hasher);
    }
}

impl PartialEq for Tables {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Tables {}

impl Hash for Tables {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        Arc::as_ptr(&self.0).hash(hasher);
    }
}

/// The files that an option lists, by the name of their table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Listed(Arc<BTreeMap<String, Vec<PathBuf>>>);

impl Listed {
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &[PathBuf])> {
        self.0.iter().map(|(name, paths)| (name.as_str(), paths.as_slice()))
    }

    /// Parses `name=path,name=path`. A name that comes twice is one table of two files.
    pub(crate) fn parse(text: &str) -> Result<Self, Error> {
        let mut listed = BTreeMap::<_, Vec<_>>::new();
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        for part in text.split(',') {
            let (name, path) = match part.split_once('=').map(|(name, path)| (name.trim(), path.trim())) {
                Some((name, path)) if !name.is_empty() && !path.is_empty() => (name, path),
                _ => {
                    let wanted = "tables are listed as name=file, with commas between";
                    return Err(Error::Option(format!("wirespeed.tables: {part:?}: {wanted}")));
                }
            };
            listed.entry(name.to_owned()).or_default().push(PathBuf::from(path));
        }
        Ok(Self(Arc::new(listed)))
    }
}

/// Tables of files that options listed.
#[derive(Default)]
struct Opened {
    tables: HashMap<Vec<PathBuf>, One>,
    calls: u64,
}

struct One {
    stamps: Vec<Stamp>,
    table: Arc<Table>,
    last_used: u64,
}

/// Tables that are kept open though no query uses them.
const KEPT: usize = 64;

impl Opened {
    fn table(&mut self, paths: &[PathBuf]) -> Result<Arc<Table>, Error> {
        self.calls += 1;
        let stamps = Stamp::of_all(&files(paths)?)?;
        if let Some(one) = self.tables.get_mut(paths)
            && one.stamps == stamps
        {
            one.last_used = self.calls;
            return Ok(Arc::clone(&one.table));
        }
        // A file that is replaced after this look is another state for the next query.
        let table = Arc::new(Table::open(paths)?);
        self.tables.remove(paths);
        if self.tables.len() >= KEPT {
            let oldest =
                self.tables.iter().min_by_key(|(_, one)| one.last_used).map(|(paths, _)| paths.clone());
            oldest.and_then(|oldest| self.tables.remove(&oldest));
        }
        let one = One { stamps, table: Arc::clone(&table), last_used: self.calls };
        self.tables.insert(paths.to_vec(), one);
        Ok(table)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_parsed_or_refused() {
        let listed = Listed::parse(" ris=/t/a.img, acl=/t/4.img,acl = /t/6.img").unwrap();
        let paths = |name: &str| listed.0[name].iter().map(|path| path.to_str().unwrap()).collect::<Vec<_>>();
        assert_eq!((paths("ris"), paths("acl")), (vec!["/t/a.img"], vec!["/t/4.img", "/t/6.img"]));
        assert_eq!(Listed::parse("").unwrap(), Listed::default());
        for wrong in ["ris", "=/t/a.img", "ris=", "ris=/t/a.img,", "ris=/t/a.img,,x=/t/b.img"] {
            let error = Listed::parse(wrong).unwrap_err().to_string();
            assert!(error.contains("name=file"), "{wrong}: {error}");
        }
    }
}
