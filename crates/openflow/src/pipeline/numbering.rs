//! [`Numbering`]: the numbers that a switch's ports have in OpenFlow.

use crate::wire::number::port;

/// The numbers of ports: 1, 2 and so on, and LOCAL for the port behind these, if there is one. The place of a
/// port is its index among the router's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Numbering {
    /// The number of ports beside LOCAL.
    pub(crate) others: usize,
    pub(crate) has_local: bool,
}

impl Numbering {
    /// The number of ports with LOCAL.
    #[inline]
    pub(crate) fn count(self) -> usize {
        self.others + usize::from(self.has_local)
    }

    /// The number of the port in a place. LOCAL for all behind the others.
    #[inline]
    pub(crate) fn number(self, at: usize) -> u32 {
        match u32::try_from(at) {
            Ok(number) if at < self.others => number + 1,
            _ => port::LOCAL,
        }
    }

    /// The place of the port of a number.
    #[inline]
    pub(crate) fn place(self, number: u32) -> Option<usize> {
        if number == port::LOCAL {
            return self.has_local.then_some(self.others);
        }
        (number as usize).checked_sub(1).filter(|&at| at < self.others)
    }

    /// The numbers of all ports, in the order of their places.
    pub(crate) fn all(self) -> impl Iterator<Item = u32> {
        (0..self.count()).map(move |at| self.number(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_places_are_each_others_inverse() {
        for (others, has_local) in [(0, false), (0, true), (3, false), (3, true)] {
            let ports = Numbering { others, has_local };
            let all: Vec<u32> = ports.all().collect();
            assert_eq!(all.len(), ports.count());
            for (at, &number) in all.iter().enumerate() {
                assert_eq!((ports.place(number), ports.number(at)), (Some(at), number));
            }
            for number in (0..9).chain([port::LOCAL, port::ANY]).filter(|number| !all.contains(number)) {
                assert_eq!(ports.place(number), None, "{number} of {ports:?}");
            }
        }
    }
}
