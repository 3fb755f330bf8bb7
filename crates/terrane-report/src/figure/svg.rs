//! The sheet that charts are drawn on: its style, text that is measured and wrapped, marks and legends.

use super::palette::SERIES;
use crate::page::{COLOURS, Colour, properties};
use crate::text::escape;

/// Size of ordinary text.
pub(super) const TEXT: f64 = 12.5;
/// Distance between two lines of text.
pub(super) const LINE: f64 = 17.0;
/// Space at the edges of a sheet.
pub(super) const EDGE: f64 = 12.0;
const TITLE: f64 = 15.0;
const TITLE_LINE: f64 = 20.0;
/// Width of the sample beside a name in a legend.
const SAMPLE: f64 = 26.0;

/// The room a chart has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    Wide,
    Narrow,
}

impl Layout {
    pub(super) const BOTH: [Self; 2] = [Self::Wide, Self::Narrow];

    pub(super) fn width(self) -> f64 {
        match self {
            Self::Wide => 720.0,
            Self::Narrow => 360.0,
        }
    }

    fn suffix(self) -> &'static str {
        match self {
            Self::Wide => "",
            Self::Narrow => "-narrow",
        }
    }
}

/// What is painted in a colour of the page (selector, property, colour), and how else it is drawn.
const RULES: [(&str, &str, &str, &str); 13] = [
    ("", "background", "paper", ""),
    (
        "text",
        "fill",
        "ink",
        "font: 12.5px system-ui, -apple-system, 'Segoe UI', sans-serif; font-variant-numeric: tabular-nums;",
    ),
    (
        ".title",
        "fill",
        "ink",
        "font-size: 15px; font-weight: 600;",
    ),
    (".strong", "fill", "ink", "font-weight: 600;"),
    (".soft", "fill", "soft", ""),
    (".paper", "fill", "paper", ""),
    (".void", "fill", "line", ""),
    (
        ".halo",
        "stroke",
        "paper",
        "paint-order: stroke; stroke-width: 4; stroke-linejoin: round;",
    ),
    (".grid", "stroke", "line", ""),
    (".fine", "stroke", "line", "opacity: .5;"),
    (".axis", "stroke", "soft", "fill: none;"),
    (
        ".mark",
        "stroke",
        "paper",
        "fill: currentColor; stroke-width: .8;",
    ),
    (
        ".hollow",
        "fill",
        "paper",
        "stroke: currentColor; stroke-width: 1.6;",
    ),
];

/// What is painted in the colour of its series.
const SERIES_RULES: &str = "\
.chart .line { fill: none; stroke: currentColor; stroke-width: 2; stroke-linejoin: round; stroke-linecap: round; }
.chart .dash { stroke-linecap: butt; }
.chart .cloud { stroke: none; fill: currentColor; fill-opacity: .6; }
.chart .dots { fill: none; stroke: currentColor; stroke-width: 3; stroke-linecap: round; stroke-opacity: .65; }
.chart .leader { fill: none; stroke: currentColor; stroke-width: 1.2; }
.chart .bar { fill: currentColor; }
.chart .hit { fill: transparent; }
";

fn style() -> String {
    let mut style = properties(".chart", &COLOURS) + &properties(".chart", &SERIES);
    // A viewer that knows no custom properties keeps the first of two values.
    let paint = |property: &str, colour: &Colour| {
        format!(
            "{property}: {}; {property}: var(--{});",
            colour.light, colour.name
        )
    };
    for (selector, property, name, rest) in RULES {
        let colour = COLOURS.iter().find(|colour| colour.name == name);
        let paint = colour
            .map(|colour| paint(property, colour))
            .unwrap_or_default();
        style.push_str(&format!(".chart {selector} {{ {paint} {rest} }}\n"));
    }
    for colour in &SERIES {
        style.push_str(&format!(
            ".chart .{} {{ {} }}\n",
            colour.name,
            paint("color", colour)
        ));
    }
    style + SERIES_RULES
}

/// The class of a series, which gives it its colour.
pub(super) fn series_class(index: usize) -> &'static str {
    SERIES[index % SERIES.len()].name
}

/// Where a text is held.
#[derive(Debug, Clone, Copy)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// A chart that is being drawn.
#[derive(Debug)]
pub(super) struct Sheet {
    pub(super) layout: Layout,
    name: String,
    body: String,
}

impl Sheet {
    pub(super) fn new(name: &str, layout: Layout) -> Self {
        Self {
            layout,
            name: identifier(name),
            body: String::new(),
        }
    }

    /// An identifier that no other chart of a page has; the same in both layouts.
    pub(super) fn id(&self, part: &str) -> String {
        format!("{}-{part}", self.name)
    }

