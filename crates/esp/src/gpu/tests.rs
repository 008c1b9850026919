//! The kernels against the CPU's ciphers: on the host build of the kernels under sanitizers, or on the first
//! GPU with `WIRESPEED_TEST_DEVICE=cuda`.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use wirespeed_gpu::driver::{Cuda, Driver};
use wirespeed_kernels_host::{HostDriver, Sanitizers};
use wirespeed_rng::Rng;

use super::layout::HEADER;
use super::{Device, Offload, Options, Transform, Use};
use crate::crypto::gcm::Aead;
use crate::crypto::sha1::{self, Message};
use crate::crypto::{Keys, Suite};
use crate::database::{Change, Database};
use crate::error::Error;
use crate::fault::Fault;
use crate::ip::Ports;
use crate::open::{Arrival, Opening, open};
use crate::sa::{Sa, SaConfig};
use crate::seal::{Scratch, Sealing, Unsealed, nonce, seal};
use crate::secret::Secret;

/// A device; `None`, after saying why, where there is none.
fn device(options: &Options) -> Option<Device> {
    Some(Device::new(driver()?, options).unwrap())
}

pub(super) fn driver() -> Option<Box<dyn Driver>> {
    if std::env::var_os("WIRESPEED_TEST_DEVICE").is_some_and(|it| it == "cuda") {
        return match Cuda::open(0) {
            Ok(cuda) => Some(Box::new(cuda)),
            Err(why) => {
                eprintln!("skipped: {why}");
                None
            }
        };
    }
    Some(Box::new(HostDriver::for_tests(Sanitizers::On)?))
}

pub(super) fn small() -> Options {
    Options { keys: 6, slots: 2, frames: 300, bytes: 300 * 1600, lanes: None }
}

fn bytes(rng: &mut Rng, len: usize) -> Vec<u8> {
    (0..len).map(|_| rng.bits().to_le_bytes()[0]).collect()
}

fn hex(text: &str) -> Vec<u8> {
    Secret::from_hex(&format!("0x{text}")).unwrap().bytes().to_vec()
}

/// Keys of each suite, with numbers of 32 bits and of 64: at an even place and behind it.
pub(super) fn keys(rng: &mut Rng) -> Vec<Keys> {
    let mut secret = |len| Secret::new(bytes(rng, len));
    let of_each = [
        Keys::Gcm(secret(20)),
        Keys::Gcm(secret(36)),
        Keys::CtrSha1 { cipher: secret(20), authentication: secret(20) },
    ];
    of_each.into_iter().flat_map(|keys| [keys.clone(), keys]).collect()
}

/// A frame, the number of its keys, and the upper half of its sequence number.
pub(super) struct Case {
    keys: u32,
    high: u32,
    pub(super) frame: Vec<u8>,
}

impl Case {
    pub(super) fn random(rng: &mut Rng, suites: &[Keys], keys: usize, text: usize) -> Self {
        let tag = Suite::new(&suites[keys]).unwrap().tag();
        let high = if keys % 2 == 1 { 1 + u32::from(bytes(rng, 1)[0]) } else { 0 };
        Self { keys: u32::try_from(keys).unwrap(), high, frame: bytes(rng, HEADER + text + tag) }
    }

    /// Seals it on the CPU.
    fn seal(&mut self, suites: &[Keys]) {
        let (is_extended, suite) = (self.keys % 2 == 1, Suite::new(&suites[self.keys as usize]).unwrap());
        let (header, text) = self.frame.split_at_mut(HEADER);
        let vector = *header.last_chunk::<8>().unwrap();
        match &suite {
            Suite::Gcm { gcm, salt } => {
                let mut beside = header[..4].to_vec();
                if is_extended {
                    beside.extend(self.high.to_be_bytes());
                }
                beside.extend(&header[4..8]);
                gcm.seal(nonce(salt, vector), &beside, text);
            }
            Suite::CtrSha1 { ctr, nonce, hmac } => {
                let end = text.len() - sha1::TAG;
                ctr.apply(**nonce, vector, &mut text[..end]);
                let end = self.frame.len() - sha1::TAG;
                let high = is_extended.then_some(self.high);
                let mut tags = [[0; sha1::TAG]];
                sha1::tags(&[Message { key: hmac, bytes: &self.frame[..end], high }], &mut tags);
                self.frame[end..].copy_from_slice(&tags[0]);
            }
            Suite::NullSha1 { .. } => unreachable!("not among the keys"),
        }
    }

