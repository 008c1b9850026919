//! [`Sa`]: a security association: a tunnel in one direction, with its keys and its numbers.
//!
//! A nonce is the salt of the keys and an initialisation vector of 8 bytes. The vector is the sequence number
//! XOR a random number that each `Sa` draws when it is made, so no counter has to survive a restart. Within
//! one `Sa` no vector comes twice, because no number does. An `Sa` that takes the place of another one with
//! the same keys shares its numbers and its window, so no vector comes twice there either
//! ([`Database::replace`](crate::Database::replace)). If an association with the same keys is made again
//! after n packets, the chance that a vector repeats is about n in 2^64: 2^-32 after 2^32 packets. Where that
//! is too much, give new keys. [`SaConfig::sent`] continues the sequence numbers, so that the other end,
//! which has seen the old ones, takes the packets.

use std::fmt;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use crate::crypto::{Keys, Suite};
use crate::error::Error;
use crate::fault::Fault;
use crate::ip::{ESP, IPV4, IPV6, Ports, UDP};
use crate::mapping::Mapping;
use crate::narrow;
use crate::path::{LEAST_V4, LEAST_V6, Path};
use crate::policy::Direction;
use crate::selector::{FamilyRule, Selector};
use crate::window::{MOST_WINDOW, Window};

/// The life of an association: it carries packets, it was removed, or its time is over.
const LIVES: u8 = 0;
const IS_GONE: u8 = 1;
const IS_EXPIRED: u8 = 2;

/// Bytes of a packet's trailer: the length of the padding, and the next header.
pub(crate) const TRAILER: usize = 2;

/// The description of a security association that is to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SaConfig {
    /// The index that packets carry, 256 at the least.
    pub spi: u32,
    /// The tunnel's addresses, of one family.
    pub src: IpAddr,
    /// The tunnel's end, where packets are opened.
    pub dst: IpAddr,
    /// The number by which policies ask for it.
    pub reqid: u32,
    /// The direction of its packets. `None` serves both: then ESP packets to its end are taken as packets for
    /// this host, also where the end is another one.
    pub direction: Option<Direction>,
    /// The keys.
    pub keys: Keys,
    /// The packets of the replay window: 64 to [`MOST_WINDOW`], rounded up to a multiple of 64. 0 takes every
    /// packet, also twice.
    pub window: u32,
    /// Whether sequence numbers have 64 bits, half of them not sent.
    pub is_extended: bool,
    /// The ports, if packets are sent in UDP. They stay, unless [`nat_follow`](Self::nat_follow) is set: who
    /// knows the other end's new port, such as a key daemon, changes the association.
    pub ports: Option<Ports>,
    /// Whether packets go to where the other end's newest packet came from, if address translation changes
    /// its address or port. Without it such a change is told ([`Opened::is_moved`](crate::Opened::is_moved)),
    /// as Linux does. An attacker on the path can bring about a change, and then gets packets that he can't
    /// read.
    pub nat_follow: bool,
    /// The seconds after which a keepalive is sent if nothing else is (RFC 3948, 4): for an association in
    /// UDP whose begin is behind address translation. Linux and the RFC take 20.
    pub nat_keepalive: Option<u16>,
    /// The inner packets that it may carry; `None` for any.
    pub selector: Option<Selector>,
    /// The last sequence number that was sent before.
    pub sent: u64,
    /// The highest sequence number that came before.
    pub received: u64,
    /// The packets after which it ends.
    pub most_packets: Option<u64>,
    /// The bytes of inner packets after which it ends.
    pub most_bytes: Option<u64>,
    /// The seconds after which it ends, from when it is made.
    pub most_seconds: Option<u64>,
    /// The seconds after which it ends, from when it carried its first packet.
    pub most_seconds_of_use: Option<u64>,
    /// The largest outer packet that the path takes: at least what every path takes, 576 bytes of IPv4 or
    /// 1,280 of IPv6.
    pub path_mtu: u16,
}

impl SaConfig {
    /// An association with a window of 64 packets, 32-bit numbers from 1, no limit and a path of 1,500 bytes.
    #[must_use]
    pub const fn new(spi: u32, src: IpAddr, dst: IpAddr, keys: Keys) -> Self {
        Self {
            spi,
            src,
            dst,
            reqid: 0,
            direction: None,
            keys,
            window: 64,
            is_extended: false,
            ports: None,
            nat_follow: false,
            nat_keepalive: None,
            selector: None,
            sent: 0,
            received: 0,
            most_packets: None,
            most_bytes: None,
            most_seconds: None,
            most_seconds_of_use: None,
            path_mtu: 1500,
        }
    }
}

