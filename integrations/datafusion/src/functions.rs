//! The functions as DataFusion has them, and their option: the only file with its types.

use std::any::Any;
use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, UInt32Array};
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion_common::config::{ConfigEntry, ConfigExtension, ConfigOptions, ExtensionOptions};
use datafusion_common::{DataFusionError, Result, ScalarValue, config_err, exec_err, plan_err};
use datafusion_expr::expr::ScalarFunction;
use datafusion_expr::registry::FunctionRegistry;
use datafusion_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use wirespeed::names::read::NameFormat;
use wirespeed_columns::{self as column, Invalid};

use crate::error::Error;
use crate::table::{AddressTable, NameTable, Packets, PayloadTable, RuleTable, Table};
use crate::tables::{Listed, State, Tables, in_table};

/// Registers all functions. They look up in `tables`, and in the tables that the option `wirespeed.tables`
/// lists ([`WirespeedOptions`]).
pub fn register_all(registry: &mut dyn FunctionRegistry, tables: &Tables) -> Result<()> {
    for function in functions(tables) {
        registry.register_udf(Arc::new(function))?;
    }
    Ok(())
}

/// All functions, for registries of another type.
pub fn functions(tables: &Tables) -> impl Iterator<Item = ScalarUDF> {
    let tables = tables.clone();
    Verb::ALL.into_iter().map(move |verb| {
        let signature = Signature::user_defined(Volatility::Stable);
        ScalarUDF::new_from_impl(Function { verb, tables: tables.clone(), state: None, signature })
    })
}

/// A function.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Function {
    verb: Verb,
    tables: Tables,
    /// The state that the query sees, from its planning on.
    state: Option<State>,
    signature: Signature,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Verb {
    Lpm,
    LpmLabel,
    LpmAsn,
    LpmPrefix,
    LpmLen,
    LpmAll,
    Rov,
    NameLookup,
    NameLabel,
    NameRegistrable,
    Classify,
    ClassifyAction,
}

/// What an argument has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The name of a table, the form of names, or a field: a literal.
    Word,
    Address,
    Text,
    /// A prefix's origin: a number or text.
    Origin,
    Octet,
    Port,
}

