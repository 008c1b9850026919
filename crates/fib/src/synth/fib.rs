//! A synthetic [`Fib`]: both families over one set of next hops with names.

use super::{Shape, SynthError, TableSpec, table_of};
use crate::fib::Fib;
use crate::next_hop::{NextHops, TooManyNextHops};

/// Documentation addresses (RFC 5737) for names of next hops: 254 in each of three blocks. Further names are
/// numbers.
const BLOCKS: [&str; 3] = ["192.0.2", "198.51.100", "203.0.113"];

/// The first private AS number of 32 bits (RFC 6996), the name of the first next hop of a large table.
const FIRST_AS: u64 = 4_200_000_000;

/// A synthetic table of one or both families. Next hops are named by [`next_hop_texts`], as many as the
/// larger specification asks for. `None` leaves a family empty.
pub fn fib(v4: Option<&TableSpec>, v6: Option<&TableSpec>) -> Result<Fib, SynthError> {
    let specs = [v4, v6];
    let count = specs.iter().flatten().map(|spec| spec.next_hops).max().unwrap_or(0);
    Ok(Fib {
        v4: v4.map(|spec| table_of(&Shape::ipv4(), spec)).transpose()?.unwrap_or_default(),
        v6: v6.map(|spec| table_of(&Shape::ipv6(), spec)).transpose()?.unwrap_or_default(),
        next_hops: next_hop_texts(count).map_err(|_| SynthError::NextHopNames { count })?,
    })
}

/// Names for `count` next hops: documentation addresses from 192.0.2.1 on for up to 762 next hops, otherwise
/// private AS numbers from 4200000000 on, which continue after the end of the private range. O(count).
pub fn next_hop_texts(count: u32) -> Result<NextHops, TooManyNextHops> {
    let mut names = NextHops::new();
    for index in 0..u64::from(count) {
        names.intern(&match count {
            0..=762 => {
                let block = BLOCKS[usize::try_from(index / 254).unwrap_or(0)];
                format!("{block}.{}", index % 254 + 1)
            }
            _ => (FIRST_AS + index).to_string(),
        })?;
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::next_hop::NextHop;

    #[test]
    fn names_are_addresses_then_numbers() {
        let few = next_hop_texts(762).unwrap();
        assert_eq!((few.text(NextHop(1)), few.text(NextHop(255))), (Some("192.0.2.1"), Some("198.51.100.1")));
        assert_eq!((few.text(NextHop(762)), few.len()), (Some("203.0.113.254"), 762));
        assert_eq!(next_hop_texts(763).unwrap().text(NextHop(763)), Some("4200000762"));
    }

    #[test]
    fn every_next_hop_in_use_has_a_name() {
        let spec = TableSpec { prefixes: 3000, next_hops: 20, seed: 5 };
        let fib = fib(Some(&spec), Some(&spec)).unwrap();
        assert_eq!((fib.v4.len(), fib.v6.len(), fib.next_hops.len()), (3000, 3000, 20));
        assert!(fib.v4.max_next_hop().0 <= 20 && fib.v6.max_next_hop().0 <= 20);
    }
}
