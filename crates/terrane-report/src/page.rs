//! A self-contained HTML page: text, pictures and tables in one file, light or dark as the reader's screen is.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::picture::Picture;

/// A page that is being put together.
#[derive(Debug)]
pub struct Page {
    title: String,
    body: String,
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

const STYLE: &str = include_str!("page.css");
/// Who made a page, so that it is known again.
const GENERATOR: &str = "<meta name=\"generator\" content=\"terrane\">";

impl Page {
    /// A page with a title and one introducing sentence.
    pub fn new(title: &str, introduction: &str) -> Self {
        let body = format!(
            "<h1>{}</h1>\n<p>{}</p>\n",
            escape(title),
            prose(introduction)
        );
        Self {
            title: title.to_owned(),
            body,
            headings: 0,
        }
    }

    /// Whether a file is a page of this program; those of 0.1.0 are known by their colours.
    pub(crate) fn is_page(html: &str) -> bool {
        html.contains(GENERATOR) || html.contains(&properties(":root", &COLOURS))
    }

    /// Adds a list of the headings that follow, each a link to its place.
    pub(crate) fn contents(&mut self, headings: &[&str]) {
        self.body
            .push_str("<nav class=\"contents\" aria-label=\"Contents\">\n<ol>\n");
        for (index, text) in headings.iter().enumerate() {
            let number = self.headings + index + 1;
            let text = escape(text);
            self.body
                .push_str(&format!("<li><a href=\"#part-{number}\">{text}</a></li>\n"));
        }
        self.body.push_str("</ol>\n</nav>\n");
    }

    /// Adds a heading.
    pub fn heading(&mut self, text: &str) {
        self.headings += 1;
        self.body.push_str(&format!(
            "<h2 id=\"part-{}\">{}</h2>\n",
            self.headings,
            escape(text)
        ));
    }

    /// Adds a paragraph; `backticks` set code.
    pub fn paragraph(&mut self, text: &str) {
        self.body.push_str(&format!("<p>{}</p>\n", prose(text)));
    }

    /// Adds a piece of HTML as it is.
    pub(crate) fn piece(&mut self, html: &str) {
        self.body.push_str(html);
    }

    /// Adds pictures side by side, each with its caption.
    pub fn pictures(&mut self, pictures: &[(&Picture, &str)]) -> Result<(), png::EncodingError> {
        self.body.push_str("<div class=\"row\">\n");
        for (picture, caption) in pictures {
            let png = STANDARD.encode(picture.png()?);
            let caption = escape(caption);
            self.body.push_str(&format!(
                "<figure><img alt=\"{caption}\" src=\"data:image/png;base64,{png}\"><figcaption>{caption}</figcaption></figure>\n"
            ));
        }
        self.body.push_str("</div>\n");
        Ok(())
    }

    /// Adds a table; the first column is text, the others are numbers.
    pub fn table(&mut self, head: &[&str], rows: &[Vec<String>]) {
        let cells = |tag: &str, cells: &mut dyn Iterator<Item = &str>| -> String {
            cells
                .map(|cell| format!("<{tag}>{}</{tag}>", escape(cell)))
                .collect()
        };
        self.body.push_str("<div class=\"wide\"><table>\n<tr>");
        self.body.push_str(&cells("th", &mut head.iter().copied()));
        self.body.push_str("</tr>\n");
        for row in rows {
            let line = cells("td", &mut row.iter().map(String::as_str));
            self.body.push_str(&format!("<tr>{line}</tr>\n"));
        }
        self.body.push_str("</table></div>\n");
    }

    /// The whole page.
    pub fn html(&self) -> String {
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             {GENERATOR}\n<title>{}</title>\n<style>\n{}{STYLE}</style>\n</head>\n<body>\n{}</body>\n</html>\n",
            escape(&self.title),
            properties(":root", &COLOURS),
            self.body
        )
    }
}

/// Text as it must stand in HTML and SVG; what XML cannot hold at all is left out.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\t' | '\n' | '\r' => out.push(character),
            control if control.is_control() => {}
            '\u{fffe}' | '\u{ffff}' => {}
            other => out.push(other),
        }
    }
    out
}

/// Text as HTML, in which `backticks` set code.
pub(crate) fn prose(text: &str) -> String {
    let pieces = spans(text).map(|(piece, code)| {
        let piece = escape(piece);
        if code {
            format!("<code>{piece}</code>")
        } else {
            piece
        }
    });
    pieces.collect()
}

/// Text as Markdown within a line that shows it as it is.
pub(crate) fn escape_markdown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        if "\\`*_[]<>|&~$".contains(character) {
            out.push('\\');
        }
        out.push(if character.is_control() {
            ' '
        } else {
            character
        });
    }
    out
}

/// A paragraph in Markdown, in which `backticks` set code.
pub(crate) fn prose_markdown(text: &str) -> String {
    let pieces = spans(text).map(|(piece, code)| {
        if code {
            format!("`{}`", piece.replace(char::is_control, " "))
        } else {
            escape_markdown(piece)
        }
    });
    let mut paragraph = pieces.collect::<String>().trim().to_owned();
    // A paragraph must not begin as a heading or a list does.
    let digits = paragraph.bytes().take_while(u8::is_ascii_digit).count();
    let rest = &paragraph[digits..];
    if digits > 0 && [". ", ") "].iter().any(|list| rest.starts_with(list)) {
        paragraph.insert(digits, '\\');
    } else if paragraph.starts_with(['#', '+', '-', '=']) {
        paragraph.insert(0, '\\');
    }
    paragraph
}

/// Pieces of a text and whether they stand between backticks; an odd backtick is a character like any other.
fn spans(text: &str) -> impl Iterator<Item = (&str, bool)> {
    let ticks = text.matches('`').count();
    let pairs = ticks / 2;
    text.splitn(2 * pairs + 1, '`')
        .enumerate()
        .map(|(index, piece)| (piece, index % 2 == 1))
        .filter(|(piece, code)| *code || !piece.is_empty())
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

    #[test]
    fn backticks_set_code_and_an_odd_one_is_text() {
        assert_eq!(prose("run `a < b` now"), "run <code>a &lt; b</code> now");
        assert_eq!(prose("it`s `code` here"), "it<code>s </code>code` here");
        assert_eq!(prose("5` and \u{0}"), "5` and ");
        assert_eq!(prose_markdown("run `a|b` *now*"), "run `a|b` \\*now\\*");
    }

    #[test]
    fn paragraphs_in_markdown_are_not_lists_or_headings() {
        for (text, shown) in [
            ("# five", "\\# five"),
            ("- five", "\\- five"),
            ("5. five", "5\\. five"),
            ("5.2 metres\nmore", "5.2 metres more"),
            ("", ""),
        ] {
            assert_eq!(prose_markdown(text), shown);
        }
    }
}
