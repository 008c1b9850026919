//! [`publish`]: files by their content, and a pointer to the latest. [`follow`] does it whenever they change.

use std::path::{Path, PathBuf};
use std::time::Duration;

use object_store::{ObjectStoreExt, PutPayload};
use wirespeed::Reloader;
use wirespeed::content::{Content, FileError, FileTable, merge, read};
use wirespeed::image::Image;
use wirespeed_datafusion::{How, MergeSource, Table};

use crate::error::Error;
use crate::place::{ContentHash, Place, is_plain};
use crate::stores::Stores;

/// The source of a published table.
#[derive(Clone, Debug)]
pub enum Origin {
    /// Files that are one table: images, one of each family, or any one file that [`Table::open`] takes.
    Files(Vec<PathBuf>),
    /// Sources that are merged, in order of precedence: [`Table::merged`].
    Sources(Vec<MergeSource>),
}

impl Origin {
    /// The files.
    fn paths(&self) -> Vec<PathBuf> {
        match self {
            Self::Files(files) => files.clone(),
            Self::Sources(sources) => sources.iter().map(|source| PathBuf::from(&source.file)).collect(),
        }
    }
}

/// Publishes a table: writes its files under names of their content to a directory or an object store, then
/// makes `<name>@latest` mean these files, in one step. Queries that run keep the files they have.
///
/// Images and payloads of the RPKI are published as they are. Routes, names, lists of domains and rules are
/// built into images, by their content or by the format that `how` names; merged sources, too. Several files
/// are one table, for example an image of each family. Returns their places, in the order of the files.
///
/// Fails if a file is no table, and if the files are not one table together; then nothing is written.
pub async fn publish(
    origin: &Origin,
    how: &How,
    to: &str,
    name: &str,
    stores: &Stores,
) -> Result<Vec<Place>, Error> {
    let pointer = pointer(to, name)?;
    let built = tempfile::tempdir().map_err(|source| Error::Io { path: std::env::temp_dir(), source })?;
    let whole = match origin {
        Origin::Files(files) if files.is_empty() => {
            return Err(Error::Argument("a table needs a file".to_owned()));
        }
        Origin::Files(files) => {
            let image =
                |(at, file): (usize, &PathBuf)| as_image(file, how, &built.path().join(format!("{at}.img")));
            let images = files.iter().enumerate().map(image).collect::<Result<Vec<_>, _>>()?;
            if files.len() > 1
                && let Some((file, _)) =
                    files.iter().zip(&images).find(|(_, (_, is_of_routes))| *is_of_routes)
            {
                let reason = "routes are one file: merge several with --merge FIELD=FILE";
                return Err(wirespeed_datafusion::Error::Join { path: file.clone(), reason }.into());
            }
            images.into_iter().map(|(path, _)| path).collect()
        }
        Origin::Sources(sources) => {
            let image = built.path().join("merged.img");
            merge(sources.iter().map(|source| (source, how)))
                .and_then(|table| table.save(&image))
                .map_err(not_a_table)?;
            vec![image]
        }
    };
    Table::open(&whole)?;

    let mut places = Vec::new();
    for file in &whole {
        let bytes = std::fs::read(file).map_err(|source| Error::Io { path: file.clone(), source })?;
        let extension = match Image::is_start(&bytes) {
            true => "img",
            false => file.extension().and_then(|extension| extension.to_str()).unwrap_or("table"),
        };
        let hash = ContentHash::of(&bytes);
        let place = pointer.beside(&format!("{name}-{hash}.{extension}"))?;
        // A file that is there already is in use, and stays as it is.
        let is_there = place.read(stores).await.is_ok_and(|there| ContentHash::of(&there) == hash);
        if !is_there {
            write(&place, bytes, stores).await?;
        }
        places.push(place);
    }
    let lines: Vec<_> = places.iter().map(|place| format!("{}\n", place.file_name())).collect();
    write(&pointer, lines.concat().into_bytes(), stores).await?;
    Ok(places)
}

