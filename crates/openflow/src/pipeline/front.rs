//! [`Front`]: the façade's classifier for wildcards of a table.
//!
//! A table with many masks needs a look into a hash table for each. The classifier answers for all masks that
//! its tuples can hold at once, in batches, on the CPU or on a GPU. It is built from the flows of small
//! classes once they have not changed for a while, or have changed for long. The hash tables have all flows,
//! so it stays in use while flows change, until the next one is built:
//!
//! ```text
//! a flow comes, or changes   the hash table of its mask is asked, too; of equal priorities its flow counts
//! a flow goes                where the classifier answers with it, all hash tables are asked instead
//! ```
//!
//! ```text
//! OpenFlowTuple      36 bytes    links, tags, IPv4, ports: words 0 to 4 of a key
//! OpenFlow13Tuple    64 bytes    all fields but ipv6_nd_target, which no match has a mask over
//! ```
//!
//! `ipv6_nd_target` has no place: a message of neighbour discovery has 509 bits of the other fields, and none
//! of them excludes the target's 128. With its types as one bit these are 606 bits, and the tuple has 512. A
//! wider tuple would cost every frame a second cache line.
//!
//! In tables behind the first one, packets have the metadata and the tunnel that earlier flows gave them,
//! which tuples do not hold. Flows that look at these stay in the hash tables. A packet that a meter has
//! marked is looked up alone there. On a Zen 5 that takes 0.7 to 1.5 µs for any number of masks. The hash
//! tables took 0.5 µs with 4 masks, 1.4 with 8, 3.2 with 16, 11 with 64 and 104 with 512.
//!
//! The wide tuple costs more to make, to hash and to bring to a GPU. So it is used only where some masks need
//! it.

use std::sync::Arc;

use rustc_hash::FxHashSet;
use wirespeed::engine::RuleTuple;
use wirespeed::{Classifier, Device, Fleet, RuleReader};
use wirespeed_classify::{OpenFlow13Tuple, OpenFlowTuple, Pattern, Rule, Tuple};

use super::flow::Flow;
use super::hit::Hit;
use super::hot::Hot;
use super::row::{Row, Short};
use crate::wire::number::port;
use crate::wire::{Field, Key};

/// The most ports, and so the highest number of a port beside LOCAL, whose lower half is higher: the router
/// numbers them with 16 bits, and one is for packet-out.
pub(crate) const MOST_PORTS: u16 = 0xff00;
const _: () = assert!((MOST_PORTS as u32) < port::LOCAL & 0xffff);

/// A tuple that is made of a key: its fields, each in a place of the tuple.
pub(crate) trait OfKey: RuleTuple {
    /// The bits of keys that tuples hold. Word 0 has the lower half of the port.
    const HELD: Key;

    /// A row that has all that a tuple holds.
    type Row: Row;

    /// The tuple of a key, or of a mask over keys.
    fn of_key<R: Row>(key: &R) -> Self;

    /// A mask of flows of a table as a mask of tuples, if tuples hold all that it looks at.
    fn mask(table: u8, mask: &Key) -> Option<Self> {
        let mut held = plain(table, mask);
        let has_port = held.of(Field::InPort) != 0;
        // The lower half tells ports of frames apart.
        held.0[0] &= 0x0000_ffff_ffff_ffff;
        let is_whole_port = !has_port || mask.of(Field::InPort) == Field::InPort.all();
        (Self::HELD.covers(&held) && is_whole_port).then(|| Self::of_key(&held))
    }
}

/// A mask without fields that are the same for all packets of a table: [`may_match`] looks at these.
fn plain(table: u8, mask: &Key) -> Key {
    let unread = [Field::InPhyPort, Field::Metadata, Field::TunnelId];
    let same = if table == 0 { &unread[..] } else { &unread[..1] };
    same.iter().fold(*mask, |mask, &field| mask.with(field, 0))
}

/// The lower 32 bits of a number without so many of its lowest ones.
#[inline]
#[allow(clippy::cast_possible_truncation)] // 32 bits of it
const fn half(number: u64, shift: u32) -> u32 {
    (number >> shift) as u32
}

