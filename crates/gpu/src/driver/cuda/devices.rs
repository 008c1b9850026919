//! The GPUs of this machine, and checks of the driver and its version. The head of [`cuda`](super) explains
//! `unsafe`.

use std::ffi::{c_char, c_int};

use cudarc::driver::sys::{self, CUresult};

use super::error::{call, name_of};
use crate::driver::{Properties, Result};
use crate::error::GpuError;

/// The CUDA version of the kernels' PTX (8.2), and the first driver release with that version.
const NEEDED: (u32, u32) = (12, 2);
const NEEDED_RELEASE: u32 = 535;

/// The GPUs of this machine.
pub fn devices() -> Result<Vec<Properties>> {
    (0..count()?).map(properties_of).collect()
}

/// Opens the driver, once. Returns the number of GPUs.
pub(super) fn count() -> Result<usize> {
    // SAFETY: opening a library runs its initialisers; this is the driver's.
    if !unsafe { sys::is_culib_present() } {
        return Err(GpuError::NoDriver);
    }
    // SAFETY: see the head.
    match unsafe { sys::cuInit(0) } {
        CUresult::CUDA_SUCCESS => {}
        CUresult::CUDA_ERROR_NO_DEVICE => return Err(GpuError::NoDevice),
        error => return Err(GpuError::DriverFailed(name_of(error))),
    }
    let mut version = 0;
    // SAFETY: see the head.
    call("cuDriverGetVersion", unsafe { sys::cuDriverGetVersion(&raw mut version) })?;
    let version = version.unsigned_abs();
    let found = (version / 1000, version % 1000 / 10);
    if found < NEEDED {
        return Err(GpuError::DriverTooOld { found, needed: NEEDED, needs_release: NEEDED_RELEASE });
    }
    let mut count = 0;
    // SAFETY: see the head.
    call("cuDeviceGetCount", unsafe { sys::cuDeviceGetCount(&raw mut count) })?;
    match usize::try_from(count) {
        Ok(count) if count > 0 => Ok(count),
        _ => Err(GpuError::NoDevice),
    }
}

pub(super) fn device(number: usize) -> Result<sys::CUdevice> {
    let mut device = 0;
    let number = c_int::try_from(number).unwrap_or(c_int::MAX);
    // SAFETY: see the head.
    call("cuDeviceGet", unsafe { sys::cuDeviceGet(&raw mut device, number) })?;
    Ok(device)
}

pub(super) fn properties_of(number: usize) -> Result<Properties> {
    use sys::CUdevice_attribute as Of;
    let device = device(number)?;
    let attribute = |which| {
        let mut value = 0;
        // SAFETY: see the head.
        call("cuDeviceGetAttribute", unsafe { sys::cuDeviceGetAttribute(&raw mut value, which, device) })?;
        Ok::<u32, GpuError>(value.unsigned_abs())
    };
    let text = |read: &dyn Fn(*mut c_char, c_int) -> CUresult, name| {
        let mut bytes = [0; 256];
        call(name, read(bytes.as_mut_ptr().cast(), 256))?;
        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
        Ok::<_, GpuError>(String::from_utf8_lossy(&bytes[..end]).into_owned())
    };
    let mut memory = 0;
    // SAFETY: see the head.
    call("cuDeviceTotalMem", unsafe { sys::cuDeviceTotalMem_v2(&raw mut memory, device) })?;
    Ok(Properties {
        // SAFETY: see the head; the text has room for as many bytes as is said.
        name: text(&|to, len| unsafe { sys::cuDeviceGetName(to, len, device) }, "cuDeviceGetName")?,
        capability: (
            attribute(Of::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            attribute(Of::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        ),
        memory: memory as u64,
        multiprocessors: attribute(Of::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        shared_per_block: attribute(Of::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
        l2: attribute(Of::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?.into(),
        // SAFETY: as above.
        bus: text(&|to, len| unsafe { sys::cuDeviceGetPCIBusId(to, len, device) }, "cuDeviceGetPCIBusId")?,
    })
}
