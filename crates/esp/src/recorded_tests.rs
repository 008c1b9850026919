//! Frames that scapy made (`tests/scapy/make.py`): opened, and sealed again to the same bytes.

use std::net::IpAddr;

use crate::database::Change;
use crate::ip::{self, Header};
use crate::open::{Arrival, Opening, open};
use crate::read::Lines;
use crate::sa::{Sa, SaConfig};
use crate::seal::{Scratch, Sealing, seal};

const FRAMES: &str = include_str!("../tests/scapy/frames.txt");

fn bytes(hex: &str) -> Vec<u8> {
    hex.as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

/// A security association, and pairs of inner and outer packets.
struct Case {
    config: SaConfig,
    pairs: Vec<(Vec<u8>, Vec<u8>)>,
}

fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    let mut inner = Vec::new();
    for line in FRAMES.lines() {
        if let Some(hex) = line.strip_prefix("inner ") {
            inner = bytes(hex);
        } else if let Some(hex) = line.strip_prefix("outer ") {
            cases.last_mut().unwrap().pairs.push((inner.clone(), bytes(hex)));
        } else if line.starts_with("ip ") {
            let mut lines = Lines::read(line);
            assert_eq!(lines.skipped, []);
            let Some(Change::AddSa(config)) = lines.changes.pop() else { panic!("{line}") };
            cases.push(Case { config: *config, pairs: Vec::new() });
        }
    }
    assert_eq!(cases.len(), 20);
    cases
}

/// Reads what came, for a tunnel that ends at an address.
fn arrival(packet: &[u8], end: IpAddr) -> Arrival {
    Arrival::read(packet, |address| address == end, |port| port == 4500)
}

#[test]
fn frames_of_scapy_are_opened() {
    for Case { config, pairs } in cases() {
        let sa = Sa::new(&config).unwrap();
        let mut packets: Vec<Vec<u8>> = pairs.iter().map(|(_, outer)| outer.clone()).collect();
        let openings: Vec<Opening<'_>> = packets
            .iter()
            .enumerate()
            .map(|(at, packet)| match arrival(packet, config.dst) {
                Arrival::Esp(envelope) => Opening::begin(&sa, envelope, at).unwrap(),
                other => panic!("{other:?}"),
            })
            .collect();
        let mut outcomes = Vec::new();
        open(&openings, &mut packets[..], &mut Scratch::default(), &mut outcomes);
        for ((outcome, packet), (inner, _)) in outcomes.iter().zip(&packets).zip(&pairs) {
            let opened = outcome.unwrap_or_else(|fault| panic!("{sa:?}: {fault:?}"));
            assert_eq!(packet[opened.start..][..opened.len], *inner);
        }
        assert_eq!(sa.carried().0, pairs.len() as u64);
    }
}

#[test]
fn frames_are_sealed_as_scapy_seals_them() {
    for Case { config, pairs } in cases() {
        for (number, (inner, outer)) in (1_u64..).zip(&pairs) {
            let mut sa = Sa::new(&config).unwrap();
            // The vector that scapy drew.
            let (esp, sequence) = (sa.outer(), config.sent + number);
            if let Some(vector) = outer[esp + 8..sa.head()].first_chunk() {
                sa.draw(u64::from_be_bytes(*vector) ^ sequence);
            }
            // Those of the packets before.
            drop(sa.take(usize::try_from(number - 1).unwrap()));
            // One hop more, which the tunnel takes.
            let mut inner = inner.clone();
            let family = Header::read(&inner).unwrap().family;
            match family {
                ip::Family::V4 => {
                    inner[8] += 1;
                    inner[10..12].fill(0);
                    let sum = wirespeed_checksum::checksum(&inner[..20]);
                    inner[10..12].copy_from_slice(&sum.to_be_bytes());
                }
                ip::Family::V6 => inner[7] += 1,
            }
            let sealing = Sealing::begin(&sa, &inner).unwrap();
            let mut packets = [vec![0; sealing.len()]];
            packets[0][sealing.head()..][..inner.len()].copy_from_slice(&inner);
            let unsealed = sealing.write(0, &mut packets[0]).unwrap();
            seal(&[unsealed], &mut packets[..], &mut Scratch::default());
            assert_eq!(packets[0][esp..], outer[esp..], "{sa:?}");
            // The outer header has differentiated services that scapy does not copy.
            assert_eq!(Header::read(&packets[0]).unwrap().len, outer.len());
        }
    }
}