/// A security association: a tunnel in one direction. Threads share it.
pub struct Sa {
    pub(crate) spi: u32,
    pub(crate) src: IpAddr,
    pub(crate) dst: IpAddr,
    pub(crate) reqid: u32,
    pub(crate) direction: Option<Direction>,
    pub(crate) ports: Option<Ports>,
    pub(crate) is_extended: bool,
    pub(crate) suite: Suite,
    pub(crate) selector: Option<FamilyRule>,
    /// The description that it was made from, to be compared with others. Devices take the keys from here:
    /// the ciphers don't give theirs back.
    pub(crate) config: SaConfig,
    numbers: Arc<Numbers>,
    /// Whether it lives: one of [`LIVES`], [`IS_GONE`] and [`IS_EXPIRED`].
    life: AtomicU8,
    pub(crate) path: Arc<Path>,
    /// Where the other end is, for packets that come and for those that go: set once it is in a database.
    pub(crate) came: OnceLock<Arc<Mapping>>,
    pub(crate) goes: OnceLock<Arc<Mapping>>,
    most_packets: u64,
    most_bytes: u64,
}

/// The numbers of a security association. One that takes the place of another with the same keys shares them:
/// packets under way through the old one take numbers of the same row.
struct Numbers {
    /// A number that vectors are XORed with.
    random: u64,
    /// The last sequence number that was sent.
    sent: AtomicU64,
    window: Mutex<Window>,
    packets: AtomicU64,
    bytes: AtomicU64,
    /// The time when it was made, and that when it was seen to have carried a packet.
    began: Instant,
    used: OnceLock<Instant>,
}

impl Numbers {
    fn window(&self) -> MutexGuard<'_, Window> {
        self.window.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sa {
    /// Makes a security association. Fails if a key has a wrong length, or if what it is to be contradicts
    /// itself.
    pub fn new(config: &SaConfig) -> Result<Self, Error> {
        if config.spi < 256 {
            return Err(Error::Reserved(config.spi));
        }
        if config.src.is_ipv4() != config.dst.is_ipv4() {
            return Err(Error::Families { src: config.src, dst: config.dst });
        }
        if config.window > MOST_WINDOW {
            return Err(Error::Window { found: config.window, most: MOST_WINDOW });
        }
        let least = if config.dst.is_ipv4() { LEAST_V4 } else { LEAST_V6 };
        if config.path_mtu < least {
            return Err(Error::Path { found: config.path_mtu, least });
        }
        if (config.nat_keepalive.is_some() || config.nat_follow) && config.ports.is_none() {
            return Err(Error::NoPorts);
        }
        if config.is_extended && config.window == 0 {
            return Err(Error::NoWindow);
        }
        let selector = config.selector.map(|selector| selector.rule(0, 1)).transpose()?;
        let random = getrandom::u64().map_err(|error| Error::Random(error.to_string()))?;
        Ok(Self {
            spi: config.spi,
            src: config.src,
            dst: config.dst,
            reqid: config.reqid,
            direction: config.direction,
            ports: config.ports,
            is_extended: config.is_extended,
            suite: Suite::new(&config.keys)?,
            selector,
            config: config.clone(),
            numbers: Arc::new(Numbers {
                random,
                sent: AtomicU64::new(config.sent),
                window: Mutex::new(Window::new(config.window, config.is_extended, config.received)),
                packets: AtomicU64::new(0),
                bytes: AtomicU64::new(0),
                began: Instant::now(),
                used: OnceLock::new(),
            }),
            life: AtomicU8::new(LIVES),
            path: Arc::new(Path::new(config.path_mtu)),
            came: OnceLock::new(),
            goes: OnceLock::new(),
            most_packets: config.most_packets.unwrap_or(u64::MAX),
            most_bytes: config.most_bytes.unwrap_or(u64::MAX),
        })
    }

    /// Makes an association that takes the place of this one, with its keys and another description. It goes
    /// on with the numbers of this one, which don't go back: a vector that was used, or a packet that came,
    /// is not taken again. What was learned of the path stays, unless the description tells another size.
    pub(crate) fn changed(&self, config: &SaConfig) -> Result<Self, Error> {
        debug_assert!(self.config.keys == config.keys, "other keys begin anew");
        let mut changed = Self::new(config)?;
        self.numbers.sent.fetch_max(config.sent, Ordering::Relaxed);
        self.numbers.window().resize(config.window, config.is_extended, config.received);
        if config.path_mtu == self.config.path_mtu {
            changed.path = Arc::clone(&self.path);
        }
        Ok(Self { numbers: Arc::clone(&self.numbers), ..changed })
    }

    /// The index that packets carry.
    #[must_use]
    pub const fn spi(&self) -> u32 {
        self.spi
    }

    /// The tunnel's addresses: source and destination.
    #[must_use]
    pub const fn tunnel(&self) -> (IpAddr, IpAddr) {
        (self.src, self.dst)
    }

    /// The address that its packets go to, and their ports: those that it was made with, or those that it
    /// follows ([`SaConfig::nat_follow`]).
    #[inline]
    #[must_use]
    pub fn peer(&self) -> (IpAddr, Option<Ports>) {
        let Some(mapping) = self.goes.get().filter(|_| self.config.nat_follow) else {
            return (self.dst, self.ports);
        };
        let (dst, port) = mapping.seen();
        (dst, self.ports.map(|ports| Ports { dst: port, ..ports }))
    }

    /// The address and the port that the newest authentic packet of a tunnel in UDP came from; until one has
    /// come those that the association was made with. `None` where packets come in no UDP.
    #[must_use]
    pub fn seen(&self) -> Option<(IpAddr, u16)> {
        self.came.get().map(|mapping| mapping.seen())
    }

    /// The last sequence number that was sent: for [`SaConfig::sent`] after a restart.
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.numbers.sent.load(Ordering::Relaxed)
    }

