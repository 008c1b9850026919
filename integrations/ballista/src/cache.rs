//! [`ImageCache`]: images that a process has open, by their content.

use std::collections::HashMap;
use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use futures::StreamExt;
use object_store::ObjectStoreExt;
use sha2::{Digest, Sha256};
use tokio::runtime::Runtime;
use wirespeed_datafusion::{Opener, Table};

use crate::error::Error;
use crate::place::{ContentHash, Place};
use crate::stores::Stores;

/// The published images that a process has open: each once, whichever path or session names it.
///
/// ```text
/// wirespeed.tables ──► place ──► hash ──► open table
///                        │ not open yet
///                        └──► file, or copy in the directory of the cache ──► hash checked ──► opened
/// ```
///
/// A table that no batch has used for a while is closed when another is opened, and its copy removed.
pub struct ImageCache(Arc<Shared>);

struct Shared {
    stores: Stores,
    directory: Option<PathBuf>,
    keep: Duration,
    slots: Mutex<HashMap<Vec<ContentHash>, Slot>>,
    /// Reads from stores: callers are threads of another runtime, which must not wait for its own tasks.
    runtime: OnceLock<Runtime>,
}

struct Slot {
    /// Locked while the table is opened, so that it is opened once.
    table: Arc<Mutex<Option<Arc<Table>>>>,
    copies: Vec<PathBuf>,
    last_used: Instant,
}

/// How long a table stays open that no batch uses.
const KEEP: Duration = Duration::from_secs(120);

impl ImageCache {
    /// Makes a cache. Images are copied to the directory before they are opened; without one, files of this
    /// machine are opened where they are, and object stores are refused.
    #[must_use]
    pub fn new(stores: Stores, directory: Option<PathBuf>) -> Self {
        let (slots, runtime) = (Mutex::default(), OnceLock::new());
        Self(Arc::new(Shared { stores, directory, keep: KEEP, slots, runtime }))
    }

    /// Sets how long a table stays open that no batch uses: two minutes by default.
    #[must_use]
    pub fn keep(mut self, keep: Duration) -> Self {
        if let Some(shared) = Arc::get_mut(&mut self.0) {
            shared.keep = keep;
        }
        self
    }

    /// The number of tables that are open.
    #[must_use]
    pub fn open_tables(&self) -> usize {
        lock(&self.0.slots).len()
    }
}

impl Clone for ImageCache {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl Opener for ImageCache {
    fn open(&self, places: &[PathBuf]) -> Result<Arc<Table>, wirespeed_datafusion::Error> {
        self.0.open(places)
    }
}

impl fmt::Debug for ImageCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(lock(&self.0.slots).keys()).finish()
    }
}

impl Shared {
    fn open(&self, places: &[PathBuf]) -> Result<Arc<Table>, wirespeed_datafusion::Error> {
        let (mut images, mut hashes) = (Vec::new(), Vec::new());
        for place in places {
            let text = place.to_string_lossy();
            let named = |error| named(&text, error);
            let place = Place::parse(&text).map_err(named)?;
            let Some(hash) = place.content() else {
                let reason = "the name has no hash of the content: publish the file, and list …@latest";
                return Err(named(place.failed(reason)));
            };
            hashes.push(hash);
            images.push(place);
        }
        let slot = {
            let mut slots = lock(&self.slots);
            if !slots.contains_key(&hashes) {
                self.close_unused(&mut slots);
            }
            let copies = || images.iter().zip(&hashes).filter_map(|(place, hash)| self.copy(place, *hash));
            let slot = slots.entry(hashes.clone()).or_insert_with(|| Slot {
                table: Arc::default(),
                copies: copies().collect(),
                last_used: Instant::now(),
            });
            slot.last_used = Instant::now();
            Arc::clone(&slot.table)
        };
        let mut table = lock(&slot);
        if let Some(table) = &*table {
            return Ok(Arc::clone(table));
        }
        let opened = self.open_images(&images, &hashes).inspect_err(|_| {
            // The file may come later. Others that wait for it here try for themselves.
            lock(&self.slots).remove(&hashes);
        })?;
        *table = Some(Arc::clone(&opened));
        Ok(opened)
    }

