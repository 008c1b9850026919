//! A Parquet file with more columns.
//!
//! ```text
//! metadata ─► plan ─► threads, a row group each: the columns to look up ─► batches ─► new columns, encoded ─┐
//!                     in order:                  all columns, as they lie in the file ─────────────────────┴─► row group
//! ```
//!
//! The columns of the input are copied as they are encoded and compressed, with their statistics, indexes and
//! Bloom filters. Only those that are looked up are decoded, a batch at a time. So memory is for each thread
//! that of a batch, and of the new columns of a row group as they are encoded. Batches have fewer rows where
//! those would unpack to much ([`pages`]).

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use arrow::array::{ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};
use arrow::util::display::array_value_to_string;
use indicatif::ProgressBar;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};
use parquet::arrow::arrow_writer::{ArrowColumnChunk, ArrowRowGroupWriterFactory, compute_leaves};
use parquet::arrow::{ARROW_SCHEMA_META_KEY, ArrowSchemaConverter, ProjectionMask, encode_arrow_schema};
use parquet::basic::Compression;
use parquet::bloom_filter::Sbbf;
use parquet::column::writer::ColumnCloseResult;
use parquet::file::metadata::{
    ColumnChunkMetaData, KeyValue, PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData,
};
use parquet::file::properties::{WriterProperties, WriterVersion};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{Type, TypePtr};
use wirespeed_commands::enrich::{self, Given, Kind, Now, Spec, Versions};

use crate::answer::Answers;
use crate::columns::{self, Key};
use crate::guarded::guarded;
use crate::in_order::in_order;
use crate::interrupt;
use crate::keys::{LONGEST_NAME, is_text};
use crate::pages;
use crate::shared_file::SharedFile;
use crate::summary::{Counts, Summary};
use crate::values::Values;

/// The rows that are decoded and looked up together.
const BATCH: usize = 8192;
/// Rows of columns of names that are decoded together. Names are copied, and rows of a dictionary may share a
/// long one.
const BATCH_OF_NAMES: usize = 1024;
const _: () = assert!((BATCH_OF_NAMES * LONGEST_NAME) as u64 <= pages::FREE);

/// The way in which a file is worked on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct How {
    /// Whether values pass that are no keys.
    pub(crate) lenient: bool,
    pub(crate) threads: usize,
}

/// A Parquet file that is read, and its plan.
pub(crate) struct Input {
    name: String,
    file: SharedFile,
    metadata: Arc<ParquetMetaData>,
    arrow: ArrowReaderMetadata,
    /// How columns are read: as in `arrow`, with values that lie in the pages they come from.
    views: ArrowReaderMetadata,
    keys: Vec<Key>,
}

impl Input {
    /// Opens a file, and plans by its schema.
    pub(crate) fn open(path: &Path, given: &Given, specs: &[Spec]) -> Result<Self> {
        let name = shown(path, "standard input");
        let mut file =
            if is_standard(path) { spooled() } else { File::open(path) }.with_context(|| name.clone())?;
        let mut start = Vec::new();
        (&file).take(4).read_to_end(&mut start).with_context(|| name.clone())?;
        match &*start {
            b"PAR1" => {}
            b"PARE" => bail!("{name}: encrypted Parquet is not read"),
            _ => bail!("{name}: no Parquet file"),
        }
        file.rewind().with_context(|| format!("{name}: a file is needed, not a pipe"))?;
        let damaged = || format!("{name}: a damaged Parquet file, or one that is not read");
        let reader = ParquetMetaDataReader::new().with_page_index_policy(PageIndexPolicy::Optional);
        let metadata = Arc::new(reader.parse_and_finish(&file).with_context(damaged)?);
        let arrow = ArrowReaderMetadata::try_new(Arc::clone(&metadata), ArrowReaderOptions::new())
            .with_context(damaged)?;
        let keys = columns::plan(given, specs, arrow.schema()).with_context(|| name.clone())?;
        let schema = arrow.schema();
        let of_views = Schema::new_with_metadata(with_views(schema.fields()), schema.metadata().clone());
        let options = ArrowReaderOptions::new().with_schema(Arc::new(of_views));
        let views = ArrowReaderMetadata::try_new(Arc::clone(&metadata), options).with_context(damaged)?;
        Ok(Self { name, file: SharedFile::new(file), metadata, arrow, views, keys })
    }

