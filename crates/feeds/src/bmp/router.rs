//! [`Router`]: what one router tells of its peers.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use super::Options;
use super::fault::Fault;
use super::message::{Message, Peer, View};
use super::nlri::Identifiers;
use super::open::AddPath;
use super::peers::PeerStatus;
use super::rib::{Fate, Rib, SourceId};
use super::update::{ByFamily, Update};
use crate::model::{Hop, PathKind};
use crate::quiet::Quiet;
use crate::state::Paths;
use crate::status::{Monitored, Skip, Status};

/// Views of peers that a router may have at most.
const SOURCES: usize = 16_384;

/// A router, known by its address and the name that it gives itself.
#[derive(Debug)]
pub(crate) struct Router {
    pub(crate) address: IpAddr,
    pub(crate) name: String,
    /// When the connection was lost; `None` if the routes are whole since, or if it never was.
    pub(crate) lost_at: Option<SystemTime>,
    /// Says when the routes are whole; `None` if they were.
    quiet: Option<Quiet>,
    /// The peers that are up: by address, and whether it is the router's own choice.
    up: HashMap<(IpAddr, bool), AddPath>,
    /// The peers that are down, with the views of which no routes are held any more.
    down: BTreeMap<(IpAddr, bool), Vec<PeerStatus>>,
    ups: u64,
    downs: u64,
    sources: BTreeMap<(View, IpAddr), Source>,
}

/// A view of a peer.
#[derive(Debug)]
struct Source {
    id: SourceId,
    identifiers: ByFamily,
    status: PeerStatus,
}

/// What the messages of all routers fill.
#[derive(Debug)]
pub(crate) struct Tables {
    pub(crate) rib: Rib,
    pub(crate) paths: Paths,
}

impl Router {
    pub(crate) fn new(address: IpAddr, name: String) -> Self {
        Self {
            address,
            name,
            lost_at: None,
            quiet: None,
            up: HashMap::new(),
            down: BTreeMap::new(),
            ups: 0,
            downs: 0,
            sources: BTreeMap::new(),
        }
    }

    /// Starts anew with a connection.
    pub(crate) fn connected(&mut self, options: &Options, rib: &mut Rib) {
        self.up.clear();
        self.down.clear();
        self.quiet = Some(Quiet::new(options.quiet, Instant::now(), rib.came()));
        for source in self.sources.values_mut() {
            rib.begin(source.id);
            source.status.end_of_rib = false;
            source.identifiers = identifiers(AddPath::default());
        }
    }

    /// Notes that the connection is gone. The routes stay.
    pub(crate) fn lost(&mut self) {
        let now = SystemTime::now();
        self.lost_at.get_or_insert(now);
        self.quiet = None;
        for (peer, _) in std::mem::take(&mut self.up) {
            self.goes_down(peer, Vec::new());
        }
        for source in self.sources.values_mut().filter(|source| source.status.up) {
            (source.status.up, source.status.since) = (false, now);
        }
    }

    /// The state of the peers.
    pub(crate) fn peers(&self, rib: &Rib) -> impl Iterator<Item = PeerStatus> {
        self.sources
            .values()
            .map(|source| PeerStatus { routes: rib.routes_of(source.id), ..source.status.clone() })
            .chain(self.down.values().flatten().cloned())
    }

    /// Adds the peers.
    pub(crate) fn count(&self, monitored: &mut Monitored) {
        monitored.peers_up += self.up.len() as u64;
        monitored.peers_down += self.down.len() as u64;
        monitored.ups += self.ups;
        monitored.downs += self.downs;
    }

    /// Notes that a peer came up, or is up.
    fn comes_up(&mut self, peer: (IpAddr, bool), add_path: AddPath) {
        self.down.remove(&peer);
        if self.up.insert(peer, add_path).is_none() {
            self.ups += 1;
        }
    }

    /// Notes that a peer that was up is down, with the views that went with it.
    fn goes_down(&mut self, peer: (IpAddr, bool), views: Vec<PeerStatus>) {
        self.downs += 1;
        if self.down.len() < SOURCES {
            self.down.insert(peer, views);
        }
    }

    /// Removes what did not come again, if the routes are whole. True once.
    pub(crate) fn becomes_whole(&mut self, rib: &mut Rib) -> bool {
        let (came, prefixes) = (rib.came(), rib.prefixes() as u64);
        let is_whole = |quiet: &mut Quiet| quiet.is_whole(Instant::now(), came, prefixes);
        let is_whole = self.quiet.take_if(is_whole).is_some();
        if is_whole {
            self.sweep(rib);
        }
        is_whole
    }

