//! A report: sections of text, tables and figures, as one HTML page, as Markdown, and as files for programs.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;

use terrane_geo::{AtomicFile, Existing, Output};

use crate::comparison::{Comparison, numbers};
use crate::figure::Figure;
use crate::page::Page;
use crate::table::Table;
use crate::text::{escape_markdown, prose_markdown};
use crate::{Error, Result};

/// Stem of the files of a report that has no other.
const STEM: &str = "report";

/// A part of a report under one heading.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Section {
    /// Its heading.
    pub heading: String,
    /// What there is to say; `backticks` set code.
    pub paragraphs: Vec<String>,
    /// Numbers of a paper beside ours.
    pub comparisons: Vec<Comparison>,
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
    pub(crate) fn html(&self) -> String {
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
            for comparison in &section.comparisons {
                page.html_block(comparison.html());
            }
            for table in &section.tables {
                page.html_block(table.html());
            }
            for figure in &section.figures {
                page.html_block(figure.html());
            }
        }
        page.html()
    }

    /// Every number that stands beside one of a paper, a row for each, where there are any.
    pub fn numbers(&self, name: &str) -> Option<Table> {
        let sections = self.sections.iter();
        numbers(name, sections.flat_map(|section| &section.comparisons))
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
            for comparison in &section.comparisons {
                block(&comparison.markdown());
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

    /// Refuses a folder whose `report.html` or `report.md` is not of this program, for those who have long to do before.
    pub fn check(folder: &Path) -> Result<()> {
        Self::check_as(folder, STEM)
    }

    /// The same of a page of another name.
    pub fn check_as(folder: &Path, stem: &str) -> Result<()> {
        let [page, text] = [page_of(stem), text_of(stem)];
        refuse_others(folder, &page, [page.as_str(), text.as_str()])
    }

    /// Writes `report.html`, `report.md`, a CSV and a JSON file for each table and an SVG file for each figure into a
    /// folder, which is made if need be. Each file appears whole, in place of one of the same name of an earlier report; the
    /// files of anybody else are refused.
    pub fn write(&self, folder: &Path) -> Result<()> {
        self.write_as(folder, STEM)
    }

    /// The same with a page of another name, which the numbers beside those of a paper have too, as CSV and JSON.
    pub fn write_as(&self, folder: &Path, stem: &str) -> Result<()> {
        let page = page_of(checked(stem)?);
        let mut files = vec![
            // First, so that what was stopped can be written again.
            (page.clone(), self.html()),
            (text_of(stem), self.markdown()),
        ];
        if let Some(numbers) = self.numbers(stem) {
            files.push((format!("{stem}.csv"), numbers.csv()));
            files.push((format!("{stem}.json"), format!("{:#}\n", numbers.json())));
        }
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
        refuse_others(folder, &page, files.iter().map(|(name, _)| name.as_str()))?;
        let failed = |path: &Path, source| Error::Io {
            path: path.to_owned(),
            action: "be written",
            source,
        };
        std::fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
        for (name, content) in files {
            let path = folder.join(name);
            let mut file = AtomicFile::create(&Output::named_here(&path, Existing::Replace))?;
            let written = file.file().write_all(content.as_bytes());
            written.map_err(|error| failed(&path, error))?;
            file.commit()?;
        }
        Ok(())
    }
}

fn page_of(stem: &str) -> String {
    format!("{stem}.html")
}

fn text_of(stem: &str) -> String {
    format!("{stem}.md")
}

/// Refuses to write over files unless they lie beside a page of this program.
fn refuse_others<'a>(
    folder: &Path,
    page: &str,
    names: impl IntoIterator<Item = &'a str>,
) -> Result<()> {
    let page = folder.join(page);
    if std::fs::read(&page).is_ok_and(|html| Page::is_page(&String::from_utf8_lossy(&html))) {
        return Ok(());
    }
    let mut paths = names.into_iter().map(|name| folder.join(name));
    match paths.find(|path| path.exists()) {
        Some(path) => Err(Error::NoReport { path }),
        None => Ok(()),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::{Axis, Series, Style, line_chart};
    use crate::table::Column;

    fn report() -> Report {
        let mut table = Table::new("rates", "Rates", "", vec![Column::new("bpp", "bpp", 2)]);
        table.row(vec![0.5.into()]);
        let series = [Series::new("a", Style::Line, vec![(0.0, 1.0), (1.0, 2.0)])];
        let (x, y) = (Axis::linear("x"), Axis::linear("y"));
        let figure = line_chart("frontier", "Frontier", "One *setting*.", x, y, &series);
        let section = |heading: &str| Section {
            heading: heading.to_owned(),
            paragraphs: vec!["1. By `terrane bench`".to_owned()],
            ..Section::default()
        };
        Report {
            title: "A & B".to_owned(),
            introduction: "# of tiles: <96>".to_owned(),
            sections: vec![
                Section {
                    tables: vec![table],
                    figures: vec![figure],
                    ..section("Rate")
                },
                section("Time"),
            ],
        }
    }

    #[test]
    fn the_page_is_whole_in_itself() {
        let html = report().html();
        for needle in ["src=", "@import", "<link", "<script", "url(h"] {
            assert!(!html.contains(needle), "{needle}");
        }
        assert!(
            html.contains("<a href=\"#part-2\">Time</a>")
                && html.contains("<h2 id=\"part-2\">Time</h2>")
        );
        assert!(html.contains("<p>1. By <code>terrane bench</code></p>"));
        assert!(html.contains("<title>A &amp; B</title>") && html.contains("&lt;96&gt;"));
    }

    #[test]
    fn markdown_shows_text_as_it_is() {
        let markdown = report().markdown();
        assert!(markdown.starts_with(
            "# A \\& B\n\n\\# of tiles: \\<96\\>\n\n## Rate\n\n1\\. By `terrane bench`\n"
        ));
        assert!(markdown.contains("\n![Frontier](frontier.svg)\n\nOne \\*setting\\*.\n"));
        assert!(markdown.contains("\n### Rates\n\n|  bpp |\n| ---: |\n| 0.50 |\n"));
    }

    #[test]
    fn files_appear_and_replace_old_ones() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("deep/results");
        for _ in 0..2 {
            report().write(&folder).unwrap();
        }
        let entries = std::fs::read_dir(&folder).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(
            names,
            [
                "frontier.svg",
                "rates.csv",
                "rates.json",
                "report.html",
                "report.md"
            ]
        );
        let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
        assert_eq!(read("rates.csv"), "bpp\n0.5\n");
        let json: serde_json::Value = serde_json::from_str(&read("rates.json")).unwrap();
        assert_eq!(json[0]["bpp"], 0.5);
        assert!(read("frontier.svg").starts_with("<svg xmlns="));
    }

    #[test]
    fn files_of_others_are_left() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["report.html", "report.md", "rates.csv", "frontier.svg"] {
            let path = folder.path().join(name);
            std::fs::write(&path, "mine").unwrap();
            let text = report().write(folder.path()).unwrap_err().to_string();
            assert!(
                text.contains(&format!("{name}: is there already")),
                "{text}"
            );
            assert_eq!(
                Report::check(folder.path()).is_err(),
                name.starts_with("report")
            );
            assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
            assert_eq!(std::fs::read(&path).unwrap(), b"mine");
            std::fs::remove_file(path).unwrap();
        }
    }

    #[test]
    fn names_that_cannot_be_files_are_refused_before_anything_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("results");
        for name in ["", "../a", "a/b", ".hidden", "a b"] {
            let mut report = report();
            report.sections[0].tables[0].name = name.to_owned();
            let error = report.write(&target).unwrap_err();
            assert!(error.to_string().contains("cannot name a file"), "{error}");
        }
        let mut twice = report();
        let again = twice.sections[0].clone();
        twice.sections.push(again);
        let error = twice.write(&target).unwrap_err();
        assert!(
            error.to_string().contains("another table or figure has it"),
            "{error}"
        );
        assert!(!target.exists());
    }
}