    /// Bytes of the tag.
    fn tag(&self, suites: &[Keys]) -> usize {
        Suite::new(&suites[self.keys as usize]).unwrap().tag()
    }
}

pub(super) fn fill(device: &mut Device, slot: usize, cases: &[Case]) {
    let mut chunk = device.chunk(slot).unwrap();
    chunk.clear();
    for case in cases {
        chunk.push(case.keys, case.high, &case.frame).unwrap();
    }
    assert_eq!(chunk.len(), cases.len());
}

pub(super) fn run(device: &mut Device, slot: usize, transform: Transform) {
    device.start(slot, transform).unwrap();
    device.wait(slot).unwrap();
}

#[test]
fn frames_are_sealed_as_on_the_cpu_and_opened_again() {
    let mut rng = Rng::new(1);
    let suites = keys(&mut rng);
    for lanes in [None, Some(4), Some(8), Some(16), Some(32)] {
        let Some(mut device) = device(&Options { lanes, ..small() }) else { return };
        for (at, keys) in suites.iter().enumerate() {
            device.set(u32::try_from(at).unwrap(), keys, at % 2 == 1).unwrap();
        }
        // Ends of blocks of either cipher, then any length.
        let lengths = (0..150).chain((0..30).map(|_| rng.index(1501)));
        let lengths: Vec<usize> = lengths.chain([1499, 1500]).collect();
        let clear: Vec<Case> = lengths
            .iter()
            .enumerate()
            .map(|(at, &len)| Case::random(&mut rng, &suites, (at + len) % 6, len))
            .collect();
        fill(&mut device, 1, &clear);
        assert!(!device.chunk(1).unwrap().is_right(0), "nothing was done yet");
        run(&mut device, 1, Transform::Seal);
        for (at, case) in clear.iter().enumerate() {
            let mut wanted = Case { frame: case.frame.clone(), ..*case };
            wanted.seal(&suites);
            let chunk = device.chunk(1).unwrap();
            assert!(chunk.frame(at) == wanted.frame, "keys {}, {} bytes, {lanes:?}", case.keys, lengths[at]);
            assert!(chunk.is_right(at));
        }
        run(&mut device, 1, Transform::Open);
        for (at, case) in clear.iter().enumerate() {
            let chunk = device.chunk(1).unwrap();
            assert!(chunk.is_right(at), "keys {}, {} bytes", case.keys, lengths[at]);
            let end = case.frame.len() - case.tag(&suites);
            assert!(chunk.frame(at)[..end] == case.frame[..end], "keys {}, {} bytes", case.keys, lengths[at]);
        }
    }
}

#[test]
fn frames_with_a_wrong_bit_are_refused_and_their_text_is_gone() {
    let Some(mut device) = device(&small()) else { return };
    let mut rng = Rng::new(2);
    let suites = keys(&mut rng);
    for (at, keys) in suites.iter().enumerate() {
        device.set(u32::try_from(at).unwrap(), keys, at % 2 == 1).unwrap();
    }
    let mut cases = Vec::new();
    for at in 0..240 {
        let mut case = Case::random(&mut rng, &suites, at / 3 % 6, 4 * (at / 6));
        case.seal(&suites);
        // Each third is right. The wrong bit lies anywhere, the upper half of the number included.
        if at % 3 == 1 {
            let bit = rng.index(case.frame.len() * 8);
            case.frame[bit / 8] ^= 1 << (bit % 8);
        } else if at % 3 == 2 && case.keys % 2 == 1 {
            case.high ^= 1 << rng.below(32);
        } else if at % 3 == 2 {
            *case.frame.last_mut().unwrap() ^= 0x80;
        }
        cases.push(case);
    }
    fill(&mut device, 0, &cases);
    run(&mut device, 0, Transform::Open);
    let chunk = device.chunk(0).unwrap();
    for (at, case) in cases.iter().enumerate() {
        assert_eq!(chunk.is_right(at), at % 3 == 0, "frame {at}, keys {}", case.keys);
        let end = case.frame.len() - case.tag(&suites);
        if at % 3 != 0 {
            assert!(chunk.frame(at)[HEADER..end].iter().all(|&byte| byte == 0), "frame {at}");
        }
    }
}

