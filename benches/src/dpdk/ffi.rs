//! DPDK's functions, and the shim's (`dpdk/shim.c`), as C declares them.

use std::ffi::{c_char, c_int, c_uint};

/// Opaque.
#[repr(C)]
pub(super) struct RteFib {
    _private: [u8; 0],
}

/// Opaque.
#[repr(C)]
pub(super) struct RteFib6 {
    _private: [u8; 0],
}

/// Opaque.
#[repr(C)]
pub(super) struct RteLpm {
    _private: [u8; 0],
}

/// Opaque.
#[repr(C)]
pub(super) struct RteAcl {
    _private: [u8; 0],
}

/// `ws_acl_rule`.
#[repr(C)]
pub(super) struct AclRule {
    pub(super) number: u32,
    pub(super) priority: u32,
    pub(super) src: u32,
    pub(super) dst: u32,
    pub(super) sport: [u16; 2],
    pub(super) dport: [u16; 2],
    pub(super) src_len: u8,
    pub(super) dst_len: u8,
    pub(super) proto: u8,
    pub(super) proto_mask: u8,
}

unsafe extern "C" {
    pub(super) fn ws_dpdk_start(core: c_uint, bytes: usize) -> c_int;
    pub(super) safe fn ws_dpdk_memory() -> usize;
    pub(super) safe fn ws_dpdk_errno() -> c_int;

    pub(super) fn ws_fib_create(name: *const c_char, routes: c_int, width: c_int, tbl8s: u32) -> *mut RteFib;
    pub(super) fn rte_fib_add(fib: *mut RteFib, ip: u32, depth: u8, next_hop: u64) -> c_int;
    pub(super) fn rte_fib_delete(fib: *mut RteFib, ip: u32, depth: u8) -> c_int;
    pub(super) fn rte_fib_select_lookup(fib: *mut RteFib, kind: c_int) -> c_int;
    pub(super) fn rte_fib_lookup_bulk(fib: *mut RteFib, ips: *const u32, hops: *mut u64, n: c_int) -> c_int;
    pub(super) fn rte_fib_free(fib: *mut RteFib);

    pub(super) fn ws_fib6_create(
        name: *const c_char,
        routes: c_int,
        width: c_int,
        tbl8s: u32,
    ) -> *mut RteFib6;
    pub(super) fn rte_fib6_add(fib: *mut RteFib6, ip: *const u8, depth: u8, next_hop: u64) -> c_int;
    pub(super) fn rte_fib6_delete(fib: *mut RteFib6, ip: *const u8, depth: u8) -> c_int;
    pub(super) fn rte_fib6_select_lookup(fib: *mut RteFib6, kind: c_int) -> c_int;
    pub(super) fn rte_fib6_lookup_bulk(
        fib: *mut RteFib6,
        ips: *const [u8; 16],
        hops: *mut u64,
        n: c_int,
    ) -> c_int;
    pub(super) fn rte_fib6_free(fib: *mut RteFib6);

    pub(super) fn ws_lpm_create(name: *const c_char, rules: u32, tbl8s: u32) -> *mut RteLpm;
    pub(super) fn rte_lpm_add(lpm: *mut RteLpm, ip: u32, depth: u8, next_hop: u32) -> c_int;
    pub(super) fn ws_lpm_lookup_bulk(lpm: *const RteLpm, keys: *const u32, results: *mut u32, n: c_uint);
    pub(super) fn rte_lpm_free(lpm: *mut RteLpm);

    pub(super) fn ws_acl_create(name: *const c_char, max_rules: u32) -> *mut RteAcl;
    pub(super) fn ws_acl_add(acl: *mut RteAcl, rule: *const AclRule) -> c_int;
    pub(super) fn ws_acl_build(acl: *mut RteAcl) -> c_int;
    pub(super) fn rte_acl_set_ctx_classify(acl: *mut RteAcl, algorithm: c_int) -> c_int;
    pub(super) fn rte_acl_classify_alg(
        acl: *const RteAcl,
        headers: *const *const u8,
        numbers: *mut u32,
        n: u32,
        categories: u32,
        algorithm: c_int,
    ) -> c_int;
    pub(super) fn rte_acl_free(acl: *mut RteAcl);
}
