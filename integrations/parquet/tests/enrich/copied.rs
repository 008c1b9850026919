//! What was in a file stays as it was, with any number of threads.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, DictionaryArray, Int64Array, ListBuilder, RecordBatch, StringArray, StringBuilder, StructArray,
};
use arrow::datatypes::{DataType, Field, Int16Type, Schema};
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::metadata::{KeyValue, ParquetMetaData, SortingColumn};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};

use super::{Dice, Folder, metadata, read, slow, texts, write, write_with};

/// A file with columns of many kinds, of which two are addresses.
pub(super) fn flows(rows: usize) -> RecordBatch {
    let mut dice = Dice(5);
    let addresses = |dice: &mut Dice| -> ArrayRef {
        let texts = (0..rows).map(|_| (dice.below(7) > 0).then(|| dice.address().to_string()));
        Arc::new(texts.collect::<StringArray>())
    };
    let (src, dst) = (addresses(&mut dice), addresses(&mut dice));
    let mut tags = ListBuilder::new(StringBuilder::new());
    for row in 0..rows {
        (0..row % 3).for_each(|tag| tags.values().append_value(format!("tag {tag}")));
        tags.append(row % 5 > 0);
    }
    let bytes: ArrayRef =
        Arc::new((0..rows).map(|_| Some(dice.below(1 << 40).cast_signed())).collect::<Int64Array>());
    let names: DictionaryArray<Int16Type> = (0..rows).map(|row| Some(["a", "b", "c"][row % 3])).collect();
    let nested =
        StructArray::from(vec![(Arc::new(Field::new("ip", DataType::Utf8, true)), Arc::clone(&src))]);
    let field =
        |name: &str, array: &ArrayRef, nullable| Field::new(name, array.data_type().clone(), nullable);
    let columns: Vec<(&str, ArrayRef, bool)> = vec![
        ("bytes", bytes, false),
        ("src_ip", src, true),
        ("tags", Arc::new(tags.finish()), true),
        ("dst_ip", dst, true),
        ("name", Arc::new(names), true),
        ("peer", Arc::new(nested), true),
    ];
    let fields: Vec<_> =
        columns.iter().map(|(name, array, nullable)| field(name, array, *nullable)).collect();
    let schema = Schema::new(fields).with_metadata([("made by".to_owned(), "us".to_owned())].into());
    RecordBatch::try_new(schema.into(), columns.into_iter().map(|(_, array, _)| array).collect()).unwrap()
}

/// The bytes of each column of each row group.
fn chunks(path: &Path) -> Vec<Vec<Vec<u8>>> {
    let file = fs::read(path).unwrap();
    let of = |range: (u64, u64)| {
        let [start, len] = [range.0, range.1].map(|at| usize::try_from(at).unwrap());
        file[start..start + len].to_vec()
    };
    let groups = metadata(path);
    let groups = groups.row_groups().iter();
    groups.map(|group| group.columns().iter().map(|chunk| of(chunk.byte_range())).collect()).collect()
}

