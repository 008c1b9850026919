//! Methods that the tables and readers of all domains have.

/// Methods that every table has. The type has a field `core`, and a method of this name that gives its
/// entries. The docs name the keys and the builder.
macro_rules! table_methods {
    ($entries:ident, $keys:literal, $builder:literal) => {
        #[doc = concat!("Number of ", stringify!($entries), ".")]
        #[must_use]
        pub fn len(&self) -> usize {
            self.$entries().len()
        }

        #[doc = concat!("Whether there are no ", stringify!($entries), ".")]
        #[must_use]
        pub fn is_empty(&self) -> bool {
            self.$entries().is_empty()
        }

        /// The engine that the table was built with.
        #[must_use]
        pub fn engine(&self) -> crate::engine::EngineName {
            self.core.engine()
        }

        #[doc = concat!("The GPUs that the table is on, for example for the [`fleet`](", $builder, "::fleet)")]
        /// of another table. `None` where lookups run on the CPU alone.
        #[must_use]
        pub fn fleet(&self) -> Option<&crate::Fleet> {
            self.core.fleet()
        }

        /// The reason why lookups run on the CPU although [`Device::Auto`](crate::Device::Auto) was asked
        /// for: no GPU was usable at the start, or a GPU failed later. `None` if there is no such reason.
        #[must_use]
        pub fn device_note(&self) -> Option<String> {
            self.core.device_note()
        }

        #[doc = concat!("Numbers of ", $keys, " that readers of this table looked up in batches,")]
        /// on the CPU and on GPUs. `None` where lookups run on the CPU alone.
        #[must_use]
        pub fn lookups(&self) -> Option<crate::Counts> {
            self.core.lookups()
        }

        /// The expected times of batches of usual sizes on the CPU and on a GPU, and the device that each
        /// goes to while nothing else is under way. They are measured when the table is built, and what the
        /// CPU takes is kept up to date. Empty where lookups run on the CPU alone.
        #[cfg(feature = "gpu")]
        #[must_use]
        pub fn device_costs(&self) -> Vec<crate::gpu::costs::Cost> {
            self.core.device_costs()
        }

        /// Attaches labels: their values end with the last route that uses them, as described at
        /// [`Labels`](crate::Labels#labels-that-end). Builders attach the labels that they get; this method
        /// is for a table that was opened.
        pub fn attach_labels<V>(&mut self, labels: &crate::Labels<V>) {
            self.core.attach(labels.counts());
        }

        /// Bytes held: the entries, both copies of the compiled table and of what readers see beside it, and
        /// the engine's data for updates. Each GPU holds one more copy of the table.
        #[must_use]
        pub fn memory_usage(&self) -> u64 {
            self.core.memory_usage()
        }

        /// The number of updates that made the engine rebuild the table.
        #[must_use]
        pub fn rebuilds(&self) -> u64 {
            self.core.rebuilds()
        }

        /// The number of calls that failed. A call that fails changes nothing.
        #[must_use]
        pub fn refused(&self) -> u64 {
            self.core.refused()
        }

        /// Writes what every table tells of itself.
        fn describe(&self, text: &mut std::fmt::DebugStruct<'_, '_>) -> std::fmt::Result {
            let text = text.field("engine", &self.engine()).field("len", &self.len());
            text.field("memory_usage", &self.memory_usage()).finish()
        }
    };
}
pub(crate) use table_methods;

/// Methods that save a table. The type has a method `save_with`. The docs are those of `save`.
macro_rules! save_methods {
    ($(#[$doc:meta])*) => {
        $(#[$doc])*
        pub fn save(&self, path: impl AsRef<std::path::Path>) -> Result<(), crate::Error> {
            self.save_with(&SavedLabels::default(), path.as_ref())
        }

        /// Saves the table like [`save`](Self::save), with the labels as text, for
        /// [`Labels::open`](crate::Labels::open).
        ///
        /// Fails if two labels have the same text, because they could not be told apart when the file is
        /// read.
        pub fn save_labelled<V: std::fmt::Display>(
            &self,
            path: impl AsRef<std::path::Path>,
            labels: &crate::Labels<V>,
        ) -> Result<(), crate::Error> {
            self.save_with(&labels.to_texts()?, path.as_ref())
        }

        /// Saves the table like [`save`](Self::save), with the labels as JSON, for
        /// [`Labels::open_json`](crate::Labels::open_json).
        #[cfg(feature = "serde")]
        pub fn save_labelled_json<V: serde::Serialize>(
            &self,
            path: impl AsRef<std::path::Path>,
            labels: &crate::Labels<V>,
        ) -> Result<(), crate::Error> {
            self.save_with(&labels.to_json()?, path.as_ref())
        }
    };
}
pub(crate) use save_methods;

/// Methods that every reader has. The type has a field `core`. The docs name the keys and the table, and end
/// with an example of a pipeline.
macro_rules! reader_methods {
    ($domain:ty, $keys:literal, $table:literal, $(#[$example:meta])*) => {
        /// The engine that looks up.
        #[must_use]
        pub fn engine(&self) -> crate::engine::EngineName {
            self.core.engine()
        }

        #[doc = concat!("Makes a source of empty batches, for a thread that gets ", $keys, " one at a time:")]
        /// [`Batches`](crate::Batches). Answers are like those of [`lookup_batch`](Self::lookup_batch).
        pub fn batches(&self) -> crate::Batches<$domain> {
            crate::Batches::new(self.core.clone())
        }

        #[doc = concat!("The copy of the table on GPU `n` of [`fleet`](", $table, "::fleet), for lookups of keys")]
        /// that are in that GPU's memory: see [`on_device`](crate::on_device).
        ///
        /// Fails if the table is not on GPUs, if there is no GPU `n`, or if the GPU is lost or its copy out
        /// of use.
        #[cfg(feature = "gpu")]
        pub fn on_device(&self, n: usize) -> Result<crate::DeviceTable<$domain>, crate::Error> {
            crate::DeviceTable::new(&self.core, n)
        }

        /// Makes a pipeline: several batches under way at once, on the device that the table was built for.
        /// This keeps a GPU busy.
        ///
        $(#[$example])*
        pub fn pipeline(&self) -> crate::Pipeline<'_, $domain> {
            crate::Pipeline::new(&self.core)
        }
    };
}
pub(crate) use reader_methods;
