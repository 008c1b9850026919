//! [`InForm`]: keys on the device in the form of a batch, of any domain, and bare launches over them.

use anyhow::{Result, ensure};
use bytemuck::bytes_of;
use wirespeed_gpu::driver::batches::Batches;
use wirespeed_gpu::driver::{DevicePtr, Shape, Stream};
use wirespeed_gpu::numbers::unpack;
use wirespeed_gpu::runtime::{DeviceKeys, DeviceMemory, Form};
use wirespeed_image::device::{Kind, Program};

use super::bench::{Bench, Uploaded, one_batch};

/// The most bytes of a result.
const RESULT_BYTES: usize = 4;

/// Keys on the device, and room for their results.
#[derive(Debug)]
pub struct InForm {
    /// The form of the keys.
    pub form: Form,
    /// The place of the keys.
    pub keys: DevicePtr,
    /// The place of the results.
    pub results: DevicePtr,
}

impl InForm {
    /// The second part of the keys. The first part for keys that have no second one.
    pub fn second(&self) -> DevicePtr {
        self.keys.plus(self.form.second().unwrap_or(0) as u64)
    }

    /// The keys as the runtime takes them.
    pub fn device_keys(&self) -> DeviceKeys {
        let (second, count) = (self.form.second().map(|_| self.second()), self.form.count());
        let keys = match self.form.kind() {
            Kind::Bytes(bytes) => DeviceKeys::bytes(bytes, self.keys, second, count),
            Kind::Named(kind) => DeviceKeys::parts(kind, self.keys, second, count),
        };
        self.form.result_bytes().map_or(keys, |bytes| keys.with_results_of(bytes))
    }

    /// The memory for results.
    pub fn memory(&self) -> DeviceMemory {
        DeviceMemory { at: self.results, bytes: RESULT_BYTES * self.form.count() }
    }
}

/// The argument of a kernel that looks up what lies there in this form.
pub(crate) fn batch_of(keys: DevicePtr, form: Form, results: DevicePtr) -> Batches {
    let second = keys.plus(form.second().unwrap_or(0) as u64);
    one_batch(keys, second, results, form.count(), form.result_bytes().unwrap_or(0))
}

#[allow(unsafe_code)] // every call is waited for before what it uses is given back
impl Bench {
    /// Puts keys on the device that lie in this form, up to the last byte that kernels read.
    pub fn in_form(&mut self, keys: &[u8], form: Form) -> Result<InForm> {
        let results = RESULT_BYTES * form.count();
        let blocks = self.driver.alloc(&[keys.len(), results])?;
        self.put(blocks[0], keys)?;
        self.put(blocks[1], &vec![0xff; results])?;
        Ok(InForm { form, keys: blocks[0], results: blocks[1] })
    }

    /// Gives the memory of keys back.
    pub fn drop_in_form(&mut self, keys: &InForm) -> Result<()> {
        self.free(&[keys.keys])?;
        self.free(&[keys.results])
    }

    /// Looks all of them up once.
    pub fn launch_in_form(&mut self, program: &Program, keys: &InForm, shape: Shape) -> Result<()> {
        let batch = batch_of(keys.keys, keys.form, keys.results);
        let arguments = [bytes_of(&batch), &program.table[..]];
        // SAFETY: keys, results and the table stay until they are given back, which waits for the stream.
        Ok(unsafe { self.driver.launch(self.stream, &program.kernel(keys.form.kind()), shape, arguments) }?)
    }

    /// Holds the results of the last lookup in a stream, of so many bytes each, against the right ones, and
    /// overwrites them.
    pub fn check_in_form(
        &mut self,
        stream: Stream,
        keys: &InForm,
        result_bytes: usize,
        right: &[u32],
    ) -> Result<()> {
        let mut bytes = vec![0; keys.form.count() * result_bytes];
        // SAFETY: the destination lives until the copy is waited for.
        unsafe { self.driver.copy_out(stream, bytes.as_mut_ptr(), keys.results, bytes.len()) }?;
        self.driver.synchronize(stream)?;
        let mut found = vec![0; right.len()];
        unpack(&bytes, result_bytes, &mut found);
        let differ = found.iter().zip(right).filter(|(found, right)| found != right).count();
        ensure!(differ == 0, "{differ} of {} results differ from the CPU's", right.len());
        bytes.fill(0xff);
        self.put(keys.results, &bytes)
    }

    /// Looks keys up once and holds the results against the right ones.
    pub fn try_in_form(
        &mut self,
        program: &Program,
        keys: &InForm,
        shape: Shape,
        right: &[u32],
    ) -> Result<()> {
        self.launch_in_form(program, keys, shape)?;
        let result_bytes = keys.form.result_bytes().unwrap_or(program.result_bytes);
        self.check_in_form(self.stream, keys, result_bytes, right).map_err(|why| why.context(program.stem))
    }
}

/// A kernel's rate by program and launch.
#[derive(Clone, Debug)]
pub struct KernelRate {
    /// The place of the program among the table's.
    pub program: usize,
    /// Bytes of shared memory of a block.
    pub shared: u32,
    /// Blocks and threads.
    pub shape: Shape,
    /// Keys a second.
    pub rate: f64,
}

/// Every program of a table in every shape, the results of each held against the right ones; the fastest
/// first.
pub fn kernel_rates(
    bench: &mut Bench,
    table: &Uploaded,
    keys: &InForm,
    right: &[u32],
    rounds: usize,
) -> Result<Vec<KernelRate>> {
    let mut rates = Vec::new();
    for (at, program) in table.programs.iter().enumerate() {
        for shape in bench.shapes(program, keys.form.kind())? {
            bench.try_in_form(program, keys, shape, right)?;
            let launch = |bench: &mut Bench| bench.launch_in_form(program, keys, shape);
            let rate = bench.rate_of(keys.form.count(), rounds, launch)?;
            rates.push(KernelRate { program: at, shared: program.shared, shape, rate });
        }
    }
    rates.sort_by(|a, b| b.rate.total_cmp(&a.rate));
    Ok(rates)
}
