//! The device that tests run on, and engines whose tables answer from it.
//!
//! By default it is the host build of the kernels under sanitizers; with `WIRESPEED_TEST_DEVICE=cuda` it is the first GPU.
//! Where there is neither, tests say that they are skipped and why.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytemuck::bytes_of;
use wirespeed_fib::{
    Address, BuildError, BuildOptions, Engine, Family, Lpm, NextHop, Outgrown, Prefix, Rib, Step,
};
use wirespeed_gpu::driver::{DevicePtr, Driver, Kernel, Shape, Stream};
use wirespeed_gpu::program::{OnDevice, Program, Sections};
use wirespeed_image::{Checked, Image, ImageError, Patch, PatchError, SectionId, Table};
use wirespeed_kernels_host::{HostDriver, Sanitizers, build};

/// A device and a stream of it.
pub(crate) struct Device {
    pub(crate) driver: Box<dyn Driver>,
    pub(crate) stream: Stream,
    /// Memory that batches on a GPU share, and how much, as taking it anew costs more than looking them up. The host build takes
    /// each block on its own, so that a sanitizer sees its ends.
    scratch: Option<(DevicePtr, usize)>,
}

pub(crate) type Shared = Arc<Mutex<Device>>;

/// The device of this thread; `None`, after saying why, where there is none.
pub(crate) fn device() -> Option<Shared> {
    thread_local! {
        static DEVICE: Option<Shared> = open();
    }
    DEVICE.with(Clone::clone)
}

fn open() -> Option<Shared> {
    // Each test asks for the device before anything else, so that all of them take as many rounds.
    if !is_whole() {
        wirespeed_fib::conformance::rounds::go_through_one_in(8);
    }
    let mut driver = driver()?;
    let stream = driver.stream().expect("a device has streams");
    Some(Arc::new(Mutex::new(Device { driver, stream, scratch: None })))
}

/// A new driver of the device under test.
pub(crate) fn driver() -> Option<Box<dyn Driver>> {
    if is_gpu() {
        return match wirespeed_gpu::driver::Cuda::open(0) {
            Ok(cuda) => Some(Box::new(cuda)),
            Err(why) => {
                eprintln!("skipped: {why}");
                None
            }
        };
    }
    match build(Sanitizers::On) {
        Ok(program) => Some(Box::new(HostDriver::start(&program).expect("the server starts"))),
        Err(wirespeed_kernels_host::BuildError::NoCompiler) => {
            eprintln!("skipped: no C++ compiler for the host build of the kernels");
            None
        }
        Err(refused) => panic!("{refused}"),
    }
}

pub(crate) fn is_gpu() -> bool {
    std::env::var_os("WIRESPEED_TEST_DEVICE").is_some_and(|device| device == "cuda")
}

/// Whether the suites run whole: on a GPU, and where it is asked for.
pub(crate) fn is_whole() -> bool {
    is_gpu() || std::env::var_os("WIRESPEED_TEST_WHOLE").is_some()
}

/// Whether a part of the suite of addresses runs here: all of it in fewer rounds, but for what wears an engine's storage out. Kernels
/// see of that what patches are, and the host build takes minutes for it.
pub(crate) fn runs(test: &str) -> bool {
    if test == "churn" && !is_whole() {
        println!("skipped: minutes on the host build; WIRESPEED_TEST_WHOLE=1 runs it");
        return false;
    }
    device().is_some()
}

/// An engine whose tables answer from the device.
pub(crate) struct Mirrored<E>(E);

/// A table that answers from the device's copy of its image.
pub(crate) struct MirroredTable<A, T> {
    table: T,
    device: Shared,
    copy: Mutex<Option<Copy>>,
    /// Whether the device was asked in this state of the table.
    has_answered: AtomicBool,
    address: PhantomData<A>,
}

/// What is on the device.
pub(crate) struct Copy {
    pub(crate) sections: Vec<DevicePtr>,
    pub(crate) programs: Vec<Program>,
}

impl<A: Address, E: Engine<A>> Engine<A> for Mirrored<E>
where
    E::Table: OnDevice + Lpm<A>,
{
    const NAME: &'static str = E::NAME;
    type Table = MirroredTable<A, E::Table>;

    fn build(rib: &Rib<A>, options: &BuildOptions) -> Result<(Self, Self::Table), BuildError> {
        let (engine, table) = E::build(rib, options)?;
        Ok((Self(engine), MirroredTable::new(table)))
    }

    fn update(&mut self, rib: &Rib<A>, changed: &[Prefix<A>]) -> Result<Patch, Outgrown> {
        self.0.update(rib, changed)
    }

    fn memory_usage(&self) -> u64 {
        self.0.memory_usage()
    }
}

