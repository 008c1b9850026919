//! The choice of a VRF in a file with the routes of several VRFs.
//!
//! A table holds the routes of one VRF. If none was chosen, only one VRF may have routes: equal prefixes of
//! two VRFs are two routes, and one must not replace the other.

use super::error::ReadError;

/// The VRF of routes that name none.
pub(super) const DEFAULT: &str = "default";

/// The VRFs of a file in the order of appearance, and the chosen one.
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

    /// Adds a VRF that the file names, with or without routes.
    pub(super) fn meet(&mut self, name: &str) -> usize {
        // There are at most hundreds of VRFs, and neighbouring routes mostly share one.
        self.met.iter().rposition(|vrf| vrf.name == name).unwrap_or_else(|| {
            self.met.push(Vrf { name: name.to_owned(), has_routes: false });
            self.met.len() - 1
        })
    }

    /// Whether a route of this VRF is taken: of the chosen VRF, or of the first with routes.
    pub(super) fn takes(&mut self, name: &str) -> bool {
        let at = self.meet(name);
        self.met[at].has_routes = true;
        match self.wanted {
            Some(wanted) => name == wanted,
            None => self.met.iter().position(|vrf| vrf.has_routes) == Some(at),
        }
    }

    /// Ends a file. Fails if the chosen VRF is not in it, or if several VRFs have routes and none was chosen.
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