    /// The highest sequence number that came: for [`SaConfig::received`] after a restart.
    #[must_use]
    pub fn received(&self) -> u64 {
        self.numbers.window().top()
    }

    /// The packets that it carried, and their bytes.
    #[must_use]
    pub fn carried(&self) -> (u64, u64) {
        (self.numbers.packets.load(Ordering::Relaxed), self.numbers.bytes.load(Ordering::Relaxed))
    }

    /// The largest outer packet that the path takes: [`SaConfig::path_mtu`], or less if a router told so
    /// ([`State::learn`](crate::State::learn)). What was told is forgotten after ten minutes, when a larger
    /// packet comes.
    #[inline]
    #[must_use]
    pub fn path_mtu(&self) -> u16 {
        self.path.mtu()
    }

    /// Whether it sent a packet with this lower half of the sequence number lately: in the last second, at a
    /// million packets a second.
    pub(crate) fn sent_lately(&self, low: u32) -> bool {
        const LATELY: u64 = 1 << 20;
        let sent = self.sent();
        let ago = u64::from(narrow::halves(sent).0.wrapping_sub(low));
        ago < LATELY.min(sent)
    }

    /// Ends it: packets that are under way are dropped.
    pub(crate) fn end(&self) {
        self.life.store(IS_GONE, Ordering::Release);
    }