    fn open_images(
        &self,
        images: &[Place],
        hashes: &[ContentHash],
    ) -> Result<Arc<Table>, wirespeed_datafusion::Error> {
        let mut files = Vec::new();
        for (place, &hash) in images.iter().zip(hashes) {
            let file = self.file(place, hash).map_err(|error| named(&place.to_string(), error))?;
            files.push(file);
        }
        let paths: Vec<_> = files.iter().map(|(path, _)| path).collect();
        let table = Table::open(&paths)?;
        // The table is what was hashed, if the files are as they were.
        for ((path, before), place) in files.iter().zip(images) {
            if *before != stamp(path).map_err(|error| named(&place.to_string(), error))? {
                return Err(wirespeed_datafusion::Error::Changed { path: path.clone() });
            }
        }
        Ok(Arc::new(table))
    }

    /// The copy of a place in the directory of the cache.
    fn copy(&self, place: &Place, hash: ContentHash) -> Option<PathBuf> {
        let name = place.file_name();
        let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
        Some(self.directory.as_ref()?.join(format!("{hash}.{extension}")))
    }

    /// A file of this machine with the content of a place, checked.
    fn file(&self, place: &Place, hash: ContentHash) -> Result<(PathBuf, Stamp), Error> {
        let Some(copy) = self.copy(place, hash) else {
            let Some(path) = place.path() else {
                return Err(
                    place.failed("is in an object store: give the process a directory for copies of tables")
                );
            };
            let (found, stamp) = hash_file(&path)?;
            return if found == hash { Ok((path, stamp)) } else { Err(damaged(place, found)) };
        };
        if let Ok((found, stamp)) = hash_file(&copy)
            && found == hash
        {
            return Ok((copy, stamp));
        }
        self.fetch(place, hash, &copy)?;
        let (found, stamp) = hash_file(&copy)?;
        if found == hash { Ok((copy, stamp)) } else { Err(damaged(place, found)) }
    }

    /// Copies a place from its store. The copy is there whole, and is what the hash says, or not at all.
    fn fetch(&self, place: &Place, hash: ContentHash, copy: &Path) -> Result<(), Error> {
        let failed = |source| Error::Io { path: copy.to_owned(), source };
        let directory = copy.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(directory).map_err(failed)?;
        let mut file = tempfile::NamedTempFile::new_in(directory).map_err(failed)?;
        let runtime = match self.runtime.get() {
            Some(runtime) => runtime,
            None => {
                let mut builder = tokio::runtime::Builder::new_multi_thread();
                let made = builder.worker_threads(1).thread_name("tables").enable_all().build();
                let _ = self.runtime.set(made.map_err(failed)?);
                self.runtime.get().ok_or_else(|| place.failed("no thread to read it"))?
            }
        };
        let (store, path) = place.in_store(&self.stores)?;
        let (send, receive) = std::sync::mpsc::sync_channel(4);
        runtime.spawn(async move {
            let mut parts = match store.get(&path).await {
                Ok(found) => found.into_stream(),
                Err(error) => return drop(send.send(Err(error))),
            };
            while let Some(part) = parts.next().await {
                let is_end = part.is_err();
                let sent = tokio::task::block_in_place(|| send.send(part));
                if is_end || sent.is_err() {
                    return;
                }
            }
        });
        let mut hasher = Sha256::new();
        for part in receive {
            let part = part.map_err(|error| place.not_read(&error))?;
            hasher.update(&part);
            file.write_all(&part).map_err(failed)?;
        }
        let found = ContentHash::finish(hasher);
        if found != hash {
            return Err(damaged(place, found));
        }
        file.persist(copy).map_err(|error| failed(error.error))?;
        Ok(())
    }

