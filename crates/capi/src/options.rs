//! [`ws_options`]: the settings of a table that is built.
#![allow(unsafe_code)]

use std::ffi::c_char;
use std::path::Path;

use wirespeed::fib::read::ReadOptions;
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
    /// Whether labels of routes in MRT and bgpdump are the origins of their AS paths, and not their next
    /// hops, 0 or 1. Only for addresses.
    pub origins: u8,
}

/// Checked settings.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Options<'c> {
    pub(crate) engine: Option<&'c str>,
    pub(crate) assume: Option<&'c str>,
    pub(crate) memory_cap: Option<u64>,
    pub(crate) prefix_lookups: bool,
    pub(crate) origins: bool,
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
        let is_set = |value: u8, name: &str| match value {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(Failure::argument(format!("options.{name} is {other}, not 0 or 1"))),
        };
        let prefix_lookups = is_set(options.prefix_lookups, "prefix_lookups")?;
        let origins = is_set(options.origins, "origins")?;
        // SAFETY: the caller vouches for the texts.
        let (engine, assume) = unsafe {
            (optional(options.engine, "options.engine")?, optional(options.assume, "options.assume")?)
        };
        let memory_cap = (options.memory_cap != 0).then_some(options.memory_cap);
        Ok(Self { engine, assume, memory_cap, prefix_lookups, origins })
    }

    /// Refuses settings that a table of these keys has no use for.
    pub(crate) fn only_for(self, what: &str) -> Result<Self, Failure> {
        for (is_set, name) in [(self.prefix_lookups, "prefix_lookups"), (self.origins, "origins")] {
            if is_set && what != "addresses" {
                return Err(Failure::argument(format!("options.{name} is not for a table of {what}")));
            }
        }
        if self.assume.is_some() && what != "rules" {
            return Err(Failure::argument(format!("options.assume is not for a table of {what}")));
        }
        Ok(self)
    }

    /// Refuses settings for a file that has its own.
    pub(crate) fn none_for_image(self, path: &Path) -> Result<(), Failure> {
        let Self { engine, assume, memory_cap, prefix_lookups, origins } = self;
        if engine.is_some() || assume.is_some() || memory_cap.is_some() || prefix_lookups || origins {
            let path = path.display();
            return Err(Failure::argument(format!(
                "{path}: an image has its own settings, and takes no options"
            )));
        }
        Ok(())
    }

    /// Options for reading routes.
    pub(crate) fn reading(self) -> ReadOptions {
        ReadOptions { origins: self.origins, ..ReadOptions::default() }
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
        origins: 0,
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
            refused(ws_options { origins: 1, ..DEFAULTS }).contains("origins is not for a table of names")
        );
        assert!(
            refused(ws_options { prefix_lookups: 1, ..DEFAULTS }).contains("is not for a table of names")
        );
        assert!(refused(ws_options { assume: c"ct=new".as_ptr(), ..DEFAULTS }).contains("options.assume"));
    }
}
