//! The header of MRT records, by which a file is recognised as MRT, also if the build leaves the reader out.

/// Types of records, from RFC 6396 and its registry.
pub(crate) const TABLE_DUMP: u16 = 12;
pub(crate) const TABLE_DUMP_V2: u16 = 13;
pub(crate) const BGP4MP: u16 = 16;
pub(crate) const BGP4MP_ET: u16 = 17;

/// The most bytes of a record. A RIB record of a thousand peers is a hundredth of that.
pub(super) const LONGEST: u32 = 16 << 20;
pub(super) const HEADER: usize = 12;

/// Whether a file starts like MRT: with the header of a record of a known type and subtype.
pub(super) fn is_header(start: &[u8]) -> bool {
    let Some(header) = start.first_chunk::<HEADER>() else { return false };
    let (_, kind, subtype, length) = split_header(header);
    let subtypes = match kind {
        TABLE_DUMP => 1..=2,
        TABLE_DUMP_V2 => 1..=12,
        BGP4MP | BGP4MP_ET => 0..=11,
        // These are the old BGP type, OSPF and IS-IS, which may come between other records.
        5 => 0..=7,
        11 | 32 | 33 | 48 | 49 => 0..=0,
        _ => return false,
    };
    subtypes.contains(&subtype) && length <= LONGEST
}

/// Time, type, subtype and length of the body.
pub(super) fn split_header(header: &[u8; HEADER]) -> (u32, u16, u16, u32) {
    let [t0, t1, t2, t3, k0, k1, s0, s1, l0, l1, l2, l3] = *header;
    (
        u32::from_be_bytes([t0, t1, t2, t3]),
        u16::from_be_bytes([k0, k1]),
        u16::from_be_bytes([s0, s1]),
        u32::from_be_bytes([l0, l1, l2, l3]),
    )
}
