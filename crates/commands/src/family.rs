//! [`parse`]: the address family of an option.

use wirespeed_fib::Family;

/// Parses `4` or `6` of the command line.
pub fn parse(text: &str) -> Result<Family, String> {
    match text {
        "4" => Ok(Family::V4),
        "6" => Ok(Family::V6),
        _ => Err("a family is 4 or 6".to_owned()),
    }
}
