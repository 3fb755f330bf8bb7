//! A report: sections of text, tables and figures, as one HTML page, as Markdown, and as files for programs.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;

use terrane_geo::{AtomicFile, Existing};

use super::figure::Figure;
use super::table::Table;
use crate::page::{Page, escape_markdown, prose_markdown};
use crate::{Error, Result};

/// A part of a report under one heading.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Section {
    /// Its heading.
    pub heading: String,
    /// What there is to say; `backticks` set code.
    pub paragraphs: Vec<String>,
    /// Its tables.
    pub tables: Vec<Table>,
    /// Its figures.
    pub figures: Vec<Figure>,
}

/// What a benchmark found.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Report {
    /// Its title.
    pub title: String,
    /// What was measured, on what, and with which command; `backticks` set code.
    pub introduction: String,
    /// Its sections.
    pub sections: Vec<Section>,
}

impl Report {
    /// The report as one page that needs nothing from elsewhere.
    pub fn html(&self) -> String {
        let mut page = Page::new(&self.title, &self.introduction);
        if self.sections.len() > 1 {
            let headings = self.sections.iter().map(|section| section.heading.as_str());
            page.contents(&headings.collect::<Vec<_>>());
        }
        for section in &self.sections {
            page.heading(&section.heading);
            for paragraph in &section.paragraphs {
                page.paragraph(paragraph);
            }
            for table in &section.tables {
                page.piece(&table.html());
            }
            for figure in &section.figures {
                page.piece(&figure.html());
            }
        }
        page.html()
    }

    /// The report in Markdown, with the figures as files beside it.
    pub fn markdown(&self) -> String {
        let mut out = format!("# {}\n", escape_markdown(&self.title));
        let mut block = |text: &str| {
            if !text.is_empty() {
                out.push_str(&format!("\n{}\n", text.trim_end()));
            }
        };
        block(&prose_markdown(&self.introduction));
        for section in &self.sections {
            block(&format!("## {}", escape_markdown(&section.heading)));
            for paragraph in &section.paragraphs {
                block(&prose_markdown(paragraph));
            }
            for table in &section.tables {
                block(&format!("### {}", escape_markdown(&table.title)));
                block(&table.markdown());
            }
            for figure in &section.figures {
                let title = escape_markdown(&figure.title);
                block(&format!("![{title}]({}.svg)", figure.name));
                block(&prose_markdown(&figure.caption));
            }
        }
        out
    }

    /// Writes `report.html`, `report.md`, a CSV and a JSON file for each table and an SVG file for each figure into a
    /// folder, which is made if need be. Each file appears whole, in place of one of the same name.
    pub fn write(&self, folder: &Path) -> Result<()> {
        let mut files = vec![
            ("report.html".to_owned(), self.html()),
            ("report.md".to_owned(), self.markdown()),
        ];
        for section in &self.sections {
            for table in &section.tables {
                files.push((format!("{}.csv", checked(&table.name)?), table.csv()));
                files.push((
                    format!("{}.json", table.name),
                    format!("{:#}\n", table.json()),
                ));
            }
            for figure in &section.figures {
                files.push((
                    format!("{}.svg", checked(&figure.name)?),
                    figure.svg.clone(),
                ));
            }
        }
        let mut names = BTreeSet::new();
        for (name, _) in &files {
            if !names.insert(name.to_lowercase()) {
                return Err(Error::ReportName {
                    name: name.clone(),
                    reason: "another table or figure has it",
                });
            }
        }
        let failed = |path: &Path, source| Error::Io {
            path: path.to_owned(),
            action: "be written",
            source,
        };
        std::fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
        for (name, content) in files {
            let path = folder.join(name);
            let mut file = AtomicFile::create(&path, Existing::Replace)?;
            let written = file.file().write_all(content.as_bytes());
            written.map_err(|error| failed(&path, error))?;
            file.commit()?;
        }
        Ok(())
    }
}

/// A name that is a file name everywhere.
fn checked(name: &str) -> Result<&str> {
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    if name.is_empty() || name.starts_with('.') || !name.chars().all(allowed) {
        return Err(Error::ReportName {
            name: name.to_owned(),
            reason: "use letters, digits, hyphens, underscores and points",
        });
    }
    Ok(name)
}