impl Verb {
    const ALL: [Self; 12] = [
        Self::Lpm,
        Self::LpmLabel,
        Self::LpmAsn,
        Self::LpmPrefix,
        Self::LpmLen,
        Self::LpmAll,
        Self::Rov,
        Self::NameLookup,
        Self::NameLabel,
        Self::NameRegistrable,
        Self::Classify,
        Self::ClassifyAction,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::Lpm => "lpm",
            Self::LpmLabel => "lpm_label",
            Self::LpmAsn => "lpm_asn",
            Self::LpmPrefix => "lpm_prefix",
            Self::LpmLen => "lpm_len",
            Self::LpmAll => "lpm_all",
            Self::Rov => "rov",
            Self::NameLookup => "name_lookup",
            Self::NameLabel => "name_label",
            Self::NameRegistrable => "name_registrable",
            Self::Classify => "classify",
            Self::ClassifyAction => "classify_action",
        }
    }

    /// How it is called, for messages.
    const fn usage(self) -> &'static str {
        match self {
            Self::Lpm => "lpm([table,] address)",
            Self::LpmLabel => "lpm_label([table,] address) or lpm_label(table, address, field)",
            Self::LpmAsn => "lpm_asn([table,] address)",
            Self::LpmPrefix => "lpm_prefix([table,] address)",
            Self::LpmLen => "lpm_len([table,] address)",
            Self::LpmAll => "lpm_all([table,] address)",
            Self::Rov => "rov([table,] prefix, origin)",
            Self::NameLookup => "name_lookup([table,] text) or name_lookup(table, text, form)",
            Self::NameLabel => {
                "name_label([table,] text), name_label(table, text, form or field) or name_label(table, text, form, field)"
            }
            Self::NameRegistrable => "name_registrable([table,] domain)",
            Self::Classify => "classify([table,] src, dst, proto, sport, dport)",
            Self::ClassifyAction => "classify_action([table,] src, dst, proto, sport, dport)",
        }
    }

    /// What the arguments of a call have to be. `None` if it can't have so many.
    fn kinds(self, arguments: usize) -> Option<&'static [Kind]> {
        use Kind::{Address, Octet, Origin, Port, Text, Word};
        let all: &[Kind] = match self {
            Self::Rov => &[Word, Text, Origin],
            Self::LpmLabel if arguments == 3 => &[Word, Address, Word],
            Self::NameLabel if arguments == 4 => &[Word, Text, Word, Word],
            Self::NameLookup | Self::NameLabel if arguments == 3 => &[Word, Text, Word],
            Self::NameLookup | Self::NameLabel | Self::NameRegistrable => &[Word, Text],
            Self::Classify | Self::ClassifyAction => &[Word, Address, Address, Octet, Port, Port],
            _ => &[Word, Address],
        };
        match all.len().checked_sub(arguments) {
            Some(0) => Some(all),
            Some(1) if arguments > 0 => Some(&all[1..]),
            _ => None,
        }
    }

    fn result(self, tables: &Tables) -> DataType {
        let dictionary = |key| match tables.labels_are_text() {
            false => DataType::Dictionary(Box::new(key), Box::new(DataType::Utf8)),
            true => DataType::Utf8,
        };
        match self {
            Self::Lpm | Self::LpmAsn | Self::NameLookup | Self::Classify => DataType::UInt32,
            Self::LpmLabel | Self::NameLabel | Self::ClassifyAction => dictionary(DataType::UInt32),
            Self::LpmPrefix | Self::NameRegistrable => DataType::Utf8View,
            Self::LpmLen => DataType::UInt8,
            Self::LpmAll => DataType::List(Arc::new(Field::new_list_field(DataType::UInt32, true))),
            Self::Rov => dictionary(DataType::UInt8),
        }
    }

    /// Answers columns of equal length.
    fn answer(
        self,
        state: &State,
        (table, words): (Option<&str>, &[&str]),
        columns: &[ArrayRef],
        invalid: Invalid,
    ) -> Result<ArrayRef, Error> {
        match self {
            Self::Rov => {
                let (name, payloads) = state.find(table, "RPKI payloads", payloads)?;
                let [prefixes, origins] = flat(columns)?;
                payloads.states(&prefixes, &origins, invalid).map_err(|error| in_table(name, error))
            }
            Self::NameLookup | Self::NameLabel => {
                let (form, field) = match (self, words) {
                    // The names of forms are no fields.
                    (Self::NameLabel, &[word]) => match name_format(word) {
                        Ok(form) => (form, None),
                        Err(_) => (NameFormat::Domains, Some(word)),
                    },
                    (_, &[form, field]) => (name_format(form)?, Some(field)),
                    (_, words) => {
                        (words.first().map_or(Ok(NameFormat::Domains), |form| name_format(form))?, None)
                    }
                };
                let (name, names) = state.find(table, "names", names)?;
                let answer = column::over_values(one(columns)?, |texts| match (self, field) {
                    (Self::NameLabel, Some(field)) => names.field(texts, form, field, invalid),
                    (Self::NameLabel, None) => names.labels(texts, form, invalid),
                    _ => names.lookup(texts, form, invalid).map(column),
                });
                answer.map_err(|error| in_table(name, error))
            }
            Self::NameRegistrable => {
                let (name, names) = state.find(table, "names", names)?;
                let answer = column::over_values(one(columns)?, |texts| names.registrable(texts, invalid));
                answer.map_err(|error| in_table(name, error))
            }
            Self::Classify | Self::ClassifyAction => {
                let (name, rules) = state.find(table, "rules", rules)?;
                let [src, dst, proto, sport, dport] = &flat(columns)?;
                let packets = Packets { src, dst, proto, sport, dport };
                let answer = match self {
                    Self::ClassifyAction => rules.actions(&packets, invalid),
                    _ => rules.numbers(&packets, invalid).map(column),
                };
                answer.map_err(|error| in_table(name, error))
            }
            Self::Lpm | Self::LpmLabel | Self::LpmAsn | Self::LpmPrefix | Self::LpmLen | Self::LpmAll => {
                let (name, table) = state.find(table, "addresses", addresses)?;
                let answer = column::over_values(one(columns)?, |keys| match (self, words) {
                    (Self::LpmLabel, &[field]) => table.field(keys, field, invalid),
                    (Self::LpmLabel, _) => table.labels(keys, invalid),
                    (Self::LpmAsn, _) => table.asns(keys, invalid),
                    (Self::LpmPrefix, _) => table.prefixes(keys, invalid),
                    (Self::LpmLen, _) => table.lengths(keys, invalid),
                    (Self::LpmAll, _) => table.all(keys, invalid),
                    _ => table.lpm(keys, invalid).map(column),
                });
                answer.map_err(|error| in_table(name, error))
            }
        }
    }
}

fn column(indexes: UInt32Array) -> ArrayRef {
    Arc::new(indexes)
}

fn addresses(table: &Table) -> Option<&AddressTable> {
    if let Table::Addresses(table) = table { Some(table) } else { None }
}

fn names(table: &Table) -> Option<&NameTable> {
    if let Table::Names(table) = table { Some(table) } else { None }
}

fn rules(table: &Table) -> Option<&RuleTable> {
    if let Table::Rules(table) = table { Some(table) } else { None }
}

fn payloads(table: &Table) -> Option<&PayloadTable> {
    if let Table::Payloads(table) = table { Some(table) } else { None }
}

