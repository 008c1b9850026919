//! The suite that every engine of rules passes, with every tuple.

#![allow(clippy::unwrap_used)] // a test's helpers may panic like the test

use wirespeed_classify::linear::Linear;
use wirespeed_classify::quilt::Quilt;
use wirespeed_classify::{Ipv4Tuple, Ipv6Tuple, OpenFlowTuple, conformance};

conformance!(linear_ipv4, Ipv4Tuple, Linear<Ipv4Tuple>);
conformance!(linear_ipv6, Ipv6Tuple, Linear<Ipv6Tuple>);
conformance!(linear_openflow, OpenFlowTuple, Linear<OpenFlowTuple>);
conformance!(quilt_ipv4, Ipv4Tuple, Quilt<Ipv4Tuple>);
conformance!(quilt_ipv6, Ipv6Tuple, Quilt<Ipv6Tuple>);
conformance!(quilt_openflow, OpenFlowTuple, Quilt<OpenFlowTuple>);
