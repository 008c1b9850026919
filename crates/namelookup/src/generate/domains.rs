//! [`Domains`]: generated domains in the shape of real ones.
//!
//! Names are drawn by shares that were measured on 3.6 million real domains: top-level domains, numbers of
//! labels, lengths of labels by depth, pairs of characters. Shared parents matter most for tables of names:
//! of the domains with hosts beneath them 83 % have one host, and the largest has 20,000. So a name of three
//! labels or more
//!
//! - in 16 % of cases gets a parent of its own;
//! - otherwise gets a parent from a pool: in 10 % of cases a new one, which joins the pool, otherwise one in
//!   proportion to its names (Simon, "On a class of skew distribution functions", 1955). This gives the
//!   measured 83 % and the long tail. A pool starts with some parents; without them the first one would get a
//!   third of all names.
//!
//! A fifth of the new parents are names of the table themselves. Half of the new parents under a country are
//! `com`, `co` and the like.

use wirespeed_fib::synth::rng::Rng;

use super::label::{Labels, Shares};
use super::shape::{DEEP_LENGTHS, DOMAIN_LENGTHS, HOST_LENGTHS, HOSTS, LABELS, REGISTRIES, TOP_LEVEL};
use crate::name::{Name, SLASH};

/// The most labels of a generated name.
const MOST_LABELS: usize = LABELS.len() + 1;

/// Share of names below a parent of their own.
const OWN_PARENT: f64 = 0.161;
/// Share of the others whose parent is new to the pool.
const NEW_PARENT: f64 = 0.097;
/// Share of new parents that are names themselves.
const NAMED_PARENT: f64 = 0.21;
/// Share of new parents under a country that are a registry's.
const REGISTRY: f64 = 0.35;
/// Parents that the pool of each depth starts with.
const FIRST_PARENTS: usize = 64;

/// An endless stream of generated names, as reversed domains. Some names repeat.
///
/// ```
/// use wirespeed_namelookup::generate::Domains;
///
/// let mut domains = Domains::new(1);
/// assert!(domains.draw().components().count() >= 2);
/// let mut again = Domains::new(1);
/// again.draw();
/// assert_eq!(domains.draw(), again.draw());
/// ```
#[derive(Clone, Debug)]
pub struct Domains {
    rng: Rng,
    labels: Labels,
    depths: Shares,
    top_level: Shares,
    registries: Shares,
    hosts: Shares,
    lengths: [Shares; 3],
    /// Parents by their number of labels, from 2 on.
    pools: Vec<Pool>,
    name: Vec<u8>,
}

/// Parents of one depth.
#[derive(Clone, Debug, Default)]
struct Pool {
    text: Vec<u8>,
    /// The end of each parent.
    ends: Vec<usize>,
    /// The parent of each name so far.
    drawn: Vec<u32>,
    /// The last name of this depth.
    last: Vec<u8>,
}

impl Pool {
    fn parent(&self, at: u32) -> &[u8] {
        let at = at as usize;
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.text[start..self.ends[at]]
    }

    /// Adds a parent, and counts a name for it.
    fn add(&mut self, parent: &[u8]) {
        if let Ok(at) = u32::try_from(self.ends.len()) {
            self.text.extend_from_slice(parent);
            self.ends.push(self.text.len());
            self.drawn.push(at);
        }
    }
}

impl Domains {
    /// Makes the stream of a seed.
    pub fn new(seed: u64) -> Self {
        // Other hosts share the rest of the 100,000.
        let named: u32 = HOSTS.iter().map(|&(_, share)| share).sum();
        let hosts = HOSTS.iter().map(|&(_, share)| share).chain([100_000 - named]);
        let mut domains = Self {
            rng: Rng::stream(seed, 31),
            labels: Labels::new(),
            depths: Shares::new(LABELS),
            top_level: Shares::new(TOP_LEVEL.map(|(_, share)| share)),
            registries: Shares::new(REGISTRIES.map(|(_, share)| share)),
            hosts: Shares::new(hosts),
            lengths: [DOMAIN_LENGTHS, HOST_LENGTHS, DEEP_LENGTHS].map(Shares::new),
            pools: vec![Pool::default(); MOST_LABELS],
            name: Vec::new(),
        };
        for depth in 2..MOST_LABELS {
            for _ in 0..FIRST_PARENTS {
                domains.new_parent(depth);
                domains.join_pool(depth);
            }
        }
        domains
    }

    /// The next name.
    pub fn draw(&mut self) -> &Name {
        let labels = 2 + self.depths.draw(&mut self.rng);
        self.draw_parent(labels - 1);
        self.add_label(labels);
        let last = &mut self.pools[labels - 1].last;
        last.clear();
        last.extend_from_slice(&self.name);
        Name::new_unchecked(&self.name)
    }

    /// Makes `name` a parent of this number of labels.
    fn draw_parent(&mut self, labels: usize) {
        if labels == 1 {
            self.name.clear();
            self.name.push(SLASH);
            self.name.extend_from_slice(TOP_LEVEL[self.top_level.draw(&mut self.rng)].0.as_bytes());
            return;
        }
        if self.rng.chance(OWN_PARENT) {
            self.draw_parent(labels - 1);
            self.add_label(labels);
        } else if self.rng.chance(NEW_PARENT) {
            self.new_parent(labels);
            self.join_pool(labels);
        } else {
            let pool = &mut self.pools[labels - 1];
            let at = pool.drawn[self.rng.index(pool.drawn.len())];
            pool.drawn.push(at);
            self.name.clear();
            self.name.extend_from_slice(pool.parent(at));
        }
    }

    fn join_pool(&mut self, labels: usize) {
        self.pools[labels - 1].add(&self.name);
    }

    /// Makes `name` a new parent of this number of labels.
    fn new_parent(&mut self, labels: usize) {
        let named = self.rng.chance(NAMED_PARENT);
        let last = &self.pools[labels - 1].last;
        if named && !last.is_empty() {
            self.name.clear();
            self.name.extend_from_slice(last);
            return;
        }
        self.draw_parent(labels - 1);
        let is_country = labels == 2 && self.name.len() == 3;
        if is_country && self.rng.chance(REGISTRY) {
            self.name.push(SLASH);
            self.name.extend_from_slice(REGISTRIES[self.registries.draw(&mut self.rng)].0.as_bytes());
        } else {
            self.add_label(labels);
        }
    }

    /// Adds the label of this number, counted from 1.
    fn add_label(&mut self, number: usize) {
        self.name.push(SLASH);
        if number == 3
            && let Some((host, _)) = HOSTS.get(self.hosts.draw(&mut self.rng))
        {
            self.name.extend_from_slice(host.as_bytes());
            return;
        }
        let lengths = &self.lengths[(number - 2).min(2)];
        let len = 1 + lengths.draw(&mut self.rng);
        self.labels.append(&mut self.rng, len, &mut self.name);
    }
}