#[test]
fn all_that_was_there_stays_byte_for_byte() {
    let batch = flows(2500);
    let zstd = Compression::ZSTD(ZstdLevel::try_new(3).unwrap());
    let pair = KeyValue { key: "origin".into(), value: Some("test".into()) };
    let sorted = SortingColumn { column_idx: 0, descending: true, nulls_first: false };
    for properties in [
        WriterProperties::builder(),
        WriterProperties::builder()
            .set_compression(zstd)
            .set_writer_version(WriterVersion::PARQUET_2_0)
            .set_bloom_filter_enabled(true)
            .set_sorting_columns(Some(vec![sorted]))
            .set_key_value_metadata(Some(vec![pair.clone()])),
        WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_statistics_enabled(EnabledStatistics::None)
            .set_offset_index_disabled(true)
            .set_dictionary_enabled(false),
    ] {
        let folder = Folder::new();
        write_with(&folder.path("in"), &batch, 700, properties);
        let out = folder.enrich("--table asn=routes");
        let (before, after) = (metadata(&folder.path("in")), metadata(&folder.path("out")));
        assert_eq!(before.num_row_groups(), 4);
        for (was, is) in before.row_groups().iter().zip(after.row_groups()) {
            assert_eq!(was.num_rows(), is.num_rows());
            assert_eq!(was.sorting_columns(), is.sorting_columns());
            assert_eq!(was.num_columns() + 2, is.num_columns());
            for (was, is) in was.columns().iter().zip(is.columns()) {
                assert_eq!(was.statistics(), is.statistics());
                assert_eq!(was.compression(), is.compression());
                assert_eq!(was.bloom_filter_length(), is.bloom_filter_length());
                assert_eq!(was.column_index_length(), is.column_index_length());
            }
            assert_eq!(is.columns().last().unwrap().compression(), was.column(0).compression());
            let has = |of: &parquet::file::metadata::RowGroupMetaData| {
                of.columns().iter().map(|chunk| chunk.offset_index_offset().is_some()).collect::<Vec<_>>()
            };
            assert!(has(is).iter().all(|is| *is == has(was)[0]));
        }
        for (was, is) in chunks(&folder.path("in")).iter().zip(chunks(&folder.path("out"))) {
            assert_eq!(was[..], is[..was.len()]);
        }
        let pairs = |of: &ParquetMetaData| of.file_metadata().key_value_metadata().unwrap().len();
        assert_eq!(pairs(&before), pairs(&after));
        assert_eq!(before.file_metadata().version(), after.file_metadata().version());
        // The types of Arrow, too.
        let names: Vec<_> = out.schema().fields().iter().map(|field| field.name().clone()).collect();
        let all = ["bytes", "src_ip", "tags", "dst_ip", "name", "peer", "src_asn", "dst_asn"];
        assert_eq!(names, all);
        assert_eq!(out.schema().metadata()["made by"], "us");
        assert_eq!(out.project(&[0, 1, 2, 3, 4, 5]).unwrap().columns(), batch.columns());
        for (column, added) in [("src_ip", "src_asn"), ("dst_ip", "dst_asn")] {
            let addresses = texts(&batch, column).into_iter();
            let right: Vec<_> = addresses.map(|text| Some(slow(text?.parse().unwrap())?.1)).collect();
            assert_eq!(texts(&out, added), right);
        }
        // A file can take the place of the one that was read, and gets more columns.
        let ran = folder.run("enrich out -o out --table other=routes --src peer.ip");
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert_eq!(texts(&read(&folder.path("out")), "src_other"), texts(&out, "src_asn"));
    }
}

#[test]
fn threads_write_the_same_file() {
    let folder = Folder::new();
    write_with(&folder.path("in"), &flows(20_000), 700, WriterProperties::builder());
    let mut files = Vec::new();
    for threads in [1, 2, 5, 64] {
        let ran = folder.run(&format!("enrich in -o out --table asn=routes --prefix --threads {threads}"));
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let counts: Vec<_> =
            ran.stderr.lines().filter(|line| line.contains("looked up")).map(str::to_owned).collect();
        assert_eq!(counts.len(), 2, "{}", ran.stderr);
        files.push((fs::read(folder.path("out")).unwrap(), counts));
    }
    assert_eq!(metadata(&folder.path("out")).num_row_groups(), 29);
    assert!(files.iter().all(|file| *file == files[0]));
    let ran = folder.run("enrich in -o out --table asn=routes --threads 0");
    assert!(ran.code == 2 && ran.stderr.contains("invalid value '0' for '--threads <N>'"), "{}", ran.stderr);
}

#[test]
fn files_without_rows() {
    let folder = Folder::new();
    let none: ArrayRef = Arc::new(StringArray::from(Vec::<&str>::new()));
    write(&folder.path("in"), vec![("src", none)]);
    assert_eq!(metadata(&folder.path("in")).num_row_groups(), 0);
    let out = folder.enrich("--table asn=routes");
    assert_eq!((out.num_rows(), out.num_columns()), (0, 2));
    let nulls: ArrayRef = Arc::new(StringArray::from(vec![None::<&str>; 3]));
    write(&folder.path("in"), vec![("src", nulls)]);
    assert_eq!(texts(&folder.enrich("--table asn=routes"), "src_asn"), [None; 3]);
}
