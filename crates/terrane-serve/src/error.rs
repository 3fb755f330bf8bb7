//! What keeps a server from starting, or a site from being written.

use std::net::SocketAddr;

use terrane::tiles::TileError;

use crate::original::Mismatch;

/// An error of a server or a site.
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
    /// An address that browsers cannot read.
    #[error(
        "{file} is nothing that a browser can read: give a file, or an address that begins with https://"
    )]
    NotForBrowsers {
        /// The address as others may see it.
        file: String,
    },
    /// A file whose model no browser has.
    #[error(
        "{file} needs a model that a browser cannot have: encode it with the context codec, and `embed_model` where its model is your own"
    )]
    NoBrowserModel {
        /// The file as others may see it.
        file: String,
    },
    /// A file that is not whole.
    #[error("{file} is damaged")]
    Damaged {
        /// The file as others may see it.
        file: String,
        /// What is wrong.
        #[source]
        source: terrane_codec::Error,
    },
    /// A folder that cannot be written.
    #[error("{file} cannot be written")]
    Unwritable {
        /// The folder as others may see it.
        file: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A folder that must not be written to.
    #[error(transparent)]
    Folder(#[from] terrane_geo::Error),
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
