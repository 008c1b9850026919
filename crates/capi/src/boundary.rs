//! The boundary to C: pointers that are checked before they are followed, and errors and panics as a status.
#![allow(unsafe_code)]

use std::any::Any;
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};
use std::mem::{MaybeUninit, size_of};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::slice;
use std::sync::{Mutex, MutexGuard};

use wirespeed::Error;

/// Outcome of a call.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ws_status {
    /// Success.
    Ok = 0,
    /// An argument that no call may have: NULL, a wrong length or number, a prefix with host bits.
    Argument = -1,
    /// A file, a limit or the state of a table that does not allow the call.
    Failed = -2,
    /// A defect of the library.
    Defect = -3,
}

/// Why a call fails.
#[derive(Debug)]
pub(crate) struct Failure {
    status: ws_status,
    message: String,
}

impl Failure {
    pub(crate) fn argument(message: impl Into<String>) -> Self {
        Self { status: ws_status::Argument, message: message.into() }
    }

    pub(crate) fn state(message: impl Into<String>) -> Self {
        Self { status: ws_status::Failed, message: message.into() }
    }

    /// The failure of an element of an array, counted from 0.
    pub(crate) fn at(self, element: usize) -> Self {
        Self { message: format!("element {element}: {}", self.message), ..self }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let status = match error {
            Error::HostBits(_) | Error::UnknownEngine(_) => ws_status::Argument,
            _ => ws_status::Failed,
        };
        Self { status, message: error.to_string() }
    }
}

thread_local! {
    /// The message of this thread's last call that failed.
    static LAST: RefCell<Option<CString>> = const { RefCell::new(None) };
}

/// Message of this thread's last call that failed, or NULL if none has. It stays valid until another call of
/// this thread fails, or the thread ends.
#[unsafe(no_mangle)]
pub extern "C" fn ws_last_error() -> *const c_char {
    let message = LAST.try_with(|last| last.borrow().as_ref().map_or(ptr::null(), |text| text.as_ptr()));
    message.unwrap_or(ptr::null())
}

/// Version of the library, such as "0.1.0".
#[unsafe(no_mangle)]
pub extern "C" fn ws_version() -> *const c_char {
    const VERSION: &CStr =
        match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
            Ok(version) => version,
            Err(_) => panic!("a version without a zero byte"),
        };
    VERSION.as_ptr()
}

/// Makes a call, and gives its outcome.
pub(crate) fn status(call: impl FnOnce() -> Result<(), Failure>) -> ws_status {
    match caught(call) {
        Ok(()) => ws_status::Ok,
        Err(failure) => {
            let Failure { status, message } = failure;
            keep(message);
            status
        }
    }
}

/// Makes a call that makes a handle. NULL if it fails.
pub(crate) fn handle<T>(call: impl FnOnce() -> Result<T, Failure>) -> *mut T {
    match caught(call) {
        Ok(made) => Box::into_raw(Box::new(made)),
        Err(failure) => {
            keep(failure.message);
            ptr::null_mut()
        }
    }
}

/// Frees a handle.
///
/// # Safety
///
/// The handle is NULL, or [`handle`] made it and nobody uses it any more.
pub(crate) unsafe fn free<T>(handle: *mut T) {
    if handle.is_null() {
        return;
    }
    // SAFETY: `handle` made it from a box, and the caller gives it up.
    let owned = unsafe { Box::from_raw(handle) };
    // There is nobody to tell of a defect, but no panic may reach C.
    _ = catch_unwind(AssertUnwindSafe(|| drop(owned)));
}

/// Turns a panic into a failure. What a panic may leave half done lies behind a [`Mutex`], which is then
/// poisoned: [`lock`].
fn caught<T>(call: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| {
        Err(Failure {
            status: ws_status::Defect,
            message: format!("a defect of the library: {}", said(&*panic)),
        })
    })
}

fn said(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message")
}

fn keep(message: String) {
    let text = CString::new(message.replace('\0', "\\0")).unwrap_or_default();
    // A thread that is ending has no place for messages any more.
    _ = LAST.try_with(|last| *last.borrow_mut() = Some(text));
}

/// Locks a table. After a defect its state is unknown.
pub(crate) fn lock<T>(table: &Mutex<T>) -> Result<MutexGuard<'_, T>, Failure> {
    table.lock().map_err(|_| Failure {
        status: ws_status::Defect,
        message: "an earlier call on this table met a defect of the library: make the table anew".to_owned(),
    })
}