impl<A: Address, T: OnDevice + Lpm<A>> MirroredTable<A, T> {
    pub(crate) fn new(table: T) -> Self {
        let device = device().expect("tests ask for the device first");
        Self {
            table,
            device,
            copy: Mutex::new(None),
            has_answered: AtomicBool::new(false),
            address: PhantomData,
        }
    }
}

impl<A, T> MirroredTable<A, T> {
    /// Gives the copy back.
    fn forget(&mut self) {
        if let Some(copy) = self.copy.get_mut().unwrap_or_else(PoisonError::into_inner).take() {
            lock(&self.device).forget(&copy);
        }
    }
}

impl<A: Address, T: OnDevice + Lpm<A>> Clone for MirroredTable<A, T> {
    fn clone(&self) -> Self {
        Self::new(self.table.clone())
    }
}

impl<A, T> Drop for MirroredTable<A, T> {
    fn drop(&mut self) {
        self.forget();
    }
}

impl<A: Address, T: OnDevice + Lpm<A>> Table for MirroredTable<A, T> {
    const KIND: &'static str = T::KIND;
    const LAYOUT: u32 = T::LAYOUT;

    fn from_image(image: Image) -> Result<Self, ImageError> {
        T::from_image(image).map(Self::new)
    }

    fn image(&self) -> &Image {
        self.table.image()
    }

    fn image_mut(&mut self, checked: Checked) -> &mut Image {
        // Whoever writes past `apply` has the copy made anew.
        *self.has_answered.get_mut() = false;
        self.forget();
        self.table.image_mut(checked)
    }

    fn admits(&self, section: SectionId, value: u64, results: u64) -> bool {
        self.table.admits(section, value, results)
    }

    fn admits_at(&self, section: SectionId, index: u64, value: u64, results: u64) -> bool {
        self.table.admits_at(section, index, value, results)
    }

    fn check(&self, patch: &Patch) -> Result<(), PatchError> {
        self.table.check(patch)
    }

    fn apply(&mut self, patch: &Patch) -> Result<(), PatchError> {
        self.table.apply(patch)?;
        *self.has_answered.get_mut() = false;
        let copy = self.copy.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(copy) = copy {
            lock(&self.device).patch(self.table.image(), &copy.sections, patch);
        }
        Ok(())
    }
}

impl<A: Address, T: OnDevice + Lpm<A>> Lpm<A> for MirroredTable<A, T> {
    fn lookup(&self, address: A) -> NextHop {
        let mut found = [NextHop(u32::MAX)];
        self.lookup_batch(&[address], &mut found);
        found[0]
    }

    fn lookup_batch(&self, addresses: &[A], next_hops: &mut [NextHop]) {
        static TURN: AtomicUsize = AtomicUsize::new(0);
        // The suite asks each state for its keys in one batch and then again in short ones and one by one. What comes first is the
        // device's to answer, and all that is long; of the rest one in sixteen, as each crosses to another process several times.
        let turn = TURN.fetch_add(1, Ordering::Relaxed);
        let is_first = !self.has_answered.swap(true, Ordering::Relaxed);
        if !is_first && addresses.len() < 128 && !turn.is_multiple_of(16) {
            return self.table.lookup_batch(addresses, next_hops);
        }
        let mut device = lock(&self.device);
        let mut copy = self.copy.lock().unwrap_or_else(PoisonError::into_inner);
        let Copy { programs, .. } = copy.get_or_insert_with(|| device.upload(&self.table));
        // Each program in turn, so that all of them pass the suite. What one stages is more than all the keys of a short batch, and
        // the suite has millions of these: there the last one, which stages nothing, goes more often.
        let is_short = addresses.len() < 128 && !turn.is_multiple_of(64);
        let program = if is_short { &programs[programs.len() - 1] } else { &programs[turn % programs.len()] };
        device.look_up(program, addresses, whole_key::<A>(), turn, next_hops);
        // Keys of fewer bytes are those whose last bytes are zero; each kind in turn.
        let kinds = narrow_keys::<A>();
        let narrow = kinds[turn / 2 % kinds.len()];
        let cut: Vec<A> = addresses.iter().map(|address| address.keep(8 * narrow)).collect();
        let (mut right, mut found) = (vec![NextHop(u32::MAX); cut.len()], vec![NextHop(u32::MAX); cut.len()]);
        self.table.lookup_batch(&cut, &mut right);
        device.look_up(program, &cut, narrow.into(), turn / 3, &mut found);
        assert_eq!(found, right, "{}: keys of {narrow} bytes", program.stem);
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

pub(crate) fn lock(device: &Shared) -> MutexGuard<'_, Device> {
    device.lock().unwrap_or_else(PoisonError::into_inner)
}

#[allow(unsafe_code)] // each call is waited for before anything that it uses goes
impl Device {
    pub(crate) fn upload<T: OnDevice>(&mut self, table: &T) -> Copy {
        let image = table.image();
        let ids = || (0..image.sections()).map(|at| SectionId(u16::try_from(at).expect("sections are few")));
        let bytes: Vec<_> = ids().map(|id| image.padded(id).len()).collect();
        let sections = self.driver.alloc(&bytes).expect("there is memory");
        for (id, &to) in ids().zip(&sections) {
            self.write(to, image.padded(id));
        }
        let programs = table.programs(Sections(&sections)).expect("the table has a program");
        Copy { sections, programs }
    }

