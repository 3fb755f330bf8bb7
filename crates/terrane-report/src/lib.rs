//! What draws and writes: figures, tables, pictures of terrain, and the pages and reports that hold them.
//!
//! ```
//! use terrane_report::table::{Column, Table};
//!
//! let columns = vec![Column::new("method", "Method", 0), Column::new("psnr_db", "PSNR dB", 1)];
//! let mut table = Table::new("methods", "Methods", "", columns);
//! table.row(vec!["huvr".into(), 48.86.into()]);
//! assert_eq!(table.csv(), "method,psnr_db\nhuvr,48.86\n");
//! ```

#![forbid(unsafe_code)]

pub mod comparison;
mod error;
pub mod figure;
mod number;
mod page;
pub mod picture;
mod report;
pub mod table;
mod text;

pub use error::{Error, Result};
pub use page::Page;
pub use report::{Report, Section};
