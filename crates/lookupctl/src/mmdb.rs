//! Options for a MaxMind DB that is written.

use anyhow::{Result, bail};
use clap::Args;
use wirespeed_fib::read::{FieldType, FieldTypes};
use wirespeed_fib::write::MmdbOptions;

use crate::refuse::Given;

/// The words of a MaxMind DB about itself, and the types of its fields.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "A MaxMind DB (--to mmdb)")]
pub(crate) struct MmdbArguments {
    /// Types of fields: text, boolean, uint16, uint32, uint64, uint128, int32, float, double or bytes (hex).
    /// The field of a single column is value. By default those of the MaxMind DB that is read, and of other
    /// fields one that fits all values: numbers where all are numbers as they are usually written, so a
    /// column of codes like 10115 needs its type
    #[arg(long, value_name = "FIELD=TYPE", value_delimiter = ',', value_parser = parse_type)]
    field_types: Vec<(String, FieldType)>,

    /// Type of the database, by which programs know what it has [default: Wirespeed]
    #[arg(long, value_name = "TEXT")]
    database_type: Option<String>,

    /// Description of the database, in English [default: routes with labels]
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
}

fn parse_type(text: &str) -> Result<(String, FieldType), String> {
    let (field, of) = text
        .rsplit_once('=')
        .filter(|(field, _)| !field.is_empty())
        .ok_or("a type is named FIELD=TYPE, such as postal.code=text")?;
    Ok((field.to_owned(), of.parse().map_err(|error: wirespeed_fib::read::NoFieldType| error.to_string())?))
}

impl MmdbArguments {
    /// Each of them.
    pub(crate) fn given(&self) -> [Given<'static>; 3] {
        [
            ("field-types", !self.field_types.is_empty()),
            ("database-type", self.database_type.is_some()),
            ("description", self.description.is_some()),
        ]
    }

    /// The options for a table whose fields had these types where it was read.
    pub(crate) fn options(&self, read: FieldTypes) -> Result<MmdbOptions> {
        let mut stated = FieldTypes::default();
        for (field, of) in &self.field_types {
            if stated.fields().any(|known| known == field) {
                bail!("--field-types {field}=... is given twice");
            }
            stated.state(field, *of);
        }
        let usual = MmdbOptions::default();
        Ok(MmdbOptions {
            stated,
            read,
            database_type: self.database_type.clone().unwrap_or(usual.database_type),
            description: self.description.clone().unwrap_or(usual.description),
        })
    }
}