    fn close_unused(&self, slots: &mut HashMap<Vec<ContentHash>, Slot>) {
        let now = Instant::now();
        slots.retain(|_, slot| {
            // A lock that is held is a table that is opened.
            let is_used = slot.table.try_lock().is_err() || now.duration_since(slot.last_used) <= self.keep;
            if !is_used {
                for copy in &slot.copies {
                    let _ = std::fs::remove_file(copy);
                }
            }
            is_used
        });
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // Waits for nothing: the last owner may be a task.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is behind these locks is whole after each step.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn named(place: &str, error: Error) -> wirespeed_datafusion::Error {
    match error {
        Error::Table(error) => error,
        Error::Io { path, source } => wirespeed_datafusion::Error::Io { path, source },
        Error::Place { place, reason } => wirespeed_datafusion::Error::Place { place, source: reason.into() },
        error => wirespeed_datafusion::Error::Place { place: place.to_owned(), source: Box::new(error) },
    }
}

fn damaged(place: &Place, found: ContentHash) -> Error {
    place.failed(format!("is damaged: its content has the hash {found}"))
}

/// Tells one state of a file from another.
#[derive(PartialEq, Eq)]
struct Stamp(u64, Option<std::time::SystemTime>);

fn stamp(path: &Path) -> Result<Stamp, Error> {
    let metadata = std::fs::metadata(path).map_err(|source| Error::Io { path: path.to_owned(), source })?;
    Ok(Stamp(metadata.len(), metadata.modified().ok()))
}

/// The hash of a file, and its state before it was read.
fn hash_file(path: &Path) -> Result<(ContentHash, Stamp), Error> {
    let failed = |source| Error::Io { path: path.to_owned(), source };
    let before = stamp(path)?;
    let mut hasher = Sha256::new();
    let mut file = std::fs::File::open(path).map_err(failed)?;
    let mut block = vec![0; 1 << 16];
    loop {
        match std::io::Read::read(&mut file, &mut block) {
            Ok(0) => return Ok((ContentHash::finish(hasher), before)),
            Ok(read) => hasher.update(&block[..read]),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(failed(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wirespeed_datafusion::How;

    use crate::{Origin, publish};

    async fn published(dir: &Path, label: &str) -> PathBuf {
        let routes = dir.join("routes.txt");
        std::fs::write(&routes, format!("10.0.0.0/8 {label}\n")).unwrap();
        let to = dir.join("shared");
        let places = publish(
            &Origin::Files(vec![routes]),
            &How::default(),
            to.to_str().unwrap(),
            "ris",
            &Stores::default(),
        )
        .await
        .unwrap();
        places[0].path().unwrap()
    }

    #[tokio::test]
    async fn images_are_copied_once_checked_and_closed() {
        let dir = tempfile::tempdir().unwrap();
        let cache = ImageCache::new(Stores::default(), Some(dir.path().join("copies"))).keep(Duration::ZERO);
        let image = published(dir.path(), "1").await;
        // A task that waits for a copy blocks no other.
        let open = |path: &Path| cache.open(&[path.to_owned()]);
        let first = open(&image).unwrap();
        assert!(Arc::ptr_eq(&first, &open(&image).unwrap()));
        let copies = || std::fs::read_dir(dir.path().join("copies")).unwrap().count();
        assert_eq!((cache.open_tables(), copies()), (1, 1));

        // The same content elsewhere is the same table.
        let other = dir.path().join(image.file_name().unwrap());
        std::fs::copy(&image, &other).unwrap();
        assert!(Arc::ptr_eq(&first, &open(&other).unwrap()));

        // The next state closes the one before it, and removes its copy.
        let next = published(dir.path(), "2").await;
        assert_ne!(next, image);
        std::thread::sleep(Duration::from_millis(2));
        open(&next).unwrap();
        assert_eq!((cache.open_tables(), copies()), (1, 1));

        // Damage in a copy is mended, damage in the image is told.
        let cache = ImageCache::new(Stores::default(), Some(dir.path().join("copies")));
        let copy = std::fs::read_dir(dir.path().join("copies")).unwrap().next().unwrap().unwrap().path();
        std::fs::write(&copy, "damaged").unwrap();
        cache.open(std::slice::from_ref(&next)).unwrap();
        std::fs::write(&image, "damaged").unwrap();
        let in_place = ImageCache::new(Stores::default(), None);
        for cache in [&cache, &in_place] {
            let error = cache.open(std::slice::from_ref(&image)).unwrap_err().to_string();
            assert!(error.contains(image.to_str().unwrap()) && error.contains("is damaged"), "{error}");
        }
        in_place.open(&[next]).unwrap();
        std::fs::remove_file(&image).unwrap();
        for cache in [&cache, &in_place] {
            let error = cache.open(std::slice::from_ref(&image)).unwrap_err().to_string();
            assert!(error.to_lowercase().contains("no such file"), "{error}");
        }
        let error = in_place.open(&[dir.path().join("routes.txt")]).unwrap_err().to_string();
        assert!(error.contains("no hash of the content"), "{error}");
        let elsewhere = format!("s3://bucket/{}", image.file_name().unwrap().to_str().unwrap());
        let error = in_place.open(&[elsewhere.into()]).unwrap_err().to_string();
        assert!(error.contains("object store"), "{error}");
    }

    #[tokio::test]
    async fn images_of_an_object_store_are_copied() {
        let dir = tempfile::tempdir().unwrap();
        let stores = Stores::default();
        let store = Arc::new(object_store::memory::InMemory::new());
        let bucket = url::Url::parse("memory://bucket").unwrap();
        stores.registry().register_store(&bucket, Arc::clone(&store) as Arc<dyn object_store::ObjectStore>);
        let routes = dir.path().join("routes.txt");
        std::fs::write(&routes, "10.0.0.0/8 1\n").unwrap();
        publish(&Origin::Files(vec![routes]), &How::default(), "memory://bucket/tables/", "ris", &stores)
            .await
            .unwrap();
        let latest = Place::parse("memory://bucket/tables/ris@latest").unwrap();
        let pinned = latest.pinned(&stores).await.unwrap();
        let [image] = &pinned[..] else { panic!("{pinned:?}") };
        let place = PathBuf::from(image.to_string());

        let cache = ImageCache::new(stores.clone(), Some(dir.path().join("copies")));
        cache.open(std::slice::from_ref(&place)).unwrap();
        let (_, path) = image.in_store(&stores).unwrap();
        store.put(&path, "damaged".into()).await.unwrap();
        // The copy is what counts, as long as it is there.
        let again = ImageCache::new(stores.clone(), Some(dir.path().join("copies")));
        again.open(std::slice::from_ref(&place)).unwrap();
        let cache = ImageCache::new(stores.clone(), Some(dir.path().join("other")));
        let error = cache.open(std::slice::from_ref(&place)).unwrap_err().to_string();
        assert!(error.contains("memory://bucket/tables/ris-") && error.contains("is damaged"), "{error}");
        store.delete(&path).await.unwrap();
        let error = cache.open(&[place]).unwrap_err().to_string();
        assert!(error.contains("memory://bucket/tables/ris-") && error.contains("no such file"), "{error}");
        assert_eq!(std::fs::read_dir(dir.path().join("other")).unwrap().count(), 0);

        // What tells the latest is checked, too.
        let elsewhere = |start| format!("{start}x-{}.img\n", ContentHash::of(b""));
        for (text, reason) in [
            (String::new(), "lists no file"),
            ("a.img\n".to_owned(), "line 1"),
            (elsewhere("../"), "line 1"),
            (elsewhere("s3:"), "line 1"),
            (elsewhere("a") + &elsewhere("/"), "line 2"),
        ] {
            store.put(&"tables/ris.latest".into(), text.into()).await.unwrap();
            let error = latest.pinned(&stores).await.unwrap_err().to_string();
            assert!(error.contains("ris.latest") && error.contains(reason), "{error}");
        }
        let error =
            Place::parse("s3://bucket/ris@latest").unwrap().pinned(&stores).await.unwrap_err().to_string();
        assert!(error.starts_with("s3://bucket/ris.latest: ") && error.contains("object store"), "{error}");
    }
}
