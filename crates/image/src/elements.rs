//! The check of all elements of a section.

use crate::Element;
use crate::error::ImageError;
use crate::image::Image;
use crate::section::SectionId;

/// Elements that are looked at without a branch for each, which runs at the speed of memory.
const BLOCK: usize = 4096;

impl Image {
    /// Checks that the elements of a section are admitted, for [`Table::from_image`](crate::Table). The error
    /// names the section and the first element that is not. O(elements). Panics if there is no such section.
    pub fn check_elements(&self, id: SectionId, admits: impl Fn(u64) -> bool) -> Result<(), ImageError> {
        let bad = match self.width(id) {
            Some(1) => first_bad::<u8>(self.section(id), admits),
            Some(2) => first_bad::<u16>(self.section(id), admits),
            Some(4) => first_bad::<u32>(self.section(id), admits),
            _ => first_bad::<u64>(self.section(id), admits),
        };
        bad.map_or(Ok(()), |index| {
            let name = self.memory_usage().swap_remove(usize::from(id.0)).name;
            Err(ImageError::Malformed(format!("{name}[{index}] leads nowhere")))
        })
    }
}

/// The index of the first element that is not admitted.
fn first_bad<T: Element>(elements: &[T], admits: impl Fn(u64) -> bool) -> Option<usize> {
    let is_bad = |&value: &T| !admits(value.into());
    let mut blocks = elements.chunks(BLOCK).enumerate();
    let (at, block) = blocks.find(|(_, block)| block.iter().fold(false, |any, value| any | is_bad(value)))?;
    Some(at * BLOCK + block.iter().position(is_bad)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ImageBuilder;

    #[test]
    fn the_first_bad_element_is_named() {
        let id = SectionId(1);
        let builder = ImageBuilder::new("test", 1).section::<u8>("a", 4).section::<u32>("b", 10_000);
        let mut image = builder.build(None).unwrap();
        assert!(image.check_elements(id, |value| value == 0).is_ok());
        image.section_mut::<u32>(id).unwrap()[5_000] = 7;
        image.section_mut::<u32>(id).unwrap()[9_000] = 8;
        let error = |admits: fn(u64) -> bool| image.check_elements(id, admits).unwrap_err().to_string();
        assert!(error(|value| value < 7).contains("b[5000]"), "{}", error(|value| value < 7));
        assert!(error(|value| value != 8).contains("b[9000]"));
        assert!(image.check_elements(SectionId(0), |value| value < 1).is_ok());
    }
}
