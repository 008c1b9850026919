//! Tables of shapes that the suite's engines don't build by themselves: cut by given strides, with elements
//! that don't fit where they are staged, of several FIBs.

use wirespeed_fib::conformance::{Expected, check, scattered, tables};
use wirespeed_fib::oracle::boundaries;
use wirespeed_fib::{Address, BuildOptions, Engine, Family, Lookup, NextHop, Prefix, Rib, Strides, V4, V6};
use wirespeed_gamt::{GamtS, GamtT};
use wirespeed_image::device::{OnDevice, Sections};
use wirespeed_image::rounds;
use wirespeed_sail::sail_m::kernel::programs_with_fibs;
use wirespeed_sail::{FibId, Fibs, SailL, SailM, SailMTable};

use crate::device::{device, lock};
use crate::mirror::MirroredTable;

/// Holds a table that an engine builds with options against the oracle, on the device.
fn hold<A: Address, E: Engine<A>>(rib: &Rib<A>, options: &BuildOptions, what: &str)
where
    E::Table: OnDevice + Lookup<A>,
{
    let (_, table) = E::build(rib, options).expect("a valid table is built");
    let mut addresses = boundaries(rib.iter().take(500).map(|(prefix, _)| prefix));
    addresses.extend(scattered::<A>(500));
    check(&MirroredTable::new(table), &Expected::of(rib), &addresses, what);
}

fn given_strides<A: Address>(strides: &[u8]) {
    let options = BuildOptions { strides: Strides::Given(strides.to_vec()), ..BuildOptions::default() };
    let step = rounds::plain_step(8);
    for (name, rib) in tables::hand_picked::<A>().into_iter().step_by(step) {
        hold::<A, GamtT<A>>(&rib, &options, name);
        hold::<A, GamtS<A>>(&rib, &options, name);
    }
}

/// Units of the paper's, of 4 bytes and, where next hops are many, of 8.
#[test]
fn gamt_of_given_strides() {
    if device().is_none() {
        return;
    }
    given_strides::<V4>(&[7, 12, 1, 3, 9]);
    given_strides::<V4>(&[16, 16]);
    // One level lies across the middle of the address.
    given_strides::<V6>(&[vec![13, 18, 5, 11, 15, 7], vec![3; 19], vec![2]].concat());
    given_strides::<V6>(&[1; 128]);
}

/// Next hops and chunks at both sides of what two bytes hold.
#[test]
fn sail_l_with_more_than_is_staged() {
    if rounds::leaves_to_ci() {
        return;
    }
    if device().is_none() {
        return;
    }
    let of = |a: u32, b: u32, len| Prefix::around(V4(a << 24 | b << 16), len);
    let mut rib: Rib<V4> = Rib::new();
    for (at, next_hop) in (0u32..).zip(65_500..65_540) {
        rib.insert(of(10, at, 16), NextHop(next_hop));
    }
    hold::<V4, SailL>(&rib, &BuildOptions::default(), "many next hops");
    for (a, b) in (0..256).flat_map(|a| (0..256).map(move |b| (a, b))).filter(|&(a, b)| a != 10 || b > 40) {
        rib.insert(of(a, b, 24), NextHop(1 + (a ^ b)));
    }
    let what = "a chunk beneath each /16";
    let (_, table) = SailL::build(&rib, &BuildOptions::default()).expect("a valid table is built");
    assert!(table.chunks(1) > 0xffff, "{what}: {} of them", table.chunks(1));
    let last = rib.iter().map(|(prefix, _)| prefix).skip(rib.len() - 300);
    let mut addresses = boundaries(last);
    addresses.extend(scattered::<V4>(500));
    addresses.extend(boundaries([of(10, 3, 16), of(10, 50, 24)]));
    check(&MirroredTable::new(table), &Expected::of(&rib), &addresses, what);
}

/// Keys with ids of FIBs, those that are there and others, against what the CPU finds.
fn several_fibs<A: Address>() {
    let Some(device) = device() else { return };
    let mut fibs = Fibs::<A>::new();
    for (_, rib) in tables::hand_picked::<A>().into_iter().filter(|(_, rib)| rib.len() < 300) {
        fibs.add(rib).expect("there is room");
    }
    fibs.remove(FibId(3));
    let (_, table) = SailM::overlay(&fibs, &BuildOptions::default()).expect("a valid table is built");
    let prefixes = fibs.iter().flat_map(|(_, rib)| rib.iter().map(|(prefix, _)| prefix));
    let mut addresses = boundaries(prefixes);
    addresses.extend(scattered::<A>(500));
    let slots = u16::try_from(table.slots()).expect("FIBs are few");
    let ids: Vec<_> = (0..=slots + 1).chain([u16::MAX]).map(FibId).collect();
    let mixed: Vec<_> = (0..addresses.len()).map(|key| ids[key * 7 % ids.len()]).collect();

    let mut device = lock(&device);
    let copy = device.upload(&table);
    let programs = programs_with_fibs(&table, Sections(&copy.sections)).expect("the table has a program");
    let address_bytes: &[u8] = if A::FAMILY == Family::V4 { &[4] } else { &[16, 8] };
    let mut hits = 0;
    for &bytes in address_bytes {
        let addresses: Vec<A> = addresses.iter().map(|address| address.keep(8 * bytes)).collect();
        let right = found_by_the_cpu(&table, &mixed, &addresses);
        hits += right.iter().filter(|next_hop| next_hop.is_some()).count();
        let bytes = usize::from(bytes);
        for (turn, program) in programs.iter().cycle().take(8).enumerate() {
            // All of them, and a number that no group divides.
            let count = if turn % 2 == 0 { addresses.len() } else { 101 };
            let planes = [
                addresses[..count].iter().flat_map(|&address| first_bytes(address, bytes)).collect(),
                mixed[..count].iter().flat_map(|id| id.0.to_le_bytes()).collect(),
            ];
            let mut found = vec![NextHop(u32::MAX); count];
            device.look_up_planes(program, bytes + 2, (&planes, [bytes, 2]), turn, &mut found);
            assert_eq!(found, right[..count], "{}: addresses of {bytes} bytes", program.stem);
        }
    }
    assert!(hits > 1_000, "{hits} keys have a route");
}

fn found_by_the_cpu<A: Address>(table: &SailMTable<A>, fibs: &[FibId], addresses: &[A]) -> Vec<NextHop> {
    let mut right = vec![NextHop(u32::MAX); addresses.len()];
    table.lookup_mixed(fibs, addresses, &mut right);
    right
}

/// The first bytes of an address as a number.
fn first_bytes<A: Address>(address: A, bytes: usize) -> Vec<u8> {
    let all = address.to_u128() << (128 - u32::from(A::BITS));
    (all >> (128 - 8 * bytes)).to_le_bytes()[..bytes].to_vec()
}

#[test]
fn sail_m_of_several_fibs() {
    several_fibs::<V4>();
    several_fibs::<V6>();
}
