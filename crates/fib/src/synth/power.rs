//! Powers of real numbers that are equal on every platform.
//!
//! `f64::powf` is the platform's own and differs in the last digit, which would change every Zipf trace.
//! These functions use only IEEE additions, products and quotients, which the standard defines exactly. Their
//! error is about 1e-14.

use std::f64::consts::LN_2;

/// `base` to the power of `exponent`, for a base of at least 1. Saturates outside the range of `f64`.
pub(crate) fn power(base: f64, exponent: f64) -> f64 {
    exp(exponent * ln(base))
}

/// The natural logarithm of a finite number of at least 1.
fn ln(x: f64) -> f64 {
    // x = m * 2^e with m in 1..2, then 2 atanh((m-1)/(m+1)) as a series.
    let bits = x.to_bits();
    let exponent = u16::try_from(bits >> 52 & 0x7ff).unwrap_or(0);
    let m = f64::from_bits(bits & ((1 << 52) - 1) | 1023 << 52);
    let t = (m - 1.0) / (m + 1.0);
    let mut term = t;
    let mut sum = 0.0;
    for odd in (1..40u8).step_by(2) {
        sum += term / f64::from(odd);
        term *= t * t;
    }
    2.0 * sum + (f64::from(exponent) - 1023.0) * LN_2
}

/// e to the power of `x`.
fn exp(x: f64) -> f64 {
    let x = x.clamp(-700.0, 700.0);
    let twos = (x / LN_2).round();
    let r = x - twos * LN_2;
    let (mut term, mut sum) = (1.0, 1.0);
    for n in 1..20u8 {
        term *= r / f64::from(n);
        sum += term;
    }
    // This is exact: it multiplies by a power of two, one step at a time.
    let factor = if twos < 0.0 { 0.5 } else { 2.0 };
    let mut left = twos.abs();
    while left > 0.0 {
        sum *= factor;
        left -= 1.0;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_platform() {
        for base in [1.0, 1.5, 2.0, 3.0, 1000.0, 1_042_325.0, 4e9] {
            for exponent in [-3.0, -1.1, -0.75, 0.0, 0.3, 1.0, 2.0] {
                let (ours, theirs) = (power(base, exponent), f64::powf(base, exponent));
                assert!((ours / theirs - 1.0).abs() < 1e-12, "{base}^{exponent}: {ours} {theirs}");
            }
        }
        assert_eq!(power(1.0, -1.1).to_bits(), 1.0f64.to_bits());
    }
}
