//! Results of the driver's calls: errors after which a device can't be used any more, and the driver's texts
//! for errors.

use cudarc::driver::result::DriverError;
use cudarc::driver::sys::CUresult;

use crate::driver::Result;
use crate::error::GpuError;

/// Converts the result of a call. The error is `Lost` if the context or the device can't be used any more.
pub(super) fn call(name: &'static str, result: CUresult) -> Result<()> {
    use CUresult as Of;
    match result {
        Of::CUDA_SUCCESS => Ok(()),
        Of::CUDA_ERROR_ILLEGAL_ADDRESS
        | Of::CUDA_ERROR_LAUNCH_TIMEOUT
        | Of::CUDA_ERROR_CONTEXT_IS_DESTROYED
        | Of::CUDA_ERROR_ASSERT
        | Of::CUDA_ERROR_HARDWARE_STACK_ERROR
        | Of::CUDA_ERROR_ILLEGAL_INSTRUCTION
        | Of::CUDA_ERROR_MISALIGNED_ADDRESS
        | Of::CUDA_ERROR_INVALID_ADDRESS_SPACE
        | Of::CUDA_ERROR_INVALID_PC
        | Of::CUDA_ERROR_LAUNCH_FAILED
        | Of::CUDA_ERROR_ECC_UNCORRECTABLE
        | Of::CUDA_ERROR_NVLINK_UNCORRECTABLE
        | Of::CUDA_ERROR_DEVICE_UNAVAILABLE
        | Of::CUDA_ERROR_DEINITIALIZED
        | Of::CUDA_ERROR_EXTERNAL_DEVICE
        | Of::CUDA_ERROR_SYSTEM_NOT_READY
        | Of::CUDA_ERROR_UNKNOWN => Err(GpuError::Lost(format!("{name}: {}", name_of(result)))),
        _ => Err(GpuError::Call { call: name, why: name_of(result) }),
    }
}

/// The driver's name of a result, with the driver's explanation.
pub(super) fn name_of(result: CUresult) -> String {
    let error = DriverError(result);
    let text = |text: std::result::Result<&std::ffi::CStr, DriverError>| {
        text.map_or_else(|_| "?".to_owned(), |text| text.to_string_lossy().into_owned())
    };
    format!("{} ({})", text(error.error_name()), text(error.error_string()))
}
