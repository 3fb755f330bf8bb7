//! A self-contained HTML page: text, pictures and tables in one file, light or dark as the reader's screen is.

use askama::Template;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::picture::Picture;
use crate::text::Prose;

/// A page that is being put together.
#[derive(Debug)]
pub struct Page {
    title: String,
    introduction: String,
    blocks: Vec<Block>,
    headings: usize,
}

/// A colour by its name in style sheets, on light and on dark paper.
pub(crate) struct Colour {
    pub(crate) name: &'static str,
    pub(crate) light: &'static str,
    pub(crate) dark: &'static str,
}

impl Colour {
    pub(crate) const fn new(name: &'static str, light: &'static str, dark: &'static str) -> Self {
        Self { name, light, dark }
    }
}

/// The colours of pages and of the charts on them.
pub(crate) const COLOURS: [Colour; 5] = [
    Colour::new("ink", "#1b1f24", "#e8e6e1"),
    Colour::new("soft", "#5b6570", "#a3a9b0"),
    Colour::new("paper", "#fbfaf7", "#16191d"),
    Colour::new("line", "#d9d5cc", "#343a41"),
    Colour::new("mark", "#2f6f4f", "#7fc8a0"),
];

/// A rule that gives elements these colours as properties, light or dark as the reader's screen is.
pub(crate) fn properties(selector: &str, colours: &[Colour]) -> String {
    let all = |pick: fn(&Colour) -> &'static str| -> String {
        let colours = colours.iter();
        colours
            .map(|colour| format!(" --{}: {};", colour.name, pick(colour)))
            .collect()
    };
    let (light, dark) = (all(|colour| colour.light), all(|colour| colour.dark));
    format!(
        "{selector} {{{light} }}\n@media (prefers-color-scheme: dark) {{ {selector} {{{dark} }} }}\n"
    )
}

const STYLE: &str = include_str!("../templates/page.css");
/// Who made a page, so that it is known again.
const GENERATOR: &str = "<meta name=\"generator\" content=\"terrane\">";

/// What stands on a page below its title.
#[derive(Debug)]
enum Block {
    /// Links to the headings that follow, of which the first has this number.
    Contents {
        first: usize,
        headings: Vec<String>,
    },
    Heading {
        number: usize,
        text: String,
    },
    Paragraph(String),
    Html(String),
    Pictures(Vec<Captioned>),
    Table {
        head: Vec<String>,
        rows: Vec<Vec<String>>,
    },
}

/// A PNG file with its caption.
#[derive(Debug)]
struct Captioned {
    base64: String,
    caption: String,
}

#[derive(Template)]
#[template(path = "page.html")]
struct PageTemplate<'a> {
    page: &'a Page,
    colours: String,
}

impl Page {
    /// A page with a title and one introducing sentence.
    pub fn new(title: &str, introduction: &str) -> Self {
        Self {
            title: title.to_owned(),
            introduction: introduction.to_owned(),
            blocks: Vec::new(),
            headings: 0,
        }
    }

    /// Whether a file is a page of this program; those of 0.1.0 are known by their colours.
    pub(crate) fn is_page(html: &str) -> bool {
        html.contains(GENERATOR) || html.contains(&properties(":root", &COLOURS))
    }

    /// Adds a list of the headings that follow, each a link to it.
    pub(crate) fn contents(&mut self, headings: &[&str]) {
        self.blocks.push(Block::Contents {
            first: self.headings + 1,
            headings: headings.iter().map(ToString::to_string).collect(),
        });
    }

    /// Adds a heading.
    pub fn heading(&mut self, text: &str) {
        self.headings += 1;
        self.blocks.push(Block::Heading {
            number: self.headings,
            text: text.to_owned(),
        });
    }

    /// Adds a paragraph; `backticks` set code.
    pub fn paragraph(&mut self, text: &str) {
        self.blocks.push(Block::Paragraph(text.to_owned()));
    }

    /// Adds HTML as it is.
    pub(crate) fn html_block(&mut self, html: String) {
        self.blocks.push(Block::Html(html));
    }

    /// Adds pictures side by side, each with its caption.
    pub fn pictures(&mut self, pictures: &[(&Picture, &str)]) -> Result<(), png::EncodingError> {
        let captioned = pictures.iter().map(|(picture, caption)| {
            Ok::<_, png::EncodingError>(Captioned {
                base64: STANDARD.encode(picture.png()?),
                caption: (*caption).to_owned(),
            })
        });
        self.blocks
            .push(Block::Pictures(captioned.collect::<Result<_, _>>()?));
        Ok(())
    }

    /// Adds a table; the first column is text, the others are numbers.
    pub fn table(&mut self, head: &[&str], rows: &[Vec<String>]) {
        self.blocks.push(Block::Table {
            head: head.iter().map(ToString::to_string).collect(),
            rows: rows.to_vec(),
        });
    }

    /// The whole page.
    pub fn html(&self) -> String {
        let template = PageTemplate {
            page: self,
            colours: properties(":root", &COLOURS),
        };
        template.render().expect("memory takes every page")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_text_whatever_it_holds() {
        let mut page = Page::new("a < b", "\"quoted\" & so on");
        page.table(&["name", "value"], &[vec!["<script>".into(), "1".into()]]);
        let html = page.html();
        assert!(html.contains("<h1>a &lt; b</h1>") && html.contains("<td>&lt;script&gt;</td>"));
        assert!(!html.contains("<script>"));
        assert!(
            !html.contains("http"),
            "the page needs nothing from elsewhere"
        );
    }
}
