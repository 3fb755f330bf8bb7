//! Tables of a benchmark: one source for Markdown, CSV, JSON and HTML.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use serde_json::Value;

use super::number::{MISSING, fixed, grouped};
use crate::page::{escape, escape_markdown, prose, prose_markdown};

/// One value of a table.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Cell {
    /// Words.
    Text(String),
    /// A measured number, shown with its column's digits and stored in full.
    Number(f64),
    /// A count.
    Whole(u64),
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
        Self::Whole(count)
    }
}

impl From<usize> for Cell {
    fn from(count: usize) -> Self {
        Self::Whole(count as u64)
    }
}

impl Cell {
    /// As people read it.
    fn shown(&self, digits: usize) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Number(value) => fixed(*value, digits),
            Self::Whole(count) => grouped(&count.to_string()),
            Self::Missing => MISSING.to_owned(),
        }
    }

    /// As programs read it: every digit, nothing where nothing was measured.
    fn stored(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Number(value) if value.is_nan() => String::new(),
            Self::Number(value) => format!("{value:?}"),
            Self::Whole(count) => count.to_string(),
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
                    Cell::Whole(count) => Value::from(*count),
                    Cell::Missing => Value::Null,
                };
                (column.key.clone(), value)
            });
            Value::Object(object.collect())
        });
        Value::Array(rows.collect())
    }

    /// The table in HTML with its heading, its note, and its CSV and JSON to take away.
    pub fn html(&self) -> String {
        let title = escape(&self.title);
        let mut out = format!(
            "<section class=\"table\" id=\"table-{}\">\n<h3>{title}</h3>\n\
             <div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"{title}\"><table>\n<thead><tr>",
            escape(&self.name)
        );
        let class = |index| {
            if self.is_text(index) {
                " class=\"text\""
            } else {
                ""
            }
        };
        for (index, column) in self.columns.iter().enumerate() {
            let head = escape(&column.head);
            out.push_str(&format!("<th scope=\"col\"{}>{head}</th>", class(index)));
        }
        out.push_str("</tr></thead>\n<tbody>\n");
        for row in &self.rows {
            out.push_str("<tr>");
            for (index, (cell, column)) in row.iter().zip(&self.columns).enumerate() {
                let (tag, scope) = if index == 0 {
                    ("th", " scope=\"row\"")
                } else {
                    ("td", "")
                };
                let shown = escape(&cell.shown(column.digits));
                out.push_str(&format!("<{tag}{scope}{}>{shown}</{tag}>", class(index)));
            }
            out.push_str("</tr>\n");
        }
        out.push_str("</tbody></table></div>\n<p class=\"note\">");
        if !self.note.is_empty() {
            out.push_str(&format!("{} ", prose(&self.note)));
        }
        out.push_str(&self.downloads());
        out.push_str("</p>\n</section>\n");
        out
    }

    /// Links that hold the data themselves, so that the page stays whole wherever it is moved.
    fn downloads(&self) -> String {
        let link = |kind: &str, content: &str| {
            let lower = kind.to_lowercase();
            let (name, data) = (escape(&self.name), STANDARD.encode(content));
            let mime = if lower == "csv" {
                "text/csv"
            } else {
                "application/json"
            };
            format!(
                "<a download=\"{name}.{lower}\" href=\"data:{mime};charset=utf-8;base64,{data}\">{kind}</a>"
            )
        };
        format!(
            "<span class=\"take\">{} {}</span>",
            link("CSV", &self.csv()),
            link("JSON", &format!("{:#}\n", self.json()))
        )
    }

    /// Whether a column holds words: then it starts at the left.
    fn is_text(&self, column: usize) -> bool {
        let cells = self.rows.iter().map(|row| &row[column]);
        let (words, values) = cells.fold((0, 0), |(words, values), cell| match cell {
            Cell::Text(_) => (words + 1, values),
            Cell::Number(_) | Cell::Whole(_) => (words, values + 1),
            Cell::Missing => (words, values),
        });
        words > values || (column == 0 && values == 0)
    }
}