impl OfKey for OpenFlowTuple {
    const HELD: Key = {
        let mut held = Key([0; crate::wire::WORDS]);
        held.0[0] = 0x0000_ffff_ffff_1fff;
        held.0[1] = !3;
        held.0[2] = 0xffff_ffff_ffff_0700;
        held.0[3] = u64::MAX;
        held.0[4] = 0xffff_ffff_0000_0000;
        held
    };

    type Row = Short;

    #[inline]
    fn of_key<R: Row>(key: &R) -> Self {
        let [ports, dst, src, addresses, transport] = [0, 1, 2, 3, 4].map(|at| key.word(at));
        let port = half(ports, 32) & 0xffff;
        let vlan = half(ports, 0) & 0xffff;
        Self::from_words(&[
            port << 16 | half(src, 48) & 0xffff,
            half(src, 16),
            half(dst, 32),
            half(dst, 16) << 16 | vlan,
            (half(src, 8) & 0xff) << 24 | half(ports, 16) & 0xffff,
            (half(dst, 0) & 0xfc) << 24 | (half(dst, 8) & 0xff) << 16,
            half(addresses, 32),
            half(addresses, 0),
            half(transport, 32),
        ])
    }
}

impl OfKey for OpenFlow13Tuple {
    const HELD: Key = {
        let (mut held, mut at) = (Key([0; crate::wire::WORDS]), 0);
        while at < Field::ALL.len() {
            let field = Field::ALL[at];
            if !matches!(field, Field::Ipv6NdTarget | Field::Metadata | Field::TunnelId | Field::InPhyPort) {
                held.set(field, field.all());
            }
            at += 1;
        }
        held.0[0] &= 0x0000_ffff_ffff_ffff;
        held
    };

    type Row = Key;

    #[inline]
    fn of_key<R: Row>(key: &R) -> Self {
        // A table whose rows are short has no flow that looks at the other words.
        let word = |at: u8| if usize::from(at) < R::WORDS { key.word(at) } else { 0 };
        let [ports, dst, src, addresses, transport] = [0, 1, 2, 3, 4].map(word);
        let [from, from_low, to, to_low] = [10, 11, 12, 13].map(word);
        let (label, extensions, sender, target) = (word(8), word(9), word(16), word(17));
        // An address of ARP's target beside that of its sender, or one of neighbour discovery alone: only the
        // latter's frames and matches have an IP protocol.
        let (target, link) = if dst & 0xff00 == 0 { (target, sender) } else { (0, sender | target) };
        let of_mpls = half(word(7), 0) << 12 | (half(src, 1) & 7) << 9 | (half(src, 0) & 1) << 8;
        let kind_and_code = (half(transport, 16) & 0xff) << 24 | (half(transport, 0) & 0xff) << 16;
        Self::from_words(&[
            half(ports, 32) << 16 | half(src, 48) & 0xffff,
            half(src, 16),
            half(dst, 32),
            half(dst, 16) << 16 | (half(src, 8) & 7) << 13 | half(ports, 0) & 0x1fff,
            half(ports, 16) << 16 | (half(dst, 0) & 0xff) << 8 | half(dst, 8) & 0xff,
            half(transport, 32) | kind_and_code | half(link, 32) & 0xffff,
            half(label, 32) << 12 | half(extensions, 0) & 0x1ff | half(label, 0) << 8 | of_mpls,
            half(addresses, 32) | half(from, 32),
            half(addresses, 0) | half(from, 0),
            half(from_low, 32),
            half(from_low, 0),
            half(to, 32) | half(target, 16),
            half(to, 0) | half(target, 0) << 16,
            half(to_low, 32),
            half(to_low, 0),
            half(link, 0),
        ])
    }
}

/// The devices that classifiers look up on. Classifiers share the GPUs that the first one of their kind of
/// tuples opened.
#[derive(Debug)]
pub(crate) struct Devices {
    device: Device,
    /// The GPUs for all, if they were open before.
    given: Option<Fleet>,
    narrow: Option<Fleet>,
    wide: Option<Fleet>,
}

