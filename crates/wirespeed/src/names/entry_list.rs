//! The names of a table as bytes, stored beside its image. A table that takes updates starts from them.
//!
//! There is one record for each entry, and a name comes before the names beneath it. Neighbours mostly share
//! their first components, so a record holds only the part of a name that differs from the previous name.
//!
//! ```text
//! /com/parc 7        0  9 "/com/parc"  7         bytes shared with the name before, bytes that follow, these, the result;
//! /com/parc/www 9    9  4 "/www"       9         numbers in bytes of 7 bits, the lowest first, a high bit on all but the last
//! ```

use wirespeed_namelookup::{Name, NodeId};

use super::NameRib;

/// Writes the records of a table. O(bytes of all names).
pub(crate) fn to_bytes(names: &NameRib) -> Vec<u8> {
    let mut bytes = Vec::new();
    let (mut text, mut previous): (Vec<u8>, Vec<u8>) = (Vec::new(), Vec::new());
    // A node, and the length of its parent's name.
    let children = names.children();
    let mut stack = vec![(NodeId::ROOT, 0)];
    while let Some((id, parent)) = stack.pop() {
        let node = names.node(id);
        text.truncate(parent);
        if id != NodeId::ROOT {
            text.push(b'/');
            text.extend_from_slice(node.component());
        }
        if node.result() != 0 {
            let shared = previous.iter().zip(&text).take_while(|(a, b)| a == b).count();
            push(shared as u64, &mut bytes);
            push((text.len() - shared) as u64, &mut bytes);
            bytes.extend_from_slice(&text[shared..]);
            push(node.result().into(), &mut bytes);
            previous.clone_from(&text);
        }
        stack.extend(children.of_node(node).map(|child| (child.id(), text.len())));
    }
    bytes
}

/// Reads the table of records. `None` if [`to_bytes`] did not make them.
pub(crate) fn from_bytes(mut bytes: &[u8]) -> Option<NameRib> {
    let (mut names, mut text) = (NameRib::new(), Vec::new());
    while !bytes.is_empty() {
        let shared = usize::try_from(pull(&mut bytes)?).ok()?;
        let rest = usize::try_from(pull(&mut bytes)?).ok()?;
        if shared > text.len() {
            return None;
        }
        text.truncate(shared);
        text.extend_from_slice(bytes.get(..rest)?);
        bytes = &bytes[rest..];
        let result = u32::try_from(pull(&mut bytes)?).ok().filter(|&result| result != 0)?;
        let name = if text.is_empty() { Name::ROOT } else { Name::new(&text).ok()? };
        // A name at the root would have a slash, and a name that comes twice would already have a result.
        if name.len() != text.len() || names.insert(name, result) != 0 {
            return None;
        }
    }
    Some(names)
}

const MORE: u8 = 0x80;

fn push(mut number: u64, bytes: &mut Vec<u8>) {
    loop {
        let low = number.to_le_bytes()[0] & !MORE;
        number >>= 7;
        if number == 0 {
            return bytes.push(low);
        }
        bytes.push(low | MORE);
    }
}

fn pull(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..u64::BITS).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & !MORE).checked_shl(shift)?;
        if byte & MORE == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn table(entries: &[(&str, u32)]) -> NameRib {
        entries.iter().map(|&(name, result)| (Name::new(name).unwrap(), result)).collect()
    }

    #[test]
    fn what_went_in_comes_out() {
        let long = format!("/{}/b", "a".repeat(8_000));
        for names in [
            table(&[]),
            table(&[("/", 1)]),
            table(&[
                ("/com/parc", u32::MAX),
                ("/com/parc/www", 128),
                ("/com/parcel", 127),
                ("/", 3),
                (&long, 1),
            ]),
        ] {
            let again = from_bytes(&to_bytes(&names)).unwrap();
            assert_eq!(again.len(), names.len());
            assert!(names.iter().all(|(name, result)| again.result(&name) == result));
        }
        assert_eq!(
            to_bytes(&table(&[("/com/parc", 7), ("/com/parc/www", 9)])),
            b"\x00\x09/com/parc\x07\x09\x04/www\x09"
        );
    }

    #[test]
    fn takes_nothing_else() {
        let good: &[u8] = b"\x00\x04/com\x07";
        assert!(from_bytes(good).is_some());
        let twice = [good, b"\x04\x00\x08"].concat();
        let bad: [&[u8]; 8] = [
            &good[..5],
            b"\x00\x04/com\x00",
            b"\x01\x04/com\x07",
            b"\x00\x03com\x07",
            b"\x00\x05/com/\x07",
            b"\x00\x01/\x07",
            b"\x00\x04/com\xff\xff\xff\xff\x7f",
            &twice,
        ];
        for bytes in bad {
            assert!(from_bytes(bytes).is_none(), "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_names_or_refused(
            bytes in proptest::collection::vec(prop_oneof![Just(0), Just(4), Just(b'/'), any::<u8>()], 0..64),
        ) {
            if let Some(names) = from_bytes(&bytes) {
                prop_assert_eq!(from_bytes(&to_bytes(&names)).unwrap().len(), names.len());
            }
        }
    }
}
