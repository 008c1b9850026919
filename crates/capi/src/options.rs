//! [`ws_options`]: the settings of a table that is built.
#![allow(unsafe_code)]

use std::ffi::c_char;
use std::path::Path;

use wirespeed::content::{Content, How};
use wirespeed::fib::read::ReadOptions;
use wirespeed::image::Image;

use crate::boundary::{Failure, given, optional};

/// Settings of a table that is built. Set size to sizeof(ws_options) and all that is not needed to 0. NULL in
/// place of the settings stands for the defaults. An image file has settings of its own, and takes none.
///
/// The settings from format on say how files are read; for addresses and rules also those that are loaded
/// later. They are those of lookupctl of the same names. A file that has no use for one is refused. Lists
/// have commas between.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ws_options {
    /// sizeof(ws_options).
    pub size: usize,
    /// Name of the engine, or NULL for the best one.
    pub engine: *const c_char,
    /// Most bytes of the compiled table in its two copies; for addresses, of each family. 0 for the default.
    pub memory_cap: u64,
    /// Whether lookups can give the length of the matched prefix, 0 or 1. Only for addresses.
    pub prefix_lookups: u8,
    /// Whether labels of routes in MRT and bgpdump are the origins of their AS paths, and not their next
    /// hops, 0 or 1. Only for addresses.
    pub origins: u8,
    /// Whether host bits of prefixes are cleared, 0 or 1. By default such prefixes are refused. Only for
    /// addresses.
    pub mask_host_bits: u8,
    /// Family of addresses in CSV that are decimal numbers, 4 or 6, or 0. Only for addresses.
    pub address_numbers: u8,
    /// Whether only the ICANN section of the Public Suffix List is read, 0 or 1. Only for names.
    pub icann: u8,
    /// Name of the format, such as "mrt" or "hosts", or NULL to recognise it by content.
    pub format: *const c_char,
    /// Columns of CSV, or fields of another format with fields, that are the label, such as "asn,country".
    /// NULL for all. Only for addresses and names.
    pub value_columns: *const c_char,
    /// Column of CSV that has the names, such as "domain". NULL to find it by usual names. Only for names.
    pub name_column: *const c_char,
    /// Column of CSV with the prefix, or the two with an address and a length, such as "net,len". NULL to
    /// find them by usual names. Only for addresses.
    pub prefix_columns: *const c_char,
    /// Columns of CSV with the first and the last address of a range, such as "from,to", or NULL. Only for
    /// addresses.
    pub range_columns: *const c_char,
    /// Peer whose routes are taken from MRT or bgpdump: a number, an address or an AS. NULL for the one with
    /// most prefixes. Only for addresses.
    pub peer: *const c_char,
    /// VRF whose routes are taken from FRR's JSON of several VRFs, or NULL. Only for addresses.
    pub vrf: *const c_char,
    /// Set whose members are taken from a file with several sets of ipset or nft, or NULL. Only for
    /// addresses.
    pub set: *const c_char,
    /// Facts about all packets that decide rules of a file, such as "ct=new,in=eth0", or NULL. Only for
    /// rules.
    pub assume: *const c_char,
    /// Chain of iptables-save (NULL for INPUT) or of nft; security groups, by ids or names; or the network
    /// policy, by NAME or NAMESPACE/NAME. Only for rules.
    pub chain: *const c_char,
    /// Table of iptables-save (NULL for filter) or of nft; "ingress" (NULL) or "egress" of security groups
    /// and network policies. Only for rules.
    pub rule_table: *const c_char,
}