/// The object of a pointer. `what` names it in the error.
///
/// # Safety
///
/// The pointer is NULL, misaligned, or leads to a `T` that nobody changes or frees during the call.
pub(crate) unsafe fn given<'c, T>(at: *const T, what: &str) -> Result<&'c T, Failure> {
    aligned(at, what)?;
    // SAFETY: it is not NULL and aligned, so the caller vouches for the rest.
    Ok(unsafe { &*at })
}

/// The place that a call writes one value to.
///
/// # Safety
///
/// The pointer is NULL, misaligned, or leads to memory for a `T` that nobody else uses during the call.
pub(crate) unsafe fn place<'c, T>(at: *mut T, what: &str) -> Result<&'c mut MaybeUninit<T>, Failure> {
    aligned(at, what)?;
    // SAFETY: it is not NULL and aligned, so the caller vouches for the rest; the memory need not be
    // initialised.
    Ok(unsafe { &mut *at.cast() })
}

/// The elements of an array that a call reads.
///
/// # Safety
///
/// The pointer is NULL, misaligned, or leads to `len` elements that nobody changes during the call.
pub(crate) unsafe fn input<'c, T>(at: *const T, len: usize, what: &str) -> Result<&'c [T], Failure> {
    if len == 0 {
        return Ok(&[]);
    }
    bytes_of(at, len, what)?;
    // SAFETY: the pointer is not NULL and aligned, and the array is no larger than `isize::MAX` bytes; the
    // caller vouches for the rest.
    Ok(unsafe { slice::from_raw_parts(at, len) })
}

/// The array that a call writes, and the one that it reads, of `len` elements each.
///
/// # Safety
///
/// Each pointer is NULL, misaligned, or leads to `len` elements that nobody else changes during the call.
/// Those of `to` need not be initialised, and nobody reads them.
pub(crate) unsafe fn batch<'c, K, R>(
    (from, to): (*const K, *mut R),
    len: usize,
    (keys, results): (&str, &str),
) -> Result<(&'c [K], &'c mut [MaybeUninit<R>]), Failure> {
    if len == 0 {
        return Ok((&[], &mut []));
    }
    let (read, written) = (bytes_of(from, len, keys)?, bytes_of(to.cast_const(), len, results)?);
    apart(read, written, (keys, results))?;
    // SAFETY: both pointers are not NULL and aligned, both arrays are no larger than `isize::MAX` bytes, and
    // they don't overlap; the caller vouches for the rest. Memory that is written only may be uninitialised
    // behind `MaybeUninit`.
    Ok(unsafe { (slice::from_raw_parts(from, len), slice::from_raw_parts_mut(to.cast(), len)) })
}

/// Another array that a call writes, beside those of a batch.
///
/// # Safety
///
/// Like [`batch`]. `beside` are the addresses of the call's other arrays.
pub(crate) unsafe fn output<'c, R>(
    to: *mut R,
    len: usize,
    what: &str,
    beside: &[(Bytes, &str)],
) -> Result<&'c mut [MaybeUninit<R>], Failure> {
    if len == 0 {
        return Ok(&mut []);
    }
    let written = bytes_of(to.cast_const(), len, what)?;
    beside.iter().try_for_each(|&(other, name)| apart(other, written, (name, what)))?;
    // SAFETY: the pointer is not NULL and aligned, the array is no larger than `isize::MAX` bytes, and it
    // overlaps none of the others; the caller vouches for the rest.
    Ok(unsafe { slice::from_raw_parts_mut(to.cast(), len) })
}

/// The addresses of an array: its first byte, and the number of bytes.
pub(crate) type Bytes = (usize, usize);

/// The addresses of a slice.
pub(crate) fn addresses<T>(slice: &[T]) -> Bytes {
    (slice.as_ptr().addr(), size_of_val(slice))
}

fn bytes_of<T>(at: *const T, len: usize, what: &str) -> Result<Bytes, Failure> {
    aligned(at, what)?;
    let bytes = len.checked_mul(size_of::<T>()).filter(|&bytes| {
        // No array of Rust is larger, and none goes around the end of the address space.
        isize::try_from(bytes).is_ok() && at.addr().checked_add(bytes).is_some()
    });
    let bytes = bytes.ok_or_else(|| {
        Failure::argument(format!("{what}: {len} elements of {} bytes fit no memory", size_of::<T>()))
    })?;
    Ok((at.addr(), bytes))
}

