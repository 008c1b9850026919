//! The suite that every engine of rules passes, with every tuple; and broken engines that each of its tests
//! must fail.

#![allow(clippy::unwrap_used)] // a test's helpers may panic like the test

mod broken;
mod quilt;
mod wide;

use wirespeed_classify::bloom::BloomSearch;
use wirespeed_classify::linear::Linear;
use wirespeed_classify::quilt::Quilt;
use wirespeed_classify::tuple_search::TupleSearch;
use wirespeed_classify::{
    Ipv4Tuple, Ipv6Tuple, OpenFlow13Tuple, OpenFlowTuple, conformance, conformance_on_real_sets,
};

conformance!(linear_ipv4, Ipv4Tuple, Linear<Ipv4Tuple>);
conformance!(linear_ipv6, Ipv6Tuple, Linear<Ipv6Tuple>);
conformance!(linear_openflow, OpenFlowTuple, Linear<OpenFlowTuple>);
conformance!(linear_openflow13, OpenFlow13Tuple, Linear<OpenFlow13Tuple>);
conformance!(tuple_ipv4, Ipv4Tuple, TupleSearch<Ipv4Tuple>);
conformance!(tuple_ipv6, Ipv6Tuple, TupleSearch<Ipv6Tuple>);
conformance!(tuple_openflow, OpenFlowTuple, TupleSearch<OpenFlowTuple>);
conformance!(bloom_ipv4, Ipv4Tuple, BloomSearch<Ipv4Tuple>);
conformance!(bloom_ipv6, Ipv6Tuple, BloomSearch<Ipv6Tuple>);
conformance!(bloom_openflow, OpenFlowTuple, BloomSearch<OpenFlowTuple>);
conformance!(quilt_ipv4, Ipv4Tuple, Quilt<Ipv4Tuple>);
conformance!(quilt_ipv6, Ipv6Tuple, Quilt<Ipv6Tuple>);
conformance!(quilt_openflow, OpenFlowTuple, Quilt<OpenFlowTuple>);
conformance!(quilt_openflow13, OpenFlow13Tuple, Quilt<OpenFlow13Tuple>);
conformance_on_real_sets!(linear_on_real_sets, Linear<Ipv4Tuple>, Linear<OpenFlowTuple>);
conformance_on_real_sets!(tuple_on_real_sets, TupleSearch<Ipv4Tuple>, TupleSearch<OpenFlowTuple>);
conformance_on_real_sets!(bloom_on_real_sets, BloomSearch<Ipv4Tuple>, BloomSearch<OpenFlowTuple>);
conformance_on_real_sets!(quilt_on_real_sets, Quilt<Ipv4Tuple>, Quilt<OpenFlowTuple>);