/// Checked settings.
#[derive(Clone, Debug, Default)]
pub(crate) struct Options<'c> {
    pub(crate) engine: Option<&'c str>,
    pub(crate) memory_cap: Option<u64>,
    pub(crate) prefix_lookups: bool,
    pub(crate) how: How,
    /// The settings that are given and that only some kinds of tables have, and these kinds.
    particular: Vec<(&'static str, &'static str)>,
    is_given: bool,
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
        let given = unsafe { given(options, "options") }?;
        // SAFETY: the caller vouches for the text.
        let engine = unsafe { optional(given.engine, "options.engine") }?;
        let memory_cap = (given.memory_cap != 0).then_some(given.memory_cap);
        let mut options = Self { engine, memory_cap, ..Self::default() };
        options.is_given = engine.is_some() || memory_cap.is_some();
        options.prefix_lookups =
            options.takes("prefix_lookups", "addresses", is_set("prefix_lookups", given.prefix_lookups)?);
        for (name, of, value) in [
            ("origins", "addresses", given.origins),
            ("mask_host_bits", "addresses", given.mask_host_bits),
            ("icann", "names", given.icann),
        ] {
            let is_set = is_set(name, value)?;
            if options.takes(name, of, is_set) {
                options.set(name, "")?;
            }
        }
        if options.takes("address_numbers", "addresses", given.address_numbers != 0) {
            options.set("address_numbers", &given.address_numbers.to_string())?;
        }
        for (name, of, value) in [
            ("format", "", given.format),
            ("value_columns", "addresses, names", given.value_columns),
            ("name_column", "names", given.name_column),
            ("prefix_columns", "addresses", given.prefix_columns),
            ("range_columns", "addresses", given.range_columns),
            ("peer", "addresses", given.peer),
            ("vrf", "addresses", given.vrf),
            ("set", "addresses", given.set),
            ("chain", "rules", given.chain),
            ("rule_table", "rules", given.rule_table),
            ("assume", "rules", given.assume),
        ] {
            // SAFETY: the caller vouches for the texts.
            let value = unsafe { optional(value, &format!("options.{name}")) }?;
            options.takes(name, of, value.is_some());
            let facts =
                value.into_iter().flat_map(|value| value.split(if name == "assume" { ',' } else { '\0' }));
            facts.into_iter().try_for_each(|value| options.set(name, value))?;
        }
        Ok(options)
    }

    /// Notes a setting that is given, and for which tables it is. Returns whether it is given.
    fn takes(&mut self, name: &'static str, of: &'static str, is_given: bool) -> bool {
        self.is_given |= is_given;
        if is_given && !of.is_empty() {
            self.particular.push((name, of));
        }
        is_given
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), Failure> {
        let set = self.how.set(&name.replace('_', "-"), value);
        set.map_err(|error| Failure::argument(format!("options.{name}: {error}")))
    }

    /// Refuses settings that a table of these keys has no use for.
    pub(crate) fn only_for(self, what: &str) -> Result<Self, Failure> {
        match self.particular.iter().find(|(_, of)| !of.split(", ").any(|of| of == what)) {
            None => Ok(self),
            Some((name, _)) => Err(Failure::argument(format!("options.{name} is not for a table of {what}"))),
        }
    }

    /// The settings for files that are read later.
    pub(crate) fn for_later(self) -> Options<'static> {
        Options { how: self.how, ..Options::default() }
    }

    /// Refuses settings for reading that a file of this content has no use for.
    pub(crate) fn check(&self, path: &Path, content: Content) -> Result<(), Failure> {
        let checked = self.how.check(content);
        checked.map_err(|error| Failure::state(format!("{}: options: {error}", path.display())))
    }

    /// The format, if one is named. `of` picks those of the table's kind.
    pub(crate) fn format<F>(&self, of: impl FnOnce(Content) -> Option<F>) -> Result<Option<F>, Failure> {
        let Some(content) = self.how.content else { return Ok(None) };
        let other = || Failure::argument(format!("options.format: {content} is not for this table"));
        of(content).map(Some).ok_or_else(other)
    }

    /// Options for reading routes.
    pub(crate) fn reading(&self) -> Result<ReadOptions, Failure> {
        let format = self.format(|content| match content {
            Content::Routes(format) => Some(format),
            _ => None,
        })?;
        Ok(ReadOptions { format, ..self.how.routes.clone() })
    }

    /// Refuses settings for a file that has its own.
    pub(crate) fn none_for_image(&self, path: &Path) -> Result<(), Failure> {
        if !self.is_given {
            return Ok(());
        }
        let path = path.display();
        Err(Failure::argument(format!("{path}: an image has its own settings, and takes no options")))
    }
}

/// A builder with a setting, if it is given.
pub(crate) fn with<B, V>(builder: B, setting: Option<V>, set: impl FnOnce(B, V) -> B) -> B {
    match setting {
        Some(setting) => set(builder, setting),
        None => builder,
    }
}

fn is_set(name: &str, value: u8) -> Result<bool, Failure> {
    match value {
        0 => Ok(false),
        1 => Ok(true),
        other => Err(Failure::argument(format!("options.{name} is {other}, not 0 or 1"))),
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
        memory_cap: 0,
        prefix_lookups: 0,
        origins: 0,
        mask_host_bits: 0,
        address_numbers: 0,
        icann: 0,
        format: ptr::null(),
        value_columns: ptr::null(),
        name_column: ptr::null(),
        prefix_columns: ptr::null(),
        range_columns: ptr::null(),
        peer: ptr::null(),
        vrf: ptr::null(),
        set: ptr::null(),
        assume: ptr::null(),
        chain: ptr::null(),
        rule_table: ptr::null(),
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
        for (options, said) in [
            (
                ws_options { assume: c"ct=new".as_ptr(), ..DEFAULTS },
                "options.assume is not for a table of names",
            ),
            (
                ws_options { chain: c"INPUT".as_ptr(), ..DEFAULTS },
                "options.chain is not for a table of names",
            ),
            (ws_options { set: c"".as_ptr(), ..DEFAULTS }, "options.set: set=: the option needs a value"),
            (ws_options { address_numbers: 5, ..DEFAULTS }, "a family is 4 or 6"),
            (ws_options { range_columns: c"a".as_ptr(), ..DEFAULTS }, "a range has two columns"),
        ] {
            assert!(refused(options).contains(said), "{}", refused(options));
        }
        let facts = ws_options { assume: c"ct=new,in=eth0".as_ptr(), icann: 1, ..DEFAULTS };
        // SAFETY: the text ends with a zero.
        let facts = unsafe { Options::of(&raw const facts) }.unwrap().how;
        assert_eq!((facts.assume.len(), facts.icann_only), (2, true));
        let columns =
            ws_options { name_column: c"site".as_ptr(), value_columns: c"a,b".as_ptr(), ..DEFAULTS };
        // SAFETY: the texts end with a zero.
        let columns = unsafe { Options::of(&raw const columns) }.unwrap();
        assert_eq!(columns.how.names.columns.values, ["a", "b"]);
        assert!(columns.clone().only_for("names").is_ok() && columns.clone().only_for("addresses").is_err());
        assert!(columns.only_for("rules").is_err());
    }
}