/// Seals a text by keys and a header, and gives what is behind the header.
fn sealed(device: &mut Device, keys: &Keys, high: Option<u32>, header: &str, text: &str) -> Vec<u8> {
    device.set(0, keys, high.is_some()).unwrap();
    let tag = Suite::new(keys).unwrap().tag();
    let frame = [hex(header), hex(text), vec![0; tag]].concat();
    fill(device, 0, &[Case { keys: 0, high: high.unwrap_or(0), frame }]);
    run(device, 0, Transform::Seal);
    device.chunk(0).unwrap().frame(0)[HEADER..].to_vec()
}

/// Vectors 1 to 3 of RFC 3686, 6.
#[test]
fn texts_are_those_of_rfc_3686() {
    let Some(mut device) = device(&small()) else { return };
    let counting: String = (0..36).map(|byte| format!("{byte:02x}")).collect();
    let cases = [
        (
            "ae6852f8121067cc4bf7a5765577f39e00000030",
            "0000000000000000",
            "53696e676c6520626c6f636b206d7367",
            "e4095d4fb7a7b3792d6175a3261311b8",
        ),
        (
            "7e24067817fae0d743d6ce1f32539163006cb6db",
            "c0543b59da48d90b",
            &counting[..64],
            "5104a106168a72d9790d41ee8edad388eb2e1efc46da57c8fce630df9141be28",
        ),
        (
            "7691be035e5020a8ac6e618529f9a0dc00e0017b",
            "27777f3f4a1786f0",
            &counting,
            "c1cf48a89f2ffdd9cf4652e9efdb72d74540a42bde6d7836d59a5ceaaef3105325b2072f",
        ),
    ];
    for (key, vector, text, cipher) in cases {
        let authentication = Secret::new(vec![1; 20]);
        let keys = Keys::CtrSha1 { cipher: Secret::new(hex(key)), authentication };
        let found = sealed(&mut device, &keys, None, &format!("0000010000000001{vector}"), text);
        assert_eq!(found[..text.len() / 2], hex(cipher));
    }
}

/// The first vector of draft-mcgrew-gcm-test-01: a packet with an extended sequence number.
#[test]
fn a_text_is_that_of_the_draft_of_gcm_for_esp() {
    let Some(mut device) = device(&small()) else { return };
    let keys = Keys::Gcm(Secret::new(hex("4c80cdefbb5d10da906ac73c3613a6342e443b68")));
    let text = "45000048699a000080114db7c0a80102c0a801010a9bf15638d301000001000000000000045f736970045f756470037369\
                700963796265726369747902646b0000210001\
                01020201";
    let found = sealed(&mut device, &keys, Some(0x8765_4321), "00004321000000004956ed7e3b244cfe", text);
    let wanted = "fecf537e729d5b07dc30df528dd22b768d1b98736696a6fd348509fa13ceac34cfa2436f14a3f3cf65925bf1f4a13c5d\
                  15b21e1884f5ff6247aeabb786b93bce61bc17d768fd9732459018148f6cbe722fd04796562dfdb4";
    assert_eq!(found, hex(wanted));
}

/// A vector of draft-mcgrew-gcm-test-01, and cases 14 and 15 of "The Galois/Counter Mode of Operation"
/// (McGrew, Viega), appendix B. The tags of these cover no header, which ESP always has: their texts alone
/// are compared.
#[test]
fn texts_of_aes_256_are_the_published_ones() {
    let Some(mut device) = device(&small()) else { return };
    let keys = |key: &str, salt: &str| Keys::Gcm(Secret::new(hex(&format!("{key}{salt}"))));
    let half = "abbccddef00112233445566778899aab";
    let text = "4500003069a6400080062690c0a801029389155e0a9e008b2dc57ee0000000007002400020bf0000020405b40101040201020201";
    let header = "4a2cbfe3000000020102030405060708";
    let found = sealed(&mut device, &keys(&half.repeat(2), "11223344"), None, header, text);
    let wanted = "ff425c9b724599df7a3bcd510194e00d6a78107f1b0b1cbf06efae9d65a5d763748a637985771d347f0545659f14e99def842d8e\
                  b335f4eecfdbf831824b4c4915956c96";
    assert_eq!(found, hex(wanted));

    let zeros = "00".repeat(16);
    let found = sealed(&mut device, &keys(&zeros.repeat(2), "00000000"), None, &zeros, &zeros);
    assert_eq!(found[..16], hex("cea7403d4d606b6e074ec5d3baf39d18"));
    let half = "feffe9928665731c6d6a8f9467308308";
    let text = "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525\
                b16aedf5aa0de657ba637b391aafd255";
    let found = sealed(
        &mut device,
        &keys(&half.repeat(2), "cafebabe"),
        None,
        "0000010000000001facedbaddecaf888",
        text,
    );
    let wanted = "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48590dbb3da7b08b1056828838\
                  c5f61e6393ba7a0abcc9f662898015ad";
    assert_eq!(found[..64], hex(wanted));
}

