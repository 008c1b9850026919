//! [`Stores`]: the object stores that a process reads and writes.

use std::sync::Arc;
use std::time::Duration;

use datafusion::common::DataFusionError;
use datafusion::execution::object_store::{DefaultObjectStoreRegistry, ObjectStoreRegistry};
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::{ObjectStore, RetryConfig};
use url::Url;

/// The object stores of a process: DataFusion's registry of them.
///
/// Files of this machine (`file://`) are there from the start, and with [`from_env`](Self::from_env) buckets
/// of clouds. Register others in each process: client, scheduler and executors.
#[derive(Clone, Debug)]
pub struct Stores(Arc<dyn ObjectStoreRegistry>);

impl Stores {
    /// Takes a registry.
    #[must_use]
    pub fn new(registry: Arc<dyn ObjectStoreRegistry>) -> Self {
        Self(registry)
    }

    /// Files of this machine, and buckets with the settings that the environment has when an address first
    /// names them.
    ///
    /// | address | store | settings |
    /// |---|---|---|
    /// | `s3://bucket/…`, `s3a://bucket/…` | Amazon S3 and what speaks its protocol | `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_REGION`, `AWS_ENDPOINT`, `AWS_ALLOW_HTTP`, … |
    /// | `gs://bucket/…` | Google Cloud Storage | `GOOGLE_SERVICE_ACCOUNT`, … |
    /// | `az://container/…`, `azure://container/…` | Azure Blob Storage | `AZURE_STORAGE_ACCOUNT_NAME`, `AZURE_STORAGE_ACCOUNT_KEY`, … |
    ///
    /// The crate `object_store` has all settings. A store that does not answer is asked again for 20 seconds.
    #[must_use]
    pub fn from_env() -> Self {
        Self::new(Arc::new(Clouds(DefaultObjectStoreRegistry::new())))
    }

    /// The registry.
    #[must_use]
    pub fn registry(&self) -> &Arc<dyn ObjectStoreRegistry> {
        &self.0
    }
}

impl Default for Stores {
    fn default() -> Self {
        Self::new(Arc::new(DefaultObjectStoreRegistry::new()))
    }
}

/// Stores that were used or registered, and those that the environment has settings for.
#[derive(Debug)]
struct Clouds(DefaultObjectStoreRegistry);

impl ObjectStoreRegistry for Clouds {
    fn register_store(&self, url: &Url, store: Arc<dyn ObjectStore>) -> Option<Arc<dyn ObjectStore>> {
        self.0.register_store(url, store)
    }

    fn deregister_store(&self, url: &Url) -> Result<Arc<dyn ObjectStore>, DataFusionError> {
        self.0.deregister_store(url)
    }

    fn get_store(&self, url: &Url) -> Result<Arc<dyn ObjectStore>, DataFusionError> {
        if let Ok(known) = self.0.get_store(url) {
            return Ok(known);
        }
        let store = cloud(url).map_err(|error| DataFusionError::ObjectStore(Box::new(error)))?;
        let store = store.ok_or_else(|| {
            let scheme = url.scheme();
            DataFusionError::Configuration(format!(
                "{scheme}:// is no object store: there are s3, s3a, gs, az and azure"
            ))
        })?;
        self.0.register_store(url, Arc::clone(&store));
        Ok(store)
    }
}

/// The bucket of an address by the settings of the environment. `None` if it is no address of a cloud.
fn cloud(url: &Url) -> Result<Option<Arc<dyn ObjectStore>>, object_store::Error> {
    let retry = RetryConfig { retry_timeout: Duration::from_secs(20), ..RetryConfig::default() };
    Ok(Some(match url.scheme() {
        "s3" | "s3a" => {
            Arc::new(AmazonS3Builder::from_env().with_url(url.as_str()).with_retry(retry).build()?)
        }
        "gs" => {
            Arc::new(GoogleCloudStorageBuilder::from_env().with_url(url.as_str()).with_retry(retry).build()?)
        }
        "az" | "azure" => {
            Arc::new(MicrosoftAzureBuilder::from_env().with_url(url.as_str()).with_retry(retry).build()?)
        }
        _ => return Ok(None),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stores_by_address() {
        let stores = Stores::from_env();
        let get = |url: &str| stores.registry().get_store(&Url::parse(url).unwrap());
        assert!(get("file:///tmp/x").is_ok());
        let error = get("ftp://host/x").unwrap_err().to_string();
        assert!(error.contains("ftp:// is no object store: there are s3"), "{error}");
        // A store is made once, whatever the path.
        let (one, other) = (get("s3://bucket/a").unwrap(), get("s3://bucket/b/c").unwrap());
        assert!(Arc::ptr_eq(&one, &other));
        assert!(!Arc::ptr_eq(&one, &get("s3://another/a").unwrap()));
        assert!(one.to_string().contains("bucket"), "{one}");
        assert!(Stores::default().registry().get_store(&Url::parse("s3://bucket/a").unwrap()).is_err());
    }
}
