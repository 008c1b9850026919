//! [`ws_options`]: the settings of a table that is built.
#![allow(unsafe_code)]

use std::ffi::c_char;
use std::path::Path;

use wirespeed::image::Image;

use crate::boundary::{Failure, given, optional};

/// Settings of a table that is built. Set size to sizeof(ws_options) and all that is not needed to 0. NULL in
/// place of the settings stands for the defaults. An image file has settings of its own, and takes none.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ws_options {
    /// sizeof(ws_options).
    pub size: usize,
    /// Name of the engine, or NULL for the best one.
    pub engine: *const c_char,
    /// Facts about all packets that decide rules of a file, such as "ct=new,in=eth0", or NULL. Only for
    /// rules.
    pub assume: *const c_char,
    /// Most bytes of the compiled table in its two copies; for addresses, of each family. 0 for the default.
    pub memory_cap: u64,
    /// Whether lookups can give the length of the matched prefix, 0 or 1. Only for addresses.
    pub prefix_lookups: u8,
}

/// Checked settings.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Options<'c> {
    pub(crate) engine: Option<&'c str>,
    pub(crate) assume: Option<&'c str>,
    pub(crate) memory_cap: Option<u64>,
    pub(crate) prefix_lookups: bool,
}

impl<'c> Options<'c> {
    /// Checks the settings of a caller.
    ///
    /// # Safety
    ///
    /// The pointer is NULL or leads to settings, whose texts end with a zero.
    pub(crate) unsafe fn of(options: *const ws_options) -> Result<Self, Failure> {
        if options.is_null() {
            return Ok(Self::default());
        }
        let wanted = size_of::<ws_options>();
        // SAFETY: whatever version of the header the caller was compiled with, the settings begin with
        // `size`.
        let size = *unsafe { given(options.cast::<usize>(), "options") }?;
        if size != wanted {
            return Err(Failure::argument(format!(
                "options.size is {size}, not sizeof(ws_options), {wanted}"
            )));
        }
        // SAFETY: the caller vouches for them.
        let options = unsafe { given(options, "options") }?;
        let prefix_lookups = match options.prefix_lookups {
            0 => false,
            1 => true,
            other => return Err(Failure::argument(format!("options.prefix_lookups is {other}, not 0 or 1"))),
        };
        // SAFETY: the caller vouches for the texts.
        let (engine, assume) = unsafe {
            (optional(options.engine, "options.engine")?, optional(options.assume, "options.assume")?)
        };
        let memory_cap = (options.memory_cap != 0).then_some(options.memory_cap);
        Ok(Self { engine, assume, memory_cap, prefix_lookups })
    }

    /// Refuses settings that a table of these keys has no use for.
    pub(crate) fn only_for(self, what: &str) -> Result<Self, Failure> {
        if self.prefix_lookups && what != "addresses" {
            return Err(Failure::argument(format!("options.prefix_lookups is not for a table of {what}")));
        }
        if self.assume.is_some() && what != "rules" {
            return Err(Failure::argument(format!("options.assume is not for a table of {what}")));
        }
        Ok(self)
    }

    /// Refuses settings for a file that has its own.
    pub(crate) fn none_for_image(self, path: &Path) -> Result<(), Failure> {
        let Self { engine, assume, memory_cap, prefix_lookups } = self;
        if engine.is_some() || assume.is_some() || memory_cap.is_some() || prefix_lookups {
            let path = path.display();
            return Err(Failure::argument(format!(
                "{path}: an image has its own settings, and takes no options"
            )));
        }
        Ok(())
    }

    /// The facts, one by one.
    pub(crate) fn facts(self) -> impl Iterator<Item = &'c str> {
        self.assume.into_iter().flat_map(|facts| facts.split(','))
    }
}

/// Whether a file is an image.
pub(crate) fn is_image(path: &Path) -> Result<bool, Failure> {
    Image::is_at(path).map_err(|error| Failure::state(format!("{}: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use std::ptr;

    use super::*;

    const DEFAULTS: ws_options = ws_options {
        size: size_of::<ws_options>(),
        engine: ptr::null(),
        assume: ptr::null(),
        memory_cap: 0,
        prefix_lookups: 0,
    };

    fn refused(options: ws_options) -> String {
        // SAFETY: settings, whose texts end with a zero.
        let checked =
            unsafe { Options::of(&raw const options) }.and_then(|options| options.only_for("names"));
        format!("{:?}", checked.unwrap_err())
    }

    #[test]
    fn settings_are_checked() {
        let defaults = DEFAULTS;
        // SAFETY: settings without texts.
        let defaults = unsafe { Options::of(&raw const defaults) }.unwrap();
        assert!(defaults.none_for_image(Path::new("a.img")).is_ok());
        let engine = ws_options { engine: c"fold".as_ptr(), ..DEFAULTS };
        // SAFETY: the text ends with a zero.
        let engine = unsafe { Options::of(&raw const engine) }.unwrap();
        assert_eq!(engine.engine, Some("fold"));
        assert!(engine.none_for_image(Path::new("a.img")).is_err());
        assert!(refused(ws_options { size: 4, ..DEFAULTS }).contains("options.size is 4"));
        assert!(refused(ws_options { prefix_lookups: 2, ..DEFAULTS }).contains("is 2, not 0 or 1"));
        assert!(
            refused(ws_options { prefix_lookups: 1, ..DEFAULTS }).contains("is not for a table of names")
        );
        assert!(refused(ws_options { assume: c"ct=new".as_ptr(), ..DEFAULTS }).contains("options.assume"));
    }
}
