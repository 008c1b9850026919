//! Engines of addresses whose tables answer from the device: each kernel with keys of each width.

use wirespeed_fib::{
    Address, BuildError, BuildOptions, Engine, Family, Lookup, NextHop, Outgrown, Prefix, Rib, Standing, Step,
};
use wirespeed_image::Patch;
use wirespeed_image::device::{OnDevice, Program};

use super::device::{Asked, Device};
use super::mirror::{Mirrored, MirroredTable, is_short};

impl<A: Address, E: Engine<A>> Engine<A> for Mirrored<E>
where
    E::Table: OnDevice + Lookup<A>,
{
    const NAME: &'static str = E::NAME;
    const STANDING: Standing = E::STANDING;
    type Table = MirroredTable<E::Table>;

    fn build(rib: &Rib<A>, options: &BuildOptions) -> Result<(Self, Self::Table), BuildError> {
        let (engine, table) = E::build(rib, options)?;
        Ok((Self::new(engine), MirroredTable::new(table)))
    }

    fn patch(&mut self, table: &Self::Table, rib: &Rib<A>, changed: &[Prefix<A>]) -> Result<Patch, Outgrown> {
        self.0.patch(&table.table, rib, changed)
    }

    fn memory_usage(&self) -> u64 {
        self.0.memory_usage()
    }
}

impl<A: Address, T: OnDevice + Lookup<A>> Lookup<A> for MirroredTable<T> {
    fn lookup(&self, address: A) -> NextHop {
        let mut found = [NextHop(u32::MAX)];
        self.lookup_batch(&[address], &mut found);
        found[0]
    }

    fn lookup_batch(&self, addresses: &[A], next_hops: &mut [NextHop]) {
        match self.turn(addresses.len()) {
            Some(turn) => self.ask(|device, programs| {
                device.look_up_twice(&self.table, programs, addresses, turn, next_hops);
            }),
            None => self.table.lookup_batch(addresses, next_hops),
        }
    }

    fn shape(&self) -> Option<String> {
        self.table.shape()
    }

    fn explain(&self, address: A) -> Vec<Step> {
        self.table.explain(address)
    }
}

const fn whole_key<A: Address>() -> usize {
    A::OCTETS
}

fn narrow_keys<A: Address>() -> &'static [u8] {
    match A::FAMILY {
        Family::V4 => &[3],
        Family::V6 => &[8, 6],
    }
}

impl Device {
    /// Looks addresses up as whole keys, and then, cut, as keys of fewer bytes, which the table has to answer
    /// alike.
    fn look_up_twice<A: Address>(
        &mut self,
        table: &impl Lookup<A>,
        programs: &[Program],
        addresses: &[A],
        turn: usize,
        next_hops: &mut [NextHop],
    ) {
        // Each program in turn, so that all of them pass the suite. What one stages is more than all the keys
        // of a short batch, and the suite has millions of these: there the last one, which stages nothing,
        // goes more often.
        let is_one_for_short = is_short(addresses.len()) && !turn.is_multiple_of(64);
        let program = &programs[if is_one_for_short { programs.len() - 1 } else { turn % programs.len() }];
        self.look_up(program, addresses, whole_key::<A>(), turn, next_hops);
        // Keys of fewer bytes are those whose last bytes are zero; each kind in turn.
        let kinds = narrow_keys::<A>();
        let narrow = kinds[turn / 2 % kinds.len()];
        let cut: Vec<A> = addresses.iter().map(|address| address.keep(8 * narrow)).collect();
        let (mut right, mut found) = (vec![NextHop(u32::MAX); cut.len()], vec![NextHop(u32::MAX); cut.len()]);
        table.lookup_batch(&cut, &mut right);
        self.look_up(program, &cut, narrow.into(), turn / 3, &mut found);
        assert_eq!(found, right, "{}: keys of {narrow} bytes", program.stem);
    }

    /// Looks up keys of so many bytes, which hold all of the address that isn't zero.
    fn look_up<A: Address>(
        &mut self,
        program: &Program,
        addresses: &[A],
        key_bytes: usize,
        turn: usize,
        next_hops: &mut [NextHop],
    ) {
        let (planes, widths) = planes(addresses, key_bytes);
        self.look_up_planes(program, key_bytes, (&planes, widths), turn, next_hops);
    }

    /// Looks up keys of so many bytes as they lie in their planes, each with the bytes of a key in it.
    pub(crate) fn look_up_planes(
        &mut self,
        program: &Program,
        key_bytes: usize,
        ([keys, low], widths): (&[Vec<u8>; 2], [usize; 2]),
        turn: usize,
        next_hops: &mut [NextHop],
    ) {
        // From the start of the buffers, or from a place where nothing is aligned to more than a key.
        let skip = if turn.is_multiple_of(7) { 1 } else { 0 };
        let asked = Asked {
            program,
            kernel: program.kernel(key_bytes),
            parts: [keys, low],
            count: next_hops.len(),
            result_bytes: program.result_bytes,
            lead: [widths[0] * skip, widths[1] * skip, program.result_bytes * skip],
            threads: 1024,
        };
        let found = self.look_up_batch(&asked, turn);
        for (next_hop, found) in next_hops.iter_mut().zip(found.chunks(program.result_bytes)) {
            let mut wide = [0; 4];
            wide[..found.len()].copy_from_slice(found);
            *next_hop = NextHop(u32::from_le_bytes(wide));
        }
    }
}

/// The planes of keys of so many bytes, and the bytes of a key in each.
fn planes<A: Address>(addresses: &[A], key_bytes: usize) -> ([Vec<u8>; 2], [usize; 2]) {
    let (first, second) = match key_bytes {
        3 => (2, 1),
        6 => (4, 2),
        whole => (whole, 0),
    };
    let mut planes = [Vec::new(), Vec::new()];
    for address in addresses {
        let all = address.to_u128() << (128 - u32::from(A::BITS));
        let part = |from: usize, count: usize| (all << (8 * from)) >> (128 - 8 * count);
        planes[0].extend(&part(0, first).to_le_bytes()[..first]);
        if second > 0 {
            planes[1].extend(&part(first, second).to_le_bytes()[..second]);
        }
    }
    (planes, [first, second])
}

/// [`wirespeed_fib::conformance!`] for engines mirrored on the device, where there is one; without what is of
/// building alone.
macro_rules! on_device {
    ($($module:ident, $address:ty, $engine:ty;)+) => {
        $(on_device! { @ $module, $address, $engine,
            hand_picked_tables random_tables random_updates images live_readers churn })+
    };
    (@ $module:ident, $address:ty, $engine:ty, $($test:ident)+) => {
        mod $module {
            $(#[test]
            fn $test() {
                if $crate::device::runs(stringify!($test)) {
                    wirespeed_fib::conformance::$test::<$address, $crate::mirror::Mirrored<$engine>>();
                }
            })+
            #[test]
            fn edges() {
                if $crate::device::device().is_some() {
                    super::edges::<$address, $engine>();
                }
            }
        }
    };
}