impl Devices {
    pub(crate) const fn new(device: Device, given: Option<Fleet>) -> Self {
        Self { device, given, narrow: None, wide: None }
    }
}

/// A classifier of a kind of tuples.
#[derive(Debug)]
pub(crate) struct Of<T: OfKey> {
    reader: RuleReader<T>,
    /// Keeps the table.
    _classifier: Classifier<T>,
}

impl<T: OfKey> Of<T> {
    /// Builds it on a device. GPUs that were opened before are left for others once they fail.
    fn new(
        table: u8,
        flows: &[Arc<Flow>],
        device: Device,
        given: Option<&Fleet>,
        opened: &mut Option<Fleet>,
    ) -> Result<Self, wirespeed::Error> {
        let build = |fleet: Option<&Fleet>| {
            let rules = flows.iter().map(|flow| {
                let matched = flow.matched();
                let mask = T::mask(table, &matched.mask).unwrap_or_default();
                Rule::new(Pattern::new(T::of_key(&matched.value), mask), u32::from(flow.priority), 1)
            });
            let builder = Classifier::<T>::builder().rules(rules).device(device);
            match fleet {
                Some(fleet) => builder.fleet(fleet.clone()).build(),
                None => builder.build(),
            }
        };
        let works = |built: &Result<Classifier<T>, _>| {
            built.as_ref().is_ok_and(|classifier| classifier.device_note().is_none())
        };
        let known = given.or(opened.as_ref());
        let mut built = build(known);
        if known.is_some() && given.is_none() && !works(&built) {
            built = build(None);
        }
        *opened = if works(&built) { built.as_ref().ok().and_then(Classifier::fleet).cloned() } else { None };
        let classifier = built?;
        Ok(Self { reader: classifier.reader(), _classifier: classifier })
    }

    pub(crate) const fn reader(&self) -> &RuleReader<T> {
        &self.reader
    }
}

/// The classifier of a front, of the kind of tuples that its flows need.
#[derive(Debug)]
pub(crate) enum Rules {
    Narrow(Of<OpenFlowTuple>),
    Wide(Of<OpenFlow13Tuple>),
}

impl Rules {
    /// Keys of a batch, and where it is looked up best.
    pub(crate) fn suited(&self) -> Option<wirespeed::gpu::costs::Suited> {
        match self {
            Self::Narrow(of) => of.reader.batches().suited(),
            Self::Wide(of) => of.reader.batches().suited(),
        }
    }
}

/// A classifier for flows of some masks.
#[derive(Debug)]
pub(crate) struct Front {
    table: u8,
    masks: FxHashSet<Key>,
    /// The flows by the numbers of their rules, from 1 on.
    flows: Vec<(Hot, Option<Arc<Flow>>)>,
    /// The highest priority of a flow.
    best: u16,
    rules: Rules,
}

/// The changes of flows since those of a classifier were gathered.
#[derive(Clone, Debug, Default)]
pub(crate) struct Since {
    /// The masks of flows that came or changed.
    came: FxHashSet<Key>,
    /// The masks of flows that went.
    lost: FxHashSet<Key>,
}

impl Since {
    /// Notes that a flow went, or else that it came or changed.
    pub(crate) fn note(&mut self, mask: &Key, is_lost: bool) {
        let masks = if is_lost { &mut self.lost } else { &mut self.came };
        masks.insert(*mask);
    }
}

/// A classifier in use.
#[derive(Clone, Debug)]
pub(crate) struct Used {
    pub(crate) front: Arc<Front>,
    /// Changes of the masks that it has.
    since: Since,
}

impl Used {
    pub(crate) fn new(front: Arc<Front>, mut since: Since) -> Self {
        since.came.retain(|mask| front.covers(mask));
        since.lost.retain(|mask| front.covers(mask));
        Self { front, since }
    }

