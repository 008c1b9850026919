//! Traces as packed addresses in network order, 4 or 16 bytes each, nothing else (`.bin`). The file does not
//! state the family: the caller must know it.

use std::io::{self, Read, Write};

use super::addresses::Trace;
use super::error::TraceError;
use crate::address::Address;

/// Addresses of a buffer: a multiple of both sizes.
const BUFFER: usize = 1 << 16;

/// Reads packed addresses of family `A`. An incomplete address at the end is an error, because it means
/// another family or file.
pub fn from_packed<A: Address>(mut source: impl Read, name: &str) -> Result<Trace<A>, TraceError> {
    let mut trace = Trace::default();
    let mut buffer = vec![0; BUFFER];
    let (mut filled, mut bytes) = (0, 0u64);
    loop {
        match source.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(read) => {
                filled += read;
                bytes += read as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(TraceError::io(name, error)),
        }
        let whole = filled - filled % A::OCTETS;
        trace.keys.extend(buffer[..whole].chunks_exact(A::OCTETS).map(from_bytes::<A>));
        buffer.copy_within(whole..filled, 0);
        filled -= whole;
    }
    if filled > 0 {
        let (name, each) = (name.to_owned(), A::OCTETS);
        return Err(TraceError::CutAddress { name, bytes, family: A::FAMILY, each, over: filled as u64 });
    }
    trace.checked(name)
}

fn from_bytes<A: Address>(bytes: &[u8]) -> A {
    A::from_u128_low(bytes.iter().fold(0, |address, &byte| address << 8 | u128::from(byte)))
}

/// Writes packed addresses.
pub fn write_packed<A: Address>(keys: &[A], target: impl Write) -> io::Result<()> {
    let mut target = io::BufWriter::with_capacity(BUFFER, target);
    for key in keys {
        target.write_all(&key.to_u128().to_be_bytes()[16 - A::OCTETS..])?;
    }
    target.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::{V4, V6};

    fn there_and_back<A: Address>(keys: &[A]) {
        let mut bytes = Vec::new();
        write_packed(keys, &mut bytes).unwrap();
        assert_eq!(bytes.len(), keys.len() * A::OCTETS);
        assert_eq!(from_packed::<A>(&bytes[..], "t").unwrap().keys, keys);
        let error = from_packed::<A>(&bytes[..bytes.len() - 1], "t.bin").unwrap_err();
        assert!(error.to_string().contains(&format!("{} bytes", bytes.len() - 1)), "{error}");
    }

    #[test]
    fn written_is_read() {
        there_and_back(&(0..50_000u32).map(|i| V4(i.wrapping_mul(2_654_435_761))).collect::<Vec<_>>());
        there_and_back(&(0..9_000u128).map(|i| V6(i << 77 | i)).collect::<Vec<_>>());
    }

    #[test]
    fn network_order() {
        assert_eq!(from_packed::<V4>(&[1, 2, 3, 4][..], "t").unwrap().keys, [V4(0x0102_0304)]);
    }
}