    /// Writes the title and returns its lower edge.
    pub(super) fn title(&mut self, title: &str) -> f64 {
        let lines = wrap(title, TITLE * 1.05, self.layout.width() - 2.0 * EDGE);
        for (index, line) in lines.iter().enumerate() {
            let y = EDGE + TITLE + TITLE_LINE * index as f64 - 1.0;
            self.text((EDGE, y), Anchor::Start, "title", line);
        }
        EDGE + TITLE_LINE * lines.len() as f64
    }

    pub(super) fn text(&mut self, (x, y): (f64, f64), anchor: Anchor, class: &str, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let class = if class.is_empty() {
            String::new()
        } else {
            format!(" class=\"{class}\"")
        };
        self.draw(&format!(
            "<text x=\"{}\" y=\"{}\"{anchor}{class}>{}</text>",
            coordinate(x),
            coordinate(y),
            escape(text)
        ));
    }

    /// Writes text of several lines and returns its lower edge.
    pub(super) fn paragraph(&mut self, top: f64, class: &str, text: &str) -> f64 {
        let lines = wrap(text, TEXT, self.layout.width() - 2.0 * EDGE);
        for (index, line) in lines.iter().enumerate() {
            let y = top + LINE * (index as f64 + 0.75);
            self.text((EDGE, y), Anchor::Start, class, line);
        }
        top + LINE * lines.len() as f64
    }

    pub(super) fn path(&mut self, class: &str, data: &str) {
        self.draw(&format!("<path class=\"{class}\" d=\"{data}\"/>"));
    }

    pub(super) fn rectangle(
        &mut self,
        class: &str,
        (x, y): (f64, f64),
        (width, height): (f64, f64),
    ) {
        self.draw(&format!(
            "<rect class=\"{class}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>",
            coordinate(x),
            coordinate(y),
            coordinate(width.max(0.0)),
            coordinate(height.max(0.0))
        ));
    }

    /// Adds a piece of SVG as it is.
    pub(super) fn draw(&mut self, svg: &str) {
        self.body.push_str(svg);
        self.body.push('\n');
    }

    /// Lays another sheet of the same layout on this one.
    pub(super) fn absorb(&mut self, other: Self) {
        self.body.push_str(&other.body);
    }

    /// Writes names, each beside a sample that `sample` draws at the given position, in as many lines as they need.
    /// Returns their lower edge.
    pub(super) fn legend(
        &mut self,
        top: f64,
        names: &[impl AsRef<str>],
        mut sample: impl FnMut(&mut Self, usize, [(f64, f64); 2]),
    ) -> f64 {
        let right = self.layout.width() - EDGE;
        let (mut x, mut y) = (EDGE, top + 0.5 * LINE);
        for (index, name) in names.iter().enumerate() {
            let name = shortened(name.as_ref(), TEXT, right - EDGE - SAMPLE - 6.0);
            let width = SAMPLE + 6.0 + text_width(&name, TEXT);
            if x > EDGE && x + width > right {
                (x, y) = (EDGE, y + LINE + 1.0);
            }
            sample(self, index, [(x, y), (x + SAMPLE, y)]);
            self.text((x + SAMPLE + 6.0, y + 4.3), Anchor::Start, "", &name);
            x += width + 18.0;
        }
        if names.is_empty() {
            top
        } else {
            y + 0.5 * LINE + 6.0
        }
    }

    /// The whole chart, of this height.
    pub(super) fn finish(self, title: &str, description: &str, height: f64) -> String {
        let (width, height) = (coordinate(self.layout.width()), coordinate(height));
        let id = format!("{}{}", self.name, self.layout.suffix());
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" viewBox=\"0 0 {width} {height}\" \
             role=\"img\" aria-labelledby=\"{id}-title {id}-text\">\n\
             <title id=\"{id}-title\">{}</title>\n<desc id=\"{id}-text\">{}</desc>\n<style>\n{}</style>\n\
             <rect class=\"paper\" width=\"{width}\" height=\"{height}\"/>\n{}</svg>\n",
            escape(title),
            escape(description),
            style(),
            self.body
        )
    }
}

/// A name with the letters that identifiers may have.
pub(super) fn identifier(name: &str) -> String {
    let letter = |letter: char| {
        if letter.is_ascii_alphanumeric() {
            letter
        } else {
            '-'
        }
    };
    name.chars().map(letter).collect()
}

/// A coordinate with a tenth of a pixel.
pub(super) fn coordinate(value: f64) -> String {
    let text = format!("{value:.1}");
    let text = text.strip_suffix(".0").unwrap_or(&text);
    if text == "-0" {
        "0".to_owned()
    } else {
        text.to_owned()
    }
}