/// Cases 3 and 5 of RFC 2202, 3: the keys of 20 bytes whose data are longer than a header of ESP. The data
/// are what the cipher makes of its own output.
#[test]
fn tags_are_those_of_rfc_2202() {
    let Some(mut device) = device(&small()) else { return };
    let text = |bytes: &[u8]| -> String { bytes.iter().map(|byte| format!("{byte:02x}")).collect() };
    let cases: [(u8, &[u8], &str); 2] = [
        (0xaa, &[0xdd; 50], "125d7342b9ac11cd91a39af4"),
        (0x0c, b"Test With Truncation", "4c1a03424b55e07fe7f27be1"),
    ];
    for (key, data, tag) in cases {
        let (cipher, authentication) = (Secret::new(vec![7; 20]), Secret::new(vec![key; 20]));
        let keys = Keys::CtrSha1 { cipher, authentication };
        let (header, payload) = data.split_at(HEADER);
        let once = sealed(&mut device, &keys, None, &text(header), &text(payload));
        let twice = sealed(&mut device, &keys, None, &text(header), &text(&once[..payload.len()]));
        assert_eq!(twice, [payload, &hex(tag)].concat());
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let Some(mut device) = device(&Options { frames: 2, bytes: 256, ..small() }) else { return };
    let mut rng = Rng::new(3);
    let suites = keys(&mut rng);
    assert!(matches!(device.chunk(2), Err(Error::NoSlot { asked: 2, there: 2 })));
    assert!(matches!(device.chunk(0).unwrap().push(0, 0, &[0; 64]), Err(Error::NoKeys(0))));
    assert!(matches!(device.set(6, &suites[0], false), Err(Error::KeysNumber { asked: 6, most: 6 })));
    let null = Keys::NullSha1 { authentication: Secret::new(vec![0; 20]) };
    assert!(matches!(device.set(0, &null, false), Err(Error::DeviceSuite(_))));
    let short = Keys::Gcm(Secret::new(vec![0; 19]));
    assert!(matches!(device.set(0, &short, false), Err(Error::Key { .. })));
    device.set(0, &suites[0], false).unwrap();
    let mut chunk = device.chunk(0).unwrap();
    assert!(matches!(chunk.push(0, 0, &[0; 31]), Err(Error::Short { found: 31, least: 32 })));
    assert!(matches!(chunk.push(0, 0, &[0; 257]), Err(Error::Full { frames: 2, bytes: 256 })));
    chunk.push(0, 0, &[0; 32]).unwrap();
    chunk.push(0, 0, &[0; 224]).unwrap();
    assert!(matches!(chunk.push(0, 0, &[0; 32]), Err(Error::Full { .. })));
    device.start(0, Transform::Seal).unwrap();
    assert!(matches!(device.chunk(0), Err(Error::UnderWay(0))));
    assert!(matches!(device.start(0, Transform::Seal), Err(Error::UnderWay(0))));
    let patience = Instant::now() + Duration::from_secs(60);
    while !device.is_done(0).unwrap() {
        assert!(Instant::now() < patience);
    }
    assert_eq!(device.chunk(0).unwrap().len(), 2);
    assert!(matches!(device.start(0, Transform::Seal), Err(Error::Twice(0))));
    // By other keys these frames would not be what they were placed for.
    device.clear(0).unwrap();
    assert!(matches!(device.start(0, Transform::Open), Err(Error::KeysChanged)));
    assert!(matches!(device.chunk(0).unwrap().push(0, 0, &[0; 32]), Err(Error::NoKeys(0))));
    assert!(matches!(Options { lanes: Some(5), ..small() }.check(), Err(Error::Lanes { found: 5, .. })));
}

#[test]
fn packets_go_through_a_tunnel_of_devices() {
    let Some(mut device) = device(&small()) else { return };
    let mut rng = Rng::new(4);
    for (number, keys) in keys(&mut rng).into_iter().enumerate() {
        let is_extended = number % 2 == 1;
        let number = u32::try_from(number).unwrap();
        device.set(number, &keys, is_extended).unwrap();
        let ends = if number < 2 { ["192.0.2.1", "192.0.2.2"] } else { ["2001:db8::1", "2001:db8::2"] };
        let [src, dst] = ends.map(|end| end.parse().unwrap());
        let config = SaConfig {
            is_extended,
            sent: if is_extended { (3 << 32) + 5 } else { 5 },
            received: if is_extended { (3 << 32) + 5 } else { 5 },
            ports: (number > 3).then_some(Ports { src: 4500, dst: 4500 }),
            ..SaConfig::new(0x100, src, dst, keys)
        };
        let (near, far) = (Sa::new(&config).unwrap(), Sa::new(&config).unwrap());
        let inner = *b"\x45\0\0\x1c\0\x01\x40\0\x40\x11\x26\xcb\x0a\x01\0\x01\x0a\x02\0\x02\x03\xe8\x07\xd0\0\x08\0\0";
        let sealing = Sealing::begin(&near, &inner).unwrap();
        let mut packet = vec![0; sealing.len()];
        packet[sealing.head()..][..inner.len()].copy_from_slice(&inner);
        let unsealed = sealing.write(0, &mut packet).unwrap();
        let mut by_cpu = [packet.clone()];
        seal(&[unsealed], &mut by_cpu[..], &mut Scratch::default());
        device.chunk(0).unwrap().push_unsealed(number, &unsealed, &packet).unwrap();
        run(&mut device, 0, Transform::Seal);
        device.chunk(0).unwrap().sealed(0, &unsealed, &mut packet);
        assert_eq!(packet, by_cpu[0]);

        let Arrival::Esp(envelope) = Arrival::read(&packet, |_| true, |_| true) else { panic!("no ESP") };
        let opening = Opening::begin(&far, envelope, 0).unwrap();
        device.chunk(0).unwrap().push_opening(number, &opening, &packet).unwrap();
        run(&mut device, 0, Transform::Open);
        let opened = device.chunk(0).unwrap().opened(0, &opening, &mut packet).unwrap();
        // The tunnel took a hop.
        assert_eq!(packet[opened.start..][..opened.len][12..], inner[12..]);
        // A second time it is a replay, and nothing of it gets out.
        assert_eq!(device.chunk(0).unwrap().opened(0, &opening, &mut packet), Err(Fault::Replay));
        assert!(packet[opened.start..].iter().all(|&byte| byte == 0));
    }
}

const INNER: [u8; 28] =
    *b"\x45\0\0\x1c\0\x01\x40\0\x40\x11\x26\xcb\x0a\x01\0\x01\x0a\x02\0\x02\x03\xe8\x07\xd0\0\x08\0\0";

/// Both ends of a tunnel for each of some keys: indexes from 256 on.
fn ends(keys: &[Keys]) -> [Database; 2] {
    [(); 2].map(|()| {
        let mut database = Database::new().unwrap();
        let sas = (0x100..).zip(keys).map(|(spi, keys)| {
            let [src, dst] = ["192.0.2.1", "192.0.2.2"].map(|end| end.parse().unwrap());
            Change::AddSa(Box::new(SaConfig {
                is_extended: spi % 2 == 1,
                window: 4096,
                ..SaConfig::new(spi, src, dst, keys.clone())
            }))
        });
        database.apply(sas).unwrap();
        database
    })
}

/// Packets with their headers, the associations in turns, `run` of each; and what the CPU makes of them.
fn unsealed<'s>(sas: &[&'s Sa], count: usize, run: usize) -> (Vec<Vec<u8>>, Vec<Unsealed<'s>>, Vec<Vec<u8>>) {
    let (mut packets, mut jobs) = (Vec::new(), Vec::new());
    for at in 0..count {
        let sealing = Sealing::begin(sas[at / run % sas.len()], &INNER).unwrap();
        let mut packet = vec![0; sealing.len()];
        packet[sealing.head()..][..INNER.len()].copy_from_slice(&INNER);
        jobs.push(sealing.write(at, &mut packet).unwrap());
        packets.push(packet);
    }
    let mut by_cpu = packets.clone();
    seal(&jobs, &mut by_cpu[..], &mut Scratch::default());
    (packets, jobs, by_cpu)
}

