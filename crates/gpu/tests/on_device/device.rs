//! The device that tests run on.
//!
//! By default it is the host build of the kernels under sanitizers; with `WIRESPEED_TEST_DEVICE=cuda` it is
//! the first GPU. Where there is neither, tests say that they are skipped and why.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytemuck::{bytes_of, cast_slice_mut};
use wirespeed_gpu::driver::batches::{self, Batches, KernelBatch};
use wirespeed_gpu::driver::{DevicePtr, Driver, Kernel, Shape, Stream, writers};
use wirespeed_image::device::{OnDevice, Program, Sections};
use wirespeed_image::{Image, Patch, SectionId, rounds};
use wirespeed_kernels_host::{HostDriver, Sanitizers};

/// A device and a stream of it.
pub(crate) struct Device {
    pub(crate) driver: Box<dyn Driver>,
    pub(crate) stream: Stream,
    /// Memory that batches on a GPU share, and how much, as taking it anew costs more than looking them up.
    /// The host build takes each block on its own, so that a sanitizer sees its ends.
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
    Some(Box::new(HostDriver::for_tests(Sanitizers::On)?))
}

pub(crate) fn is_gpu() -> bool {
    std::env::var_os("WIRESPEED_TEST_DEVICE").is_some_and(|device| device == "cuda")
}

/// Whether the suites run whole: on a GPU, and where it is asked for.
pub(crate) fn is_whole() -> bool {
    is_gpu() || std::env::var_os("WIRESPEED_TEST_WHOLE").is_some()
}

/// The step from one try to the next: 1 where the suites run whole.
pub(crate) fn stride() -> usize {
    if is_whole() { 1 } else { wirespeed_image::rounds::stride() }
}

/// Whether a part of the suite of addresses runs here: all of it in fewer rounds, but for what wears an
/// engine's storage out. Kernels see of that what patches are, and the host build takes minutes for it. A
/// plain run leaves out what the engine's own crate has just tried, images and readers.
pub(crate) fn runs(test: &str) -> bool {
    if test == "churn" && !is_whole() {
        println!("skipped: minutes on the host build; WIRESPEED_TEST_WHOLE=1 runs it");
        return false;
    }
    let is_tried_without = matches!(test, "images" | "live_readers");
    !(is_tried_without && !is_whole() && wirespeed_image::rounds::leaves_to_ci()) && device().is_some()
}

/// What is on the device.
pub(crate) struct Copy {
    pub(crate) sections: Vec<DevicePtr>,
    pub(crate) programs: Vec<Program>,
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
        let listed = T::kernels();
        assert!(programs.iter().all(|program| listed.contains(&program.stem)), "{listed:?}");
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

    /// Waits until all that was given is done. The host build takes what it is given before the call is over
    /// and works in order, so that reads alone wait for it.
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
        let shape = Shape::row(2, 64, 0);
        self.launch(
            &writers::patch(),
            shape,
            [bytes_of(&[block[0].0, writes.len() as u64]), bytes_of(&widths)],
        );
        self.give_back(&block);
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

/// A batch to be looked up.
pub(crate) struct Asked<'a> {
    pub(crate) program: &'a Program,
    pub(crate) kernel: Kernel,
    /// The keys and their second part.
    pub(crate) parts: [&'a [u8]; 2],
    pub(crate) count: usize,
    /// Bytes of a result.
    pub(crate) result_bytes: usize,
    /// How many bytes after the starts of their memory keys, second part and results are.
    pub(crate) lead: [usize; 3],
    /// The most threads of a block.
    pub(crate) threads: u32,
}

impl Device {
    /// Looks up a batch; the bytes of its results. Blocks, threads and rows change from turn to turn; each
    /// row looks up all of it, and has results of its own.
    pub(crate) fn look_up_batch(&mut self, asked: &Asked<'_>, turn: usize) -> Vec<u8> {
        let &Asked { program, ref kernel, parts, count, result_bytes, lead, threads } = asked;
        let shapes = [(1, 32), (3, 64), (2, 96), (1, threads)];
        let (blocks, threads) = shapes[turn % shapes.len()];
        let rows = match turn % (6 * rounds::plain_step(3)) {
            1 => 3,
            5 => batches::MOST,
            _ => 1,
        };
        let mut shape = Shape::row(blocks, threads, program.shared);
        shape.rows = u32::try_from(rows).expect("few rows");
        // Each part on its own, so that a sanitizer sees both ends.
        let results = lead[2] + count * result_bytes;
        let words = rows * blocks as usize;
        let mut sizes = vec![lead[0] + parts[0].len(), lead[1] + parts[1].len(), words * size_of::<u32>()];
        sizes.resize(sizes.len() + rows, results);
        let taken = self.take(&sizes);
        let [first, second] = [0, 1].map(|part| taken[part].plus(lead[part] as u64));
        self.write(first, parts[0]);
        self.write(second, parts[1]);
        self.write(taken[2], &vec![0; words * size_of::<u32>()]);
        // Now and then each block of each row has to say that it is done.
        let is_asked = turn.is_multiple_of(5);
        let mark = |row: usize| 0x600d_0000 | u32::try_from(turn << 4 & 0xfff0 | row).expect("a word");
        let batches: Vec<_> = (0..rows)
            .map(|row| KernelBatch {
                keys: first,
                low: second,
                results: taken[3 + row].plus(lead[2] as u64),
                count: count as u64,
                done: if is_asked { taken[2].plus(row as u64 * u64::from(blocks) * 4) } else { DevicePtr(0) },
                mark: mark(row),
                result_bytes: u32::try_from(result_bytes).expect("few bytes"),
            })
            .collect();
        if count > 0 {
            self.launch(kernel, shape, [bytes_of(&Batches::of(&batches)), &program.table]);
            let mut said = vec![0; words];
            self.read(taken[2], cast_slice_mut(&mut said));
            let says = |word: usize| if is_asked { mark(word / blocks as usize) } else { 0 };
            assert!(
                said.into_iter().eq((0..words).map(says)),
                "{}: {blocks} blocks, {rows} rows",
                kernel.name
            );
        }
        let mut of_rows = batches.iter().map(|batch| {
            let mut found = vec![0; count * result_bytes];
            self.read(batch.results, &mut found);
            found
        });
        let found = of_rows.next().expect("a row");
        assert!(of_rows.all(|other| other == found), "{}: {rows} rows differ", kernel.name);
        self.give_back(&taken);
        found
    }
}
