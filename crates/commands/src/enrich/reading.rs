//! Options for reading tables of addresses and of names: for all tables of a command line, or for one by its
//! name.

use anyhow::Result;
use clap::Args;
use wirespeed_records::TableFile;

/// Options for reading the tables that records are looked up in.
#[derive(Clone, Debug, Default, Args)]
#[command(
    next_help_heading = "Tables of addresses (all, or NAME=... the table --table NAME=FILE or --merge NAME=...)"
)]
pub struct ReadingArguments {
    /// Format of the table. By default recognised by content
    #[arg(long, value_name = "[NAME=]FORMAT")]
    table_format: Vec<String>,

    /// Set whose members to take from a file with several sets (ipset save, nft -j list ruleset)
    #[arg(long, value_name = "[NAME=]SET")]
    set: Vec<String>,

    /// VRF whose routes to take from FRR's JSON of several VRFs
    #[arg(long, value_name = "[NAME=]VRF")]
    vrf: Vec<String>,

    /// Peer whose routes to take from MRT or bgpdump. By default one peer for each family, the one with most
    /// prefixes
    #[arg(long, value_name = "[NAME=]NUMBER|ADDRESS|AS")]
    peer: Vec<String>,

    /// Column of CSV with the prefix, or the two with an address and a length or netmask. By default found by
    /// usual names
    #[arg(long, value_name = "[NAME=]COLUMN[,LENGTH]")]
    prefix_columns: Vec<String>,

    /// Columns of CSV with the first and the last address of a range
    #[arg(long, value_name = "[NAME=]FIRST,LAST")]
    range_columns: Vec<String>,

    /// Family of addresses of CSV that are decimal numbers. By default numbers are read in ranges alone
    #[arg(long, value_name = "[NAME=]4|6")]
    table_numbers: Vec<String>,

    /// Form of the names of a table of names (names, domains, urls, ndn), or format of a list of domains
    /// (hosts, adblock, dnsmasq, rpz, psl). By default recognised by content
    #[arg(long, value_name = "[NAME=]FORMAT", help_heading = NAMES)]
    names_format: Vec<String>,

    /// Column of CSV that has the names of a table of names. By default found by usual names (domain, fqdn,
    /// host, url, name, ...)
    #[arg(long, value_name = "[NAME=]COLUMN", help_heading = NAMES)]
    names_column: Vec<String>,

    /// Clear the host bits of prefixes, and count these prefixes. By default they are refused
    #[arg(long, value_name = "NAME", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    mask_host_bits: Vec<String>,
}

const NAMES: &str =
    "Tables of names (all, or NAME=... the table --names NAME=FILE or --merge-names NAME=...)";

impl ReadingArguments {
    /// States the options for the tables of addresses and of names that they are for.
    pub fn state(&self, tables: &mut [TableFile], names: &mut [TableFile]) -> Result<()> {
        TableFile::state_name_format(names, &self.names_format)?;
        TableFile::state_name_column(names, &self.names_column)?;
        let masked = self.mask_host_bits.iter().map(|name| match &**name {
            "" => "true".to_owned(),
            name => format!("{name}=true"),
        });
        let masked: Vec<_> = masked.collect();
        for (option, texts) in [
            ("format", &self.table_format),
            ("set", &self.set),
            ("vrf", &self.vrf),
            ("peer", &self.peer),
            ("prefix-columns", &self.prefix_columns),
            ("range-columns", &self.range_columns),
            ("address-numbers", &self.table_numbers),
            ("mask-host-bits", &masked),
        ] {
            TableFile::state(tables, option, texts)?;
        }
        Ok(())
    }

    /// The first option for names that is given. `None` if there is none.
    pub fn given_for_names(&self) -> Option<&'static str> {
        let given = [("--names-format", &self.names_format), ("--names-column", &self.names_column)];
        given.iter().find(|(_, given)| !given.is_empty()).map(|(option, _)| *option)
    }

    /// The first option for addresses that is given. `None` if there is none.
    pub fn given(&self) -> Option<&'static str> {
        let given = [
            ("--table-format", &self.table_format),
            ("--set", &self.set),
            ("--vrf", &self.vrf),
            ("--peer", &self.peer),
            ("--prefix-columns", &self.prefix_columns),
            ("--range-columns", &self.range_columns),
            ("--table-numbers", &self.table_numbers),
            ("--mask-host-bits", &self.mask_host_bits),
        ];
        given.iter().find(|(_, given)| !given.is_empty()).map(|(option, _)| *option)
    }
}