    /// Writes the file with its new columns. Each row group has the tables of the moment when the work on it
    /// begins. An error has the name of this file; `to` has to keep its own.
    pub(crate) fn enrich(&self, now: &Now<Values>, how: How, to: impl Write + Send) -> Result<Summary> {
        self.write(now, how, to).with_context(|| self.name.clone())
    }

    fn write(&self, now: &Now<Values>, how: How, to: impl Write + Send) -> Result<Summary> {
        let added = self.added();
        let properties = Arc::new(self.properties(&added)?);
        let of_added = ArrowSchemaConverter::new().convert(&added)?;
        let root = self.metadata.file_metadata().schema();
        let fields = [root.get_fields(), of_added.root_schema().get_fields()].concat();
        let schema: TypePtr = Arc::new(Type::group_type_builder(root.name()).with_fields(fields).build()?);
        let mut writer = SerializedFileWriter::new(to, schema, Arc::clone(&properties))?;
        // The factory makes encoders for all columns of its file, so it gets one that has the new columns
        // alone.
        let alone = SerializedFileWriter::new(io::sink(), of_added.root_schema_ptr(), properties)?;
        let encoders = ArrowRowGroupWriterFactory::new(&alone, Arc::clone(&added));
        let mut summary = Summary::new(&self.keys);
        let groups = self.metadata.num_row_groups();
        let place = |group| move || format!("row group {}", group + 1);
        let look_up = |group, tables: Versions<Values>| {
            let (new, counts) =
                guarded(place(group), || self.look_up(group, &tables, how.lenient, &added, &encoders))?;
            Ok((new, counts, tables))
        };
        // There is none if stderr is not a terminal.
        let progress = ProgressBar::new(u64::try_from(self.metadata.file_metadata().num_rows())?);
        in_order(
            groups,
            how.threads,
            || now.versions(),
            look_up,
            |group, (new, counts, tables)| {
                interrupt::check()?;
                summary.add(&counts, &tables);
                progress.inc(counts.rows);
                let mut group_writer = writer.next_row_group()?;
                guarded(place(group), || self.copy(group, &mut group_writer))?;
                for mut chunk in new {
                    if !self.has_indexes() {
                        // Readers expect the indexes of all columns or of none.
                        chunk.close_mut().column_index = None;
                        chunk.close_mut().offset_index = None;
                    }
                    chunk.append_to_row_group(&mut group_writer)?;
                }
                group_writer.close()?;
                Ok(())
            },
        )?;
        writer.close()?;
        progress.finish_and_clear();
        Ok(summary)
    }

    /// The schema of the new columns.
    fn added(&self) -> SchemaRef {
        let names = self.keys.iter().flat_map(|key| &key.added).map(|added| &added.name);
        Arc::new(Schema::new(names.map(|name| Field::new(name, DataType::Utf8, true)).collect::<Vec<_>>()))
    }

    /// The properties of the output: those of the input, as far as a file has them as a whole.
    fn properties(&self, added: &Schema) -> Result<WriterProperties> {
        let (file, groups) = (self.metadata.file_metadata(), self.metadata.row_groups());
        let with_hint = |pair: &KeyValue| match &*pair.key {
            // The hint names all columns.
            ARROW_SCHEMA_META_KEY => {
                let fields = self.arrow.schema().fields().iter().chain(added.fields()).cloned();
                let schema = Schema::new_with_metadata(
                    fields.collect::<Vec<_>>(),
                    self.arrow.schema().metadata().clone(),
                );
                KeyValue { key: pair.key.clone(), value: Some(encode_arrow_schema(&schema)) }
            }
            _ => pair.clone(),
        };
        let pairs = file.key_value_metadata().map(|pairs| pairs.iter().map(with_hint).collect());
        let sorted = groups.first().and_then(|first| first.sorting_columns()).cloned();
        let sorted =
            sorted.filter(|of_first| groups.iter().all(|group| group.sorting_columns() == Some(of_first)));
        let version =
            if file.version() > 1 { WriterVersion::PARQUET_2_0 } else { WriterVersion::PARQUET_1_0 };
        // Levels of compression are not in a file.
        let chunk = groups.first().and_then(|group| group.columns().first());
        let compression = chunk.map_or(Compression::SNAPPY, ColumnChunkMetaData::compression);
        Ok(WriterProperties::builder()
            .set_writer_version(version)
            .set_compression(compression)
            .set_key_value_metadata(pairs)
            .set_sorting_columns(sorted)
            .build())
    }

