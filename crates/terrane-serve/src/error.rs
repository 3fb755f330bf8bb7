//! What keeps a server from starting.

use std::net::SocketAddr;

use terrane::tiles::TileError;

use crate::original::Mismatch;

/// An error of a server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A name that addresses need for something else.
    #[error("\"{name}\" is an address of the server")]
    ReservedName {
        /// The name.
        name: String,
    },
    /// Two files of one name.
    #[error("two files have the name \"{name}\"")]
    DuplicateName {
        /// The name.
        name: String,
    },
    /// A file that has no position on a web map.
    #[error("{file} cannot be put on a web map")]
    NotOnMap {
        /// The file as others may see it.
        file: String,
        /// Why.
        #[source]
        source: TileError,
    },
    /// An original that a file was not made from.
    #[error("{name} was not made from this raster: {reason}")]
    NotOriginal {
        /// The file's name.
        name: String,
        /// What tells them apart.
        reason: Mismatch,
    },
    /// An earlier file that nothing can be proven with.
    #[error("{name} cannot be compared with this file")]
    NotBefore {
        /// The file's name.
        name: String,
        /// Why.
        #[source]
        source: Box<terrane::Error>,
    },
    /// A raster whose size and time cannot be read.
    #[error("{file} cannot be read")]
    Unreadable {
        /// The file as others may see it.
        file: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// Threads that cannot be started.
    #[error("the server's threads cannot be started")]
    Threads(#[source] std::io::Error),
    /// An address that cannot be listened on.
    #[error("{address} cannot be listened on")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}