/// About how wide a text is, rather too wide than too narrow: the font is the reader's.
pub(super) fn text_width(text: &str, size: f64) -> f64 {
    let letters = text.chars().map(|letter| match letter {
        'i' | 'j' | 'l' | 'I' | '.' | ',' | ':' | ';' | '\'' | '|' | ' ' => 0.35,
        'f' | 'r' | 't' | '(' | ')' | '[' | ']' | '/' | '-' => 0.44,
        '⁰'..='⁹' | '¹' | '²' | '³' | '⁻' => 0.42,
        'm' | 'w' | 'M' | 'W' | '@' | '%' => 0.98,
        'A'..='Z' => 0.72,
        '0'..='9' => 0.64,
        other if other.is_ascii() => 0.62,
        '…' | '\u{2e80}'.. => 1.0,
        _ => 0.75,
    });
    letters.sum::<f64>() * size
}

/// A text in lines that are not wider than `width` as far as its words allow; at least one line.
pub(super) fn wrap(text: &str, size: f64, width: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        if let Some(line) = lines.last_mut()
            && text_width(line, size) + text_width(word, size) + 0.35 * size <= width
        {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(shortened(word, size, width));
        }
    }
    if lines.is_empty() {
        lines.push(String::new());
    }
    lines
}

/// A text cut so that it is not wider than `width`.
pub(super) fn shortened(text: &str, size: f64, width: f64) -> String {
    if text_width(text, size) <= width {
        return text.to_owned();
    }
    let mut kept = String::new();
    for letter in text.chars() {
        kept.push(letter);
        if text_width(&kept, size) + text_width("…", size) > width {
            kept.pop();
            break;
        }
    }
    kept + "…"
}

/// A mark about a point: seven shapes to eight colours, so that the pair returns only after 56 series.
pub(super) fn marker(index: usize, (x, y): (f64, f64), radius: f64) -> String {
    let polygon = |corners: &[(f64, f64)]| -> String {
        let corners = corners.iter().enumerate().map(|(number, (east, south))| {
            let (x, y) = (
                coordinate(x + east * radius),
                coordinate(y + south * radius),
            );
            format!("{}{x} {y}", if number == 0 { 'M' } else { 'L' })
        });
        corners.collect::<String>() + "z"
    };
    match index % 7 {
        0 => {
            let (start, r, d) = (
                coordinate(x - radius),
                coordinate(radius),
                coordinate(2.0 * radius),
            );
            format!(
                "M{start} {}a{r} {r} 0 1 0 {d} 0a{r} {r} 0 1 0-{d} 0z",
                coordinate(y)
            )
        }
        1 => polygon(&[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)]),
        2 => polygon(&[(0.0, -1.2), (1.1, 0.8), (-1.1, 0.8)]),
        3 => polygon(&[(0.0, -1.3), (1.1, 0.0), (0.0, 1.3), (-1.1, 0.0)]),
        4 => polygon(&[(0.0, 1.2), (1.1, -0.8), (-1.1, -0.8)]),
        5 => {
            let plus = cross(0.42, 1.25);
            polygon(&plus)
        }
        _ => {
            let turned = cross(0.42, 1.3).map(|(east, south)| {
                let half = std::f64::consts::FRAC_1_SQRT_2;
                ((east - south) * half, (east + south) * half)
            });
            polygon(&turned)
        }
    }
}

/// The twelve corners of an upright cross.
fn cross(thin: f64, long: f64) -> [(f64, f64); 12] {
    [
        (-thin, -long),
        (thin, -long),
        (thin, -thin),
        (long, -thin),
        (long, thin),
        (thin, thin),
        (thin, long),
        (-thin, long),
        (-thin, thin),
        (-long, thin),
        (-long, -thin),
        (-thin, -thin),
    ]
}

/// A straight line between two points.
pub(super) fn stroke((x0, y0): (f64, f64), (x1, y1): (f64, f64)) -> String {
    format!(
        "M{} {}L{} {}",
        coordinate(x0),
        coordinate(y0),
        coordinate(x1),
        coordinate(y1)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_wrapped_at_words_and_cut_only_within_them() {
        let lines = wrap("one two three", TEXT, text_width("one two", TEXT) + 1.0);
        assert_eq!(lines, ["one two", "three"]);
        assert_eq!(wrap("", TEXT, 100.0), [""]);
        let cut = shortened("incomprehensibilities", TEXT, 60.0);
        assert!(cut.ends_with('…') && text_width(&cut, TEXT) <= 60.0);
    }

    #[test]
    fn coordinates_are_short() {
        assert_eq!(coordinate(12.0), "12");
        assert_eq!(coordinate(-0.04), "0");
        assert_eq!(coordinate(7.123), "7.1");
    }

    #[test]
    fn marks_and_colours_repeat_only_together() {
        let look = |index| (series_class(index), marker(index, (9.0, 9.0), 4.0));
        let looks: std::collections::BTreeSet<_> = (0..56).map(look).collect();
        assert_eq!(looks.len(), 56);
    }
}
