//! [`enter`]: a thread in another network namespace.

use std::fs::File;
use std::os::fd::AsFd;
use std::path::Path;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::error::Error;

/// Moves the calling thread into a network namespace. Sockets that it opens belong there.
pub(super) fn enter(path: &Path) -> Result<(), Error> {
    let failed = |error| Error::Namespace { path: path.to_owned(), error };
    let file = File::open(path).map_err(failed)?;
    move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))
        .map_err(|error| failed(error.into()))
}
