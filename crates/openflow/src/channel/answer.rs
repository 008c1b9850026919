//! Answers to multipart requests: descriptions and statistics.

use std::sync::Arc;

use super::tell::{duration, port};
use crate::pipeline::control::Control;
use crate::pipeline::flow::Flow;
use crate::pipeline::state::TABLES;
use crate::switch::Shared;
use crate::wire::number::{group, meter, port as ports};
use crate::wire::reply::Parts;
use crate::wire::{Failure, Field, MOST_BANDS, Multipart, Out};

/// Bytes of the head of a flow's statistics.
const FLOW_HEAD: usize = 48;
/// The types of actions that there are: all but those of queues, which ports do not have.
const ACTIONS: u32 = 1
    | 1 << 11
    | 1 << 12
    | 1 << 15
    | 1 << 16
    | 1 << 17
    | 1 << 18
    | 1 << 19
    | 1 << 20
    | 1 << 21
    | 1 << 22
    | 1 << 23
    | 1 << 24
    | 1 << 25
    | 1 << 26
    | 1 << 27;
/// All kinds of groups.
const GROUPS: u32 = 0b1111;

/// The answer about flows that is made once the switch goes on.
pub(super) enum Later {
    Done,
    Flows(Vec<Arc<Flow>>),
}

/// Answers a request. Flows are written later, without the lock: they may be many.
pub(super) fn answer(
    shared: &Shared,
    control: &Control,
    asked: &Multipart,
    xid: u32,
    send: &mut dyn FnMut(Vec<u8>),
) -> Result<Later, Failure> {
    let now = shared.now();
    let mut parts = Parts::new(asked.kind(), xid, send);
    match asked {
        Multipart::Flows(query) => return control.asked_for(query).map(Later::Flows),
        Multipart::Desc => {
            let out = parts.element(1056);
            out.text("Wirespeed", 256);
            out.text("table lookup on CPUs and GPUs", 256);
            out.text(env!("CARGO_PKG_VERSION"), 256);
            out.text("none", 32);
            out.text("an OpenFlow switch in software", 256);
        }
        Multipart::Aggregate(query) => {
            let flows = control.asked_for(query)?;
            let (mut packets, mut bytes) = (0_u64, 0_u64);
            for sum in flows.iter().map(|flow| flow.sum()) {
                // Flows that do not count have all ones.
                packets += if sum.packets == u64::MAX { 0 } else { sum.packets };
                bytes += if sum.bytes == u64::MAX { 0 } else { sum.bytes };
            }
            let out = parts.element(24);
            out.u64(packets);
            out.u64(bytes);
            out.u32(u32::try_from(flows.len()).unwrap_or(u32::MAX));
            out.zeros(4);
        }
        Multipart::Tables => {
            for table in 0..TABLES {
                let out = parts.element(24);
                out.u8(table);
                out.zeros(3);
                let at = usize::from(table);
                out.u32(u32::try_from(control.state().tables[at].len()).unwrap_or(u32::MAX));
                out.u64(shared.tallies.looked_up[at].sum().packets);
                out.u64(shared.tallies.matched[at].sum().packets);
            }
        }
        Multipart::Ports(number) => {
            for at in some(*number, shared).ok_or(Failure::BAD_PORT)? {
                let tallies = &shared.tallies;
                let (received, sent) = (tallies.received[at].sum(), tallies.sent[at].sum());
                let out = parts.element(112);
                out.u32(shared.options.numbering().number(at));
                out.zeros(4);
                out.u64(received.packets);
                out.u64(sent.packets);
                out.u64(received.bytes);
                out.u64(sent.bytes);
                out.u64(tallies.refused[at].sum().packets);
                out.u64(tallies.lost[at].sum().packets);
                // Errors of either direction, and collisions: the port's, not ours.
                out.zeros(6 * 8);
                duration(out, 0, now);
            }
        }
        Multipart::Queues(number) => {
            some(*number, shared).ok_or(Failure::QUEUE_PORT)?;
        }
        Multipart::Groups(_) | Multipart::GroupDescs => groups(control, asked, now, &mut parts)?,
        Multipart::GroupFeatures => {
            let out = parts.element(40);
            out.u32(GROUPS);
            // Weights, liveness, groups of groups, and their check.
            out.u32(0b1111);
            (0..4).for_each(|_| out.u32(u32::try_from(control.limits().groups).unwrap_or(u32::MAX)));
            (0..4).for_each(|_| out.u32(ACTIONS));
        }
        Multipart::Meters(_) | Multipart::MeterConfigs(_) => meters(control, asked, now, &mut parts)?,
        Multipart::MeterFeatures => {
            let out = parts.element(16);
            out.u32(u32::try_from(control.limits().meters).unwrap_or(u32::MAX));
            out.u32(1 << 1 | 1 << 2);
            out.u32(0b1111);
            // At most 16 bands; packets have no colour.
            out.u8(u8::try_from(MOST_BANDS).unwrap_or(u8::MAX));
            out.zeros(3);
        }
        Multipart::TableFeatures => {
            (0..TABLES).for_each(|table| table_features(table, control, parts.element(2048)));
        }
        Multipart::PortDescs => {
            for (at, &state) in control.state().ports.iter().enumerate() {
                port(parts.element(64), shared, at, state);
            }
        }
    }
    parts.finish();
    Ok(Later::Done)
}

