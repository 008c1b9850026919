//! The formats of other programs that a table of names or a list of domains is written in.

use std::io::Write;
use std::path::Path;

use anyhow::{Result, bail};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use wirespeed::names::lists::Entries;
use wirespeed::names::read::lists::ListFormat;
use wirespeed::names::read::{NameFib, NameFormat};
use wirespeed_namelookup::write::{write_domains, write_list, write_table, write_table_as_list};

use crate::number::counted;
use crate::output;
use crate::verbs::generate::Common;

/// The format to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum To {
    Image,
    Names,
    Domains,
    List(ListFormat),
}

impl To {
    fn all() -> impl Iterator<Item = Self> {
        [Self::Image, Self::Names, Self::Domains].into_iter().chain(ListFormat::ALL.map(Self::List))
    }

    /// The name on the command line.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Image => "image",
            Self::Names => NameFormat::Names.name(),
            Self::Domains => NameFormat::Domains.name(),
            Self::List(format) => format.name(),
        }
    }

    /// Writes a table, or a list with these entries, and tells so.
    pub(super) fn write(self, fib: &NameFib, list: Option<&Entries>, file: Option<&Path>) -> Result<()> {
        Common::write_to(file, |out| self.write_into(fib, list, out))?;
        eprintln!("{}: {}, {}", output::shown(file), self.name(), counted(fib.names.len(), "name"));
        Ok(())
    }

    fn write_into(self, fib: &NameFib, list: Option<&Entries>, out: &mut dyn Write) -> Result<()> {
        let NameFib { names, labels } = fib;
        match (self, list) {
            (Self::Image, _) => bail!("an image is compiled, and not written as a text"),
            (Self::List(format), Some(list)) => write_list(list, labels, format, out)?,
            (Self::List(format), None) => write_table_as_list(names, labels, format, out)?,
            (Self::Names | Self::Domains, Some(_)) => bail!(
                "--to {} has no scopes and exceptions, and a list of domains has: --to hosts, adblock, dnsmasq, rpz or psl",
                self.name()
            ),
            (Self::Names, None) => write_table(names, labels, out)?,
            (Self::Domains, None) => write_domains(names, labels, out)?,
        }
        Ok(())
    }
}

pub(super) fn to_parser() -> impl TypedValueParser<Value = To> {
    PossibleValuesParser::new(To::all().map(To::name))
        .map(|name| To::all().find(|to| to.name() == name).expect("one of the possible values"))
}
