//! Groups and meters in texts.

use super::actions::{action, words};
use super::fields::port;
use super::small;
use crate::wire::number::{group, port as ports};
use crate::wire::{Action, Band, Bucket, Command, Field, GroupKind, GroupMod, Match, MeterMod, Request};

/// Reads a group: `group_id=1,type=select,bucket=weight:50,actions=output:1,bucket=…`.
pub(super) fn group(line: &str) -> Result<GroupMod, String> {
    let mut parts = line.split("bucket=");
    let (mut found, mut kind) = (None, None);
    for word in parts.next().unwrap_or_default().split([',', ' ', '\t']).filter(|word| !word.is_empty()) {
        match word.split_once('=') {
            Some(("group_id", value)) => found = Some(small(value)?),
            Some(("type", "all")) => kind = Some(GroupKind::All),
            Some(("type", "select")) => kind = Some(GroupKind::Select),
            Some(("type", "indirect")) => kind = Some(GroupKind::Indirect),
            Some(("type", "ff" | "fast_failover")) => kind = Some(GroupKind::FastFailover),
            _ => return Err(format!("{word:?} is no word of a group of OpenFlow 1.3")),
        }
    }
    let kind = kind.ok_or("a group without type=")?;
    let number = found.ok_or("a group without group_id=")?;
    let buckets = parts.map(|text| bucket(text, kind)).collect::<Result<Vec<_>, _>>()?;
    let asked = GroupMod { command: Command::Add, kind, number, buckets };
    match Request::read(&asked.to_message(0)) {
        Ok(Request::GroupMod(read)) if read == asked => Ok(read),
        // Its length is more than a message can tell.
        Ok(_) => Err("too many buckets, or too many actions in them".to_owned()),
        Err(failure) => Err(format!("no group of OpenFlow 1.3: {failure}")),
    }
}

/// Reads a bucket. Its actions may stand behind `actions=`, as they are written, or without.
fn bucket(text: &str, kind: GroupKind) -> Result<Bucket, String> {
    let mut bucket = Bucket {
        weight: u16::from(kind == GroupKind::Select),
        watch_port: ports::ANY,
        watch_group: group::ANY,
        actions: Vec::new(),
    };
    // What frames come here, the flows say that lead here, and a tag may be set where they have one.
    let mut by = Match::all().with_masked(Field::VlanVid, 0x1000, 0x1000);
    let mut act = |name: &str, argument: &str| -> Result<Option<Action>, String> {
        if name == "drop" { Ok(None) } else { action(name, argument, &mut by).map(Some) }
    };
    let (head, list) = text.split_once("actions=").unwrap_or((text, ""));
    for (name, argument) in words(head)? {
        match name {
            "weight" => bucket.weight = small(argument)?,
            "watch_port" => bucket.watch_port = port(argument).map_or_else(|| small(argument), Ok)?,
            "watch_group" => bucket.watch_group = small(argument)?,
            name => bucket.actions.extend(act(name, argument)?),
        }
    }
    for (name, argument) in words(list)? {
        bucket.actions.extend(act(name, argument)?);
    }
    Ok(bucket)
}

/// A meter whose bands may come in the lines that follow.
pub(super) fn meter(line: &str) -> Result<MeterMod, String> {
    let mut meter = MeterMod { command: Command::Add, flags: 0, number: 0, bands: Vec::new() };
    more_of_meter(&mut meter, line)?;
    Ok(meter)
}

/// Reads words of a meter: `meter=1 kbps burst stats bands=`, and `type=drop rate=1000 burst_size=100` for
/// each band.
pub(super) fn more_of_meter(meter: &mut MeterMod, line: &str) -> Result<(), String> {
    for word in line.split([',', ' ', '\t']) {
        let word = word.strip_prefix("bands=").or_else(|| word.strip_prefix("band=")).unwrap_or(word);
        let unknown = || format!("{word:?} is no word of a meter of OpenFlow 1.3");
        let Some((name, value)) = word.split_once('=') else {
            match word {
                "" => {}
                "kbps" => meter.flags |= MeterMod::KBPS,
                "pktps" => meter.flags |= MeterMod::PKTPS,
                "burst" => meter.flags |= MeterMod::BURST,
                "stats" => meter.flags |= MeterMod::STATS,
                _ => return Err(unknown()),
            }
            continue;
        };
        let band = meter.bands.last_mut();
        match (name, value, band) {
            ("meter", _, None) if meter.number == 0 => meter.number = small(value)?,
            ("type", "drop", _) => meter.bands.push(Band { rate: 0, burst: 0, remark: None }),
            ("type", "dscp_remark", _) => meter.bands.push(Band { rate: 0, burst: 0, remark: Some(0) }),
            ("rate", _, Some(band)) => band.rate = small(value)?,
            ("burst_size", _, Some(band)) => band.burst = small(value)?,
            ("prec_level", _, Some(Band { remark: Some(levels), .. })) => *levels = small(value)?,
            _ => return Err(unknown()),
        }
    }
    Ok(())
}