fn one(columns: &[ArrayRef]) -> Result<&ArrayRef, Error> {
    columns.first().ok_or_else(|| Error::Arguments("a column is missing".to_owned()))
}

fn flat<const N: usize>(columns: &[ArrayRef]) -> Result<[ArrayRef; N], Error> {
    let columns = columns.iter().map(column::flat).collect::<Result<Vec<_>, _>>()?;
    columns.try_into().map_err(|_| Error::Arguments("columns are missing".to_owned()))
}

fn name_format(form: &str) -> Result<NameFormat, Error> {
    NameFormat::ALL.into_iter().find(|format| format.name() == form).ok_or_else(|| {
        let known = NameFormat::ALL.map(NameFormat::name).join(", ");
        Error::Arguments(format!("{form:?} is no form of names; there are: {known}"))
    })
}

impl Kind {
    /// The type that an argument of a type is cast to.
    fn coerced(self, found: &DataType) -> Option<DataType> {
        use DataType::{Dictionary, LargeUtf8, Null, UInt8, UInt16, UInt32, Utf8, Utf8View};
        let is_text = matches!(found, Utf8 | LargeUtf8 | Utf8View);
        let is_number = found.is_integer() || found == &Null;
        match self {
            Self::Word => is_text.then_some(Utf8),
            Self::Text if found == &Null => Some(Utf8),
            Self::Origin if is_number => Some(UInt32),
            Self::Address if found == &Null => Some(UInt32),
            Self::Address => column::may_hold_addresses(found).then(|| found.clone()),
            Self::Octet => is_number.then_some(UInt8),
            Self::Port => is_number.then_some(UInt16),
            Self::Text | Self::Origin => match found {
                Dictionary(_, values) => {
                    (self.coerced(values).as_ref() == Some(&**values)).then(|| found.clone())
                }
                _ => is_text.then(|| found.clone()),
            },
        }
    }

    const fn wanted(self) -> &'static str {
        match self {
            Self::Word => "a text in quotes",
            Self::Address => {
                "an address: UInt32 or another integer, FixedSizeBinary(4), FixedSizeBinary(16), Binary, or text"
            }
            Self::Text => "text",
            Self::Origin => "an AS number, as an integer or text",
            Self::Octet => "an integer from 0 to 255",
            Self::Port => "an integer from 0 to 65535",
        }
    }
}

impl ScalarUDFImpl for Function {
    fn name(&self) -> &str {
        self.verb.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.verb.result(&self.tables))
    }

    fn coerce_types(&self, found: &[DataType]) -> Result<Vec<DataType>> {
        let Some(kinds) = self.verb.kinds(found.len()) else {
            return plan_err!("{} arguments: it is {}", found.len(), self.verb.usage());
        };
        let both = kinds.iter().zip(found).zip(1..);
        both.map(|((kind, found), at)| match kind.coerced(found) {
            Some(coerced) => Ok(coerced),
            None => {
                plan_err!("{}: argument {at} is {found}, and has to be {}", self.verb.usage(), kind.wanted())
            }
        })
        .collect()
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let kinds = self.verb.kinds(args.arg_fields.len()).unwrap_or_default();
        for ((kind, literal), at) in kinds.iter().zip(args.scalar_arguments).zip(1..) {
            if *kind == Kind::Word && literal.is_none() {
                return plan_err!("{}: argument {at} has to be {}", self.verb.usage(), kind.wanted());
            }
        }
        Ok(Arc::new(Field::new(self.name(), self.verb.result(&self.tables), true)))
    }

    /// Binds the call to the tables of this moment, so that all batches of the query see one state.
    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        let query = info.query_execution_start_time().and_then(|time| time.timestamp_nanos_opt());
        if let (None, Some(query)) = (&self.state, query)
            // Tables that are not here may be where the plan runs. If they are not, the call tells.
            && let Ok(state) = self.tables.state_of_query(query, &listed(info.config_options()))
        {
            let (verb, tables, signature) = (self.verb, self.tables.clone(), self.signature.clone());
            let bound = ScalarUDF::new_from_impl(Self { verb, tables, state: Some(state), signature });
            let call = ScalarFunction::new_udf(Arc::new(bound), args);
            return Ok(ExprSimplifyResult::Simplified(Expr::ScalarFunction(call)));
        }
        Ok(ExprSimplifyResult::Original(args))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let Some(kinds) = self.verb.kinds(args.args.len()) else {
            return exec_err!("{} arguments: it is {}", args.args.len(), self.verb.usage());
        };
        let (mut table, mut words, mut values) = (None, Vec::new(), Vec::new());
        for (at, (kind, value)) in kinds.iter().zip(&args.args).enumerate() {
            match (kind, value) {
                (Kind::Word, ColumnarValue::Scalar(ScalarValue::Utf8(Some(word)))) if at == 0 => {
                    table = Some(word.as_str());
                }
                (Kind::Word, ColumnarValue::Scalar(ScalarValue::Utf8(Some(word)))) => {
                    words.push(word.as_str());
                }
                (Kind::Word, _) => {
                    return exec_err!(
                        "{}: argument {} has to be {}",
                        self.verb.usage(),
                        at + 1,
                        kind.wanted()
                    );
                }
                _ => values.push(value),
            }
        }
        let is_scalar = values.iter().all(|value| matches!(value, ColumnarValue::Scalar(_)));
        let rows = if is_scalar { 1 } else { args.number_rows };
        let columns = values.into_iter().map(|value| value.to_array(rows)).collect::<Result<Vec<_>>>()?;

        let options = args.config_options.extensions.get::<WirespeedOptions>();
        let invalid = options.map(|options| options.invalid).unwrap_or_default();
        let state = match &self.state {
            Some(state) => state.clone(),
            None => self.tables.state(&listed(&args.config_options)).map_err(|error| self.failed(error))?,
        };
        let mut answer = self
            .verb
            .answer(&state, (table, &words), &columns, invalid)
            .map_err(|error| self.failed(error))?;
        if self.tables.labels_are_text() && matches!(answer.data_type(), DataType::Dictionary(..)) {
            answer = arrow::compute::cast(&answer, &DataType::Utf8)?;
        }
        debug_assert_eq!(answer.data_type(), &self.verb.result(&self.tables));
        if is_scalar {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&answer, 0)?));
        }
        Ok(ColumnarValue::Array(answer))
    }
}

