//! [`Settings`]: the build settings of a table of any domain; [`Draft`]: what all builders collect.

use wirespeed_table::BuildOptions;

use crate::device::DeviceSettings;
use crate::engine::{AUTO, EngineName, Served, choose};
use crate::error::Error;
use crate::memory::Cap;
use crate::uses::Claims;

/// The build settings of a table.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) engine: String,
    pub(crate) memory_cap: Option<u64>,
    /// The largest result that the table has head room for.
    pub(crate) results: u32,
    pub(crate) head_room: u32,
    pub(crate) seed: Option<u64>,
    /// Whether lookups give the matched prefix, too.
    pub(crate) prefix_lookups: bool,
    pub(crate) device: DeviceSettings,
}

/// The engine of a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Choice {
    /// The engine that was named, or that suits the first entries.
    pub(crate) engine: EngineName,
    /// Whether `auto` chooses again at each build.
    pub(crate) is_auto: bool,
}

impl Choice {
    /// An engine that stays.
    pub(crate) fn named(engine: EngineName) -> Self {
        Self { engine, is_auto: false }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            engine: AUTO.to_owned(),
            memory_cap: None,
            results: 0,
            head_room: 0,
            seed: None,
            prefix_lookups: false,
            device: DeviceSettings::default(),
        }
    }
}

impl Settings {
    /// Starts the GPUs that are asked for, and returns the engine, the cap and the build options. `auto` is
    /// the cap if neither an engine nor a cap was named.
    #[inline(never)] // one copy for all crates
    pub(crate) fn resolve<D: Served>(
        &mut self,
        source: &D::Source,
        auto: Cap,
    ) -> Result<(Choice, (Cap, BuildOptions)), Error> {
        self.device.open(&D::gpu_options())?;
        let is_auto = self.engine == AUTO;
        let cap = match self.memory_cap {
            Some(cap) => Cap::Stated(cap),
            None if is_auto => auto,
            None => Cap::Named,
        };
        let engine = choose::<D>(&self.engine, source, self.device.fleet.is_some())?;
        let Self { results, head_room, seed, .. } = *self;
        Ok((Choice { engine, is_auto }, (cap, BuildOptions { results, head_room, seed, ..cap.options() })))
    }
}

/// What every builder collects beside its entries.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    pub(crate) settings: Settings,
    pub(crate) claims: Claims,
    error: Option<Error>,
}

impl Draft {
    /// Keeps the first error.
    pub(crate) fn fail(&mut self, error: Error) {
        self.error.get_or_insert(error);
    }

    /// The settings and claims. Fails if a call of the builder failed.
    pub(crate) fn finish(self) -> Result<(Settings, Claims), Error> {
        match self.error {
            Some(error) => Err(error),
            None => Ok((self.settings, self.claims)),
        }
    }
}

/// Methods that every builder has. The type has a field `draft`. The settings that are listed mean different
/// things in each domain, so they come with their docs.
macro_rules! settings_methods {
    ($($(#[$doc:meta])* $setting:ident;)*) => {
        /// Attaches labels to the table: their values end with the last route that uses them, as described at
        /// [`Labels`](crate::Labels#labels-that-end). Methods that add routes with labels attach these, too.
        pub fn labels<V>(mut self, labels: &crate::Labels<V>) -> Self {
            self.draft.claims.attach(labels.counts());
            self
        }

        /// Sets the engine: a name, an [`EngineName`](crate::engine::EngineName), or `auto`. The default is
        /// `auto`, which picks the best engine that can hold the table, for the device.
        pub fn engine(mut self, engine: impl AsRef<str>) -> Self {
            self.draft.settings.engine = engine.as_ref().to_owned();
            self
        }

        /// Sets the seed of hashes, for engines that hash. Tables of equal entries and one seed have equal
        /// images. Whoever knows the seed can choose entries and keys that make the table slow, so keep it
        /// secret from people who choose some. By default it is random for each process.
        pub fn seed(mut self, seed: u64) -> Self {
            self.draft.settings.seed = Some(seed);
            self
        }

        /// Limits the time that a batch may take, for [`Device::Auto`](crate::Device::Auto). An idle CPU
        /// looks up the batches that it can finish within the bound; GPUs look up the others. Without a bound
        /// a batch goes where it is answered soonest.
        pub fn latency_bound(mut self, bound: std::time::Duration) -> Self {
            self.draft.settings.device.latency_bound = Some(bound);
            self
        }

        $($crate::settings::setting_method!($(#[$doc])* $setting);)*

        /// Keeps the first error.
        fn failed(mut self, error: crate::Error) -> Self {
            self.draft.fail(error);
            self
        }
    };
}
pub(crate) use settings_methods;

/// The method that sets one setting.
macro_rules! setting_method {
    ($(#[$doc:meta])* memory_cap) => {
        $(#[$doc])*
        pub fn memory_cap(mut self, bytes: u64) -> Self {
            self.draft.settings.memory_cap = Some(bytes);
            self
        }
    };
    ($(#[$doc:meta])* next_hops) => {
        $(#[$doc])*
        pub fn next_hops(mut self, largest: u32) -> Self {
            self.draft.settings.results = largest;
            self
        }
    };
    ($(#[$doc:meta])* prefix_lookups) => {
        $(#[$doc])*
        pub fn prefix_lookups(mut self) -> Self {
            self.draft.settings.prefix_lookups = true;
            self
        }
    };
    ($(#[$doc:meta])* longest_prefix) => {
        $(#[$doc])*
        pub fn longest_prefix(mut self, len: u8) -> Self {
            self.draft.settings.device.longest_prefix = Some(len);
            self
        }
    };
    ($(#[$doc:meta])* head_room) => {
        $(#[$doc])*
        pub fn head_room(mut self, hundredths: u32) -> Self {
            self.draft.settings.head_room = hundredths;
            self
        }
    };
    ($(#[$doc:meta])* device) => {
        $(#[$doc])*
        pub fn device(mut self, device: crate::Device) -> Self {
            self.draft.settings.device.device = device;
            self
        }
    };
    ($(#[$doc:meta])* fleet) => {
        $(#[$doc])*
        pub fn fleet(mut self, fleet: crate::Fleet) -> Self {
            self.draft.settings.device.fleet = Some(fleet);
            self
        }
    };
}
pub(crate) use setting_method;
