//! A self-contained HTML page: text, pictures and tables in one file, light or dark as the reader's screen is.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::picture::Picture;

/// A page that is being put together.
#[derive(Debug)]
pub struct Page {
    title: String,
    body: String,
}

const STYLE: &str = "
:root { color-scheme: light dark; --ink: #1b1f24; --soft: #5b6570; --paper: #fbfaf7; --line: #d9d5cc; --mark: #2f6f4f; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e8e6e1; --soft: #a3a9b0; --paper: #16191d; --line: #343a41; --mark: #7fc8a0; }
}
body { margin: 0 auto; padding: 2.5rem 1.25rem 4rem; max-width: 62rem; color: var(--ink); background: var(--paper);
  font: 16px/1.55 system-ui, -apple-system, 'Segoe UI', sans-serif; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .4rem; }
h2 { font-size: 1.2rem; margin: 2.4rem 0 .6rem; }
p { margin: .4rem 0 1rem; max-width: 44rem; }
.row { display: grid; grid-template-columns: repeat(auto-fit, minmax(17rem, 1fr)); gap: 1rem; }
figure { margin: 0; }
img { width: 100%; height: auto; display: block; border-radius: 4px; background: var(--line); }
figcaption { color: var(--soft); font-size: .87rem; margin-top: .35rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: .38rem .7rem; border-bottom: 1px solid var(--line); white-space: nowrap; }
th { color: var(--soft); font-weight: 600; font-size: .85rem; }
th:first-child, td:first-child { text-align: left; }
code { font-size: .92em; color: var(--mark); }
";

impl Page {
    /// A page with a title and one introducing sentence.
    pub fn new(title: &str, introduction: &str) -> Self {
        let body = format!(
            "<h1>{}</h1>\n<p>{}</p>\n",
            escape(title),
            escape(introduction)
        );
        Self {
            title: title.to_owned(),
            body,
        }
    }

    /// Adds a heading.
    pub fn heading(&mut self, text: &str) {
        self.body.push_str(&format!("<h2>{}</h2>\n", escape(text)));
    }

    /// Adds a paragraph.
    pub fn paragraph(&mut self, text: &str) {
        self.body.push_str(&format!("<p>{}</p>\n", escape(text)));
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
             <title>{}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n{}</body>\n</html>\n",
            escape(&self.title),
            self.body
        )
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
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
