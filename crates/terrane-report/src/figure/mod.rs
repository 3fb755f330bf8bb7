//! Charts of a benchmark, as SVG that follows the reader's light or dark scheme.
//!
//! The charts are drawn here because plotting libraries (`plotters`, `charming`, `plotly`) write colours into every
//! shape, or need a script to draw: their pictures stay white on a dark page and cannot be read alone. These hold
//! their own style sheet, whose colours are custom properties that change with `prefers-color-scheme`, so a chart looks
//! the same on a page and as a lone `.svg`.
//!
//! Every chart is laid out twice: for wide screens ([`Figure::svg`], the one that becomes a file) and for a phone
//! ([`Figure::narrow`], only on pages), with text of the same size in both.

mod bars;
mod colour_bar;
mod lines;
mod palette;
mod panels;
mod scale;
mod svg;

pub use bars::bar_chart;
pub use lines::line_chart;
pub use panels::{Panel, PanelRow, panels};

pub use crate::picture::Colours;

use askama::Template;

use crate::text::Prose;

/// A chart with its name and what there is to say about it.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// Stem of its file, such as `frontier`.
    pub name: String,
    /// Its heading, which the chart shows.
    pub title: String,
    /// What it shows and how it was measured; `backticks` set code.
    pub caption: String,
    /// The chart, complete in itself.
    pub svg: String,
    /// The chart for narrow screens; it may borrow pictures from [`Figure::svg`], so it stands beside it or not at all.
    pub narrow: String,
}

impl Figure {
    /// The chart in both layouts, of which the reader's screen shows one, with its caption.
    pub(crate) fn html(&self) -> String {
        let template = FigureTemplate {
            figure: self,
            id: svg::identifier(&self.name),
        };
        template.render().expect("memory takes every figure")
    }
}

#[derive(Template)]
#[template(path = "figure.html")]
struct FigureTemplate<'a> {
    figure: &'a Figure,
    id: String,
}

/// How a series is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// A line, for many points; a few marks tell it from others.
    Line,
    /// Marks only.
    Points,
    /// A line with a mark at every point.
    LinePoints,
    /// A dashed line, for what others have reported or what cannot be passed.
    Dashed,
}

/// Points that belong together.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// What the legend calls it.
    pub name: String,
    /// Its points in the order in which a line joins them; a line breaks where one is not finite.
    pub points: Vec<(f64, f64)>,
    /// How it is drawn.
    pub style: Style,
}

impl Series {
    /// A series of this name, style and points.
    pub fn new(name: &str, style: Style, points: Vec<(f64, f64)>) -> Self {
        Self {
            name: name.to_owned(),
            points,
            style,
        }
    }
}

/// How an axis is divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Equal steps for equal differences.
    Linear,
    /// Equal steps for equal factors; values that are not above zero cannot be shown and are left out.
    Logarithmic,
}

/// An axis of a chart.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// What it measures, with the unit.
    pub label: String,
    /// How it is divided.
    pub scale: Scale,
}

impl Axis {
    /// An axis with equal steps for equal differences.
    pub fn linear(label: &str) -> Self {
        Self {
            label: label.to_owned(),
            scale: Scale::Linear,
        }
    }

    /// An axis with equal steps for equal factors.
    pub fn logarithmic(label: &str) -> Self {
        Self {
            label: label.to_owned(),
            scale: Scale::Logarithmic,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a chart is XML that can be drawn, in both layouts.
    pub(super) fn assert_sound(figure: &Figure) {
        for svg in [&figure.svg, &figure.narrow] {
            let document = roxmltree::Document::parse(svg).unwrap();
            let root = document.root_element();
            assert_eq!(root.attribute("role"), Some("img"));
            assert_eq!(root.attribute("width"), None);
            for part in ["title", "desc"] {
                assert!(
                    root.children().any(|node| node.has_tag_name(part)),
                    "{part}"
                );
            }
            for node in document.descendants() {
                for attribute in node
                    .attributes()
                    .filter(|attribute| attribute.name() != "href")
                {
                    let value = attribute.value();
                    assert!(
                        !value.contains("NaN") && !value.contains("inf"),
                        "{attribute:?}"
                    );
                }
            }
        }
    }

    /// All words of a chart.
    pub(super) fn texts(svg: &str) -> Vec<String> {
        let document = roxmltree::Document::parse(svg).unwrap();
        let nodes = document
            .descendants()
            .filter(|node| node.has_tag_name("text"));
        nodes
            .filter_map(|node| node.text().map(str::to_owned))
            .collect()
    }

    #[test]
    fn charts_follow_the_readers_scheme_and_hold_no_markup_of_others() {
        let points = vec![(1.0, 1.0), (2.0, 2.0)];
        let series = [Series::new("<script>&\"", Style::Line, points)];
        let figure = line_chart(
            "a b",
            "a < b & c",
            "see `x < y`",
            Axis::linear("<x>"),
            Axis::linear("y\u{1}"),
            &series,
        );
        assert_sound(&figure);
        assert!(figure.svg.contains("@media (prefers-color-scheme: dark)"));
        assert!(texts(&figure.svg).contains(&"a < b & c".to_owned()));
        let html = figure.html();
        assert!(!html.contains("<script>") && html.contains("<code>x &lt; y</code>"));
        assert!(html.contains("id=\"figure-a-b\""));
    }
}