    /// Removes what did not come again since the router connected.
    pub(crate) fn sweep(&mut self, rib: &mut Rib) {
        self.quiet = None;
        self.lost_at = None;
        let fate = |source: &Source| if source.status.up { Fate::Swept } else { Fate::Removed };
        rib.decide(&self.sources.values().map(|source| (source.id, fate(source))).collect());
        self.sources.retain(|_, source| source.status.up);
        self.activate(rib);
    }

    /// Takes a message. Fails if a peer's message can't be read, which is counted.
    pub(crate) fn take(
        &mut self,
        message: &Message<'_>,
        options: &Options,
        tables: &mut Tables,
        status: &mut Status,
    ) -> Result<(), Fault> {
        match *message {
            Message::PeerUp(peer, add_path) => self.peer_up(&peer, add_path, options, tables, status),
            Message::PeerDown(peer) => self.peer_down(&peer, options, tables, status),
            Message::Routes(peer, update) => return self.routes(&peer, update, options, tables, status),
            Message::Initiation { .. } | Message::Termination => {}
            Message::Other => status.skip(Skip::OtherKind),
        }
        Ok(())
    }

    fn peer_up(
        &mut self,
        peer: &Peer,
        add_path: AddPath,
        options: &Options,
        tables: &mut Tables,
        status: &mut Status,
    ) {
        if !is_wanted(peer, options, status) {
            return;
        }
        let is_loc_rib = peer.view == Some(View::LocRib);
        if self.up.len() >= SOURCES {
            status.skip(Skip::OverCap);
            return;
        }
        self.comes_up((peer.address, is_loc_rib), add_path);
        let of_peer = |&(view, address): &(View, IpAddr)| {
            address == peer.address && (view == View::LocRib) == is_loc_rib
        };
        let mut is_known = false;
        for (_, source) in self.sources.iter_mut().filter(|(key, _)| of_peer(key)) {
            // The session is new, so routes come again. Those that don't are swept when the router is quiet.
            if source.status.up {
                tables.rib.begin(source.id);
                let came = tables.rib.came();
                self.quiet.get_or_insert_with(|| Quiet::new(options.quiet, Instant::now(), came));
            }
            source.status.up = true;
            source.status.since = SystemTime::now();
            source.identifiers = identifiers(add_path);
            is_known = true;
        }
        if is_loc_rib && !is_known && options.view.is_none_or(|view| view == View::LocRib) {
            self.source(View::LocRib, peer, add_path, &mut tables.rib);
        }
        self.activate(&mut tables.rib);
    }

    fn peer_down(&mut self, peer: &Peer, options: &Options, tables: &mut Tables, status: &mut Status) {
        if !is_wanted(peer, options, status) {
            return;
        }
        let is_loc_rib = peer.view == Some(View::LocRib);
        let was_up = self.up.remove(&(peer.address, is_loc_rib)).is_some();
        let (mut fates, mut views) = (BTreeMap::new(), Vec::new());
        self.sources.retain(|&(view, address), source| {
            let goes = address == peer.address && (view == View::LocRib) == is_loc_rib;
            if goes {
                fates.insert(source.id, Fate::Removed);
                let since = SystemTime::now();
                views.push(PeerStatus { up: false, active: false, since, ..source.status.clone() });
            }
            !goes
        });
        if was_up {
            self.goes_down((peer.address, is_loc_rib), views);
        } else {
            status.skip(Skip::UnknownPeer);
        }
        tables.rib.decide(&fates);
        self.activate(&mut tables.rib);
    }