/// Holds a meter to the rules of messages. Its rates are in kilobits where nothing is said.
pub(super) fn whole_meter(mut meter: MeterMod) -> Result<MeterMod, String> {
    if meter.flags & (MeterMod::KBPS | MeterMod::PKTPS) == 0 {
        meter.flags |= MeterMod::KBPS;
    }
    match Request::read(&meter.to_message(0)) {
        Ok(Request::MeterMod(read)) => Ok(read),
        Ok(_) => Err("no meter".to_owned()),
        Err(failure) => Err(format!("no meter of OpenFlow 1.3: {failure}")),
    }
}

/// The groups in an order in which each comes behind those that it leads to or watches. Groups that lead to
/// one another come last.
pub(super) fn in_order(groups: Vec<(usize, GroupMod)>) -> Vec<(usize, GroupMod)> {
    use rustc_hash::FxHashSet;
    let mut missing: FxHashSet<u32> = groups.iter().map(|(_, group)| group.number).collect();
    let (mut rest, mut ordered) = (groups, Vec::new());
    while !rest.is_empty() {
        let is_ready = |group: &GroupMod| {
            let leads = |bucket: &Bucket| {
                let is_missing = |number: u32| number != group.number && missing.contains(&number);
                let by_action = |action: &Action| matches!(action, Action::Group(to) if is_missing(*to));
                is_missing(bucket.watch_group) || bucket.actions.iter().any(by_action)
            };
            !group.buckets.iter().any(leads)
        };
        let (ready, later): (Vec<_>, Vec<_>) = rest.into_iter().partition(|(_, group)| is_ready(group));
        if ready.is_empty() {
            // The switch says which of them it refuses.
            ordered.extend(later);
            break;
        }
        ready.iter().for_each(|(_, group)| _ = missing.remove(&group.number));
        ordered.extend(ready);
        rest = later;
    }
    ordered
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::number::WHOLE;

    fn output(port: u32) -> Action {
        Action::Output { port, max_len: WHOLE }
    }

    #[test]
    fn groups_are_read() {
        let read = group(
            "group_id=7,type=select,bucket=weight:50,watch_port:3,actions=output:1,\
             bucket=weight:0,actions=push_vlan:0x8100,set_field:4101->vlan_vid,output:2,bucket=actions=drop",
        );
        let read = read.unwrap();
        assert_eq!((read.number, read.kind, read.buckets.len()), (7, GroupKind::Select, 3));
        let bucket = &read.buckets[0];
        assert_eq!((bucket.weight, bucket.watch_port, bucket.watch_group), (50, 3, group::ANY));
        assert_eq!(bucket.actions, [output(1)]);
        let tag = Action::SetField(Field::VlanVid, 0x1005);
        assert_eq!(read.buckets[1].actions, [Action::PushVlan(0x8100), tag, output(2)]);
        assert_eq!((read.buckets[2].weight, read.buckets[2].actions.len()), (1, 0));
        // As groups are given to `add-group`, too.
        let read = group("group_id=1, type=ff, bucket=watch_group:7,output:1, bucket=watch_port:2,group:7");
        let read = read.unwrap();
        assert_eq!((read.kind, read.buckets[0].watch_group), (GroupKind::FastFailover, 7));
        assert_eq!(read.buckets[1].actions, [Action::Group(7)]);
        assert_eq!(group("group_id=2,type=all").unwrap().buckets, []);
    }

    #[test]
    fn meters_are_read() {
        let mut meter = meter("meter=1 kbps burst stats bands=").unwrap();
        more_of_meter(&mut meter, "type=drop rate=1000 burst_size=100").unwrap();
        more_of_meter(&mut meter, "type=dscp_remark rate=500 burst_size=50 prec_level=2").unwrap();
        let (drop, remark) =
            (Band { rate: 1000, burst: 100, remark: None }, Band { rate: 500, burst: 50, remark: Some(2) });
        let flags = MeterMod::KBPS | MeterMod::BURST | MeterMod::STATS;
        let wanted = MeterMod { command: Command::Add, flags, number: 1, bands: vec![drop, remark] };
        assert_eq!(whole_meter(meter).unwrap(), wanted);
        // In one line, and as meters are given to `add-meter`.
        let line = "meter=9,pktps,bands=type=drop,rate=5";
        let meter = whole_meter(super::meter(line).unwrap()).unwrap();
        assert_eq!((meter.flags, meter.bands[0].rate), (MeterMod::PKTPS, 5));
        assert_eq!(whole_meter(super::meter("meter=9").unwrap()).unwrap().flags, MeterMod::KBPS);
    }
}
