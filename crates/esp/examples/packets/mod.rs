//! Packets to seal and open.

/// An IPv4 packet of so many bytes with a UDP datagram.
pub(crate) fn packet(bytes: usize) -> Vec<u8> {
    let length = u16::try_from(bytes).expect("a packet");
    let mut packet = vec![0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 1, 0, 1, 10, 2, 0, 2];
    packet[2..4].copy_from_slice(&length.to_be_bytes());
    let sum = wirespeed_checksum::checksum(&packet);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet.extend([0x10, 0, 0x20, 0, 0, 0, 0, 0]);
    packet.extend((28..bytes).map(|at| at.to_le_bytes()[0]));
    packet
}
