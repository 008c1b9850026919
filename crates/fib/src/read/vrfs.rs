//! Which VRF's routes to take from a file that holds those of several.
//!
//! One table is one VRF's. Where none was asked for there may be one alone that has routes: a prefix of one
//! VRF and the same prefix of another are two routes, and neither is in place of the other.

use super::error::ReadError;

/// The VRF of routes that name none.
pub(super) const DEFAULT: &str = "default";

/// The VRFs of a file, as they turn up, and the one that is taken.
#[derive(Debug)]
pub(super) struct Vrfs<'o> {
    wanted: Option<&'o str>,
    met: Vec<Vrf>,
}

#[derive(Debug)]
struct Vrf {
    name: String,
    has_routes: bool,
}

impl<'o> Vrfs<'o> {
    pub(super) fn new(wanted: Option<&'o str>) -> Self {
        Self { wanted, met: Vec::new() }
    }

    /// A VRF that the file names, be it with routes or without.
    pub(super) fn meet(&mut self, name: &str) -> usize {
        // There are hundreds of them at most, and neighbours share theirs.
        self.met.iter().rposition(|vrf| vrf.name == name).unwrap_or_else(|| {
            self.met.push(Vrf { name: name.to_owned(), has_routes: false });
            self.met.len() - 1
        })
    }

    /// Whether a route of this VRF is one to take: of the one asked for, or of the first that has any.
    pub(super) fn takes(&mut self, name: &str) -> bool {
        let at = self.meet(name);
        self.met[at].has_routes = true;
        match self.wanted {
            Some(wanted) => name == wanted,
            None => self.met.iter().position(|vrf| vrf.has_routes) == Some(at),
        }
    }

    /// All VRFs met: an error where the one asked for is not among them, or several have routes and none was
    /// asked for.
    pub(super) fn close(self, file: &str) -> Result<(), ReadError> {
        let with_routes = self.met.iter().filter(|vrf| vrf.has_routes).count();
        match self.wanted {
            Some(wanted) if !self.met.is_empty() && self.met.iter().all(|vrf| vrf.name != wanted) => {
                let (name, vrf) = (file.to_owned(), wanted.to_owned());
                Err(ReadError::NoSuchVrf { name, vrf, known: self.known() })
            }
            None if with_routes > 1 => {
                Err(ReadError::SeveralVrfs { name: file.to_owned(), known: self.known() })
            }
            _ => Ok(()),
        }
    }

    fn known(&self) -> String {
        const SHOWN: usize = 20;
        let mut known: Vec<_> = self.met.iter().take(SHOWN).map(|vrf| vrf.name.clone()).collect();
        if self.met.len() > SHOWN {
            known.push(format!("{} more", self.met.len() - SHOWN));
        }
        known.join(", ").escape_debug().to_string()
    }
}
