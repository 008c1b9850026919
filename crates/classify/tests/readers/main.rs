//! Readers of rules: each format by hand, at random, and beside the programs that it is written for.

mod allow;
mod beside_sets;
mod firewalls;
mod formats;
mod hostile;
mod hostile_files;
mod iptables;
mod kernel;
mod kernel_nft;
mod nft;
mod open_vswitch;
mod ovs;
