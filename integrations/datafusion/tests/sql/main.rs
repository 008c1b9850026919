//! The functions in queries, against slow walks over what they look up in.

#![allow(clippy::unwrap_used)] // a test's helpers may panic like the test

mod addresses;
mod files;
mod names;
mod payloads;
mod rules;
mod tables;

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Int64Array, RecordBatch};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::datasource::MemTable;
use datafusion::error::Result;
use datafusion::prelude::{SessionConfig, SessionContext};
use wirespeed_datafusion::{Tables, WirespeedOptions, register_all};

/// A session with the functions and the options.
fn session(tables: &Tables) -> SessionContext {
    let config = SessionConfig::new().with_target_partitions(2).with_batch_size(64);
    let mut context =
        SessionContext::new_with_config(config.with_option_extension(WirespeedOptions::default()));
    register_all(&mut context, tables).unwrap();
    context
}

/// A table of columns, with the row's number in `n`, in two batches. The columns are slices whose offset is
/// not 0.
fn register(context: &SessionContext, name: &str, columns: &[(&str, ArrayRef)]) {
    let rows = columns[0].1.len();
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..i64::try_from(rows).unwrap()));
    let all = [&[("n", numbers)], columns].concat();
    // Nullable, also those that have no null.
    let all =
        RecordBatch::try_from_iter_with_nullable(all.into_iter().map(|(name, column)| (name, column, true)));
    let all = all.unwrap();
    let skipped = rows.min(3);
    let before = all.slice(0, skipped);
    let doubled = arrow::compute::concat_batches(&all.schema(), [&before, &all]).unwrap();
    let parts = vec![
        vec![doubled.slice(skipped, rows / 3)],
        vec![doubled.slice(skipped + rows / 3, rows - rows / 3)],
    ];
    assert_eq!(parts[0][0].num_rows() + parts[1][0].num_rows(), rows);
    let _ = context.deregister_table(name).unwrap();
    context.register_table(name, Arc::new(MemTable::try_new(all.schema(), parts).unwrap())).unwrap();
}

/// The first column of a query's answer as text.
async fn answer(context: &SessionContext, sql: &str) -> Result<Vec<Option<String>>> {
    let mut texts = Vec::new();
    for batch in context.sql(sql).await?.collect().await? {
        texts.extend(as_texts(batch.column(0)));
    }
    Ok(texts)
}

fn as_texts(column: &ArrayRef) -> Vec<Option<String>> {
    let options = FormatOptions::default();
    let formatter = ArrayFormatter::try_new(column, &options).unwrap();
    // A key of a dictionary may be valid and its value null.
    let nulls = column.logical_nulls();
    let is_null = |row| nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
    (0..column.len()).map(|row| (!is_null(row)).then(|| formatter.value(row).to_string())).collect()
}

/// The error of a query, as text.
async fn error(context: &SessionContext, sql: &str) -> String {
    match answer(context, sql).await {
        Ok(answer) => panic!("{sql}: {answer:?}"),
        Err(error) => error.to_string(),
    }
}

/// The error of planning a query, before anything runs.
async fn planning_error(context: &SessionContext, sql: &str) -> String {
    match context.sql(sql).await.and_then(datafusion::dataframe::DataFrame::into_optimized_plan) {
        Ok(plan) => panic!("{sql}: {plan:?}"),
        Err(error) => error.to_string(),
    }
}

/// Numbers that look random, the same in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}
