//! The address family to work on.

pub(crate) use wirespeed_commands::family::parse;
use wirespeed_fib::{Family, Fib};
use wirespeed_input::plural;

/// The number of the family in JSON.
pub(crate) fn number_of(family: Family) -> u8 {
    match family {
        Family::V4 => 4,
        Family::V6 => 6,
    }
}

/// The family that is given, or the only one that has routes; IPv4 for an empty table. `None` for both.
pub(crate) fn wanted(wanted: Option<Family>, fib: &Fib) -> Option<Family> {
    match (wanted, fib.v4.is_empty(), fib.v6.is_empty()) {
        (Some(family), ..) => Some(family),
        (None, true, false) => Some(Family::V6),
        (None, false, false) => None,
        _ => Some(Family::V4),
    }
}

/// Prints how many prefixes a table has of each family, and that both are taken.
pub(crate) fn tell_both(v4: usize, v6: usize) {
    eprintln!(
        "the table has {} IPv4 and {} IPv6 {}: taking both (--family 4 or --family 6 takes one)",
        crate::number::grouped(v4),
        crate::number::grouped(v6),
        plural(v6 as u64, "prefix"),
    );
}

/// The family to work on: the given one, otherwise the one that has routes, otherwise IPv4. Prints a
/// message if the table has both families and none is given.
pub(crate) fn choose(wanted: Option<Family>, fib: &Fib) -> Family {
    match (wanted, fib.v4.is_empty(), fib.v6.is_empty()) {
        (Some(family), ..) => family,
        (None, true, false) => Family::V6,
        (None, false, false) => {
            eprintln!(
                "the table has {} IPv4 and {} IPv6 {}: taking IPv4 (--family 6 takes the others)",
                crate::number::grouped(fib.v4.len()),
                crate::number::grouped(fib.v6.len()),
                plural(fib.v6.len() as u64, "prefix"),
            );
            Family::V4
        }
        _ => Family::V4,
    }
}