fn aligned<T>(at: *const T, what: &str) -> Result<(), Failure> {
    if at.is_null() {
        return Err(Failure::argument(format!("{what} is NULL")));
    }
    if !at.is_aligned() {
        let align = align_of::<T>();
        return Err(Failure::argument(format!("{what} is not aligned to {align} bytes")));
    }
    Ok(())
}

fn apart(one: Bytes, other: Bytes, (name, of_other): (&str, &str)) -> Result<(), Failure> {
    if one.0 < other.0 + other.1 && other.0 < one.0 + one.1 {
        return Err(Failure::argument(format!("{name} and {of_other} overlap")));
    }
    Ok(())
}

/// A text.
///
/// # Safety
///
/// The pointer is NULL, or leads to bytes that end with a zero and that nobody changes during the call.
pub(crate) unsafe fn text<'c>(at: *const c_char, what: &str) -> Result<&'c str, Failure> {
    aligned(at, what)?;
    // SAFETY: it is not NULL; the caller vouches for the zero and that nobody changes the bytes.
    let text = unsafe { CStr::from_ptr(at) };
    text.to_str()
        .map_err(|error| Failure::argument(format!("{what} is not UTF-8 from byte {}", error.valid_up_to())))
}

/// A text that may be left out.
///
/// # Safety
///
/// Like [`text`].
pub(crate) unsafe fn optional<'c>(at: *const c_char, what: &str) -> Result<Option<&'c str>, Failure> {
    if at.is_null() {
        return Ok(None);
    }
    // SAFETY: as for this function.
    unsafe { text(at, what) }.map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message() -> String {
        let at = ws_last_error();
        // SAFETY: a message of this thread, which ends with a zero.
        unsafe { CStr::from_ptr(at) }.to_str().unwrap().to_owned()
    }

    #[test]
    fn a_panic_is_a_status() {
        assert_eq!(status(|| panic!("no {}", "way")), ws_status::Defect);
        assert_eq!(message(), "a defect of the library: no way");
        assert!(handle::<u8>(|| panic!("at all")).is_null());
        assert_eq!(message(), "a defect of the library: at all");
    }

    #[test]
    fn a_table_of_a_defect_refuses_calls() {
        let table = Mutex::new(0);
        let failed = status(|| {
            let _held = lock(&table)?;
            panic!("half done")
        });
        assert_eq!(failed, ws_status::Defect);
        assert_eq!(status(|| lock(&table).map(drop)), ws_status::Defect);
        assert!(message().contains("make the table anew"), "{}", message());
    }

    #[test]
    fn each_thread_has_its_own_message() {
        assert_eq!(status(|| Err(Failure::argument("mine"))), ws_status::Argument);
        let other = std::thread::spawn(|| ws_last_error().is_null());
        assert!(other.join().unwrap());
        assert_eq!(status(|| Err(Failure::state("a\0b"))), ws_status::Failed);
        assert_eq!(message(), "a\\0b");
    }

    #[test]
    fn pointers_are_checked() {
        let mut words = [1_u32; 8];
        let at = words.as_mut_ptr();
        let of = |from: *const u32, to: *mut u32, len| {
            // SAFETY: pointers into the array, or ones that are refused.
            unsafe { batch((from, to), len, ("keys", "results")) }.map(drop).map_err(|error| error.message)
        };
        let null = ptr::null_mut();
        assert_eq!(of(at, null, 1).unwrap_err(), "results is NULL");
        assert_eq!(of(null, at, 1).unwrap_err(), "keys is NULL");
        assert_eq!(of(null, null, 0), Ok(()));
        assert_eq!(of(at, at.wrapping_add(4), 5).unwrap_err(), "keys and results overlap");
        assert_eq!(of(at.wrapping_add(4), at, 5).unwrap_err(), "keys and results overlap");
        assert_eq!(of(at, at.wrapping_add(4), 4), Ok(()));
        assert_eq!(of(at.wrapping_byte_add(2), at, 1).unwrap_err(), "keys is not aligned to 4 bytes");
        let most = usize::MAX / 4;
        let expected = format!("keys: {most} elements of 4 bytes fit no memory");
        assert_eq!(of(at, at.wrapping_add(4), most).unwrap_err(), expected);
        // SAFETY: bytes that end with a zero.
        let wrong = unsafe { text(c"ab\xff".as_ptr(), "path") }.unwrap_err();
        assert_eq!(wrong.message, "path is not UTF-8 from byte 2");
    }
}
