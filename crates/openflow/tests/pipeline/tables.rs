//! Frames that go through several tables, which are looked up for many of them together.

use std::sync::atomic::Ordering;

use wirespeed_classify::{OpenFlow13Tuple, OpenFlowTuple};
use wirespeed_openflow::wire::{
    Action, Band, Command, Field, FlowCommand, FlowMod, Instructions, Match, MeterMod, Request,
};
use wirespeed_openflow::{Switch, SwitchOptions};
use wirespeed_rng::Rng;

use crate::made::{self, PORTS};
use crate::model::Model;
use crate::{Kinds, add, both, compare_statistics, list, options, with_device};

/// A switch and a model whose first table has two flows, which lead on. One of them changes frames.
fn behind_two_flows(rng: &mut Rng, kinds: Kinds, options: SwitchOptions) -> (Switch, Model) {
    let (switch, mut model) = both(rng, 240, kinds, options);
    for flow in model.flows.iter().filter(|flow| flow.table == 0) {
        switch.flow_mod(&FlowMod { command: FlowCommand::DeleteStrict, ..flow.clone() }).unwrap();
    }
    model.flows.retain(|flow| flow.table != 0);
    model.counts = vec![(0, 0); model.flows.len()];
    let apply = vec![Action::PopVlan, Action::SetField(Field::EthSrc, 0x0200_0000_0101)];
    let metadata = Some((2, u64::MAX));
    let changing =
        Instructions { apply, has_apply: true, metadata, goto: Some(1), ..Instructions::default() };
    let tagged = Match::all().with_masked(Field::VlanVid, 0x1000, 0x1000);
    add(&switch, &mut model, FlowMod::add(0, 9, tagged, changing));
    let leading = Instructions { goto: Some(1), ..Instructions::default() };
    add(&switch, &mut model, FlowMod::add(0, 1, Match::all(), leading));
    switch.settle();
    assert!(!switch.has_classifier(0) && switch.has_classifier(1) && switch.has_classifier(2));
    (switch, model)
}

/// Compares a chunk of a port with the model. `meanwhile` is done once the chunk is under way. Returns the
/// numbers of packets that classifiers of later tables were asked for, and of chunks that a GPU looked up.
fn compare(
    rng: &mut Rng,
    switch: &Switch,
    model: &mut Model,
    size: usize,
    meanwhile: impl FnOnce() + Send + 'static,
) -> (u64, u64) {
    let frames: Vec<(u32, Vec<u8>)> = (0..size).map(|_| (1, made::frame(rng))).collect();
    let app = switch.app().unwrap();
    let (stats, sent, counters) = list::run_while(switch, app, PORTS, &frames, size, meanwhile);
    assert!(stats.is_whole() && stats.frames_in == size as u64 && stats.made_lost == 0, "{stats:?}");
    let mut expected: Vec<(u32, Vec<u8>)> =
        frames.iter().flat_map(|(port, frame)| model.frame(*port, frame)).collect();
    expected.sort();
    assert!(sent == expected, "{size} frames");
    compare_statistics(switch, model, &frames, &sent);
    (counters.iter().find(|(name, _)| *name == "classified_later").unwrap().1, stats.chunks_gpu)
}

#[test]
fn each_table_is_looked_up_once_for_a_chunk() {
    for (kinds, sizes) in [(Kinds::All, [200, 3000]), (Kinds::Narrow, [3000, 200])] {
        for size in sizes {
            let mut rng = Rng::new(size as u64);
            let (switch, mut model) = behind_two_flows(&mut rng, kinds, options());
            let (asked, by_gpu) = compare(&mut rng, &switch, &mut model, size, || ());
            // All come to the second table, and some to the third one.
            assert!(asked > size as u64 && by_gpu == 0, "{asked}");
        }
    }
}

#[test]
fn a_device_looks_up_later_tables_until_it_fails() {
    fn of<T: wirespeed::engine::Served>(kinds: Kinds) {
        for fails in [false, true] {
            let Some((settings, lose)) = with_device::<T>() else { return };
            let mut rng = Rng::new(5);
            let (switch, mut model) = behind_two_flows(&mut rng, kinds, settings);
            lose.store(fails, Ordering::Relaxed);
            let (asked, by_gpu) = compare(&mut rng, &switch, &mut model, 4000, || ());
            assert_eq!((asked > 4000, by_gpu), (true, u64::from(!fails)));
        }
    }
    of::<OpenFlow13Tuple>(Kinds::All);
    of::<OpenFlowTuple>(Kinds::Narrow);
}

/// Frames that a device has go by the flows that there are when they come back.
#[test]
fn flows_that_change_while_a_chunk_is_under_way_count_in_all_tables() {
    let Some((settings, _)) = with_device::<OpenFlow13Tuple>() else { return };
    for seed in 0..4 {
        let mut rng = Rng::new(seed);
        let (switch, mut model) = both(&mut rng, 240, Kinds::All, settings.clone());
        switch.settle();
        assert!((0..3).all(|table| switch.has_classifier(table)));
        let mut changes = Vec::new();
        for n in 0..60 {
            if n % 2 == 0 {
                let gone = model.flows.remove(rng.index(model.flows.len()));
                changes.push(FlowMod { command: FlowCommand::DeleteStrict, ..gone });
            } else if let Ok(Request::FlowMod(flow)) =
                Request::read(&made::flow(&mut rng, 300 + n).to_message(1))
            {
                model.flows.push((*flow).clone());
                changes.push(*flow);
            }
        }
        model.counts = vec![(0, 0); model.flows.len()];
        let changed = switch.clone();
        let (asked, by_gpu) = compare(&mut rng, &switch, &mut model, 3000, move || {
            changed.flow_mods(&changes).unwrap();
        });
        assert!(asked > 100 && by_gpu == 1, "{asked} of {by_gpu}");
    }
}

/// A meter marks frames after they were looked up: those go by the flow of their mark.
#[test]
fn marked_frames_go_by_their_mark() {
    const AF: [u128; 3] = [10, 12, 14];
    let switch = Switch::new(options()).unwrap();
    let band = Band { rate: 1, burst: 40, remark: Some(1) };
    let flags = MeterMod::PKTPS | MeterMod::BURST;
    switch.meter_mod(&MeterMod { command: Command::Add, flags, number: 1, bands: vec![band] }).unwrap();
    let metered = Instructions { meter: Some(1), goto: Some(1), ..Instructions::default() };
    switch.flow_mod(&FlowMod::add(0, 1, Match::all(), metered)).unwrap();
    for (port, dscp) in (2..).zip(AF) {
        let apply = vec![Action::Output { port, max_len: 0 }];
        let output = Instructions { apply, has_apply: true, ..Instructions::default() };
        let matched = Match::all().with(Field::EthType, 0x0800).with(Field::IpDscp, dscp);
        switch.flow_mod(&FlowMod::add(1, 1, matched, output)).unwrap();
    }
    let mut frame = vec![0; 60];
    frame[12..16].copy_from_slice(&[8, 0, 0x45, (AF[0] as u8) << 2]);
    let (stats, sent, _) = list::run(&switch, switch.app().unwrap(), PORTS, &vec![(1, frame); 100], 100);
    assert!(stats.is_whole(), "{stats:?}");
    let mut counts = [0; 2];
    for (port, frame) in sent {
        assert_eq!(u128::from(frame[15] >> 2), AF[port as usize - 2]);
        counts[port as usize - 2] += 1;
    }
    assert_eq!(counts, [40, 60]);
}
