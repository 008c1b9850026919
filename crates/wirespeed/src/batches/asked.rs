//! [`Asked`]: the answer that a batch asks for each key.

use std::fmt::Debug;

use bytemuck::Pod;
#[cfg(feature = "names")]
use wirespeed_namelookup::{Match, NameDomain};

#[cfg(feature = "names")]
use super::Batches;
use super::Memory;
use crate::engine::{AnyReader, Served};
use crate::gpu::dispatch::Why;
use crate::gpu::offload::{Offload, Sent};
#[cfg(feature = "names")]
use crate::names::NameReader;
use crate::owned_keys::OwnedKeys;

/// The answer that a batch asks for each key: [`Results`], or for names [`Matches`].
pub trait Asked<D: Served>: Sized + 'static {
    /// The answer for a key.
    type Answer: Pod + Default + Debug + PartialEq + Send + Sync;

    /// Looks up on the CPU.
    #[doc(hidden)]
    fn on_cpu(reader: &dyn AnyReader<D>, keys: D::Keys<'_>, answers: &mut [Self::Answer]);

    /// Sends keys to a GPU if that suits them, and a slot is there. An error is the reason why not.
    #[doc(hidden)]
    fn send(keys: &mut D::Owned, offload: &Offload<D::Remote>) -> Result<Sent, Why>;

    /// Waits for keys that were sent. An error is the reason why there are no results of a GPU.
    #[doc(hidden)]
    fn came(memory: &mut Memory<D, Self>, offload: &Offload<D::Remote>, sent: Sent) -> Result<(), Why>;
}

/// The table's result for each key, as wide as the table needs:
/// [`Answers::numbers`](super::Answers::numbers).
#[derive(Debug)]
pub enum Results {}

impl<D: Served> Asked<D> for Results {
    type Answer = D::Answer;

    fn on_cpu(reader: &dyn AnyReader<D>, keys: D::Keys<'_>, answers: &mut [D::Answer]) {
        reader.lookup_batch(keys, D::results(answers));
    }

    fn send(keys: &mut D::Owned, offload: &Offload<D::Remote>) -> Result<Sent, Why> {
        keys.send::<D::Result>(offload)
    }

    fn came(memory: &mut Memory<D, Self>, offload: &Offload<D::Remote>, sent: Sent) -> Result<(), Why> {
        memory.came(offload, sent, D::results)
    }
}

/// The result of each name with the length of the prefix that it is of:
/// [`Answers::matches`](super::Answers::matches).
#[cfg(feature = "names")]
#[derive(Debug)]
pub enum Matches {}

#[cfg(feature = "names")]
impl Asked<NameDomain> for Matches {
    type Answer = Match;

    fn on_cpu(reader: &dyn AnyReader<NameDomain>, names: NamesOf<'_>, matches: &mut [Match]) {
        reader.enter().table.match_batch(names, matches);
    }

    fn send(names: &mut OwnedNames, offload: &Offload<RemoteNames>) -> Result<Sent, Why> {
        names.send::<Match>(offload)
    }

    fn came(
        memory: &mut Memory<NameDomain, Self>,
        offload: &Offload<RemoteNames>,
        sent: Sent,
    ) -> Result<(), Why> {
        memory.came(offload, sent, |matches| matches)
    }
}

#[cfg(feature = "names")]
impl NameReader {
    /// Makes a source of empty batches like [`batches`](Self::batches), which are asked for results with the
    /// length of the match: [`Answers::matches`](crate::Answers::matches). A GPU sends back 8 bytes a name.
    ///
    /// ```
    /// use wirespeed::prelude::*;
    ///
    /// let reader = NameTable::builder().names([(NameBuf::new("/com/parc")?, NextHop(1))]).build()?.reader();
    /// let mut batch = reader.match_batches().batch(2).ok_or("as many are out as may be")?;
    /// batch.push(Name::new("/com/parc/www")?)?;
    /// let answers = batch.submit().wait();
    /// let name = answers.keys().name(0);
    /// assert_eq!(answers.matches()[0].prefix(name), Some(Name::new("/com/parc")?));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn match_batches(&self) -> Batches<NameDomain, Matches> {
        Batches::new(self.core().clone())
    }
}

#[cfg(feature = "names")]
type NamesOf<'k> = wirespeed_namelookup::Names<'k>;
#[cfg(feature = "names")]
type OwnedNames = <NameDomain as Served>::Owned;
#[cfg(feature = "names")]
type RemoteNames = <NameDomain as Served>::Remote;