/// Publishes a table whenever one of its files changes, and tells `told` each time what came of it: the
/// places, or the error of a state that was not published. The state before it then stays the latest, and the
/// next change is tried again. The files are looked at once in `every`.
///
/// Never ends by itself: drop it. A state is published whole or not at all, but a drop in the middle may
/// leave a file that nothing names.
///
/// Fails if the name is none, and if nothing can change: there is no file, or standard input is one.
pub async fn follow(
    origin: &Origin,
    how: &How,
    (to, name): (&str, &str),
    stores: &Stores,
    every: Duration,
    mut told: impl FnMut(Result<Vec<Place>, Error>),
) -> Result<(), Error> {
    pointer(to, name)?;
    let followed = origin.paths().into_iter().filter(|path| !wirespeed::fib::read::is_built_in(path));
    let mut reloader =
        Reloader::of_all(followed).ok_or_else(|| Error::Argument("no file that could change".to_owned()))?;
    let mut is_lost = false;
    loop {
        // What does not build counts as seen: it is built again when it changes again.
        match reloader.if_changed(|_| Ok(())) {
            Ok(None) => is_lost = false,
            Ok(Some(())) => {
                is_lost = false;
                told(publish(origin, how, to, name, stores).await);
            }
            // Told once: a file may be away for long.
            Err(error) => {
                if !std::mem::replace(&mut is_lost, true) {
                    told(Err(wirespeed_datafusion::Error::Open(error).into()));
                }
            }
        }
        tokio::time::sleep(every).await;
    }
}

/// The file that names the latest state of a table.
fn pointer(to: &str, name: &str) -> Result<Place, Error> {
    if !is_plain(name) {
        let wanted = "letters, digits, '_', '-' and '.'";
        return Err(Error::Argument(format!("{name:?} is no name of a table: {wanted}")));
    }
    let slash = if to.ends_with('/') { "" } else { "/" };
    Place::parse(&format!("{to}{slash}{name}.latest"))
}

/// Writes a file completely or not at all.
async fn write(place: &Place, bytes: Vec<u8>, stores: &Stores) -> Result<(), Error> {
    let (store, path) = place.in_store(stores)?;
    store.put(&path, PutPayload::from(bytes)).await.map_err(|error| place.failed(error))?;
    Ok(())
}

/// The file itself if it is published as it is, or the image that is built of it; and whether it has routes.
fn as_image(file: &Path, how: &How, image: &Path) -> Result<(PathBuf, bool), Error> {
    let content = how.content_of(file).map_err(|error| not_a_table(error.into()))?;
    if matches!(content, Content::Image | Content::Payloads(_)) {
        let refused = |cause| not_a_table(FileError::How { path: file.to_owned(), cause });
        how.check(content).map_err(refused)?;
        return Ok((file.to_owned(), false));
    }
    let table = read(file, &How { content: Some(content), ..how.clone() }).map_err(not_a_table)?;
    table.save(image).map_err(not_a_table)?;
    Ok((image.to_owned(), matches!(table, FileTable::Addresses(..))))
}

