//! The suite that every engine of rules passes, with every tuple; and broken engines that each of its tests must fail.

#![allow(clippy::unwrap_used)] // a test's helpers may panic like the test

mod broken;

use wirespeed_classify::linear::Linear;
use wirespeed_classify::{Ipv4Tuple, Ipv6Tuple, OpenFlowTuple, conformance, conformance_on_real_sets};

conformance!(linear_ipv4, Ipv4Tuple, Linear<Ipv4Tuple>);
conformance!(linear_ipv6, Ipv6Tuple, Linear<Ipv6Tuple>);
conformance!(linear_openflow, OpenFlowTuple, Linear<OpenFlowTuple>);
conformance_on_real_sets!(linear_on_real_sets, Linear<Ipv4Tuple>, Linear<OpenFlowTuple>);
