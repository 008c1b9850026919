//! [`Client`]: a session on a cluster, or in this process.

use std::path::PathBuf;
use std::sync::Arc;

use ballista::extension::SessionContextExt;
use datafusion::dataframe::DataFrame;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::logical_expr::{self, LogicalPlan};
use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};
use datafusion::sql::parser::{DFParser, Statement};
use wirespeed_datafusion::{Files, Opener, Table, Tables, WirespeedOptions, register_all};

use crate::cache::ImageCache;
use crate::cluster::{Elsewhere, session_config};
use crate::error::Error;
use crate::place::Place;
use crate::stores::Stores;

const TABLES: &str = "wirespeed.tables";

/// A session that runs SQL with the functions, on a cluster or in this process.
///
/// `SET wirespeed.tables = 'ris=/tables/ris@latest'`, or [`Client::table`], says where tables are. Each query
/// sees the images that were the latest when it began, in all processes.
pub struct Client {
    context: SessionContext,
    stores: Stores,
    is_remote: bool,
}

impl Client {
    /// A session on the cluster of a scheduler, `host:port`. The first query connects.
    pub async fn remote(scheduler: &str, stores: Stores) -> Result<Self, Error> {
        let state = SessionStateBuilder::new()
            .with_default_features()
            .with_config(session_config())
            .with_runtime_env(
                RuntimeEnvBuilder::new()
                    .with_object_store_registry(Arc::clone(stores.registry()))
                    .build_arc()?,
            )
            .build();
        let mut context = SessionContext::remote_with_state(&format!("http://{scheduler}"), state).await?;
        // On the context that comes back: it has lost the functions that its state had.
        register_all(&mut context, &Tables::with_labels_as_text(Elsewhere))?;
        Ok(Self { context, stores, is_remote: true })
    }

    /// A session in this process, without a cluster. Tables may be files that are not published, too.
    pub fn local(stores: Stores) -> Result<Self, Error> {
        let cache = ImageCache::new(stores.clone(), Some(std::env::temp_dir().join("wirespeed-tables")));
        let in_place = ImageCache::new(stores.clone(), None);
        let opener = Here { cache, in_place, files: Files::default() };
        let runtime =
            RuntimeEnvBuilder::new().with_object_store_registry(Arc::clone(stores.registry())).build_arc()?;
        let config = SessionConfig::new()
            .with_information_schema(true)
            .with_option_extension(WirespeedOptions::default());
        let mut context = SessionContext::new_with_config_rt(config, runtime);
        register_all(&mut context, &Tables::with_opener(opener))?;
        Ok(Self { context, stores, is_remote: false })
    }

    /// The session: register sources of rows here.
    #[must_use]
    pub fn context(&self) -> &SessionContext {
        &self.context
    }

    /// Sets an option, as `SET key = 'value'` does.
    ///
    /// Fails if there is no such option, or it can't have the value.
    pub fn set(&self, key: &str, value: &str) -> Result<(), Error> {
        let state = self.context.state_ref();
        Ok(state.write().config_mut().options_mut().set(key, value)?)
    }

    /// Adds a table for the functions: its name, and a place ([`Place`]). A name that comes twice is one
    /// table of two images.
    pub fn table(&self, name: &str, place: &str) -> Result<(), Error> {
        let listed = self.listed().into_iter();
        let mut listed: Vec<_> = listed
            .flat_map(|(name, places)| places.into_iter().map(move |place| format!("{name}={place}")))
            .collect();
        listed.push(format!("{name}={place}"));
        self.set(TABLES, &listed.join(","))
    }

    /// Makes a Parquet file, or all Parquet files of a directory, a table of SQL. Executors need to see the
    /// same path.
    pub async fn parquet(&self, name: &str, place: &str) -> Result<(), Error> {
        let place = if place.contains("://") {
            place.to_owned()
        } else {
            let failed = |source| Error::Io { path: PathBuf::from(place), source };
            let path = std::fs::canonicalize(place).map_err(failed)?;
            let text =
                path.to_str().ok_or_else(|| Error::Argument(format!("{place}: the path is no text")))?;
            if path.is_dir() { format!("{text}/") } else { text.to_owned() }
        };
        Ok(self.context.register_parquet(name, place, ParquetReadOptions::default()).await?)
    }

