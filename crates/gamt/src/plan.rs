//! [`Plan`]: the shape of a table before it is built: strides, room, width of a unit.

use wirespeed_fib::{Address, BuildError, BuildOptions, Rib, Strides};

use crate::layout::{MAX_NARROW, MAX_STRIDE};

/// Units to make room for in every level, at least.
const LEAST_UNITS: u64 = 1 << 12;

/// What a table will be like.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// Bits that each level reads.
    pub(crate) strides: Vec<u8>,
    /// Nodes that each level has room for.
    pub(crate) nodes: Vec<u32>,
    /// Bytes of a unit.
    pub(crate) unit: usize,
}

impl Plan {
    /// The plan of a table whose leaves may hold up to `widest`.
    pub(crate) fn of<A: Address>(
        engine: &'static str,
        rib: &Rib<A>,
        options: &BuildOptions,
        widest: u64,
    ) -> Result<Self, BuildError> {
        let routes: Vec<_> = rib.iter().map(|r| r.0).collect();
        let mut count = vec![0i64; A::BITS as usize + 2];
        let mut before = None;
        let mut deepest = 1;
        for p in routes {
            deepest = deepest.max(p.len());
            let shared = before.map_or(0, |b: wirespeed_fib::Prefix<A>| {
                if b.len() == 0 {
                    0
                } else {
                    (p.address().common_bits(b.address()).min(b.len() - 1) + 1).min(p.len())
                }
            });
            count[shared as usize] += 1;
            count[p.len() as usize] -= 1;
            before = Some(p);
        }
        let mut at = 0;
        let nodes: Vec<u64> = count
            .iter()
            .map(|c| {
                at += c;
                at as u64
            })
            .collect();
        let strides = match &options.strides {
            Strides::Given(s) => s.clone(),
            _ => {
                let mut s: Vec<u8> = match A::BITS {
                    32 => vec![20, 4],
                    _ => vec![20, 9, 3, 5, 5, 3, 3],
                };
                let bits: u8 = s.iter().sum();
                s.extend(std::iter::repeat_n(8, usize::from((A::BITS - bits) / 8)));
                s
            }
        };
        let bits: u8 = strides.iter().sum();
        if bits < deepest {
            return Err(BuildError::Limit {
                engine,
                what: "bits in these strides",
                limit: bits.into(),
                found: deepest.into(),
            });
        }
        let mut from = 0u8;
        let mut room = Vec::new();
        for (at, &stride) in strides.iter().enumerate() {
            let used = if at == 0 { 1 } else { nodes[usize::from(from)] };
            let n = if at == 0 { 1 } else { used + used / 8 + 1 + (LEAST_UNITS >> stride) };
            room.push(u32::try_from(n).unwrap());
            from += stride;
        }
        let narrow = widest <= MAX_NARROW
            && room.iter().zip(&strides).all(|(&n, &s)| u64::from(n) << s <= MAX_NARROW + 1);
        let _ = MAX_STRIDE;
        Ok(Self { strides, nodes: room, unit: if narrow { 4 } else { 8 } })
    }

    /// Number of units of each level, room included.
    pub(crate) fn lens(&self) -> Vec<u64> {
        self.nodes.iter().zip(&self.strides).map(|(&nodes, &stride)| u64::from(nodes) << stride).collect()
    }
}