fn openings<'s>(sas: impl Fn(u32) -> &'s Sa, packets: &[Vec<u8>]) -> Vec<Opening<'s>> {
    let one = |(at, packet): (usize, &Vec<u8>)| {
        let Arrival::Esp(envelope) = Arrival::read(packet, |_| true, |_| true) else { panic!("no ESP") };
        Opening::begin(sas(envelope.spi), envelope, at).unwrap()
    };
    packets.iter().enumerate().map(one).collect()
}

#[test]
fn an_offload_leaves_what_does_not_fit_and_loses_nothing() {
    let mut rng = Rng::new(5);
    let mut suites = keys(&mut rng);
    // One that devices have no kernels for, and more than there are places.
    suites.push(Keys::NullSha1 { authentication: Secret::new(vec![3; 20]) });
    let [near, far] = ends(&suites);
    let end = "192.0.2.2".parse().unwrap();
    let (near, far) = (near.state(), far.state());
    let sas: Vec<&Sa> = near.sas().collect();
    // Two slots of ten frames.
    for (keys, count, on_device) in [(6, 14, 12), (6, 60, 20), (2, 14, 4), (6, 1, 1)] {
        let Some(device) = device(&Options { keys, slots: 2, frames: 10, bytes: 4096, lanes: None }) else {
            return;
        };
        let mut offload = Offload::new(device, Use::Always);
        // Twice: what is back is free again.
        for round in 1..=2 {
            let (mut packets, mut jobs, by_cpu) = unsealed(&sas, count, 2);
            let batch = offload.seal(&near, &mut jobs, &packets[..]).unwrap();
            assert_eq!((batch.len(), jobs.len()), (on_device, count - on_device), "{keys} {count}");
            offload.seal_here(&jobs, &mut packets[..], &mut Scratch::default());
            offload.sealed(&batch, &mut packets[..], &mut Scratch::default());
            assert_eq!(packets, by_cpu, "{keys} {count}");

            let jobs = openings(|spi| far.sa(end, spi).unwrap(), &packets);
            let mut outcomes = Vec::new();
            let batch = offload.open(&far, jobs, &packets[..]).unwrap();
            assert_eq!((batch.len(), batch.on_device()), (count, on_device));
            while !offload.is_ready(&batch) {}
            offload.opened(&batch, &mut packets[..], &mut Scratch::default(), &mut outcomes);
            assert_eq!(outcomes.len(), count);
            for (place, (at, outcome)) in outcomes.into_iter().enumerate() {
                let opened = outcome.unwrap();
                assert_eq!(packets[at][opened.start..][..opened.len][12..], INNER[12..]);
                assert_eq!(batch.sa(place).spi(), u32::try_from(0x100 + at / 2 % sas.len()).unwrap());
            }
            assert_eq!(offload.counts().by_device, 2 * round * on_device as u64);
        }
    }
}

