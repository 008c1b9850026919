//! Damaged files: an error, or what a slow enricher says of the values that are there, in bounded memory.

use std::collections::BTreeMap;
use std::fs::File;
use std::net::IpAddr;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, StringArray};
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatch;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::metadata::PageIndexPolicy;
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder, WriterVersion};

use super::{Dice, Folder, metadata, slow, texts, write_with};

/// The MiB of memory that a run may take.
const LITTLE: usize = 512;

/// The places of a file, by what lies there.
fn regions(folder: &Folder) -> BTreeMap<&'static str, Vec<Range<usize>>> {
    let (path, mut regions) = (folder.path("in"), BTreeMap::<_, Vec<_>>::new());
    let file = std::fs::read(&path).unwrap();
    let at = |place: i64| usize::try_from(place).unwrap();
    let mut put = |what, range: Range<usize>| regions.entry(what).or_default().push(range);
    let end = file.len() - 8;
    let of_metadata = u32::from_le_bytes(file[end..end + 4].try_into().unwrap()) as usize;
    let footer = end - of_metadata..end;
    put("footer", footer.clone());
    put("end", end..file.len());
    let metadata = metadata(&path);
    for (group, of_group) in metadata.row_groups().iter().enumerate() {
        for (column, chunk) in of_group.columns().iter().enumerate() {
            if let Some(dictionary) = chunk.dictionary_page_offset() {
                put("header of a dictionary", at(dictionary)..at(dictionary) + 16);
                put("dictionary", at(dictionary) + 16..at(chunk.data_page_offset()));
            }
            for page in metadata.offset_index().unwrap()[group][column].page_locations() {
                let len = usize::try_from(page.compressed_page_size).unwrap();
                put("header of a page", at(page.offset)..at(page.offset) + 16);
                put("page", at(page.offset) + 16..at(page.offset) + len);
            }
            for (what, offset, len) in [
                ("column index", chunk.column_index_offset(), chunk.column_index_length()),
                ("offset index", chunk.offset_index_offset(), chunk.offset_index_length()),
            ] {
                put(what, at(offset.unwrap())..at(offset.unwrap()) + usize::try_from(len.unwrap()).unwrap());
            }
            let most = chunk.statistics().unwrap().max_bytes_opt().unwrap();
            let found = file[footer.clone()].windows(most.len()).position(|bytes| bytes == most).unwrap();
            put("statistics", footer.start + found - 4..footer.start + found + most.len());
        }
    }
    regions
}

/// The addresses that are in a damaged file, if they can be read.
fn addresses(folder: &Folder) -> Result<Vec<Option<String>>, ArrowError> {
    // Pages are found by their index where there is one, as the program does.
    let options = ArrowReaderOptions::new().with_page_index_policy(PageIndexPolicy::Optional);
    let file = File::open(folder.path("in")).unwrap();
    let builder = ParquetRecordBatchReaderBuilder::try_new_with_options(file, options)?;
    let mask = ProjectionMask::columns(builder.parquet_schema(), ["src"]);
    let mut all = Vec::new();
    for batch in builder.with_projection(mask).build()? {
        let batch = batch?;
        all.extend(batch.column(0).as_string::<i32>().iter().map(|text| text.map(str::to_owned)));
    }
    Ok(all)
}

/// Damages each region of a file in many ways. Returns how many runs ended well and how many with an error.
fn damage(properties: WriterPropertiesBuilder, seed: u64) -> (usize, usize) {
    let (folder, mut dice) = (Folder::new(), Dice(seed));
    let rows = 900;
    let addresses_of = |dice: &mut Dice| -> ArrayRef {
        let texts = (0..rows).map(|_| (dice.below(7) > 0).then(|| dice.address().to_string()));
        Arc::new(texts.collect::<StringArray>())
    };
    let (src, other) = (addresses_of(&mut dice), addresses_of(&mut dice));
    let batch = RecordBatch::try_from_iter_with_nullable([("src", src, true), ("other", other, true)]);
    write_with(&folder.path("in"), &batch.unwrap(), 400, properties);
    let (whole, regions) = (std::fs::read(folder.path("in")).unwrap(), regions(&folder));
    assert!(regions.len() >= 7, "{:?}", regions.keys());
    let (mut well, mut refused) = (0, 0);
    for (what, ranges) in regions {
        for _ in 0..24 {
            let range = ranges[dice.index(ranges.len())].clone();
            let mut bytes = whole.clone();
            for _ in 0..=dice.below(3) {
                let from = range.start + dice.index(range.len());
                let to = range.end.min(from + 1 + dice.index(8));
                match dice.below(4) {
                    0 => bytes[from] ^= 1 << dice.below(8),
                    1 => bytes[from..to].fill(0xff),
                    2 => bytes[from..to].fill(0),
                    _ => bytes[from] = u8::try_from(dice.below(256)).unwrap(),
                }
            }
            std::fs::write(folder.path("in"), &bytes).unwrap();
            let _ = std::fs::remove_file(folder.path("out"));
            let ran = folder.run_within(LITTLE, "enrich in -o out --table asn=routes --src src --threads 1");
            assert!(!ran.stderr.contains("panicked"), "{what}: {}", ran.stderr);
            if ran.code == 2 {
                let last = ran.stderr.lines().last().unwrap();
                // Its own name, once, and not that of the output.
                let is_of_input = last.starts_with("wirespeed-parquet: in: ");
                assert!(is_of_input && last.matches(" in: ").count() == 1, "{what}: {}", ran.stderr);
                assert!(!folder.path("out").exists(), "{what}: {}", ran.stderr);
                refused += 1;
                continue;
            }
            assert_eq!(ran.code, 0, "{what}: {}", ran.stderr);
            let there = addresses(&folder).unwrap_or_else(|error| panic!("{what}: in: {error}"));
            let right: Vec<_> = there
                .iter()
                .map(|text| {
                    text.as_ref().and_then(|text| slow(text.parse::<IpAddr>().unwrap())).map(|(_, to)| to)
                })
                .collect();
            let builder = ParquetRecordBatchReaderBuilder::try_new(File::open(folder.path("out")).unwrap());
            let builder = builder.unwrap_or_else(|error| panic!("{what}: {error}"));
            let mask = ProjectionMask::columns(builder.parquet_schema(), ["src_asn"]);
            let (mut found, schema) = (Vec::new(), builder.schema().clone());
            for batch in builder.with_projection(mask).build().unwrap() {
                let batch = batch.unwrap_or_else(|error| panic!("{what}: {error}"));
                found.extend(texts(&batch, "src_asn").into_iter().map(|text| text.map(str::to_owned)));
            }
            assert_eq!(schema.fields().len(), 3, "{what}");
            assert!(found.iter().map(Option::as_deref).eq(right.iter().copied()), "{what}");
            well += 1;
        }
    }
    (well, refused)
}

#[test]
fn damaged_files_are_refused_or_answered_as_they_are() {
    let zstd = Compression::ZSTD(ZstdLevel::default());
    let (mut well, mut refused) = (0, 0);
    for (properties, seed) in [
        (WriterProperties::builder().set_data_page_row_count_limit(100).set_write_batch_size(50), 11),
        (
            WriterProperties::builder().set_compression(zstd).set_writer_version(WriterVersion::PARQUET_2_0),
            12,
        ),
        (WriterProperties::builder().set_compression(Compression::SNAPPY).set_dictionary_enabled(false), 13),
    ] {
        let (ended_well, ended_with_an_error) = damage(properties, seed);
        (well, refused) = (well + ended_well, refused + ended_with_an_error);
    }
    assert!(well > 50 && refused > 200, "{well} {refused}");
}