    /// Takes numbers for so many packets in one step: threads share what is counted, and each step of theirs
    /// waits for all that was written before.
    #[inline]
    pub(crate) fn take(&self, count: usize) -> Taken<'_> {
        self.look_at_time();
        // One that was ended has none for anybody.
        let count = if self.check().and_then(|()| self.may_carry()).is_ok() { count } else { 0 };
        let last = if self.is_extended { u64::MAX } else { u32::MAX.into() };
        let end = |sent: u64| sent.saturating_add(count as u64).min(last.max(sent));
        let step = |sent| Some(end(sent));
        let sent = self.numbers.sent.fetch_update(Ordering::Relaxed, Ordering::Relaxed, step);
        let sent = sent.unwrap_or_else(|sent| sent);
        Taken { carried: self.carried_here(), last: sent, end: end(sent) }
    }

    /// Begins to count packets of one thread.
    #[inline]
    pub(crate) const fn carried_here(&self) -> Carried<'_> {
        Carried { sa: self, packets: 0, bytes: 0 }
    }

    /// Fails if it was ended, or if its time was over when [`look_at_time`](Self::look_at_time) was called.
    #[inline]
    pub(crate) fn check(&self) -> Result<(), Fault> {
        match self.life.load(Ordering::Acquire) {
            LIVES => Ok(()),
            IS_EXPIRED => Err(Fault::Lifetime),
            _ => Err(Fault::SaGone),
        }
    }

    /// Ends it if its time is over. To be called for packets in a row, as it reads the clock.
    #[inline]
    pub(crate) fn look_at_time(&self) {
        if (self.config.most_seconds, self.config.most_seconds_of_use) != (None, None) {
            self.expire(Instant::now());
        }
    }

    #[cold]
    fn expire(&self, now: Instant) {
        let is_over = |most: Option<u64>, since: Instant| {
            most.is_some_and(|most| now.saturating_duration_since(since) >= Duration::from_secs(most))
        };
        let is_used = self.carried().0 > 0;
        if is_over(self.config.most_seconds, self.numbers.began)
            || (is_used && is_over(self.config.most_seconds_of_use, *self.numbers.used.get_or_init(|| now)))
        {
            // One that is gone stays so.
            let _ = self.life.compare_exchange(LIVES, IS_EXPIRED, Ordering::AcqRel, Ordering::Acquire);
        }
    }

    /// Whether a hard limit is reached, of packets, bytes or time: it carries no packet any more.
    #[must_use]
    pub fn is_expired(&self) -> bool {
        self.look_at_time();
        self.may_carry().is_err() || self.check() == Err(Fault::Lifetime)
    }

    /// Fails if a limit was reached.
    #[inline]
    fn may_carry(&self) -> Result<(), Fault> {
        let (carried, carried_bytes) = self.carried();
        let is_over = carried >= self.most_packets || carried_bytes >= self.most_bytes;
        if is_over { Err(Fault::Lifetime) } else { Ok(()) }
    }

    /// Counts an inner packet. Fails if a limit was reached before.
    fn carry(&self, bytes: usize) -> Result<(), Fault> {
        self.may_carry()?;
        self.numbers.packets.fetch_add(1, Ordering::Relaxed);
        self.numbers.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        Ok(())
    }

    /// The initialisation vector of a packet that is sent.
    #[inline]
    pub(crate) fn vector(&self, sequence: u64) -> [u8; 8] {
        (sequence ^ self.numbers.random).to_be_bytes()
    }

    /// Draws a number of the caller's.
    #[cfg(test)]
    pub(crate) fn draw(&mut self, random: u64) {
        Arc::get_mut(&mut self.numbers).expect("nothing shares them yet").random = random;
    }

    /// The numbers of packets that came. Others wait as long as the caller has them.
    #[inline]
    pub(crate) fn window(&self) -> MutexGuard<'_, Window> {
        self.numbers.window()
    }

    /// The bytes that lie beside the text in AES-GCM: index and sequence number (RFC 4106, 5).
    #[inline]
    pub(crate) fn beside(&self, sequence: u64) -> ([u8; 12], usize) {
        let (low, high) = narrow::halves(sequence);
        // Whole words, as in a nonce: the cipher reads eight bytes at once.
        let (spi, first) = (u128::from(self.spi), if self.is_extended { high } else { low });
        let beside = spi << 96 | u128::from(first) << 64 | u128::from(low) << 32;
        let beside = beside.to_be_bytes().first_chunk().copied().unwrap_or_default();
        (beside, if self.is_extended { 12 } else { 8 })
    }

    /// The half of the sequence number that a tag of its own covers beside the packet.
    pub(crate) fn high(&self, sequence: u64) -> Option<u32> {
        self.is_extended.then(|| narrow::halves(sequence).1)
    }

    /// Bytes before the ESP header.
    pub(crate) const fn outer(&self) -> usize {
        (if self.dst.is_ipv4() { IPV4 } else { IPV6 }) + if self.ports.is_some() { UDP } else { 0 }
    }

    /// Bytes before an inner packet.
    pub(crate) const fn head(&self) -> usize {
        self.outer() + ESP + self.suite.vector()
    }

    /// The largest inner packet that the path takes.
    #[inline]
    #[must_use]
    pub fn most_inner(&self) -> usize {
        let rest = usize::from(self.path_mtu()).saturating_sub(self.head() + self.suite.tag());
        // What is encrypted is a multiple of four bytes.
        (rest & !3).saturating_sub(TRAILER)
    }
}

/// Packets that one thread counts for an association. The association has them once this is dropped.
#[derive(Debug)]
pub(crate) struct Carried<'s> {
    sa: &'s Sa,
    packets: u64,
    bytes: u64,
}

impl Carried<'_> {
    /// Counts an inner packet. Fails if a limit was reached before.
    #[inline]
    pub(crate) fn add(&mut self, bytes: usize) -> Result<(), Fault> {
        if (self.sa.most_packets, self.sa.most_bytes) != (u64::MAX, u64::MAX) {
            return self.sa.carry(bytes);
        }
        (self.packets, self.bytes) = (self.packets + 1, self.bytes + bytes as u64);
        Ok(())
    }
}

impl Drop for Carried<'_> {
    fn drop(&mut self) {
        if self.packets > 0 {
            self.sa.numbers.packets.fetch_add(self.packets, Ordering::Relaxed);
            self.sa.numbers.bytes.fetch_add(self.bytes, Ordering::Relaxed);
        }
    }
}

