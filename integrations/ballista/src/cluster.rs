//! Configurations of a scheduler and of an executor, and the processes themselves.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ballista_core::ConfigProducer;
use ballista_core::extension::{SessionConfigExt, ballista_scalar_functions};
use ballista_core::registry::BallistaFunctionRegistry;
use ballista_core::utils::default_session_builder;
use ballista_executor::executor_process::{ExecutorProcessConfig, start_executor_process};
use ballista_scheduler::cluster::BallistaCluster;
use ballista_scheduler::config::SchedulerConfig;
use ballista_scheduler::scheduler_process::{create_scheduler, start_grpc_service_with_listener};
use datafusion::execution::SessionState;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::prelude::SessionConfig;
use datafusion_proto::protobuf::{LogicalPlanNode, PhysicalPlanNode};
use tokio::net::{TcpListener, TcpStream};
use wirespeed_datafusion::{Opener, Table, Tables, WirespeedOptions, functions, register_all};

use crate::cache::ImageCache;
use crate::error::Error;
use crate::stores::Stores;

/// A session's configuration with all extensions: an option without its extension is dropped silently.
pub(crate) fn session_config() -> SessionConfig {
    SessionConfig::new_with_ballista().with_option_extension(WirespeedOptions::default())
}

/// Leaves tables to the executors. Calls of literals are not answered while planning, then.
pub(crate) struct Elsewhere;

impl Opener for Elsewhere {
    fn open(&self, places: &[std::path::PathBuf]) -> Result<Arc<Table>, wirespeed_datafusion::Error> {
        let place = places.first().map(|place| place.display().to_string()).unwrap_or_default();
        Err(wirespeed_datafusion::Error::Place { place, source: "executors open it".into() })
    }
}

/// A configuration for schedulers with the functions and their option, listening on 127.0.0.1:50050. Change
/// the addresses and times in it as you need, not the overrides.
///
/// Object stores of Parquet files are those of `stores`.
#[must_use]
pub fn scheduler_config(stores: &Stores) -> SchedulerConfig {
    let producer: ConfigProducer = Arc::new(session_config);
    let stores = stores.clone();
    let builder = move |config| -> datafusion::error::Result<SessionState> {
        let runtime = RuntimeEnvBuilder::new().with_object_store_registry(Arc::clone(stores.registry()));
        let state = default_session_builder(config)?;
        let id = state.session_id().to_owned();
        let builder = datafusion::execution::SessionStateBuilder::new_from_existing(state);
        let mut state = builder.with_session_id(id).with_runtime_env(runtime.build_arc()?).build();
        // After the state is built: a builder takes a list of functions in place of those it has.
        register_all(&mut state, &Tables::with_labels_as_text(Elsewhere))?;
        Ok(state)
    };
    SchedulerConfig::default()
        .with_override_config_producer(producer)
        .with_override_session_builder(Arc::new(builder))
}

/// A configuration for executors with the functions, which look up in the images of `cache`. Change the
/// addresses, times and sizes in it as you need, not the overrides. `work_dir` takes the data between stages.
#[must_use]
pub fn executor_config(cache: &ImageCache, stores: &Stores, work_dir: &str) -> ExecutorProcessConfig {
    // Ballista loses on the way between executors that a column is a dictionary.
    let tables = Tables::with_labels_as_text(cache.clone());
    let mut registry = BallistaFunctionRegistry::default();
    let all = ballista_scalar_functions().into_iter().chain(functions(&tables).map(Arc::new));
    registry.scalar_functions.extend(all.map(|function| (function.name().to_owned(), function)));
    let (stores, spill) = (stores.clone(), work_dir.to_owned());
    ExecutorProcessConfig {
        work_dir: Some(work_dir.to_owned()),
        override_function_registry: Some(Arc::new(registry)),
        override_config_producer: Some(Arc::new(session_config)),
        override_runtime_producer: Some(Arc::new(move |_| {
            RuntimeEnvBuilder::new()
                .with_temp_file_path(spill.clone())
                .with_object_store_registry(Arc::clone(stores.registry()))
                .build_arc()
        })),
        ..ExecutorProcessConfig::default()
    }
}