/// The places of the port of a number, or of all ports.
fn some(number: u32, shared: &Shared) -> Option<std::ops::Range<usize>> {
    if number == ports::ANY {
        return Some(0..shared.options.numbering().count());
    }
    let at = shared.options.numbering().place(number)?;
    Some(at..at + 1)
}

/// Writes the statistics of flows.
pub(super) fn flows(shared: &Shared, flows: &[Arc<Flow>], xid: u32, send: &mut dyn FnMut(Vec<u8>)) {
    let now = shared.now();
    let mut parts = Parts::new(1, xid, send);
    let mut element = Vec::new();
    for flow in flows {
        element.clear();
        let out = &mut element;
        out.u16(0);
        out.u8(flow.table);
        out.u8(0);
        duration(out, flow.life.since, now);
        out.u16(flow.priority);
        out.u16(flow.life.idle);
        out.u16(flow.life.hard);
        out.u16(flow.life.flags);
        out.zeros(4);
        out.u64(flow.life.cookie);
        let sum = flow.sum();
        out.u64(sum.packets);
        out.u64(sum.bytes);
        debug_assert_eq!(out.len(), FLOW_HEAD);
        flow.matched().write(out);
        flow.instructions.write(out);
        out.close(0, 0);
        parts.element(element.len()).extend(&element);
    }
    parts.finish();
}

fn groups(control: &Control, asked: &Multipart, now: u64, parts: &mut Parts<'_>) -> Result<(), Failure> {
    let mut known: Vec<_> = control.state().groups.iter().collect();
    known.sort_unstable_by_key(|&(number, _)| number);
    if let &Multipart::Groups(number) = asked
        && number != group::ALL
    {
        known.retain(|&(known, _)| known == number);
    }
    let mut element = Vec::new();
    for (number, group) in known {
        element.clear();
        let out = &mut element;
        if matches!(asked, Multipart::GroupDescs) {
            out.u16(0);
            out.u8(group.kind as u8);
            out.u8(0);
            out.u32(number);
            group.buckets.iter().for_each(|bucket| bucket.write(out));
        } else {
            out.u16(0);
            out.zeros(2);
            out.u32(number);
            out.u32(u32::try_from(control.uses().of_group(number)).unwrap_or(u32::MAX));
            out.zeros(4);
            for counts in std::iter::once(&group.counts) {
                out.u64(counts.sum().packets);
                out.u64(counts.sum().bytes);
            }
            duration(out, group.since, now);
            for counts in &group.of_bucket {
                out.u64(counts.sum().packets);
                out.u64(counts.sum().bytes);
            }
        }
        out.close(0, 0);
        parts.element(element.len()).extend(&element);
    }
    Ok(())
}