    /// Gives a copy back.
    pub(crate) fn forget(&mut self, copy: &Copy) {
        let _ = self.driver.synchronize(self.stream);
        // SAFETY: the stream's work is done.
        unsafe { self.driver.free(&copy.sections) };
    }

    pub(crate) fn write(&mut self, to: DevicePtr, bytes: &[u8]) {
        // SAFETY: the source lives until the copy is waited for.
        unsafe { self.driver.copy_in(self.stream, to, bytes.as_ptr(), bytes.len()) }.expect("it is copied");
        self.settle();
    }

    pub(crate) fn read(&mut self, from: DevicePtr, bytes: &mut [u8]) {
        // SAFETY: as above.
        unsafe { self.driver.copy_out(self.stream, bytes.as_mut_ptr(), from, bytes.len()) }
            .expect("it is copied");
        self.settle();
    }

    pub(crate) fn launch(&mut self, kernel: &Kernel, shape: Shape, arguments: [&[u8]; 2]) {
        // SAFETY: the arguments point into blocks that live until the launch is waited for.
        unsafe { self.driver.launch(self.stream, kernel, shape, arguments) }.expect("it is launched");
        self.settle();
    }

    /// Waits until all that was given is done. The host build takes what it is given before the call is over and works in order, so
    /// that reads alone wait for it.
    fn settle(&mut self) {
        if is_gpu() {
            self.driver.synchronize(self.stream).expect("it is done");
        }
    }

    pub(crate) fn patch(&mut self, image: &Image, sections: &[DevicePtr], patch: &Patch) {
        if patch.is_empty() {
            return;
        }
        let mut writes: Vec<(u32, [u64; 2])> = patch
            .writes()
            .iter()
            .map(|write| {
                let width = image.width(write.section()).expect("the patch fits");
                let at = sections[usize::from(write.section().0)].plus(write.index() * u64::from(width));
                (width, [at.0, write.value])
            })
            .collect();
        writes.sort_by_key(|&(width, _)| width);
        let of = |width| writes.iter().filter(|write| write.0 == width).count() as u64;
        let widths = [of(1), of(2), of(4)];
        let flat: Vec<u64> = writes.iter().flat_map(|write| write.1).collect();
        let bytes: &[u8] = bytemuck::cast_slice(&flat);
        let block = self.take(&[bytes.len()]);
        self.write(block[0], bytes);
        let kernel = Kernel { module: "table", name: "patch".into() };
        let shape = Shape { blocks: 2, threads: 64, shared: 0 };
        self.launch(&kernel, shape, [bytes_of(&[block[0].0, writes.len() as u64]), bytes_of(&widths)]);
        self.give_back(&block);
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

    /// Memory for blocks of so many bytes, until they are given back.
    pub(crate) fn take(&mut self, sizes: &[usize]) -> Vec<DevicePtr> {
        const ALIGN: usize = 256;
        if !is_gpu() {
            return self.driver.alloc(sizes).expect("there is memory");
        }
        let needed: usize = sizes.iter().map(|size| size.next_multiple_of(ALIGN)).sum();
        let (start, _) = match self.scratch.filter(|&(_, bytes)| bytes >= needed) {
            Some(scratch) => scratch,
            None => {
                // The smaller one stays until the driver ends.
                let bytes = needed.max(1 << 20);
                let block = self.driver.alloc(&[bytes]).expect("there is memory");
                *self.scratch.insert((block[0], bytes))
            }
        };
        let mut end = 0;
        let mut place = |size: &usize| {
            let at = start.plus(end as u64);
            end += size.next_multiple_of(ALIGN);
            at
        };
        sizes.iter().map(&mut place).collect()
    }

    pub(crate) fn give_back(&mut self, blocks: &[DevicePtr]) {
        if !is_gpu() {
            // SAFETY: all work is waited for.
            unsafe { self.driver.free(blocks) };
        }
    }
}

/// `Batch` of `kernels/batch.cuh`: keys, their second part and results, each of so many keys; where to say that it is done, and how.
pub(crate) fn batch(at: [DevicePtr; 3], count: usize, done: u64, mark: u64) -> [u64; 6] {
    [at[0].0, at[1].0, at[2].0, count as u64, done, mark]
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

/// [`wirespeed_fib::conformance!`] for engines mirrored on the device, where there is one; without what is of building alone.
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
                    wirespeed_fib::conformance::$test::<$address, $crate::device::Mirrored<$engine>>();
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
