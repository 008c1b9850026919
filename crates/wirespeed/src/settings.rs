//! [`Settings`]: how a table of any domain is to be built.

use wirespeed_table::BuildOptions;

use crate::device::DeviceSettings;
use crate::engine::{AUTO, EngineName, Served, choose};
use crate::error::Error;
use crate::memory::Cap;

/// How a table is to be built.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) engine: String,
    pub(crate) memory_cap: Option<u64>,
    /// Room for results up to this one.
    pub(crate) results: u32,
    pub(crate) head_room: u32,
    pub(crate) seed: Option<u64>,
    pub(crate) device: DeviceSettings,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            engine: AUTO.to_owned(),
            memory_cap: None,
            results: 0,
            head_room: 0,
            seed: None,
            device: DeviceSettings::default(),
        }
    }
}

impl Settings {
    /// Starts GPUs that are asked for, and says which engine is to build a table of this, with which cap and
    /// which options. `auto` is the cap of an engine that nobody named, where none is stated.
    pub(crate) fn resolve<D: Served>(
        &mut self,
        source: &D::Source,
        auto: Cap,
    ) -> Result<(EngineName, (Cap, BuildOptions)), Error> {
        self.device.open(&D::gpu_options())?;
        let cap = match self.memory_cap {
            Some(cap) => Cap::Stated(cap),
            None if self.engine == AUTO => auto,
            None => Cap::Named,
        };
        let engine = choose::<D>(&self.engine, source, self.device.fleet.is_some())?;
        let Self { results, head_room, seed, .. } = *self;
        Ok((engine, (cap, BuildOptions { results, head_room, seed, ..cap.options() })))
    }
}

/// The methods that every builder has, of a type with a field `settings`.
macro_rules! settings_methods {
    () => {
        /// Sets the engine: its name, an [`EngineName`](crate::engine::EngineName), or `auto`, which is the
        /// default and takes the best for the table and the device.
        pub fn engine(mut self, engine: impl AsRef<str>) -> Self {
            self.settings.engine = engine.as_ref().to_owned();
            self
        }

        /// Sets what engines that hash draw their seed from, for tables that are to be equal byte for byte.
        /// Whoever can choose entries or keys must not know it. By default it is random for each process.
        pub fn seed(mut self, seed: u64) -> Self {
            self.settings.seed = Some(seed);
            self
        }

        /// Limits how long a batch may take, for [`Device::Auto`](crate::Device::Auto). The CPU looks up what
        /// it can within that time while it isn't busy, GPUs the rest. Without a bound a batch goes where it
        /// is back soonest.
        pub fn latency_bound(mut self, bound: std::time::Duration) -> Self {
            self.settings.device.latency_bound = Some(bound);
            self
        }
    };
}
pub(crate) use settings_methods;
