//! From a table of both families to the routes of one.

use wirespeed_fib::{AnyUpdate, Family, Fib, NextHops, Rib, Update, V4, V6};

use crate::engine::Engines;

/// An address type whose part of a [`Fib`] can be taken.
pub(crate) trait OfFib: Engines {
    /// The family's routes.
    fn rib(fib: &Fib) -> &Rib<Self>;

    /// The family's routes and the next hops, without a copy.
    fn into_rib(fib: Fib) -> (Rib<Self>, NextHops);

    /// The update, if it is of this family.
    fn update(update: &AnyUpdate) -> Option<Update<Self>>;

    /// An update of this family as one of either.
    fn any(update: Update<Self>) -> AnyUpdate;
}

impl OfFib for V4 {
    fn rib(fib: &Fib) -> &Rib<Self> {
        &fib.v4
    }

    fn into_rib(fib: Fib) -> (Rib<Self>, NextHops) {
        (fib.v4, fib.next_hops)
    }

    fn update(update: &AnyUpdate) -> Option<Update<Self>> {
        match update {
            AnyUpdate::V4(update) => Some(*update),
            AnyUpdate::V6(_) => None,
        }
    }

    fn any(update: Update<Self>) -> AnyUpdate {
        AnyUpdate::V4(update)
    }
}

impl OfFib for V6 {
    fn rib(fib: &Fib) -> &Rib<Self> {
        &fib.v6
    }

    fn into_rib(fib: Fib) -> (Rib<Self>, NextHops) {
        (fib.v6, fib.next_hops)
    }

    fn update(update: &AnyUpdate) -> Option<Update<Self>> {
        match update {
            AnyUpdate::V6(update) => Some(*update),
            AnyUpdate::V4(_) => None,
        }
    }

    fn any(update: Update<Self>) -> AnyUpdate {
        AnyUpdate::V6(update)
    }
}

/// `4` or `6`, as on the command line.
pub(crate) fn parse(text: &str) -> Result<Family, String> {
    match text {
        "4" => Ok(Family::V4),
        "6" => Ok(Family::V6),
        _ => Err("a family is 4 or 6".to_owned()),
    }
}

/// `4` or `6`, as in JSON.
pub(crate) fn number_of(family: Family) -> u8 {
    match family {
        Family::V4 => 4,
        Family::V6 => 6,
    }
}

/// The family to work on: the one asked for, else the one that has routes, else IPv4; says so where it had to choose.
pub(crate) fn choose(wanted: Option<Family>, fib: &Fib) -> Family {
    match (wanted, fib.v4.is_empty(), fib.v6.is_empty()) {
        (Some(family), ..) => family,
        (None, true, false) => Family::V6,
        (None, false, false) => {
            eprintln!(
                "the table has {} IPv4 and {} IPv6 prefixes: taking IPv4 (--family 6 takes the others)",
                crate::number::grouped(fib.v4.len()),
                crate::number::grouped(fib.v6.len()),
            );
            Family::V4
        }
        _ => Family::V4,
    }
}
