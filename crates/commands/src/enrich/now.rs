//! [`Now`]: the current versions of tables; and [`follow`], which makes new ones current.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::table::{Followed, Values, Version, Versions};

/// The time between looks at the files of tables.
const LOOK: Duration = Duration::from_secs(1);

/// The current tables.
#[derive(Debug)]
pub struct Now<V>(Arc<Mutex<Versions<V>>>);

impl<V> Clone for Now<V> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<V> Now<V> {
    /// Makes these versions current.
    #[must_use]
    pub fn new(versions: Vec<Arc<Version<V>>>) -> Self {
        Self(Arc::new(Mutex::new(Arc::new(versions))))
    }

    /// The version of each table that is current.
    #[must_use]
    pub fn versions(&self) -> Versions<V> {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Makes the version of a table current.
    fn set(&self, table: usize, version: Arc<Version<V>>) {
        let mut now = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = (**now).clone();
        all[table] = version;
        *now = Arc::new(all);
    }
}

/// Looks at the files of tables, and makes new versions current, on a thread of its own. Nobody waits for it:
/// it may be in the middle of a large file at the end.
pub fn follow<V: Values>(mut followed: Vec<Followed<V>>, now: Now<V>, is_over: Arc<AtomicBool>) {
    std::thread::spawn(move || {
        while !is_over.load(Ordering::Acquire) {
            std::thread::sleep(LOOK);
            for (at, table) in followed.iter_mut().enumerate() {
                if let Some(version) = table.next() {
                    now.set(at, version);
                }
            }
        }
    });
}