    /// Notes a change of a flow, and tells whether its mask is one of those that it has.
    pub(crate) fn note(&mut self, mask: &Key, is_lost: bool) -> bool {
        let covers = self.front.covers(mask);
        if covers {
            self.since.note(mask, is_lost);
        }
        covers
    }

    /// Whether no hash table has to be asked for flows of this mask, unless the classifier answers with a
    /// flow that is gone.
    pub(crate) fn covers(&self, mask: &Key) -> bool {
        self.front.covers(mask) && !self.since.came.contains(mask)
    }

    /// Whether it may answer with flows that are gone.
    pub(crate) fn has_lost(&self) -> bool {
        !self.since.lost.is_empty()
    }

    /// The changes of the masks that it has.
    pub(crate) const fn since(&self) -> &Since {
        &self.since
    }

    /// Whether it has all flows of these masks, and no others.
    pub(crate) fn is_whole(&self, masks: &FxHashSet<Key>) -> bool {
        self.front.masks == *masks && self.since.came.is_empty() && !self.has_lost()
    }
}

impl Front {
    /// Builds the classifier of a table for flows of some masks, of the wide tuple if they need it.
    pub(crate) fn build(
        table: u8,
        (masks, flows): (FxHashSet<Key>, Vec<Arc<Flow>>),
        is_wide: bool,
        devices: &mut Devices,
    ) -> Option<Self> {
        let Devices { device, given, narrow, wide } = devices;
        let given = given.as_ref();
        let rules = match is_wide {
            false => Of::new(table, &flows, *device, given, narrow).map(Rules::Narrow),
            true => Of::new(table, &flows, *device, given, wide).map(Rules::Wide),
        };
        match rules {
            Ok(rules) => {
                let best = flows.iter().map(|flow| flow.priority).max().unwrap_or(0);
                let flows = flows.into_iter().map(|flow| (flow.hot.clone(), Some(flow))).collect();
                Some(Self { table, masks, flows, best, rules })
            }
            Err(error) => {
                tracing::warn!(%error, "no classifier for wildcards; hash tables answer");
                None
            }
        }
    }

    /// Whether flows of this mask are in the classifier.
    pub(crate) fn covers(&self, mask: &Key) -> bool {
        self.masks.contains(mask)
    }

    /// The highest priority of a flow that it knows.
    pub(crate) const fn best(&self) -> u16 {
        self.best
    }

    pub(crate) const fn rules(&self) -> &Rules {
        &self.rules
    }

    /// The flow of a rule's number, 0 for none.
    #[inline]
    pub(crate) fn flow(&self, number: u32) -> Option<Hit<'_>> {
        self.flows.get((number as usize).wrapping_sub(1)).map(|(hot, flow)| Hit::new(hot, flow))
    }

    /// The best of its flows for a key.
    pub(crate) fn lookup(&self, key: &Key) -> Option<Hit<'_>> {
        let number = match &self.rules {
            Rules::Narrow(of) => of.reader.lookup(&OpenFlowTuple::of_key(key)),
            Rules::Wide(of) => of.reader.lookup(&OpenFlow13Tuple::of_key(key)),
        };
        self.flow(number?.get())
    }

    /// The number of the table.
    pub(crate) const fn table(&self) -> u8 {
        self.table
    }
}

#[cfg(test)]
#[allow(clippy::cast_possible_truncation)] // random numbers that are small
mod tests {
    use wirespeed_rng::Rng;

    use super::*;
    use crate::pipeline::parse::came_in;
    use crate::wire::Match;

    /// Each bit of a key that is held is a bit of the tuple.
    fn holds<T: OfKey>(mut see: impl FnMut(usize, u32, T)) {
        assert_eq!(T::USED.and(&T::of_key(&T::HELD)), T::of_key(&T::HELD));
        for (word, &bits) in T::HELD.0.iter().enumerate() {
            for bit in (0..64).filter(|bit| bits >> bit & 1 == 1) {
                let mut key = Key::default();
                key.0[word] = 1 << bit;
                let tuple = T::of_key(&key);
                assert_eq!(tuple.ones(), 1, "bit {bit} of word {word}");
                see(word, bit, tuple);
            }
        }
    }