    /// Parses statements, with semicolons between.
    pub fn statements(sql: &str) -> Result<Vec<Statement>, Error> {
        Ok(DFParser::parse_sql(sql)?.into())
    }

    /// Begins the only statement of a text.
    pub async fn query(&self, sql: &str) -> Result<DataFrame, Error> {
        match <[Statement; 1]>::try_from(Self::statements(sql)?) {
            Ok([statement]) => self.begin(statement).await,
            Err(found) => Err(Error::Argument(format!("{} statements in place of one", found.len()))),
        }
    }

    /// Begins a statement: from here on it sees the tables as they are now, until its end.
    ///
    /// Fails if a place of a table can change (on a cluster), or can't be told.
    pub async fn begin(&self, statement: Statement) -> Result<DataFrame, Error> {
        // A session of its own on the cluster, so that queries at once may see other states of tables.
        let state = SessionStateBuilder::new_from_existing(self.context.state()).build();
        let query = SessionContext::new_with_state(state);
        let pinned = self.pinned().await?;
        query.state_ref().write().config_mut().options_mut().set(TABLES, &pinned)?;
        let plan = query.state().statement_to_plan(statement).await?;
        let context = match plan {
            LogicalPlan::Statement(logical_expr::Statement::Prepare(_)) => {
                // It would keep the places of tables, not what they are when it runs.
                return Err(Error::Argument("PREPARE is refused: run the statement itself".to_owned()));
            }
            // Statements about the session itself: SET and the like.
            LogicalPlan::Statement(_) => &self.context,
            _ => &query,
        };
        Ok(context.execute_logical_plan(plan).await?)
    }

    fn listed(&self) -> Vec<(String, Vec<String>)> {
        let state = self.context.state_ref();
        let state = state.read();
        let options = state.config().options().extensions.get::<WirespeedOptions>();
        let tables = options.into_iter().flat_map(WirespeedOptions::tables);
        let text = |place: &PathBuf| place.to_string_lossy().into_owned();
        tables.map(|(name, places)| (name.to_owned(), places.iter().map(text).collect())).collect()
    }

    /// `wirespeed.tables` with the images that are the latest now.
    async fn pinned(&self) -> Result<String, Error> {
        let mut pinned = Vec::new();
        for (name, places) in self.listed() {
            for place in places {
                let in_table = |error| Error::InTable { table: name.clone(), source: Box::new(error) };
                let parsed = Place::parse(&place).map_err(in_table)?;
                if !self.is_remote && parsed.content().is_none() && !parsed.is_latest() {
                    pinned.push(format!("{name}={place}"));
                    continue;
                }
                for place in parsed.pinned(&self.stores).await.map_err(in_table)? {
                    let place = place.to_string();
                    if place.contains(',') {
                        return Err(in_table(Error::Place { place, reason: "has a comma".to_owned() }));
                    }
                    pinned.push(format!("{name}={place}"));
                }
            }
        }
        Ok(pinned.join(","))
    }
}

/// Opens published images and files that are not published.
struct Here {
    cache: ImageCache,
    in_place: ImageCache,
    files: Files,
}

impl Opener for Here {
    fn open(&self, places: &[PathBuf]) -> Result<Arc<Table>, wirespeed_datafusion::Error> {
        let parsed: Vec<_> = places.iter().map(|place| Place::parse(&place.to_string_lossy()).ok()).collect();
        let all = |is: fn(&Place) -> bool| parsed.iter().all(|place| place.as_ref().is_some_and(is));
        if !all(|place| place.content().is_some()) {
            self.files.open(places)
        } else if all(|place| place.path().is_some()) {
            self.in_place.open(places)
        } else {
            self.cache.open(places)
        }
    }
}
