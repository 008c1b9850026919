//! Images there and back, attachments, patches, and what is no image.

use super::*;
use crate::format::checksum;
use crate::patch::PatchBuilder;

const A: SectionId = SectionId(0);
const B: SectionId = SectionId(1);

fn sample() -> Image {
    let mut image =
        ImageBuilder::new("sample", 3).section::<u8>("a", 5).section::<u32>("b", 3).build(None).unwrap();
    image.section_mut::<u8>(A).unwrap().copy_from_slice(&[1, 2, 3, 4, 5]);
    image.section_mut::<u32>(B).unwrap().copy_from_slice(&[7, 8, u32::MAX]);
    image.set_counts(11, 255);
    image
}

fn bytes(image: &Image) -> Vec<u8> {
    let mut bytes = Vec::new();
    image.write(&mut bytes).unwrap();
    bytes
}

/// Bytes with the checksum made right again, so that what lies behind it is reached.
fn resealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let sum = checksum(&bytes);
    let at = std::mem::offset_of!(Header, checksum);
    bytes[at..at + 8].copy_from_slice(&sum.to_le_bytes());
    bytes
}

#[test]
fn there_and_back_through_bytes_file_and_map() {
    let image = sample();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.img");
    image.save(&path).unwrap();
    #[allow(unsafe_code)]
    // SAFETY: nobody else knows of the temporary file.
    let mapped = unsafe { Image::map(&path) }.unwrap();
    for back in [Image::open(&path).unwrap(), mapped, Image::from_bytes(&bytes(&image)).unwrap()] {
        assert_eq!((back.kind(), back.layout(), back.entries(), back.results()), ("sample", 3, 11, 255));
        assert_eq!(back.section::<u8>(A), [1, 2, 3, 4, 5]);
        assert_eq!(back.section::<u32>(B), [7, 8, u32::MAX]);
        assert_eq!(back.find("b"), Some(B));
        assert_eq!(back.memory_usage()[1].bytes, 12);
        assert_eq!(bytes(&back), bytes(&image));
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "no part file is left");
}

#[test]
fn an_attachment_rides_along() {
    let image = sample();
    let with = image.with_attachment("notes", b"hello").unwrap();
    assert_eq!((with.entries(), with.results(), with.sections()), (11, 255, 3));
    assert_eq!(
        (with.section::<u8>(A), with.section::<u32>(B)),
        (image.section::<u8>(A), image.section::<u32>(B))
    );
    let back = Image::from_bytes(&bytes(&with)).unwrap();
    assert_eq!(back.attachment("notes"), Some(&b"hello"[..]));
    assert_eq!((back.attachment("b"), back.attachment("none")), (None, None));
    let without = back.without_attachments(&["notes", "none"]).unwrap();
    assert_eq!(bytes(&without), bytes(&image));
    let two = image.with_attachments(&[("notes", b"hello"), ("more", b"")]).unwrap();
    assert_eq!(bytes(&two), bytes(&with.with_attachment("more", b"").unwrap()));
}

#[test]
fn every_flipped_bit_and_every_cut_is_an_error() {
    let whole = bytes(&sample());
    for at in 0..whole.len() {
        for bit in 0..8 {
            let mut bad = whole.clone();
            bad[at] ^= 1 << bit;
            assert!(Image::from_bytes(&bad).is_err(), "byte {at} bit {bit}");
        }
        assert!(Image::from_bytes(&whole[..at]).is_err(), "cut at {at}");
    }
    let longer = [&whole[..], &[0]].concat();
    assert!(matches!(Image::from_bytes(&longer), Err(ImageError::Length { .. })));
}

#[test]
fn a_hostile_header_with_a_right_checksum_is_an_error_or_harmless() {
    let whole = bytes(&sample());
    let head = size_of::<Header>() + 2 * size_of::<SectionEntry>();
    for at in 0..head {
        for value in [0u8, 1, 2, 3, 0x7f, 0x80, 0xff] {
            let mut bad = whole.clone();
            bad[at] = value;
            if let Ok(image) = Image::from_bytes(&resealed(bad)) {
                // Kind, layout, counts and names may be anything; sections lie inside all the same.
                for id in 0..2 {
                    match image.width(SectionId(id)).unwrap() {
                        1 => drop(image.section::<u8>(SectionId(id)).to_vec()),
                        2 => drop(image.section::<u16>(SectionId(id)).to_vec()),
                        4 => drop(image.section::<u32>(SectionId(id)).to_vec()),
                        _ => drop(image.section::<u64>(SectionId(id)).to_vec()),
                    }
                }
            }
        }
    }
    let mut other = whole.clone();
    other[8] = 2;
    assert!(matches!(
        Image::from_bytes(&resealed(other)),
        Err(ImageError::Version { found: 2, supported: 1 })
    ));
}