    #[test]
    fn narrow_tuples_hold_their_fields() {
        let mut seen = OpenFlowTuple::default();
        holds::<OpenFlowTuple>(|word, bit, tuple| {
            assert_eq!(tuple.and(&seen).ones(), 0, "bit {bit} of word {word}");
            seen = seen.or(&tuple);
        });
    }

    /// The types that matches fix, and the fields that frames of these may have.
    type Kind = (Vec<(Field, u128)>, Vec<Field>);

    /// Each kind of frames.
    fn kinds() -> Vec<Kind> {
        use Field::{
            ArpOp, ArpSha, ArpSpa, ArpTha, ArpTpa, EthDst, EthSrc, EthType, Icmpv4Code, Icmpv4Type,
            Icmpv6Code, Icmpv6Type, InPort, IpDscp, IpEcn, IpProto, Ipv4Dst, Ipv4Src, Ipv6Dst, Ipv6Exthdr,
            Ipv6Flabel, Ipv6NdSll, Ipv6NdTll, Ipv6Src, MplsBos, MplsLabel, MplsTc, PbbIsid, SctpDst, SctpSrc,
            TcpDst, TcpSrc, UdpDst, UdpSrc, VlanPcp, VlanVid,
        };
        let v4 = [EthType, IpDscp, IpEcn, IpProto, Ipv4Src, Ipv4Dst];
        let v6 = [EthType, IpDscp, IpEcn, IpProto, Ipv6Src, Ipv6Dst, Ipv6Flabel, Ipv6Exthdr];
        let of = |fixed: &[(Field, u128)], fields: &[Field]| {
            let link = [InPort, EthDst, EthSrc, VlanVid, VlanPcp];
            (fixed.to_vec(), [&link[..], fields].concat())
        };
        let ip = |ether: u128, proto: u128, base: &[Field], fields: &[Field]| {
            of(&[(EthType, ether), (IpProto, proto)], &[base, fields].concat())
        };
        let nd = |kind: u128, field: Field| {
            let fixed = [(EthType, 0x86dd), (IpProto, 58), (Icmpv6Type, kind)];
            of(&fixed, &[&v6[..], &[Icmpv6Type, Icmpv6Code, field]].concat())
        };
        vec![
            of(&[(EthType, 0x9999)], &[EthType]),
            of(&[(EthType, 0x0806)], &[EthType, ArpOp, ArpSpa, ArpTpa, ArpSha, ArpTha]),
            of(&[(EthType, 0x8847)], &[EthType, MplsLabel, MplsTc, MplsBos]),
            of(&[(EthType, 0x88e7)], &[EthType, PbbIsid]),
            ip(0x0800, 6, &v4, &[TcpSrc, TcpDst]),
            ip(0x0800, 17, &v4, &[UdpSrc, UdpDst]),
            ip(0x0800, 1, &v4, &[Icmpv4Type, Icmpv4Code]),
            ip(0x0800, 47, &v4, &[]),
            ip(0x86dd, 6, &v6, &[TcpSrc, TcpDst]),
            ip(0x86dd, 132, &v6, &[SctpSrc, SctpDst]),
            ip(0x86dd, 58, &v6, &[Icmpv6Type, Icmpv6Code]),
            nd(135, Ipv6NdSll),
            nd(136, Ipv6NdTll),
        ]
    }

    /// Numbers of few values, so that keys and matches meet.
    fn number(rng: &mut Rng, field: Field) -> u128 {
        let pool = [0, field.all(), 1, field.all() / 3, 1 << (field.bits() / 2)];
        pool[rng.below(5) as usize] & field.all()
    }

