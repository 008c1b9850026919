//! [`Model`]: a consumer that keeps what changes build up.

use std::collections::BTreeMap;

use wirespeed_feeds::{Change, Route};

/// The routes by table and prefix, as text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Model {
    pub(crate) routes: BTreeMap<String, String>,
}

impl Model {
    /// Applies changes. Each must change something.
    pub(crate) fn apply(&mut self, changes: &[Change]) {
        for change in changes {
            match change {
                Change::Route(Route { table, prefix, path }) => {
                    assert!(path.is_usable(), "{change:?}");
                    assert_eq!(prefix.trunc(), *prefix);
                    let before = self.routes.insert(key(table.0, prefix), path.to_string());
                    assert_ne!(before, Some(path.to_string()), "told twice: {change:?}");
                }
                Change::RouteGone { table, prefix } => {
                    assert!(self.routes.remove(&key(table.0, prefix)).is_some(), "not there: {change:?}");
                }
                _ => {}
            }
        }
    }

    /// The path of a prefix of the main table.
    pub(crate) fn path(&self, prefix: &str) -> Option<&str> {
        self.routes.get(prefix).map(String::as_str)
    }
}

fn key(table: u32, prefix: &ipnet::IpNet) -> String {
    if table == 254 { prefix.to_string() } else { format!("{table} {prefix}") }
}
