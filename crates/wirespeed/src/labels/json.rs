//! Labels of any type that `serde` knows, saved as JSON.

use std::any::type_name;
use std::hash::Hash;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Labels;
use super::saved::SavedLabels;
use crate::error::Error;

impl<T: Serialize> Labels<T> {
    /// The labels as JSON.
    pub(crate) fn to_json(&self) -> Result<SavedLabels, Error> {
        self.save(Some(type_name::<T>()), |value| {
            serde_json::to_string(value).map_err(|error| Error::LabelNotJson { reason: error.to_string() })
        })
    }
}

impl<T: DeserializeOwned + Eq + Hash> Labels<T> {
    /// Opens the labels that were saved with a table by
    /// [`Table::save_labelled_json`](crate::Table::save_labelled_json),
    /// [`NameTable::save_labelled_json`](crate::NameTable::save_labelled_json) or
    /// [`Classifier::save_labelled_json`](crate::Classifier::save_labelled_json). The result is empty if the
    /// file has no labels.
    ///
    /// Fails if the labels were saved as text or are of another type: [`type_name`] tells types apart.
    ///
    /// ```
    /// use serde::{Deserialize, Serialize};
    /// use wirespeed::prelude::*;
    ///
    /// #[derive(Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
    /// struct Network {
    ///     asn: u32,
    ///     name: String,
    /// }
    ///
    /// # let dir = tempfile::tempdir()?;
    /// # let image = dir.path().join("routes.img");
    /// let labels = Labels::new();
    /// let cloud = Network { asn: 64497, name: "cloud".to_owned() };
    /// let routes = [("198.51.100.0/24".parse::<Ipv4Net>()?, cloud)];
    /// let table = Ipv4Table::builder().labelled_routes(&labels, routes).build()?;
    /// table.save_labelled_json(&image, &labels)?;
    ///
    /// let (reader, labels) = (Ipv4Reader::open(&image)?, Labels::<Network>::open_json(&image)?);
    /// let found = reader.lookup(Ipv4Addr::new(198, 51, 100, 9));
    /// assert_eq!(labels.get(found).map(|network| network.asn), Some(64497));
    /// assert!(Labels::<u32>::open_json(&image).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn open_json(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::read(path.as_ref(), Some(type_name::<T>()), |text| {
            serde_json::from_str(text).map_err(|error| Error::Label {
                file: None,
                text: text.to_owned(),
                reason: error.to_string(),
            })
        })
    }
}
