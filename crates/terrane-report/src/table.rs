//! Tables of a benchmark: one source for Markdown, CSV, JSON and HTML.

use askama::Template;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use serde_json::Value;

use crate::number::{MISSING, fixed, grouped};
use crate::text::{Prose, escape_markdown, prose_markdown};

/// A table with more rows is folded on the page.
const LONG: usize = 32;

/// One value of a table.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Cell {
    /// Words.
    Text(String),
    /// A measured number, shown with its column's digits and stored in full.
    Number(f64),
    /// A count.
    Count(u64),
    /// Nothing was measured.
    Missing,
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<f64> for Cell {
    /// What is not a number was not measured.
    fn from(value: f64) -> Self {
        if value.is_nan() {
            Self::Missing
        } else {
            Self::Number(value)
        }
    }
}

impl From<Option<f64>> for Cell {
    fn from(value: Option<f64>) -> Self {
        value.map_or(Self::Missing, Self::from)
    }
}

impl From<u64> for Cell {
    fn from(count: u64) -> Self {
        Self::Count(count)
    }
}

impl From<usize> for Cell {
    fn from(count: usize) -> Self {
        Self::Count(count as u64)
    }
}

impl Cell {
    /// As people read it.
    pub(crate) fn shown(&self, digits: usize) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Number(value) => fixed(*value, digits),
            Self::Count(count) => grouped(&count.to_string()),
            Self::Missing => MISSING.to_owned(),
        }
    }

    /// As programs read it: every digit, nothing where nothing was measured.
    fn stored(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Number(value) if value.is_nan() => String::new(),
            Self::Number(value) => format!("{value:?}"),
            Self::Count(count) => count.to_string(),
            Self::Missing => String::new(),
        }
    }
}

/// What a column holds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Column {
    /// Its name for programs: `snake_case`, the unit at the end, such as `psnr_db`.
    pub key: String,
    /// Its name for people, such as `PSNR dB`.
    pub head: String,
    /// Digits after the point.
    pub digits: usize,
}

impl Column {
    /// A column of numbers with this many digits after the point, or of words.
    pub fn new(key: &str, head: &str, digits: usize) -> Self {
        Self {
            key: key.to_owned(),
            head: head.to_owned(),
            digits,
        }
    }
}

/// A table with its name and what there is to say about it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Table {
    /// Stem of its files, such as `headline`.
    pub name: String,
    /// Its heading.
    pub title: String,
    /// How it was measured; `backticks` set code.
    pub note: String,
    /// Its columns.
    pub columns: Vec<Column>,
    /// Its rows, each with one cell for each column.
    pub rows: Vec<Vec<Cell>>,
}

impl Table {
    /// A table without rows.
    pub fn new(name: &str, title: &str, note: &str, columns: Vec<Column>) -> Self {
        Self {
            name: name.to_owned(),
            title: title.to_owned(),
            note: note.to_owned(),
            columns,
            rows: Vec::new(),
        }
    }

    /// Adds a row of one cell for each column.
    pub fn row(&mut self, cells: Vec<Cell>) {
        assert_eq!(
            cells.len(),
            self.columns.len(),
            "a row of the table `{}` has one cell for each column",
            self.name
        );
        self.rows.push(cells);
    }

    /// The table in Markdown, padded so that it also reads as plain text.
    pub fn markdown(&self) -> String {
        let heads = self.columns.iter().map(|column| column.head.as_str());
        let mut lines = vec![heads.map(escape_markdown).collect::<Vec<_>>()];
        lines.extend(self.rows.iter().map(|row| {
            let cells = row.iter().zip(&self.columns);
            cells
                .map(|(cell, column)| escape_markdown(&cell.shown(column.digits)))
                .collect()
        }));
        let columns: Vec<(usize, bool)> = (0..self.columns.len())
            .map(|index| {
                let cells = lines.iter().map(|line| line[index].chars().count());
                (cells.max().unwrap_or(0).max(3), self.is_text(index))
            })
            .collect();
        let mut out = String::new();
        for (number, line) in lines.iter().enumerate() {
            for (cell, &(width, text)) in line.iter().zip(&columns) {
                out.push_str(&if text {
                    format!("| {cell:<width$} ")
                } else {
                    format!("| {cell:>width$} ")
                });
            }
            out.push_str("|\n");
            if number == 0 {
                for &(width, text) in &columns {
                    let end = if text { "-" } else { ":" };
                    out.push_str(&format!("| {}{end} ", "-".repeat(width - 1)));
                }
                out.push_str("|\n");
            }
        }
        if !self.note.is_empty() {
            out.push_str(&format!("\n{}\n", prose_markdown(&self.note)));
        }
        out
    }