impl Function {
    fn failed(&self, error: Error) -> DataFusionError {
        DataFusionError::Execution(format!("{}: {error}", self.name()))
    }
}

fn listed(options: &ConfigOptions) -> Listed {
    options.extensions.get::<WirespeedOptions>().map(|options| options.tables.clone()).unwrap_or_default()
}

/// The options of a session, `SET wirespeed.tables = 'ris=/tables/ris.img'` in SQL.
///
/// | option | value |
/// |---|---|
/// | `wirespeed.tables` | files that are tables, as `name=file,name=file`: [`Table::open`] says which. A name that comes twice is one table: of two images, one of each family, or of sources that are merged, as `name=field=file` |
/// | `wirespeed.invalid` | a value that is no address, name or prefix: `error` ends the query and tells the value, `null` makes the result of its row null. By default `error` |
///
/// A distributed engine sends options to all its processes by key and value, as long as each process has this
/// extension in its configuration.
#[derive(Clone, Debug, Default)]
pub struct WirespeedOptions {
    text: String,
    tables: Listed,
    invalid: Invalid,
}

impl WirespeedOptions {
    /// Lists files as tables.
    pub fn with_tables(mut self, tables: &str) -> Result<Self> {
        self.set("tables", tables)?;
        Ok(self)
    }

    /// The tables that `wirespeed.tables` lists: the places of each table, by its name.
    pub fn tables(&self) -> impl Iterator<Item = (&str, &[PathBuf])> {
        self.tables.iter()
    }

    /// Says what values do that are no address, name or prefix.
    #[must_use]
    pub fn with_invalid(self, invalid: Invalid) -> Self {
        Self { invalid, ..self }
    }
}

impl ConfigExtension for WirespeedOptions {
    const PREFIX: &'static str = "wirespeed";
}

impl ExtensionOptions for WirespeedOptions {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn cloned(&self) -> Box<dyn ExtensionOptions> {
        Box::new(self.clone())
    }

    fn set(&mut self, key: &str, value: &str) -> Result<()> {
        match (key, value) {
            ("tables", value) => {
                let parsed = Listed::parse(value);
                self.tables = parsed.map_err(|error| DataFusionError::Configuration(error.to_string()))?;
                value.clone_into(&mut self.text);
            }
            ("invalid", "error") => self.invalid = Invalid::Error,
            ("invalid", "null") => self.invalid = Invalid::Null,
            ("invalid", other) => return config_err!("wirespeed.invalid is error or null, not {other:?}"),
            (other, _) => {
                return config_err!("there is no option wirespeed.{other}; there are: tables, invalid");
            }
        }
        Ok(())
    }

    /// The options with whole keys: those without the prefix never arrive in another process.
    fn entries(&self) -> Vec<ConfigEntry> {
        vec![
            ConfigEntry {
                key: "wirespeed.tables".to_owned(),
                value: Some(self.text.clone()),
                description: "Files that are tables: name=file,name=file",
            },
            ConfigEntry {
                key: "wirespeed.invalid".to_owned(),
                value: Some(self.invalid.name().to_owned()),
                description: "A value that is no address, name or prefix: error or null",
            },
        ]
    }
}