    /// Looks the rows of a row group up. Returns their new columns as they are encoded.
    fn look_up(
        &self,
        group: usize,
        tables: &Versions<Values>,
        lenient: bool,
        added: &Schema,
        encoders: &ArrowRowGroupWriterFactory,
    ) -> Result<(Vec<ArrowColumnChunk>, Counts)> {
        let descriptor = self.metadata.file_metadata().schema_descr();
        let wanted = ProjectionMask::columns(descriptor, self.columns().map(|column| &*column.name));
        let damaged = || format!("row group {}", group + 1);
        let rows = self.rows_together(group).with_context(damaged)?;
        let batches =
            ParquetRecordBatchReaderBuilder::new_with_metadata(self.file.clone(), self.views.clone())
                .with_projection(wanted)
                .with_row_groups(vec![group])
                .with_batch_size(rows)
                .build()
                .with_context(damaged)?;
        let (mut encoders, mut counts) =
            (encoders.create_column_writers(group)?, Counts::new(self.keys.len()));
        for batch in batches {
            interrupt::check()?;
            let batch = batch.with_context(damaged)?;
            let mut new = encoders.iter_mut().zip(added.fields());
            let mut first: Option<(usize, &Key, &enrich::Column, ArrayRef)> = None;
            for (at, key) in self.keys.iter().enumerate() {
                let columns =
                    key.columns.iter().map(|column| column.of(&batch)).collect::<Result<Vec<_>>>()?;
                let answers = Answers::new(key, tables, &columns)?;
                if let Some(row) = counts.add(at, answers.states())
                    && first.as_ref().is_none_or(|(before, ..)| row < *before)
                {
                    let at = answers.wrong_column(row);
                    first = Some((row, key, &key.of.columns[at], Arc::clone(&columns[at])));
                }
                for array in &answers.columns {
                    let (encoder, field) = new.next().context("a column that was planned")?;
                    for leaf in compute_leaves(field, array)? {
                        encoder.write(&leaf)?;
                    }
                }
            }
            if let Some((row, key, wanted, column)) = first.filter(|_| !lenient) {
                let row_of_file = self.rows_before(group)? + counts.rows + row as u64 + 1;
                let refused = refused(key, wanted, &column, row)?;
                bail!("row {row_of_file}: {refused} (--lenient passes such rows)");
            }
            counts.rows += batch.num_rows() as u64;
        }
        let (rows, right) = (counts.rows, self.metadata.row_group(group).num_rows());
        if u64::try_from(right) != Ok(rows) {
            return Err(anyhow!("it has {rows} rows and says that it has {right}")).with_context(damaged);
        }
        let new = encoders.into_iter().map(|encoder| Ok(encoder.close()?)).collect::<Result<_>>()?;
        Ok((new, counts))
    }

    /// The rows of a row group that are decoded together: fewer where a batch would hold too much.
    fn rows_together(&self, group: usize) -> Result<usize> {
        let chunks = self.metadata.row_group(group).columns();
        let columns = self.keys.iter().flat_map(|key| key.columns.iter().map(move |column| (key, column)));
        columns.into_iter().try_fold(BATCH, |rows, (key, column)| {
            let of_key = |chunk: &&ColumnChunkMetaData| chunk.column_path().string() == column.name;
            let chunk = chunks.iter().find(of_key).context("a column that was planned")?;
            let is_of_names = matches!(key.of.kind, Kind::Names | Kind::Domains);
            let most = if is_of_names { rows.min(BATCH_OF_NAMES) } else { rows };
            pages::rows_together(&self.file, chunk, column.is_dictionary(), most)
        })
    }