    /// The table as CSV: keys as heads, every digit of every number, nothing where nothing was measured.
    pub fn csv(&self) -> String {
        let mut writer = csv::Writer::from_writer(Vec::new());
        let heads = self.columns.iter().map(|column| column.key.clone());
        let rows = self.rows.iter();
        let rows = rows.map(|row| row.iter().map(Cell::stored).collect());
        for line in std::iter::once(heads.collect::<Vec<_>>()).chain(rows) {
            writer
                .write_record(line)
                .expect("memory takes every row, and all rows are as long as the first");
        }
        let bytes = writer.into_inner().expect("memory takes every row");
        String::from_utf8(bytes).expect("fields were text")
    }

    /// The table as an array of objects by the columns' keys; numbers that JSON cannot hold are null.
    pub fn json(&self) -> Value {
        let rows = self.rows.iter().map(|row| {
            let cells = self.columns.iter().zip(row);
            let object = cells.map(|(column, cell)| {
                let value = match cell {
                    Cell::Text(text) => Value::from(text.as_str()),
                    Cell::Number(value) => Value::from(*value),
                    Cell::Count(count) => Value::from(*count),
                    Cell::Missing => Value::Null,
                };
                (column.key.clone(), value)
            });
            Value::Object(object.collect())
        });
        Value::Array(rows.collect())
    }

    /// The table in HTML with its heading, its note, and its CSV and JSON to take away.
    pub(crate) fn html(&self) -> String {
        let columns = self.columns.iter().enumerate();
        let rows = self.rows.iter().map(|row| {
            let cells = row.iter().zip(&self.columns);
            cells
                .map(|(cell, column)| cell.shown(column.digits))
                .collect()
        });
        let template = TableTemplate {
            table: self,
            is_folded: self.rows.len() > LONG,
            columns: columns
                .map(|(index, column)| HtmlColumn {
                    head: &column.head,
                    is_text: self.is_text(index),
                })
                .collect(),
            rows: rows.collect(),
            files: [
                Download::new("CSV", "csv", "text/csv", &self.csv()),
                Download::new(
                    "JSON",
                    "json",
                    "application/json",
                    &format!("{:#}\n", self.json()),
                ),
            ],
        };
        template.render().expect("memory takes every table")
    }

    /// Whether a column holds words: then it starts at the left.
    fn is_text(&self, column: usize) -> bool {
        let cells = self.rows.iter().map(|row| &row[column]);
        let (words, values) = cells.fold((0, 0), |(words, values), cell| match cell {
            Cell::Text(_) => (words + 1, values),
            Cell::Number(_) | Cell::Count(_) => (words, values + 1),
            Cell::Missing => (words, values),
        });
        words > values || (column == 0 && values == 0)
    }
}

#[derive(Template)]
#[template(path = "table.html")]
struct TableTemplate<'a> {
    table: &'a Table,
    is_folded: bool,
    columns: Vec<HtmlColumn<'a>>,
    rows: Vec<Vec<String>>,
    files: [Download; 2],
}

struct HtmlColumn<'a> {
    head: &'a str,
    is_text: bool,
}

/// A file that a link holds, so that the page stays whole wherever it is moved.
struct Download {
    name: &'static str,
    extension: &'static str,
    mime: &'static str,
    base64: String,
}

