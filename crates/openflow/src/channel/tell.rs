//! News for controllers that nobody asked for: packets, flows that are gone, and ports that changed.

use super::link::{Kind, Links};
use crate::pipeline::control::{Event, Went};
use crate::pipeline::flow::Flow;
use crate::pipeline::run::PacketIn;
use crate::pipeline::state::PortState;
use crate::switch::Shared;
use crate::wire::number::NO_BUFFER;
use crate::wire::reply::{begin, end};
use crate::wire::{Field, Match, Out};

/// Bytes of a packet that fit a message with its match.
const MOST: usize = 65_000;

/// Tells controllers of events.
pub(super) fn events(shared: &Shared, links: &Links, events: Vec<Event>) {
    if events.is_empty() {
        return;
    }
    let now = shared.now();
    let links = links.all();
    for event in events {
        let (kind, reason, message) = match event {
            Event::FlowRemoved(flow, went) => (Kind::FlowRemoved, went as u8, flow_removed(&flow, went, now)),
            // 2 is a change: ports neither come nor go.
            Event::PortChanged(at) => (Kind::PortStatus, 2, port_status(shared, at)),
        };
        for link in links.iter().filter(|link| link.wants(kind, reason)) {
            // A link that is closed is removed by its own thread.
            let _ = link.outbox.try_push(message.clone());
        }
    }
}

/// Tells controllers of a packet.
pub(super) fn packet_in(links: &Links, packet: &PacketIn) {
    let mut message = None;
    for link in links.all().iter().filter(|link| link.wants(Kind::PacketIn, packet.why as u8)) {
        let message = message.get_or_insert_with(|| packet_in_message(packet));
        let _ = link.outbox.try_push(message.clone());
    }
}

fn packet_in_message(packet: &PacketIn) -> Vec<u8> {
    let mut out = begin(10, 0);
    out.u32(NO_BUFFER);
    // Packets are shorter than 2^16.
    out.u16(u16::try_from(packet.bytes.len()).unwrap_or(u16::MAX));
    out.u8(packet.why as u8);
    out.u8(packet.table);
    out.u64(packet.cookie);
    let mut matched = Match::all().with(Field::InPort, packet.in_port.into());
    for (field, value) in [(Field::Metadata, packet.metadata), (Field::TunnelId, packet.tunnel)] {
        if value != 0 {
            matched = matched.with(field, value.into());
        }
    }
    matched.write(&mut out);
    out.zeros(2);
    out.extend(&packet.bytes[..packet.bytes.len().min(MOST)]);
    end(out)
}

fn flow_removed(flow: &Flow, went: Went, now: u64) -> Vec<u8> {
    let mut out = begin(11, 0);
    let (life, sum) = (&flow.life, flow.sum());
    out.u64(life.cookie);
    out.u16(flow.priority);
    out.u8(went as u8);
    out.u8(flow.table);
    duration(&mut out, life.since, now);
    out.u16(life.idle);
    out.u16(life.hard);
    out.u64(sum.packets);
    out.u64(sum.bytes);
    flow.matched().write(&mut out);
    end(out)
}

/// Writes the time since another one, in seconds and nanoseconds.
pub(super) fn duration(out: &mut Vec<u8>, since: u64, now: u64) {
    let passed = now.saturating_sub(since);
    // 136 years.
    out.u32(u32::try_from(passed / 1000).unwrap_or(u32::MAX));
    out.u32(u32::try_from(passed % 1000 * 1_000_000).unwrap_or(0));
}

fn port_status(shared: &Shared, at: usize) -> Vec<u8> {
    let mut out = begin(12, 0);
    out.u8(2);
    out.zeros(7);
    let state = shared.control().state().ports[at];
    port(&mut out, shared, at, state);
    end(out)
}

/// Writes the description of a port.
pub(super) fn port(out: &mut Vec<u8>, shared: &Shared, at: usize, state: PortState) {
    let Some(info) = shared.options.port(at) else { return };
    out.u32(shared.options.numbering().number(at));
    out.zeros(4);
    out.extend(info.mac.0);
    out.zeros(2);
    out.text(&info.name, 16);
    out.u32(state.config);
    let link_down = u32::from(state.is_down || state.config & PortState::DOWN != 0);
    let live = u32::from(state.is_live()) << 2;
    out.u32(link_down | live);
    // Full duplex copper at the speed that is nearest.
    let feature = match info.kbps {
        0..=10_000 => 1 << 1,
        10_001..=100_000 => 1 << 3,
        100_001..=1_000_000 => 1 << 5,
        1_000_001..=10_000_000 => 1 << 6,
        10_000_001..=40_000_000 => 1 << 7,
        _ => 1 << 8,
    };
    out.u32(feature | 1 << 11);
    out.zeros(12);
    out.u32(info.kbps);
    out.u32(info.kbps);
}