#[test]
fn an_offload_whose_device_fails_seals_and_opens_the_same() {
    let mut rng = Rng::new(6);
    let suites = keys(&mut rng);
    let [near, far] = ends(&suites);
    let end = "192.0.2.2".parse().unwrap();
    let (near, far) = (near.state(), far.state());
    let sas: Vec<&Sa> = near.sas().collect();
    // The device fails before, behind the start, and between a batch's sealing and opening.
    for fails_at in 0..3 {
        let Some(host) = HostDriver::for_tests(Sanitizers::On) else { return };
        let switch = host.switch();
        let options = Options { keys: 6, slots: 4, frames: 10, bytes: 4096, lanes: None };
        let mut offload = Offload::new(Device::new(Box::new(host), &options).unwrap(), Use::Always);
        let fail = |point: usize| switch.store(point == fails_at, Ordering::Relaxed);
        let (mut packets, mut jobs, by_cpu) = unsealed(&sas, 25, 1);
        fail(0);
        let batch = offload.seal(&near, &mut jobs, &packets[..]);
        offload.seal_here(&jobs, &mut packets[..], &mut Scratch::default());
        fail(1);
        if let Some(batch) = &batch {
            offload.is_ready(batch);
            offload.sealed(batch, &mut packets[..], &mut Scratch::default());
        }
        assert_eq!(packets, by_cpu, "{fails_at}");
        assert_eq!(offload.is_there(), fails_at == 2);

        let jobs = openings(|spi| far.sa(end, spi).unwrap(), &packets);
        let mut outcomes = Vec::new();
        // A wrong bit is found by whoever opens.
        *packets[7].last_mut().unwrap() ^= 1;
        let batch = offload.open(&far, jobs, &packets[..]).unwrap();
        assert_eq!(batch.on_device() > 0, fails_at == 2);
        fail(2);
        offload.opened(&batch, &mut packets[..], &mut Scratch::default(), &mut outcomes);
        assert_eq!(outcomes.len(), 25);
        for (at, outcome) in outcomes {
            assert_eq!(outcome.err(), (at == 7).then_some(Fault::Tag), "{fails_at}: {at}");
        }
        assert!(!offload.is_there() && offload.take_failure().is_some() && offload.take_failure().is_none());
        assert_eq!(offload.counts().recovered > 0, fails_at > 0);
        // The same packets again are replays.
        let mut again = by_cpu.clone();
        let old = again.iter().enumerate().filter(|(at, packet)| {
            let Arrival::Esp(envelope) = Arrival::read(packet, |_| true, |_| true) else { panic!("no ESP") };
            let opening = Opening::begin(far.sa(end, envelope.spi).unwrap(), envelope, *at);
            opening.is_err_and(|fault| fault == Fault::Replay)
        });
        assert_eq!(old.count(), 24, "all but the one with the wrong bit");
        let rest = [Opening::begin(
            far.sa(end, 0x100 + 7 % 6).unwrap(),
            match Arrival::read(&again[7], |_| true, |_| true) {
                Arrival::Esp(envelope) => envelope,
                other => panic!("{other:?}"),
            },
            7,
        )
        .unwrap()];
        let mut outcomes = Vec::new();
        open(&rest, &mut again[..], &mut Scratch::default(), &mut outcomes);
        assert!(outcomes[0].is_ok());
    }
}