/// Sequence numbers of an association for packets in a row, taken in one step. The other end misses those
/// that no packet gets.
#[derive(Debug)]
pub struct Taken<'s> {
    carried: Carried<'s>,
    /// The last number that a packet got.
    last: u64,
    end: u64,
}

impl<'s> Taken<'s> {
    /// The association.
    pub(crate) const fn sa(&self) -> &'s Sa {
        self.carried.sa
    }

    /// The next number, for an inner packet of so many bytes. After the last one there is none (RFC 4303,
    /// 3.3.3).
    #[inline]
    pub(crate) fn next(&mut self, bytes: usize) -> Result<u64, Fault> {
        self.carried.sa.check()?;
        self.carried.add(bytes)?;
        if self.last == self.end {
            return Err(Fault::Sequence);
        }
        self.last += 1;
        Ok(self.last)
    }
}

impl fmt::Debug for Sa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sa")
            .field("spi", &format_args!("{:#x}", self.spi))
            .field("src", &self.src)
            .field("dst", &self.dst)
            .field("reqid", &self.reqid)
            .field("suite", &self.suite.name())
            .field("is_extended", &self.is_extended)
            .field("sent", &self.sent())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Arrival, Opening, Scratch, Sealing, Secret, open, seal};

    #[test]
    fn after_its_time_an_association_carries_nothing() {
        let [src, dst] = ["192.0.2.1", "192.0.2.2"].map(|address| address.parse().unwrap());
        let config = SaConfig::new(256, src, dst, Keys::Gcm(Secret::new(vec![7; 20])));
        for (most_seconds, most_seconds_of_use) in [(Some(30), None), (None, Some(30))] {
            let config = SaConfig { most_seconds, most_seconds_of_use, ..config.clone() };
            let (here, there) = (Sa::new(&config).unwrap(), Sa::new(&config).unwrap());
            let mut inner = vec![0; 100];
            inner[..10].copy_from_slice(&[0x45, 0, 0, 100, 0, 0, 0x40, 0, 64, 17]);
            let sum = wirespeed_checksum::checksum(&inner[..20]);
            inner[10..12].copy_from_slice(&sum.to_be_bytes());
            let sealed = || -> Result<Vec<Vec<u8>>, Fault> {
                let sealing = Sealing::begin(&here, &inner)?;
                let mut packets = vec![vec![0; sealing.len()]];
                packets[0][sealing.head()..][..100].copy_from_slice(&inner);
                let unsealed = sealing.write(0, &mut packets[0])?;
                seal(&[unsealed], &mut packets[..], &mut Scratch::default());
                Ok(packets)
            };
            let opening = |packets: &[Vec<u8>]| {
                let Arrival::Esp(envelope) = Arrival::read(&packets[0], |_| true, |_| false) else {
                    panic!()
                };
                Opening::begin(&there, envelope, 0)
            };
            let opened = |mut packets: Vec<Vec<u8>>| -> Result<crate::Opened, Fault> {
                let opening = opening(&packets)?;
                let mut outcomes = Vec::new();
                open(&[opening], &mut packets[..], &mut Scratch::default(), &mut outcomes);
                outcomes[0]
            };
            let (first, second, third) = (sealed().unwrap(), sealed().unwrap(), sealed().unwrap());
            assert!(opened(first).is_ok());
            let began = Instant::now();
            for sa in [&here, &there] {
                sa.expire(began);
                sa.expire(began + Duration::from_secs(29));
                assert!(!sa.is_expired());
            }
            // One packet is under way when the time ends.
            let under_way = opening(&second).unwrap();
            for sa in [&here, &there] {
                sa.expire(began + Duration::from_secs(30));
                assert!(sa.is_expired());
            }
            let (mut second, mut outcomes) = (second, Vec::new());
            open(&[under_way], &mut second[..], &mut Scratch::default(), &mut outcomes);
            assert_eq!(outcomes[0], Err(Fault::Lifetime));
            assert!(second[0][36..].iter().all(|&byte| byte == 0), "its text stays");
            assert_eq!(opened(third), Err(Fault::Lifetime));
            assert_eq!(sealed(), Err(Fault::Lifetime));
            // What takes its place has its age.
            let changed = here.changed(&SaConfig { reqid: 5, ..config.clone() }).unwrap();
            changed.expire(began + Duration::from_secs(30));
            assert!(changed.is_expired());
            // One that was removed is gone.
            there.end();
            assert_eq!(there.check(), Err(Fault::SaGone));
        }
    }
}