    #[test]
    fn wide_tuples_match_as_their_keys_do() {
        let (mut rng, kinds) = (Rng::new(5), kinds());
        let (mut matches, mut misses) = (0, 0);
        for round in 0..60_000_usize {
            let (fixed, fields) = &kinds[round % kinds.len()];
            let mut key = came_in(1 + rng.below(3) as u32);
            for &field in fields.iter().filter(|&&field| field != Field::InPort) {
                key.set(field, number(&mut rng, field));
            }
            fixed.iter().for_each(|&(field, wanted)| key.set(field, wanted));
            // A match of this kind or of another one, or of a part of the fields that fix it.
            let of = if rng.chance(0.7) { round } else { rng.below(kinds.len() as u64) as usize };
            let (fixed, fields) = &kinds[of % kinds.len()];
            let mut wanted = Match::all();
            fixed.iter().for_each(|&(field, number)| wanted = wanted.with(field, number));
            for &field in fields.iter().filter(|&&field| !wanted.has(field)).collect::<Vec<_>>() {
                if !rng.chance(0.3) {
                    continue;
                }
                let number = if rng.chance(0.7) { key.of(field) } else { number(&mut rng, field) };
                let mask = match field.is_maskable() {
                    true => field.all() << rng.below(field.bits().into()) & field.all(),
                    false => field.all(),
                };
                wanted = wanted.with_masked(field, number & mask, mask);
            }
            let mask = OpenFlow13Tuple::mask(0, &wanted.mask).expect("all of these fields are held");
            let value = OpenFlow13Tuple::of_key(&wanted.value);
            let is_match = wanted.matches(&key);
            assert_eq!(value.and(&mask), value, "{wanted:?}");
            assert_eq!(OpenFlow13Tuple::of_key(&key).matches(&value, &mask), is_match, "{wanted:?} {key:?}");
            *(if is_match { &mut matches } else { &mut misses }) += 1;
        }
        assert!(matches > 5_000 && misses > 5_000, "{matches} match, {misses} do not");
    }

    #[test]
    fn wide_tuples_hold_each_bit() {
        let mut bits = 0;
        holds::<OpenFlow13Tuple>(|_, _, _| bits += 1);
        assert!(bits > 512, "fields share places: {bits} bits");
        let target = Match::all().with(Field::Ipv6NdTarget, 1);
        assert_eq!(OpenFlow13Tuple::mask(0, &target.mask), None, "by the hash tables alone");
    }

    #[test]
    fn the_target_of_neighbour_discovery_has_no_place() {
        let has_link =
            |fields: &[Field]| fields.contains(&Field::Ipv6NdSll) || fields.contains(&Field::Ipv6NdTll);
        for (fixed, fields) in kinds().into_iter().filter(|(_, fields)| has_link(fields)) {
            let mut types = Key::default();
            fixed.iter().for_each(|&(field, _)| types.set(field, field.all()));
            let mut all = types;
            fields.iter().for_each(|&field| all.set(field, field.all()));
            let ones = |key: &Key| OpenFlow13Tuple::of_key(&key.and(&OpenFlow13Tuple::HELD)).ones();
            assert_eq!((ones(&all), ones(&types), Field::Ipv6NdTarget.bits()), (509, 32, 128));
            assert!(ones(&all) - ones(&types) + 1 + Field::Ipv6NdTarget.bits() > 512);
        }
    }

    #[test]
    fn short_rows_are_as_good_where_no_flow_looks_further() {
        let mut rng = Rng::new(6);
        for _ in 0..2000 {
            let mut frame: Vec<u8> = (0..80).map(|_| rng.below(256) as u8).collect();
            let ether = [[8, 0], [0x86, 0xdd], [8, 6], [0x88, 0x47]][rng.below(4) as usize];
            frame[12..14].copy_from_slice(&ether);
            frame[14] = if ether == [8, 0] { 0x45 } else { frame[14] & 15 | 0x60 };
            let (short, key) = (Short::read(&frame, 3), <Key as Row>::read(&frame, 3));
            let mut first = Key::default();
            first.0[..8].fill(u64::MAX);
            let mask = OpenFlow13Tuple::of_key(&OpenFlow13Tuple::HELD.and(&first));
            let value = OpenFlow13Tuple::of_key(&key.and(&first));
            assert!(OpenFlow13Tuple::of_key(&short).matches(&value, &mask), "{frame:x?}");
        }
    }
}
