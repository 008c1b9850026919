//! Prime lengths (section 2.4), and whether one keeps the inputs of a state apart.

/// The least prime from a number on. Trial division: lengths stay below 2^31.
pub(super) fn at_least(from: u64) -> u64 {
    (from.max(2)..).find(|&n| is_prime(n)).expect("there is always another prime")
}

fn is_prime(n: u64) -> bool {
    n == 2 || n > 1 && n % 2 == 1 && (3..).step_by(2).take_while(|d| d * d <= n).all(|d| !n.is_multiple_of(d))
}

/// Finds inputs that a length doesn't keep apart: a bit for each residue, cleared after use.
#[derive(Clone, Debug, Default)]
pub(super) struct Residues(Vec<u64>);

impl Residues {
    /// Whether all residues differ. O(inputs), less where two soon meet.
    pub(super) fn are_distinct(&mut self, residues: &[u32], length: u32) -> bool {
        if residues.len() <= 8 {
            return residues.iter().enumerate().all(|(at, one)| !residues[..at].contains(one));
        }
        let words = length as usize / 64 + 1;
        if self.0.len() < words {
            self.0.resize(words, 0);
        }
        let met = residues.iter().position(|&residue| {
            let (word, bit) = (&mut self.0[residue as usize / 64], 1 << (residue % 64));
            let was = *word & bit != 0;
            *word |= bit;
            was
        });
        let seen = met.unwrap_or(residues.len());
        residues[..seen].iter().for_each(|&residue| self.0[residue as usize / 64] = 0);
        met.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn primes() {
        let first: Vec<_> = (0..30).filter(|&n| is_prime(n)).collect();
        assert_eq!(first, [2, 3, 5, 7, 11, 13, 17, 19, 23, 29]);
        assert_eq!((at_least(0), at_least(14), at_least(65_536)), (2, 17, 65_537));
    }

    #[test]
    fn residues_that_meet() {
        let mut residues = Residues::default();
        let all: Vec<u32> = (0..100).collect();
        for _ in 0..2 {
            assert!(residues.are_distinct(&all, 101));
            assert!(!residues.are_distinct(&[&all[..], &[7]].concat(), 101));
            assert!(!residues.are_distinct(&[1, 2, 1], 101));
        }
    }
}
