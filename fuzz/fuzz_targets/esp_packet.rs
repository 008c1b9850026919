#![no_main]

use std::sync::OnceLock;
use std::time::Instant;

use libfuzzer_sys::fuzz_target;
use wirespeed_esp::{
    Arrival, Fragments, Keys, Opening, Ports, Sa, SaConfig, Scratch, Sealing, Secret, open, seal,
};

/// Associations of every suite, in UDP and without, of both families and kinds of numbers. No window: every
/// number is new.
fn sas() -> &'static [Sa] {
    static SAS: OnceLock<Vec<Sa>> = OnceLock::new();
    SAS.get_or_init(|| {
        let key = |len| Secret::new(vec![7; len]);
        let keys = [
            Keys::Gcm(key(20)),
            Keys::Gcm(key(36)),
            Keys::CtrSha1 { cipher: key(20), authentication: key(20) },
            Keys::NullSha1 { authentication: key(20) },
        ];
        let of = |(at, keys): (usize, Keys)| {
            let (src, dst) = if at % 2 == 0 { ("192.0.2.1", "192.0.2.2") } else { ("fd00::1", "fd00::2") };
            let (src, dst) = (src.parse().unwrap(), dst.parse().unwrap());
            let ports = (at % 4 > 1).then_some(Ports { src: 4500, dst: 4500 });
            Sa::new(&SaConfig { ports, window: 0, ..SaConfig::new(256, src, dst, keys) }).unwrap()
        };
        keys.iter().cycle().take(16).cloned().enumerate().map(of).collect()
    })
}

// A packet as it came: what is opened is a whole inner packet; what fails leaves none of its text. And as one
// to be sealed: what is sealed is opened again. And as two fragments.
fuzz_target!(|bytes: &[u8]| {
    let (one, other) = bytes.split_at(bytes.len() / 2);
    let mut fragments = Fragments::default();
    for part in [one, other] {
        let _ = fragments.take(part, Instant::now());
    }
    for sa in sas() {
        let mut packets = vec![bytes.to_vec()];
        take(sa, &mut packets);
        let Ok(sealing) = Sealing::begin(sa, bytes) else { continue };
        let inner = bytes[..sealing.inner()].to_vec();
        let mut packet = vec![0; sealing.len()];
        packet[sealing.head()..][..inner.len()].copy_from_slice(&inner);
        let unsealed = sealing.write(0, &mut packet).expect("an association without an end");
        let mut packets = vec![packet];
        seal(&[unsealed], &mut packets[..], &mut Scratch::default());
        let found = take(sa, &mut packets).expect("what was sealed");
        // Hops and checksum are others.
        assert_eq!(found.len(), inner.len());
        assert_eq!(found[12..], inner[12..]);
    }
});

fn take(sa: &Sa, packets: &mut [Vec<u8>]) -> Option<Vec<u8>> {
    let arrival = Arrival::read(&packets[0], |address| address == sa.tunnel().1, |port| port == 4500);
    let Arrival::Esp(envelope) = arrival else { return None };
    let opening = Opening::begin(sa, envelope, 0).ok()?;
    let mut outcomes = Vec::new();
    open(&[opening], packets, &mut Scratch::default(), &mut outcomes);
    let opened = outcomes[0].ok()?;
    Some(packets[0][opened.start..][..opened.len].to_vec())
}