    fn routes(
        &mut self,
        peer: &Peer,
        update: &[u8],
        options: &Options,
        tables: &mut Tables,
        status: &mut Status,
    ) -> Result<(), Fault> {
        if !is_wanted(peer, options, status) {
            return Ok(());
        }
        // Only here: in a Peer Up the flags say nothing of the views that come.
        let view = peer.view.filter(|&view| options.view.is_none_or(|wanted| wanted == view));
        let Some(view) = view else {
            status.skip(Skip::NotWanted);
            return Ok(());
        };
        let is_loc_rib = view == View::LocRib;
        // GoBGP sends its Loc-RIB without a Peer Up.
        if is_loc_rib && !self.up.contains_key(&(peer.address, true)) {
            self.comes_up((peer.address, true), AddPath::default());
        }
        let Some(&add_path) = self.up.get(&(peer.address, is_loc_rib)) else {
            status.skip(Skip::UnknownPeer);
            return Ok(());
        };
        if !self.sources.contains_key(&(view, peer.address)) {
            if self.sources.len() >= SOURCES {
                status.skip(Skip::OverCap);
                return Ok(());
            }
            self.source(view, peer, add_path, &mut tables.rib);
            self.activate(&mut tables.rib);
        }
        let source = self.sources.get_mut(&(view, peer.address)).expect("it was there, or was made");
        source.status.up = true;
        let update = match Update::read(update, peer.two_byte_as, &mut source.identifiers) {
            Ok(Some(update)) => update,
            Ok(None) => {
                status.skip(Skip::OtherKind);
                return Ok(());
            }
            Err(fault) => {
                source.status.malformed += 1;
                status.skip(Skip::Malformed);
                return Err(fault);
            }
        };
        source.apply(&update, peer, tables, status);
        Ok(())
    }

    /// Makes a source.
    fn source(&mut self, view: View, peer: &Peer, add_path: AddPath, rib: &mut Rib) {
        let status = PeerStatus {
            router: self.address,
            router_name: self.name.clone(),
            address: peer.address,
            asn: peer.asn,
            view,
            up: true,
            since: SystemTime::now(),
            active: false,
            routes: 0,
            announced: 0,
            withdrawn: 0,
            malformed: 0,
            end_of_rib: false,
        };
        let id = rib.add_source(peer.address);
        self.sources.insert((view, peer.address), Source { id, identifiers: identifiers(add_path), status });
    }

    /// Makes the best view of each peer active: the router's choice, else each peer's routes after the
    /// policy, else those before it.
    fn activate(&mut self, rib: &mut Rib) {
        let has_loc_rib = self.sources.keys().any(|&(view, _)| view == View::LocRib);
        let with_policy: BTreeSet<IpAddr> = self
            .sources
            .keys()
            .filter(|&&(view, _)| view == View::PostPolicy)
            .map(|&(_, peer)| peer)
            .collect();
        let mut fates = BTreeMap::new();
        for (&(view, address), source) in &mut self.sources {
            let is_active = match view {
                View::LocRib => true,
                View::PostPolicy => !has_loc_rib,
                View::PrePolicy => !has_loc_rib && !with_policy.contains(&address),
            };
            if source.status.active != is_active {
                source.status.active = is_active;
                fates.insert(source.id, Fate::Active(is_active));
            }
        }
        rib.decide(&fates);
    }
}

impl Source {
    /// Applies the routes of an UPDATE.
    fn apply(&mut self, update: &Update, peer: &Peer, tables: &mut Tables, status: &mut Status) {
        let Tables { rib, paths } = tables;
        if update.has_others {
            status.skip(Skip::OtherFamily);
        }
        self.status.end_of_rib |= update.is_end_of_rib();
        for &route in &update.withdrawn {
            self.status.withdrawn += 1;
            if !rib.withdraw(self.id, route) {
                status.skip(Skip::NotThere);
            }
        }
        for (next_hop, routes) in &update.announced {
            // A path without an AS comes from the AS itself.
            let origin = if update.path.length == 0 { Some(peer.asn) } else { update.path.origin };
            let path =
                paths.intern(PathKind::Unicast, &[Hop::via(*next_hop)], origin.filter(|&asn| asn != 0));
            for &route in routes {
                self.status.announced += 1;
                let is_held = !paths.are_too_many()
                    && rib.announce(self.id, route, update.path.length, Arc::clone(&path));
                if !is_held {
                    status.skip(Skip::OverCap);
                }
            }
        }
    }
}

/// Whether the messages of a peer are to be read.
fn is_wanted(peer: &Peer, options: &Options, status: &mut Status) -> bool {
    let is_wanted = peer.distinguisher == 0 && options.peer.is_none_or(|wanted| wanted == peer.address);
    if !is_wanted {
        status.skip(Skip::NotWanted);
    }
    is_wanted
}

fn identifiers(add_path: AddPath) -> ByFamily {
    let of = |agreed| if agreed { Identifiers::Present } else { Identifiers::Unknown };
    ByFamily { v4: of(add_path.v4), v6: of(add_path.v6) }
}