fn not_a_table(error: FileError) -> Error {
    wirespeed_datafusion::Error::File(error).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Client;

    async fn published(dir: &Path, files: &[&str], how: &How) -> Result<Vec<Place>, Error> {
        let files = files.iter().map(|file| dir.join(file)).collect();
        publish(&Origin::Files(files), how, dir.join("shared").to_str().unwrap(), "t", &Stores::default())
            .await
    }

    /// The first column of a query in the published table.
    async fn answer(dir: &Path, sql: &str) -> Vec<String> {
        answer_of(dir.join("shared/t@latest").to_str().unwrap(), sql).await
    }

    /// The first column of a query in the table of a place.
    async fn answer_of(place: &str, sql: &str) -> Vec<String> {
        let client = Client::local(Stores::default()).unwrap();
        client.table("t", place).unwrap();
        let batches = client.query(sql).await.unwrap().collect().await.unwrap();
        let text = |batch: &arrow::record_batch::RecordBatch, row| {
            arrow::util::display::array_value_to_string(batch.column(0), row).unwrap()
        };
        batches.iter().flat_map(|batch| (0..batch.num_rows()).map(move |row| text(batch, row))).collect()
    }

    #[tokio::test]
    async fn every_kind_of_file_by_its_content() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        let lpm = "SELECT lpm_label('t', '10.1.2.3')";
        let listed =
            "SELECT name_label('t', name) FROM (VALUES ('www.ads.example'), ('good.ads.example')) AS n(name)";
        let rule = "SELECT classify_action('t', '10.1.2.3', '10.1.2.4', 6, 1, 443)";
        for (text, sql, right) in [
            ("10.0.0.0/8 64496\n", lpm, &["64496"][..]),
            ("10.0.0.0\t8\t64496\n", lpm, &["64496"]),
            ("prefix,asn,site\n10.0.0.0/8,64496,Kiel\n", lpm, &["asn=64496,site=Kiel"]),
            (
                "prefix,asn,site\n10.0.0.0/8,64496,Kiel\n",
                "SELECT lpm_label('t', '10.1.2.3', 'site')",
                &["Kiel"],
            ),
            (
                "{\"syncToken\":\"1\",\"prefixes\":[{\"ip_prefix\":\"10.0.0.0/8\",\"service\":\"EC2\"}]}",
                "SELECT lpm_label('t', '10.1.2.3', 'service')",
                &["EC2"],
            ),
            ("0.0.0.0 www.ads.example\n", listed, &["blocked", ""]),
            ("||ads.example^\n@@||good.ads.example^\n", listed, &["blocked", ""]),
            ("address=/ads.example/0.0.0.0\nserver=/good.ads.example/#\n", listed, &["blocked", ""]),
            (
                "$TTL 60\n@ SOA a. b. 1 2 3 4 5\n*.ads.example CNAME .\ngood.ads.example CNAME rpz-passthru.\n",
                listed,
                &["nxdomain", ""],
            ),
            (
                "// ===BEGIN ICANN DOMAINS===\nexample\n// ===END ICANN DOMAINS===\n",
                listed,
                &["icann", "icann"],
            ),
            ("ads.example ads\ngood.ads.example good\n", listed, &["ads", "good"]),
            ("ads.example\nmore.example\n", listed, &["member", "member"]),
            ("dport=443 proto=tcp action=7\n", rule, &["7"]),
            (
                "*filter\n:INPUT DROP [0:0]\n-A INPUT -p tcp --dport 443 -j ACCEPT\nCOMMIT\n",
                rule,
                &["ACCEPT"],
            ),
            (
                "ASN,IP Prefix,Max Length,Trust Anchor\nAS64496,10.0.0.0/8,16,ripe\n",
                "SELECT rov('t', '10.0.0.0/8', 64496)",
                &["valid"],
            ),
        ] {
            std::fs::write(dir.join("file.txt"), text).unwrap();
            let places = published(dir, &["file.txt"], &How::default())
                .await
                .unwrap_or_else(|error| panic!("{text}: {error}"));
            let is_image = places[0].file_name().ends_with(".img");
            assert_eq!(is_image, !text.starts_with("ASN"), "{text}");
            assert_eq!(answer(dir, sql).await, right, "{text}");
        }
    }

    #[tokio::test]
    async fn binary_and_compressed_files() {
        use std::io::Write as _;

        use wirespeed::fib::read::{Format, ReadOptions, read_fib_from};
        use wirespeed::fib::write::write_fib;

        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        let fib = |text: &str| read_fib_from(text.as_bytes(), "text", &ReadOptions::default()).unwrap().0;
        let (records, hops) = (fib("10.0.0.0/8 country=DE,asn=64496\n"), fib("10.0.0.0/8 192.0.2.1\n"));
        let label = "SELECT lpm_label('t', '10.1.2.3')";
        for (fib, format, sql, right) in [
            (&records, Format::Mmdb, "SELECT lpm_label('t', '10.1.2.3', 'country')", "DE"),
            (&hops, Format::Mrt, label, "192.0.2.1"),
            (&hops, Format::Plain, label, "192.0.2.1"),
        ] {
            let mut bytes = Vec::new();
            write_fib(fib, format, &mut bytes).unwrap();
            let mut zipped = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
            zipped.write_all(&bytes).unwrap();
            for bytes in [bytes, zipped.finish().unwrap()] {
                std::fs::write(dir.join("file"), bytes).unwrap();
                let places = published(dir, &["file"], &How::default()).await.unwrap();
                assert!(places[0].file_name().ends_with(".img"), "{places:?}");
                assert_eq!(answer(dir, sql).await, [right], "{format}");
            }
        }
    }

    #[tokio::test]
    async fn what_is_none_or_two_is_refused_in_one_line_and_leaves_the_latest() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        std::fs::write(dir.join("good.txt"), "10.0.0.0/8 1\n").unwrap();
        std::fs::write(dir.join("more.txt"), "10.1.0.0/16 1\n").unwrap();
        published(dir, &["good.txt"], &How::default()).await.unwrap();
        let latest = || std::fs::read(dir.join("shared/t.latest")).unwrap();
        let before = latest();
        for (text, said) in [
            ("the quick brown fox\n", "file.txt: neither an image, nor routes"),
            ("", "file.txt: neither an image"),
            ("10.0.0.0/8 1\n10.0.0.0/33 1\n", "file.txt:2: "),
            ("0.0.0.0 ads.example\n0.0.0.0 a..b\n", "file.txt:2: "),
            ("||ads.example^\n||ads.example^$script\n", "file.txt:2: "),
            ("ads.example\nmore.example\nmore example too\n", "file.txt:3: "),
            ("192.0.2.1 core\n", "file.txt: may be of the format hosts or plain: name the format"),
            ("priority=1 actions=drop\n", "file.txt: rules of OpenFlow"),
            ("*filter\n:INPUT DROP [0:0]\n-A INPUT -i lo -j ACCEPT\nCOMMIT\n", "file.txt: "),
            ("\u{fd}7zXZ\0", "file.txt: "),
        ] {
            std::fs::write(dir.join("file.txt"), text).unwrap();
            let error = published(dir, &["file.txt"], &How::default()).await.unwrap_err().line();
            assert!(error.contains(said), "{text}: {error}");
        }
        let error = published(dir, &["good.txt", "more.txt"], &How::default()).await.unwrap_err().to_string();
        assert!(error.contains("good.txt") && error.contains("--merge"), "{error}");
        let error = published(dir, &[], &How::default()).await.unwrap_err().to_string();
        assert!(error.contains("needs a file"), "{error}");
        assert_eq!(latest(), before);
        let how = How { chain: Some("FORWARD".to_owned()), ..How::default() };
        let image = published(dir, &["good.txt"], &How::default()).await.unwrap()[0].path().unwrap();
        let image = image.to_str().unwrap();
        for (file, said) in [("good.txt", "of the format plain"), (image, "of the format image")] {
            let error = published(dir, &[file], &how).await.unwrap_err().line();
            assert!(error.contains("chain is for ") && error.ends_with(said), "{error}");
        }
        // A format that is named decides.
        std::fs::write(dir.join("file.txt"), "192.0.2.1 core\n").unwrap();
        let how = How { content: Some("hosts".parse().unwrap()), ..How::default() };
        published(dir, &["file.txt"], &how).await.unwrap();
        assert_eq!(answer(dir, "SELECT name_label('t', 'core')").await, ["192.0.2.1"]);
    }

    #[tokio::test]
    async fn a_part_of_a_file_by_options() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        let rules = "*filter\n:INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n\
                     -A FORWARD -p tcp --dport 443 -j DROP\nCOMMIT\n";
        let rule = "SELECT classify_action('t', '10.1.2.3', '10.1.2.4', 6, 1, 443)";
        let sets = "create a hash:net\nadd a 10.0.0.0/8\ncreate b hash:net\nadd b 192.0.2.0/24\n";
        let ranges = "from,to,asn\n10.0.0.0,10.0.0.255,64496\n";
        for (text, option, value, sql, right) in [
            (rules, "chain", "FORWARD", rule, "DROP"),
            (rules, "chain", "INPUT", rule, "ACCEPT"),
            (sets, "set", "b", "SELECT lpm_label('t', '192.0.2.1')", "member"),
            (ranges, "range-columns", "from,to", "SELECT lpm_label('t', '10.0.0.1')", "64496"),
        ] {
            std::fs::write(dir.join("file.txt"), text).unwrap();
            let mut how = How::default();
            how.set(option, value).unwrap();
            published(dir, &["file.txt"], &how).await.unwrap();
            assert_eq!(answer(dir, sql).await, [right], "{option}={value}");
            // One process reads a file that is not published.
            let place = format!("{}?{option}={}", dir.join("file.txt").display(), value.replace(',', "+"));
            assert_eq!(answer_of(&place, sql).await, [right], "{place}");
        }
    }

    #[tokio::test]
    async fn merged_sources_are_one_image() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            std::fs::write(dir.path().join(name), text).unwrap();
            format!("{name}={}", dir.path().join(name).display()).parse::<MergeSource>().unwrap()
        };
        let sources = vec![file("site", "10.1.0.0/16 Kiel\n"), file("asn", "10.0.0.0/8 64496\n")];
        let to = dir.path().join("shared");
        let to = to.to_str().unwrap();
        publish(&Origin::Sources(sources), &How::default(), to, "t", &Stores::default()).await.unwrap();
        let labels = "SELECT lpm_label('t', '10.1.2.3', field) FROM (VALUES (1)) AS v(n)";
        for (field, right) in [("asn", "64496"), ("site", "Kiel")] {
            assert_eq!(answer(dir.path(), &labels.replace("field", &format!("'{field}'"))).await, [right]);
        }
    }

    #[tokio::test]
    async fn followed_files_are_published_when_they_change() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        let write = |text: &str| {
            std::fs::write(dir.join("next"), text).unwrap();
            std::fs::rename(dir.join("next"), dir.join("file.txt")).unwrap();
        };
        write("10.0.0.0/8 1\n");
        let origin = Origin::Files(vec![dir.join("file.txt")]);
        let (how, stores, to) = (How::default(), Stores::default(), dir.join("shared"));
        let (send, mut receive) = tokio::sync::mpsc::unbounded_channel();
        let told = |told: Result<Vec<Place>, Error>| {
            send.send(told.map(drop).map_err(|error| error.line())).unwrap();
        };
        let followed =
            follow(&origin, &how, (to.to_str().unwrap(), "t"), &stores, Duration::from_millis(5), told);
        let test = async {
            assert_eq!(receive.recv().await.unwrap(), Ok(()));
            for (text, label) in
                [("10.0.0.0/8 2\n", Some("2")), ("10.0.0.0/33 3\n", None), ("10.0.0.0/8 44\n", Some("44"))]
            {
                write(text);
                let told = receive.recv().await.unwrap();
                assert_eq!(told.is_ok(), label.is_some(), "{told:?}");
                if let Err(error) = told {
                    assert!(error.contains("file.txt:1"), "{error}");
                }
                let latest = answer(dir, "SELECT lpm_label('t', '10.1.2.3')").await;
                assert_eq!(latest, [label.unwrap_or("2")]);
            }
            std::fs::remove_file(dir.join("file.txt")).unwrap();
            assert!(receive.recv().await.unwrap().unwrap_err().contains("file.txt"));
            write("10.0.0.0/8 5\n");
            assert_eq!(receive.recv().await.unwrap(), Ok(()));
        };
        tokio::select! {
            ended = followed => panic!("{ended:?}"),
            () = test => {}
        }
        let wrong = follow(&origin, &how, ("x", "a b"), &stores, Duration::ZERO, |_| {}).await;
        assert!(wrong.unwrap_err().to_string().contains("is no name of a table"));
    }
}