#[test]
fn keys_that_are_gone_make_place_on_the_device() {
    let mut rng = Rng::new(7);
    let suites = keys(&mut rng);
    let Some(device) = device(&Options { keys: 1, slots: 2, frames: 10, bytes: 4096, lanes: None }) else {
        return;
    };
    let mut offload = Offload::new(device, Use::Always);
    let [mut near, _] = ends(&suites[..1]);
    for (spi, keys) in (0x101..).zip(&suites) {
        let state = near.state();
        let sas: Vec<&Sa> = state.sas().collect();
        let (mut packets, mut jobs, by_cpu) = unsealed(&sas, 5, 1);
        let batch = offload.seal(&state, &mut jobs, &packets[..]).unwrap();
        assert_eq!(batch.len(), 5, "{spi:#x}");
        // The association ends while its packets are under way.
        let (src, dst) = sas[0].tunnel();
        let next = SaConfig::new(spi, src, dst, keys.clone());
        near.apply([Change::FlushSas, Change::AddSa(Box::new(next))]).unwrap();
        let changed = near.state();
        let sas: Vec<&Sa> = changed.sas().collect();
        let (mut others, mut jobs, others_by_cpu) = unsealed(&sas, 5, 1);
        let other = offload.seal(&changed, &mut jobs, &others[..]).unwrap();
        assert_eq!(other.len(), 5);
        offload.sealed(&other, &mut others[..], &mut Scratch::default());
        offload.sealed(&batch, &mut packets[..], &mut Scratch::default());
        assert!(packets == by_cpu && others == others_by_cpu, "{spi:#x}");
    }
}
