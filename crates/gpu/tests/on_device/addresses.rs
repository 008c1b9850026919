//! Engines of addresses whose tables answer from the device: each kernel with keys of each width.

use bytemuck::bytes_of;
use wirespeed_fib::{
    Address, BuildError, BuildOptions, Engine, Family, Lookup, NextHop, Outgrown, Prefix, Rib, Standing, Step,
};
use wirespeed_gpu::driver::Shape;
use wirespeed_image::Patch;
use wirespeed_image::device::{OnDevice, Program};

use super::device::{Device, batch};
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
        let results = next_hops.len() * program.result_bytes;
        let lead = [widths[0] * skip, widths[1] * skip, program.result_bytes * skip];
        let sizes = [keys.len() + lead[0], low.len() + lead[1], results + lead[2]];
        let blocks = self.take(&sizes);
        let at = [0, 1, 2].map(|part| blocks[part].plus(lead[part] as u64));
        self.write(at[0], keys);
        self.write(at[1], low);
        let shapes = [(1, 32), (3, 64), (2, 96), (1, 1024)];
        let (grid, threads) = shapes[turn % shapes.len()];
        let shape = Shape { blocks: grid, threads, shared: program.shared };
        // Now and then it has to say that it is done.
        let flag = if turn.is_multiple_of(5) { self.take(&[size_of::<u32>()]) } else { Vec::new() };
        let mark = 0x600d_0000 | turn as u64 & 0xffff;
        let done = flag.first().map_or(0, |done| done.0);
        let batch = batch(at, next_hops.len(), done, mark);
        self.launch(&program.kernel(key_bytes), shape, [bytes_of(&batch), &program.table]);
        if let &[done] = &flag[..] {
            let mut said = [0; size_of::<u32>()];
            self.read(done, &mut said);
            let is_said = u64::from(u32::from_le_bytes(said)) == mark;
            assert_eq!(
                is_said,
                grid == 1,
                "{}: of {grid} blocks one alone says that it is done",
                program.stem
            );
            self.give_back(&flag);
        }
        let mut found = vec![0; results];
        self.read(at[2], &mut found);
        for (next_hop, found) in next_hops.iter_mut().zip(found.chunks(program.result_bytes)) {
            let mut wide = [0; 4];
            wide[..found.len()].copy_from_slice(found);
            *next_hop = NextHop(u32::from_le_bytes(wide));
        }
        self.give_back(&blocks);
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