impl Download {
    fn new(name: &'static str, extension: &'static str, mime: &'static str, content: &str) -> Self {
        Self {
            name,
            extension,
            mime,
            base64: STANDARD.encode(content),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let columns = vec![
            Column::new("method", "Method", 0),
            Column::new("psnr_db", "PSNR dB", 2),
            Column::new("tiles", "Tiles", 0),
        ];
        let mut table = Table::new("headline", "A | B", "From `a|b` & *c*.", columns);
        table.row(vec![
            "a, \"b\"\n|c|".into(),
            58.239_912_345.into(),
            12_800usize.into(),
        ]);
        table.row(vec!["<d_e>".into(), f64::NAN.into(), Cell::Missing]);
        table.row(vec!["f".into(), f64::INFINITY.into(), 7u64.into()]);
        table
    }

    #[test]
    fn csv_is_quoted_and_keeps_every_digit() {
        assert_eq!(
            table().csv(),
            "method,psnr_db,tiles\n\"a, \"\"b\"\"\n|c|\",58.239912345,12800\n<d_e>,,\nf,inf,7\n"
        );
        let mut exact = Table::new("t", "", "", vec![Column::new("x", "x", 1)]);
        let values = [0.1 + 0.2, 1e300, -5e-324, 1.0 / 3.0];
        for value in values {
            exact.row(vec![value.into()]);
        }
        let csv = exact.csv();
        let back: Vec<f64> = csv
            .lines()
            .skip(1)
            .map(|line| line.parse().unwrap())
            .collect();
        assert_eq!(back, values);
        let json = exact.json();
        let back: Vec<f64> = (0..4).map(|row| json[row]["x"].as_f64().unwrap()).collect();
        assert_eq!(back, values);
    }

    #[test]
    fn json_has_null_where_there_is_no_number() {
        let json = table().json();
        assert_eq!(json[0]["psnr_db"], 58.239_912_345);
        assert_eq!(json[0]["tiles"], 12_800);
        assert_eq!(
            (&json[1]["psnr_db"], &json[1]["tiles"]),
            (&Value::Null, &Value::Null)
        );
        assert_eq!(json[2]["psnr_db"], Value::Null);
        let cells = serde_json::to_string(&table().rows[1]).unwrap();
        assert_eq!(cells, "[\"<d_e>\",null,null]");
    }

    #[test]
    fn markdown_is_one_line_for_each_row_and_escaped() {
        let markdown = table().markdown();
        let lines: Vec<&str> = markdown.lines().collect();
        assert_eq!(lines[0], "| Method       | PSNR dB |  Tiles |");
        assert_eq!(lines[1], "| ------------ | ------: | -----: |");
        assert_eq!(lines[2], "| a, \"b\" \\|c\\| |   58.24 | 12,800 |");
        assert_eq!(lines[3], "| \\<d\\_e\\>     |       – |      – |");
        assert_eq!(lines[6], "From `a|b` \\& \\*c\\*.");
    }

    #[test]
    fn html_is_escaped_and_aligned() {
        let html = table().html();
        assert!(
            html.contains("<th scope=\"row\" class=\"text\">&lt;d_e&gt;</th><td>–</td><td>–</td>")
        );
        assert!(html.contains("<td>58.24</td><td>12,800</td>") && html.contains("<td>∞</td>"));
        assert!(html.contains("<h3>A | B</h3>") && html.contains("<code>a|b</code> &amp; *c*."));
        assert!(html.contains("download=\"headline.csv\" href=\"data:text/csv;"));
    }

    #[test]
    fn a_table_without_rows_has_its_head() {
        let mut table = table();
        table.rows.clear();
        assert_eq!(table.csv(), "method,psnr_db,tiles\n");
        assert_eq!(table.json(), Value::Array(Vec::new()));
        assert!(
            table
                .markdown()
                .starts_with("| Method | PSNR dB | Tiles |\n")
        );
        assert!(table.html().contains("<tbody>\n</tbody>"));
    }

    #[test]
    #[should_panic(expected = "one cell for each column")]
    fn a_row_of_another_length_is_refused() {
        table().row(vec![Cell::Missing]);
    }
}
