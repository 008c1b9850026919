//! [`SavedLabels`]: labels as an image file keeps them, beside the texts that every version reads.
//!
//! ```text
//! next-hops, labels   a text for each index, from 1: no two are equal
//! label-gaps          pairs of an index whose text is a stand-in, and the index with its text, or 0 if the index has no value
//! label-type          the type of the labels, if their texts are JSON
//! ```
//!
//! The last two are only there if they say something, so an image of an older version has neither.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;

use wirespeed_fib::{NextHop, NextHops};
use wirespeed_image::Image;

use crate::error::Error;
use crate::image_file::with_left_out;

/// The attachment of pairs of indexes, 4 bytes little-endian each, in order.
pub(crate) const GAPS: &str = "label-gaps";
/// The attachment of the type's name.
pub(crate) const TYPE: &str = "label-type";

/// Labels as texts.
#[derive(Default)]
pub(crate) struct SavedLabels {
    /// A text for each index, or a stand-in.
    pub(crate) texts: NextHops,
    /// The indexes with stand-ins, and the indexes with their texts.
    gaps: Vec<(NextHop, NextHop)>,
    of_type: Option<&'static str>,
}

impl SavedLabels {
    /// The texts of indexes in order. Each says whether its value equals that of an index before it.
    pub(crate) fn new(
        of_type: Option<&'static str>,
        labels: Vec<(NextHop, String, bool)>,
    ) -> Result<Self, Error> {
        let mut first = HashMap::new();
        for (next_hop, text, _) in labels.iter().filter(|(.., is_twin)| !is_twin) {
            if first.insert(text.as_str(), *next_hop).is_some() {
                return Err(Error::LabelsAlike { text: text.clone() });
            }
        }
        let mut saved = Self { of_type, ..Self::default() };
        for (next_hop, text, is_twin) in &labels {
            while saved.texts.len() + 1 < next_hop.0 as usize {
                saved.stand_in(&first, "no label", NextHop::NONE)?;
            }
            match first.get(text.as_str()) {
                Some(&same) if *is_twin => saved.stand_in(&first, text, same)?,
                _ => _ = saved.texts.intern(text)?,
            }
        }
        Ok(saved)
    }

    /// Adds the text of an index that has no text of its own: a text that no label has.
    fn stand_in(&mut self, taken: &HashMap<&str, NextHop>, text: &str, same: NextHop) -> Result<(), Error> {
        let next = self.texts.len() + 1;
        let mut text = format!("{text} ({next})");
        while taken.contains_key(text.as_str()) || self.texts.find(&text).is_some() {
            text.push('*');
        }
        self.gaps.push((self.texts.intern(&text)?, same));
        Ok(())
    }

    /// Calls `save` with the image and what lies beside the texts: of labels, and how many lines were left
    /// out. The images in a container have that number of their own.
    pub(crate) fn save_beside<R>(
        &self,
        image: &Image,
        left_out: u64,
        path: &Path,
        save: impl FnOnce(&Image) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let gaps: Vec<u8> =
            self.gaps.iter().flat_map(|(gap, same)| [gap.0, same.0]).flat_map(u32::to_le_bytes).collect();
        let of_type = self.of_type.unwrap_or_default();
        let beside = [(GAPS, &gaps[..]), (TYPE, of_type.as_bytes())];
        let mut attached = with_left_out(image, left_out, path)?;
        for (name, bytes) in beside.into_iter().filter(|(_, bytes)| !bytes.is_empty()) {
            let more = attached.with_attachment(name, bytes);
            attached = Cow::Owned(more.map_err(|source| Error::in_image(path, source))?);
        }
        save(&attached)
    }
}

/// Checks that the texts of an image are of this type: JSON of a type, or text without one.
pub(crate) fn check_type(image: &Image, path: &Path, wanted: Option<&str>) -> Result<(), Error> {
    let found = image.attachment(TYPE).map(String::from_utf8_lossy);
    if found.as_deref() == wanted {
        return Ok(());
    }
    let named = |name: Option<&str>| name.map_or("text".to_owned(), |name| format!("JSON of {name}"));
    Err(Error::LabelType { path: path.to_owned(), found: named(found.as_deref()), wanted: named(wanted) })
}

/// Puts the texts of an image in the places of stand-ins: the text of another index, or `None`.
pub(crate) fn fill_gaps(
    image: &Image,
    path: &Path,
    texts: Vec<String>,
) -> Result<Vec<Option<String>>, Error> {
    let fill = || {
        let mut filled: Vec<_> = texts.iter().cloned().map(Some).collect();
        let (pairs, rest) = image.attachment(GAPS).unwrap_or_default().as_chunks::<8>();
        for pair in pairs {
            let [gap, same]: [u32; 2] = bytemuck::cast(*pair);
            let (gap, same) = (u32::from_le(gap) as usize, u32::from_le(same) as usize);
            let text = match same.checked_sub(1) {
                None => None,
                Some(at) => Some(texts.get(at)?.clone()),
            };
            *filled.get_mut(gap.checked_sub(1)?)? = text;
        }
        rest.is_empty().then_some(filled)
    };
    fill().ok_or_else(|| Error::attachment(path, GAPS))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn saved(labels: &[(u32, &str, bool)]) -> Result<SavedLabels, Error> {
        let label = |&(n, text, is_twin): &(u32, &str, bool)| (NextHop(n), text.to_owned(), is_twin);
        SavedLabels::new(None, labels.iter().map(label).collect())
    }

    #[test]
    fn texts_keep_their_indexes() {
        let saved = saved(&[(2, "a", false), (3, "no label (4)", false), (5, "a", true)]).unwrap();
        let texts: Vec<_> = saved.texts.iter().map(|(_, text)| text).collect();
        assert_eq!(texts, ["no label (1)", "a", "no label (4)", "no label (4)*", "a (5)"]);
        let none = NextHop::NONE;
        assert_eq!(saved.gaps, [(NextHop(1), none), (NextHop(4), none), (NextHop(5), NextHop(2))]);
    }

    #[test]
    fn different_labels_of_one_text_are_refused() {
        assert!(matches!(saved(&[(1, "a", false), (2, "a", false)]), Err(Error::LabelsAlike { .. })));
    }
}