fn meters(control: &Control, asked: &Multipart, now: u64, parts: &mut Parts<'_>) -> Result<(), Failure> {
    let mut known: Vec<_> = control.state().meters.iter().collect();
    known.sort_unstable_by_key(|&(&number, _)| number);
    if let &(Multipart::Meters(number) | Multipart::MeterConfigs(number)) = asked
        && number != meter::ALL
    {
        known.retain(|&(&known, _)| known == number);
        if known.is_empty() {
            return Err(Failure::METER_UNKNOWN);
        }
    }
    for (&number, meter) in known {
        let out = parts.element(64 + 16 * meter.bands.len());
        let start = out.len();
        if matches!(asked, Multipart::MeterConfigs(_)) {
            out.u16(0);
            out.u16(meter.flags);
            out.u32(number);
            meter.bands.iter().for_each(|band| band.write(out));
            out.close(start, start);
        } else {
            out.u32(number);
            out.u16(0);
            out.zeros(6);
            out.u32(u32::try_from(control.uses().of_meter(number)).unwrap_or(u32::MAX));
            out.u64(meter.counts.sum().packets);
            out.u64(meter.counts.sum().bytes);
            duration(out, meter.since, now);
            for counts in &meter.of_band {
                out.u64(counts.sum().packets);
                out.u64(counts.sum().bytes);
            }
            out.close(start, start + 4);
        }
    }
    Ok(())
}

/// Writes what a table can do: all tables can do all.
fn table_features(table: u8, control: &Control, out: &mut Vec<u8>) {
    let start = out.len();
    out.u16(0);
    out.u8(table);
    out.zeros(5);
    out.text(&format!("table{table}"), 32);
    out.u64(u64::MAX);
    out.u64(u64::MAX);
    out.u32(0);
    out.u32(u32::try_from(control.limits().flows).unwrap_or(u32::MAX));
    let property = |out: &mut Vec<u8>, kind: u16, write: &dyn Fn(&mut Vec<u8>)| {
        let start = out.len();
        out.u16(kind);
        out.u16(0);
        write(out);
        out.close(start, start + 2);
        out.pad(start);
    };
    let has_next = table + 1 < TABLES;
    let instructions = |out: &mut Vec<u8>| {
        for kind in (1..=6_u16).filter(|&kind| kind != 1 || has_next) {
            out.u16(kind);
            out.u16(4);
        }
    };
    let next = |out: &mut Vec<u8>| (table + 1..TABLES).for_each(|next| out.u8(next));
    let actions = |out: &mut Vec<u8>| {
        for kind in (0..28_u16).filter(|kind| ACTIONS >> kind & 1 == 1) {
            out.u16(kind);
            out.u16(4);
        }
    };
    let oxm = |out: &mut Vec<u8>, field: Field, has_mask: bool| {
        out.u16(0x8000);
        out.u8((field as u8) << 1 | u8::from(has_mask));
        out.number((field.bytes() << u32::from(has_mask)) as u128, 1);
    };
    let fields =
        |out: &mut Vec<u8>| Field::ALL.into_iter().for_each(|field| oxm(out, field, field.is_maskable()));
    let any = |out: &mut Vec<u8>| Field::ALL.into_iter().for_each(|field| oxm(out, field, false));
    let settable = |out: &mut Vec<u8>| {
        let is_fixed = |field: &Field| {
            matches!(field, Field::InPort | Field::InPhyPort | Field::Metadata | Field::Ipv6Exthdr)
        };
        Field::ALL.into_iter().filter(|field| !is_fixed(field)).for_each(|field| oxm(out, field, false));
    };
    property(out, 0, &instructions);
    property(out, 2, &next);
    property(out, 4, &actions);
    property(out, 6, &actions);
    property(out, 8, &fields);
    property(out, 10, &any);
    property(out, 12, &settable);
    property(out, 14, &settable);
    out.close(start, start);
}