/// Runs a scheduler on an address; port 0 takes a free one. Executors reach it by `external_host`, or by the
/// address if that is `None`. `ready` gets the address when clients and executors can connect. Returns when
/// the scheduler fails.
pub async fn run_scheduler(
    mut config: SchedulerConfig,
    address: SocketAddr,
    external_host: Option<String>,
    ready: impl FnOnce(SocketAddr),
) -> Result<(), Error> {
    config.external_host = match external_host {
        Some(host) => host,
        None if address.ip().is_unspecified() => {
            let reason =
                "executors can't reach the scheduler by it: give it an external host, too".to_owned();
            return Err(Error::Network { address: address.to_string(), reason });
        }
        None => host(address.ip()),
    };
    let listening = |error: std::io::Error| unreachable_at(&address, &error);
    let listener = TcpListener::bind(address).await.map_err(listening)?;
    let address = listener.local_addr().map_err(listening)?;
    config.bind_host = host(address.ip());
    config.bind_port = address.port();
    config.validate()?;
    let cluster = BallistaCluster::new_from_config(&config).await?;
    let scheduler = create_scheduler::<LogicalPlanNode, PhysicalPlanNode>(cluster, Arc::new(config)).await?;
    ready(address);
    Ok(start_grpc_service_with_listener(listener, scheduler).await?)
}

/// Runs an executor on an address; port 0 takes a free one. Waits for the scheduler as long as `patience`.
/// Returns when the process gets a signal to end, or when the executor fails.
pub async fn run_executor(
    mut config: ExecutorProcessConfig,
    address: SocketAddr,
    patience: Duration,
) -> Result<(), Error> {
    // Both services bind for themselves, and tell a port that is taken only in a log.
    let free = |port| async move {
        let address = SocketAddr::new(address.ip(), port);
        let bound = TcpListener::bind(address).await.and_then(|listener| listener.local_addr());
        bound.map(|address| address.port()).map_err(|error| unreachable_at(&address, &error))
    };
    config.bind_host = host(address.ip());
    if config.external_host.is_none() && address.is_ipv6() && !address.ip().is_unspecified() {
        // The scheduler would take the address that it sees, without brackets.
        config.external_host = Some(host(address.ip()));
    }
    config.port = free(address.port()).await?;
    config.grpc_port = match address.port() {
        0 => free(0).await?,
        port => {
            free(port.checked_add(1).ok_or_else(|| {
                Error::Argument("an executor needs two ports: the one after 65535 is none".to_owned())
            })?)
            .await?
        }
    };

    let scheduler = format!("{}:{}", config.scheduler_host, config.scheduler_port);
    let begin = Instant::now();
    while let Err(error) = TcpStream::connect(&scheduler).await {
        if begin.elapsed() >= patience {
            return Err(Error::Network { address: scheduler, reason: format!("no scheduler: {error}") });
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let told = tokio::spawn(signalled());
    start_executor_process(Arc::new(config)).await?;
    // The process ends in the same way when it is told to, and when a service of it fails.
    match tokio::time::timeout(Duration::from_secs(1), told).await {
        Ok(_) => Ok(()),
        Err(_) => {
            let reason = "the executor ended, but no signal told it to: a service of it failed".to_owned();
            Err(Error::Network { address: address.to_string(), reason })
        }
    }
}

/// Waits until a signal tells the process to end: Ctrl-C or SIGTERM.
pub async fn signalled() {
    #[cfg(unix)]
    if let Ok(mut terminate) = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
        tokio::select! {
            _ = tokio::signal::ctrl_c() => {}
            _ = terminate.recv() => {}
        }
        return;
    }
    let _ = tokio::signal::ctrl_c().await;
}

/// An address as it stands before a colon and a port.
fn host(ip: IpAddr) -> String {
    match ip {
        IpAddr::V4(ip) => ip.to_string(),
        IpAddr::V6(ip) => format!("[{ip}]"),
    }
}

fn unreachable_at(address: &SocketAddr, error: &std::io::Error) -> Error {
    Error::Network { address: address.to_string(), reason: error.to_string() }
}
