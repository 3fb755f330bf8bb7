//! The decoder of terrane files for browsers, as WebAssembly.
//!
//! The JavaScript around it is in `crates/terrane-serve/web/`. It writes a request into a buffer and
//! reads an answer from another; pictures and heights come as they are. A [`Session`] holds the open files. Reading is
//! not done here: where bytes, a model or the definition of a coordinate system are missing, the [`Answer`] says which,
//! JavaScript fetches and gives them, and asks again. The code that decodes and draws is the server's.

#[cfg(target_arch = "wasm32")]
mod door;
mod request;
mod session;
mod source;
#[cfg(any(test, target_arch = "wasm32"))]
mod value;

pub use request::{Ask, Request, RequestError};
pub use session::{Answer, Session};
