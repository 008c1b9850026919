//! [`plural`]: nouns in singular or plural by their count, so that no message says "1 records".

use std::borrow::Cow;

/// An English noun beside a count: unchanged for 1, otherwise in the plural.
///
/// ```
/// use wirespeed_input::plural;
///
/// let told = [(1, "record"), (2, "prefix"), (0, "entry"), (3, "key")].map(|(n, noun)| format!("{n} {}", plural(n, noun)));
/// assert_eq!(told, ["1 record", "2 prefixes", "0 entries", "3 keys"]);
/// ```
pub fn plural(count: u64, noun: &str) -> Cow<'_, str> {
    if count == 1 {
        return Cow::Borrowed(noun);
    }
    let after_consonant = |stem: &str| !stem.ends_with(['a', 'e', 'i', 'o', 'u']);
    Cow::Owned(match noun.strip_suffix('y').filter(|stem| after_consonant(stem)) {
        Some(stem) => format!("{stem}ies"),
        None if noun.ends_with(['s', 'x']) || noun.ends_with("ch") => format!("{noun}es"),
        None => format!("{noun}s"),
    })
}
