//! The C library as C programs see it: its header, its example, and what it promises.

mod header;
mod programs;