#[test]
fn a_short_file_is_told_from_another_kind_of_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x");
    std::fs::write(&path, b"").unwrap();
    assert!(matches!(Image::open(&path), Err(ImageError::NotAnImage)));
    std::fs::write(&path, &bytes(&sample())[..40]).unwrap();
    assert!(matches!(Image::open(&path), Err(ImageError::Length { found: 40, wanted: 128 })));
    std::fs::write(&path, [7u8; 4096]).unwrap();
    assert!(matches!(Image::open(&path), Err(ImageError::NotAnImage)));
}

#[test]
fn a_patch_is_applied_whole_or_not_at_all() {
    let mut image = sample();
    let mut patch = PatchBuilder::new();
    patch.set(B, 1, 99);
    patch.set(A, 0, 42);
    patch.set(B, 1, 100);
    image.apply(&patch.finish(Some((12, 100)))).unwrap();
    assert_eq!((image.section::<u8>(A)[0], image.section::<u32>(B)[1]), (42, 100));
    assert_eq!((image.entries(), image.results()), (12, 100));
    let before = bytes(&image);
    for (section, index, value) in [(A, 5, 0), (A, 1, 256), (B, 0, 1 << 32), (SectionId(2), 0, 0)] {
        let mut patch = PatchBuilder::new();
        patch.set(A, 2, 77);
        patch.set(section, index, value);
        assert!(image.apply(&patch.finish(None)).is_err());
        assert_eq!(bytes(&image), before);
    }
}

#[test]
fn a_mapped_image_is_patched_in_memory_only() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.img");
    sample().save(&path).unwrap();
    #[allow(unsafe_code)]
    // SAFETY: nobody else knows of the temporary file.
    let mut image = unsafe { Image::map(&path) }.unwrap();
    let mut patch = PatchBuilder::new();
    patch.set(A, 0, 42);
    image.apply(&patch.finish(None)).unwrap();
    assert_eq!(image.section::<u8>(A)[0], 42);
    assert_eq!(Image::open(&path).unwrap().section::<u8>(A)[0], 1);
}

/// A mapped file that is shortened by another process: a lookup in what is gone ends this one, as the docs of
/// [`Image::map`] say, and gives no answer.
#[cfg(target_os = "linux")]
#[test]
fn a_file_that_is_cut_while_it_is_mapped_ends_the_process() {
    use std::os::unix::process::ExitStatusExt;

    const FILE: &str = "WIRESPEED_IMAGE_TO_CUT";
    const SIGBUS: i32 = 7;
    if let Some(path) = std::env::var_os(FILE) {
        // The process that ends.
        #[allow(unsafe_code)]
        // SAFETY: the file is cut on purpose, in a process that is to end by it.
        let image = unsafe { Image::map(path.as_ref()) }.unwrap();
        std::fs::File::options().write(true).open(&path).unwrap().set_len(4096).unwrap();
        let sum: u64 = image.section::<u64>(A).iter().sum();
        println!("an answer: {sum}");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.img");
    let mut image = ImageBuilder::new("sample", 1).section::<u64>("a", 1 << 17).build(None).unwrap();
    image.section_mut::<u64>(A).unwrap().fill(7);
    image.save(&path).unwrap();
    let own = "image::tests::a_file_that_is_cut_while_it_is_mapped_ends_the_process";
    let ended = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", own, "--nocapture"])
        .env(FILE, &path)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ended.stdout);
    assert_eq!(ended.status.signal(), Some(SIGBUS), "{said}");
    assert!(!said.contains("an answer"), "{said}");
}

#[test]
fn a_large_image_starts_at_a_huge_page_and_a_cap_is_kept() {
    let builder = ImageBuilder::new("sample", 1).section::<u64>("a", 1 << 19);
    let image = builder.clone().build(None).unwrap();
    assert_eq!(image.storage.bytes().as_ptr().align_offset(2 << 20), 0);
    let needed = image.bytes();
    assert!(builder.clone().build(Some(needed)).is_ok());
    assert!(matches!(builder.build(Some(needed - 1)), Err(ImageError::OverCap { .. })));
    let absurd = ImageBuilder::new("sample", 1).section::<u64>("a", u64::MAX / 4);
    assert!(absurd.build(None).is_err());
}