    /// All columns that are looked up.
    fn columns(&self) -> impl Iterator<Item = &columns::Column> {
        self.keys.iter().flat_map(|key| &key.columns)
    }

    /// The rows of the row groups before one.
    fn rows_before(&self, group: usize) -> Result<u64> {
        let before = &self.metadata.row_groups()[..group];
        Ok(u64::try_from(before.iter().map(RowGroupMetaData::num_rows).sum::<i64>())?)
    }

    /// Copies the columns of a row group as they are.
    fn copy<W: Write + Send>(&self, group: usize, into: &mut SerializedRowGroupWriter<'_, W>) -> Result<()> {
        let of = self.metadata.row_group(group);
        let rows_written = u64::try_from(of.num_rows())?;
        let (columns, offsets) = (self.metadata.column_index(), self.metadata.offset_index());
        for (at, chunk) in of.columns().iter().enumerate() {
            if chunk.file_path().is_some() {
                bail!("columns that lie in other files are not read");
            }
            let close = ColumnCloseResult {
                bytes_written: u64::try_from(chunk.compressed_size())?,
                rows_written,
                metadata: chunk.clone(),
                bloom_filter: Sbbf::read_from_column_chunk(chunk, &self.file)?,
                column_index: columns.and_then(|of| of.get(group)?.get(at).cloned()),
                offset_index: offsets.and_then(|of| of.get(group)?.get(at).cloned()),
            };
            into.append_column(&self.file, close)?;
        }
        Ok(())
    }

    /// Whether all columns have indexes of their pages that can be read. Others are not copied.
    fn has_indexes(&self) -> bool {
        self.metadata.offset_index().is_some()
    }
}

/// Whether a path is standard input or output.
pub(crate) fn is_standard(path: &Path) -> bool {
    path == Path::new("-")
}

/// A path for messages.
pub(crate) fn shown(path: &Path, standard: &str) -> String {
    if is_standard(path) { standard.to_owned() } else { path.display().to_string() }
}

/// Standard input as a file without a name. The metadata of Parquet is at its end, so a pipe is read to there
/// first.
fn spooled() -> io::Result<File> {
    let mut file = tempfile::tempfile()?;
    io::copy(&mut io::stdin().lock(), &mut file)?;
    file.rewind()?;
    Ok(file)
}

/// Fields with text and octets as views. A dictionary stays one: each of its values is looked up once.
fn with_views(fields: &Fields) -> Fields {
    let of = |field: &FieldRef| {
        let viewed = match field.data_type() {
            DataType::Utf8 | DataType::LargeUtf8 => DataType::Utf8View,
            DataType::Binary | DataType::LargeBinary => DataType::BinaryView,
            DataType::Struct(fields) => DataType::Struct(with_views(fields)),
            _ => return Arc::clone(field),
        };
        Arc::new(field.as_ref().clone().with_data_type(viewed))
    };
    fields.iter().map(of).collect()
}

/// The reason why a value is wrong.
fn refused(key: &Key, wanted: &enrich::Column, column: &ArrayRef, row: usize) -> Result<String> {
    // A dictionary shows the value.
    let one = column.slice(row, 1);
    let one = match one.as_any_dictionary_opt() {
        Some(dictionary) => cast(&one, dictionary.values().data_type())?,
        None => one,
    };
    let value = array_value_to_string(&one, 0)?;
    let shown: String = value.chars().take(60).collect();
    // Octets and integers are addresses without the option, or none.
    let hint = if is_text(one.data_type()) { wanted.hint(key.of.numbers, value.as_bytes()) } else { "" };
    Ok(format!("{} {shown:?} is {}{hint}", wanted.name, wanted.refusal()))
}
