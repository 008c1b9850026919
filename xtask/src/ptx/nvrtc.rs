//! NVRTC, NVIDIA's compiler as a library: opened by its path at run time, so that building this needs nothing
//! of CUDA. The one file here with unsafe code; what leaves it is safe.
//!
//! Sources are handed over as texts, under names without a folder: no path of this machine reaches the PTX.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::Path;
use std::ptr;

use anyhow::{Context, Result, bail, ensure};
use libloading::Library;

use super::source::Sources;

/// What became of a module.
pub(super) struct Compiled {
    pub(super) ptx: String,
    /// Warnings, or nothing.
    pub(super) log: String,
}

/// The library's functions, with the signatures of `nvrtc.h` of 12.2.
pub(super) struct Nvrtc {
    version: unsafe extern "C" fn(*mut c_int, *mut c_int) -> Status,
    error_string: unsafe extern "C" fn(Status) -> *const c_char,
    create: Create,
    compile: unsafe extern "C" fn(Handle, c_int, *const *const c_char) -> Status,
    destroy: unsafe extern "C" fn(*mut Handle) -> Status,
    log_size: SizeOf,
    log: TextOf,
    ptx_size: SizeOf,
    ptx: TextOf,
    /// What the functions are in; it stays open as long as they can be called.
    _library: Library,
}

/// `nvrtcProgram`.
type Handle = *mut c_void;
/// `nvrtcResult`; 0 is success.
type Status = c_int;
type Create = unsafe extern "C" fn(
    *mut Handle,
    *const c_char,
    *const c_char,
    c_int,
    *const *const c_char,
    *const *const c_char,
) -> Status;
type SizeOf = unsafe extern "C" fn(Handle, *mut usize) -> Status;
type TextOf = unsafe extern "C" fn(Handle, *mut c_char) -> Status;

#[allow(unsafe_code)]
impl Nvrtc {
    pub(super) fn open(path: &Path) -> Result<Self> {
        // SAFETY: the library is NVIDIA's, of a wheel that is pinned to the byte; its initialisers ask
        // nothing of whoever opens it.
        let library =
            unsafe { Library::new(path) }.with_context(|| format!("can't open {}", path.display()))?;
        /// The function of a name, of the type that the field asks for.
        macro_rules! function {
            ($name:literal) => {
                // SAFETY: the type is that of this function in `nvrtc.h`, which hasn't changed since CUDA 7;
                // the pointer stays good because `_library` lives as long.
                *unsafe { library.get($name) }.with_context(|| format!("{} is no NVRTC", path.display()))?
            };
        }
        Ok(Self {
            version: function!("nvrtcVersion"),
            error_string: function!("nvrtcGetErrorString"),
            create: function!("nvrtcCreateProgram"),
            compile: function!("nvrtcCompileProgram"),
            destroy: function!("nvrtcDestroyProgram"),
            log_size: function!("nvrtcGetProgramLogSize"),
            log: function!("nvrtcGetProgramLog"),
            ptx_size: function!("nvrtcGetPTXSize"),
            ptx: function!("nvrtcGetPTX"),
            _library: library,
        })
    }

    /// Its version, as "12.2".
    pub(super) fn version(&self) -> Result<String> {
        let (mut major, mut minor) = (0, 0);
        // SAFETY: both pointers are to live integers of the type that is written.
        self.ok(unsafe { (self.version)(&raw mut major, &raw mut minor) })?;
        Ok(format!("{major}.{minor}"))
    }

    /// Compiles a module; an error carries what the compiler said.
    pub(super) fn compile(&self, module: &str, sources: &Sources, flags: &[&str]) -> Result<Compiled> {
        let program = Program::new(self, sources).with_context(|| module.to_owned())?;
        let flags = flags.iter().copied().map(CString::new).collect::<Result<Vec<_>, _>>()?;
        let flags = pointers(&flags);
        // SAFETY: the handle is of a live program; `flags` holds as many pointers as said, to strings that
        // end in NUL and outlive the call, which keeps none of them.
        let status = unsafe { (self.compile)(program.handle, c_int::try_from(flags.len())?, flags.as_ptr()) };
        let log = program.text(self.log_size, self.log)?;
        if status != 0 {
            bail!("{module}: {}\n{log}", self.describe(status));
        }
        Ok(Compiled { ptx: program.text(self.ptx_size, self.ptx)?, log })
    }

    fn ok(&self, status: Status) -> Result<()> {
        ensure!(status == 0, "{}", self.describe(status));
        Ok(())
    }

    fn describe(&self, status: Status) -> String {
        // SAFETY: takes any number, and returns a string that ends in NUL and lives as long as the library.
        let text = unsafe { CStr::from_ptr((self.error_string)(status)) };
        text.to_string_lossy().into_owned()
    }
}

/// A program of the library's, which has copies of all texts; destroyed when dropped.
struct Program<'a> {
    nvrtc: &'a Nvrtc,
    handle: Handle,
}

#[allow(unsafe_code)]
impl<'a> Program<'a> {
    fn new(nvrtc: &'a Nvrtc, sources: &Sources) -> Result<Self> {
        let (names, texts): (Vec<_>, Vec<_>) = sources.headers().unzip();
        let names = names.into_iter().map(CString::new).collect::<Result<Vec<_>, _>>()?;
        let texts = texts.into_iter().map(CString::new).collect::<Result<Vec<_>, _>>()?;
        let (own_name, own_text) = (CString::new(sources.own.as_str())?, CString::new(sources.own_text())?);
        let mut handle = ptr::null_mut();
        // SAFETY: the handle is written to a live variable. All strings end in NUL, and both lists hold as
        // many pointers as said; they outlive the call, which copies what it keeps.
        nvrtc.ok(unsafe {
            (nvrtc.create)(
                &raw mut handle,
                own_text.as_ptr(),
                own_name.as_ptr(),
                c_int::try_from(names.len())?,
                pointers(&texts).as_ptr(),
                pointers(&names).as_ptr(),
            )
        })?;
        Ok(Self { nvrtc, handle })
    }

    /// A text of the program's, without the NUL at its end.
    fn text(&self, size_of: SizeOf, text_of: TextOf) -> Result<String> {
        let mut size = 0;
        // SAFETY: the handle is of a live program, and the size is written to a live variable.
        self.nvrtc.ok(unsafe { size_of(self.handle, &raw mut size) })?;
        let mut text = vec![0_u8; size];
        // SAFETY: as above; the function writes exactly the bytes that its partner has just asked for, and
        // `text` has them.
        self.nvrtc.ok(unsafe { text_of(self.handle, text.as_mut_ptr().cast()) })?;
        text.truncate(text.iter().position(|&byte| byte == 0).unwrap_or(size));
        String::from_utf8(text).context("the compiler's output is no UTF-8")
    }
}

#[allow(unsafe_code)]
impl Drop for Program<'_> {
    fn drop(&mut self) {
        // SAFETY: the handle is of a program that was created and not destroyed yet, and nobody has it any
        // more. What could fail leaks a program at worst.
        unsafe { (self.nvrtc.destroy)(&raw mut self.handle) };
    }
}

fn pointers(strings: &[CString]) -> Vec<*const c_char> {
    strings.iter().map(|string| string.as_ptr()).collect()
}
