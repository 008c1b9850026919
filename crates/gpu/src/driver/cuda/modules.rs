//! Modules and their kernels. Each is compiled and found on first use, and kept. The head of [`cuda`](super)
//! explains `unsafe`.

use std::ffi::{CString, c_void};
use std::ptr;

use cudarc::driver::sys::{self, CUresult};

use super::error::{call, name_of};
use super::{Cuda, int};
use crate::driver::{Kernel, Result};
use crate::error::GpuError;

/// A block gets more shared memory than this only if the kernel asks for it first.
const SHARED_UNASKED: u32 = 48 << 10;
/// Bytes for the log of the PTX compiler.
const LOG: usize = 16 << 10;

/// A kernel of a module.
#[derive(Clone, Copy, Debug)]
pub(super) struct Function {
    function: sys::CUfunction,
    /// Bytes of shared memory that the kernel may use.
    shared: u32,
}

impl Cuda {
    /// A kernel that may use `shared` bytes of shared memory.
    pub(super) fn function(&mut self, kernel: &Kernel, shared: u32) -> Result<sys::CUfunction> {
        let known = self.functions.get(kernel).copied();
        let mut function = match known {
            Some(function) => function,
            None => {
                let module = self.module(kernel.module)?;
                let no_kernel = || GpuError::NoKernel(kernel.name.clone());
                let name = CString::new(kernel.name.as_str()).map_err(|_| no_kernel())?;
                let mut function = ptr::null_mut();
                // SAFETY: see the head; the name ends with a zero.
                let found = unsafe { sys::cuModuleGetFunction(&raw mut function, module, name.as_ptr()) };
                if found == CUresult::CUDA_ERROR_NOT_FOUND {
                    return Err(no_kernel());
                }
                self.check("cuModuleGetFunction", found)?;
                Function { function, shared: SHARED_UNASKED }
            }
        };
        if shared > function.shared {
            let attribute = sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            // SAFETY: see the head.
            let set = unsafe { sys::cuFuncSetAttribute(function.function, attribute, int(shared)) };
            self.check("cuFuncSetAttribute", set)?;
            function.shared = shared;
        }
        if known.is_none_or(|known| known.shared != function.shared) {
            self.functions.insert(kernel.clone(), function);
        }
        Ok(function.function)
    }

    /// A module by its name.
    fn module(&mut self, name: &'static str) -> Result<sys::CUmodule> {
        if let Some(&module) = self.modules.get(name) {
            return Ok(module);
        }
        let source = wirespeed_kernels::module(name).ok_or_else(|| GpuError::NoKernel(name.to_owned()))?;
        let module = load(name, source.ptx())?;
        self.modules.insert(name, module);
        Ok(module)
    }
}

/// Compiles a module's PTX for the device of the current context.
fn load(name: &str, ptx: String) -> Result<sys::CUmodule> {
    use sys::CUjit_option as Option;
    let source = CString::new(ptx).map_err(|_| GpuError::NoKernel(name.to_owned()))?;
    let mut log = vec![0u8; LOG];
    let mut options = [Option::CU_JIT_ERROR_LOG_BUFFER, Option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES];
    // The driver takes numbers in place of addresses here.
    let mut values = [log.as_mut_ptr().cast::<c_void>(), ptr::without_provenance_mut(LOG)];
    let mut module = ptr::null_mut();
    // SAFETY: see the head; the source ends with a zero, and there are two options with a value each.
    let loaded = unsafe {
        sys::cuModuleLoadDataEx(
            &raw mut module,
            source.as_ptr().cast(),
            2,
            options.as_mut_ptr(),
            values.as_mut_ptr(),
        )
    };
    match call("cuModuleLoadDataEx", loaded) {
        Ok(()) => Ok(module),
        Err(error) if error.is_fatal() => Err(error),
        Err(_) => {
            let end = log.iter().position(|&byte| byte == 0).unwrap_or(LOG);
            let log = String::from_utf8_lossy(&log[..end]).trim().to_owned();
            Err(GpuError::Module { module: name.to_owned(), why: name_of(loaded), log })
        }
    }
}
