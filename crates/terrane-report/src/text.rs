//! Text as HTML, SVG and Markdown show it.

use std::fmt::{self, Write};

use askama::Template;
use askama::filters::Escaper;

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

/// How the templates escape what they are given.
#[derive(Clone, Copy, Default)]
pub(crate) struct Escape;

impl Escaper for Escape {
    fn write_escaped_str<W: Write>(&self, mut out: W, text: &str) -> fmt::Result {
        out.write_str(&escape(text))
    }
}

/// Text as HTML, in which `backticks` set code.
#[derive(Template)]
#[template(path = "prose.html")]
pub(crate) struct Prose<'a> {
    pieces: Vec<(&'a str, bool)>,
}

impl<'a> Prose<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self {
            pieces: spans(text).collect(),
        }
    }
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

    fn html(text: &str) -> String {
        Prose::new(text).to_string()
    }

    #[test]
    fn backticks_set_code_and_an_odd_one_is_text() {
        assert_eq!(html("run `a < b` now"), "run <code>a &lt; b</code> now");
        assert_eq!(html("it`s `code` here"), "it<code>s </code>code` here");
        assert_eq!(html("5` and \u{0}"), "5` and ");
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
