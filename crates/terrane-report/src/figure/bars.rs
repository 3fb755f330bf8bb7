//! Grouped bars with their values.
//!
//! Bars lie: their names are read without turning the head, their values stand at their ends, and a chart of many grows
//! downwards instead of being crowded, on a phone as on a wide screen.

use super::scale::{Ruler, minus, showable};
use super::svg::{
    Anchor, EDGE, LINE, Layout, Sheet, TEXT, coordinate, series_class, shortened, stroke,
    text_width, wrap,
};
use super::{Axis, Figure, Scale};
use crate::number::{MISSING, short};
use crate::text::escape;

const THICK: f64 = 17.0;
const GAP: f64 = 4.0;
const GROUP_GAP: f64 = 14.0;
/// Share of the width that names beside the bars may take.
const BESIDE: f64 = 0.34;

/// Draws groups of named bars with their values; bars of one name have one colour in all groups.
///
/// A value that is not finite, or not above zero on a logarithmic axis, has no bar; a dash stands for it.
pub fn bar_chart(
    name: &str,
    title: &str,
    caption: &str,
    y: Axis,
    groups: &[(String, Vec<(String, f64)>)],
) -> Figure {
    let chart = Chart::new(y, groups);
    let [svg, narrow] = Layout::BOTH.map(|layout| chart.draw(name, title, layout));
    Figure {
        name: name.to_owned(),
        title: title.to_owned(),
        caption: caption.to_owned(),
        svg,
        narrow,
    }
}

/// One bar: the series that colours it, and its value.
struct Bar<'a> {
    series: usize,
    name: &'a str,
    value: f64,
}

/// Where names, bars and values stand.
struct Frame {
    left: f64,
    right: f64,
    /// Width of the names at the left.
    names: f64,
    /// Whether names stand above their bars instead.
    names_above: bool,
    ruler: Ruler,
}

impl Frame {
    fn position(&self, value: f64) -> Option<f64> {
        let position = self.ruler.position(value)?;
        Some(self.left + position * (self.right - self.left))
    }

    /// Where bars start.
    fn start(&self) -> f64 {
        self.left + self.ruler.origin() * (self.right - self.left)
    }

    fn draw_grid(&self, sheet: &mut Sheet, top: f64, bottom: f64) {
        let mut free_from = 0.0;
        for tick in &self.ruler.ticks {
            let Some(x) = self.position(tick.at) else {
                continue;
            };
            let half = 0.5 * text_width(&tick.label, TEXT);
            let class = if half > 0.0 { "grid" } else { "fine" };
            sheet.path(class, &stroke((x, top), (x, bottom)));
            if half > 0.0 && x - half >= free_from {
                sheet.text((x, bottom + 16.0), Anchor::Middle, "soft", &tick.label);
                free_from = x + half + 6.0;
            }
        }
    }
}

struct Chart<'a> {
    axis: Axis,
    /// Names of the colours; empty where each bar has its own name beside it.
    series: Vec<&'a str>,
    groups: Vec<(&'a str, Vec<Bar<'a>>)>,
}

impl<'a> Chart<'a> {
    fn new(axis: Axis, groups: &'a [(String, Vec<(String, f64)>)]) -> Self {
        let mut series: Vec<&str> = Vec::new();
        for (name, _) in groups.iter().flat_map(|group| &group.1) {
            if !series.contains(&name.as_str()) {
                series.push(name);
            }
        }
        if let [(_, bars)] = groups {
            // One group: its bars are rows of their own.
            let rows = bars.iter().map(|(name, value)| {
                let bar = Bar {
                    series: 0,
                    name: "",
                    value: *value,
                };
                (name.as_str(), vec![bar])
            });
            return Self {
                axis,
                series: Vec::new(),
                groups: rows.collect(),
            };
        }
        let groups = groups.iter().map(|(group, bars)| {
            let bars = bars.iter().map(|(name, value)| Bar {
                series: series.iter().position(|known| known == name).unwrap_or(0),
                name,
                value: *value,
            });
            (group.as_str(), bars.collect())
        });
        let groups = groups.collect();
        if series.len() < 2 {
            series.clear();
        }
        Self {
            axis,
            series,
            groups,
        }
    }

    fn values(&self) -> impl Iterator<Item = f64> + Clone {
        self.groups
            .iter()
            .flat_map(|group| group.1.iter().map(|bar| bar.value))
    }

    fn shown(&self, value: f64) -> String {
        if showable(self.axis.scale, value) || self.axis.scale == Scale::Linear {
            minus(&short(value))
        } else {
            MISSING.to_owned()
        }
    }

    fn draw(&self, name: &str, title: &str, layout: Layout) -> String {
        let mut sheet = Sheet::new(name, layout);
        let top = sheet.title(title) + 6.0;
        let top = sheet.legend(top, &self.series, |sheet, index, [from, to]| {
            let class = format!("{} bar", series_class(index));
            let (corner, width) = ((from.0, from.1 - 6.0), to.0 - from.0 - 4.0);
            sheet.rectangle(&class, corner, (width, 12.0));
        });
        let frame = self.frame(layout);
        // The grid lies below the bars, but how far down it reaches is known only after them.
        let mut bars = Sheet::new(name, layout);
        let mut y = top + 6.0;
        for (group, members) in &self.groups {
            y = self.draw_group(&mut bars, &frame, group, members, y) + GROUP_GAP;
        }
        let bottom = y - GROUP_GAP + 8.0;
        frame.draw_grid(&mut sheet, top, bottom);
        let start = frame.start();
        sheet.path("axis", &stroke((start, top), (start, bottom)));
        sheet.absorb(bars);
        let label = (0.5 * (frame.left + frame.right), bottom + 20.0 + LINE);
        sheet.text(label, Anchor::Middle, "soft", &self.axis.label);
        sheet.finish(title, &self.description(), label.1 + EDGE)
    }

    fn frame(&self, layout: Layout) -> Frame {
        let widest = |texts: &mut dyn Iterator<Item = String>| {
            let widths = texts.map(|text| text_width(&text, TEXT));
            widths.fold(0.0, f64::max)
        };
        let name = widest(&mut self.groups.iter().map(|group| group.0.to_owned()));
        let value = widest(&mut self.values().map(|value| self.shown(value))) + 8.0;
        let names_above = layout == Layout::Narrow && name > BESIDE * layout.width();
        let names = if names_above {
            0.0
        } else {
            name.min(BESIDE * layout.width())
        };
        let space = if names > 0.0 { 10.0 } else { 0.0 };
        let below = self.axis.scale == Scale::Linear && self.values().any(|value| value < 0.0);
        let most = match layout {
            Layout::Wide => 6,
            Layout::Narrow => 4,
        };
        Frame {
            left: EDGE + names + space + if below { value } else { 0.0 },
            right: layout.width() - EDGE - value,
            names,
            names_above,
            ruler: Ruler::of_lengths(self.axis.scale, self.values(), most),
        }
    }

    /// Draws a group's name and bars and returns their lower edge.
    fn draw_group(
        &self,
        sheet: &mut Sheet,
        frame: &Frame,
        name: &str,
        bars: &[Bar],
        top: f64,
    ) -> f64 {
        let thickness = (bars.len() as f64 * (THICK + GAP) - GAP).max(THICK);
        let (mut y, mut bottom) = (top, top + thickness);
        if frame.names_above {
            let name = shortened(name, TEXT, sheet.layout.width() - 2.0 * EDGE);
            // Beside the axis, not on it.
            let x = EDGE + if frame.start() < EDGE + 1.0 { 5.0 } else { 0.0 };
            sheet.text((x, top + 0.75 * LINE), Anchor::Start, "halo", &name);
            y += LINE + 1.0;
            bottom += LINE + 1.0;
        } else {
            let lines = wrap(name, TEXT, frame.names);
            let height = LINE * lines.len() as f64;
            bottom = bottom.max(top + height);
            y += 0.5 * (height - thickness).max(0.0);
            let first = 0.5 * (top + bottom - height) + 0.75 * LINE;
            for (index, line) in lines.iter().enumerate() {
                let position = (EDGE + frame.names, first + LINE * index as f64);
                sheet.text(position, Anchor::End, "", line);
            }
        }
        for bar in bars {
            self.draw_bar(sheet, bar, frame.start(), frame.position(bar.value), y);
            y += THICK + GAP;
        }
        bottom
    }

    /// Draws a bar with its value at its end; without an end there is only a dash.
    fn draw_bar(&self, sheet: &mut Sheet, bar: &Bar, start: f64, end: Option<f64>, y: f64) {
        let value = self.shown(bar.value);
        if let Some(end) = end {
            // A bar of no length is still seen.
            let (from, to) = (start.min(end), start.max(end).max(start + 0.5));
            sheet.draw(&format!(
                "<path class=\"{} bar\" d=\"M{} {}H{}V{}H{}z\"><title>{}</title></path>",
                series_class(bar.series),
                coordinate(from),
                coordinate(y),
                coordinate(to),
                coordinate(y + THICK),
                coordinate(from),
                escape(format!("{}: {value}", bar.name).trim_start_matches(": "))
            ));
        }
        let end = end.unwrap_or(start);
        let (x, anchor) = if end < start {
            (end - 6.0, Anchor::End)
        } else {
            (end + 6.0, Anchor::Start)
        };
        sheet.text((x, y + 0.5 * THICK + 4.3), anchor, "halo", &value);
    }

    fn description(&self) -> String {
        let mut text = format!("{}.", self.axis.label);
        for (group, bars) in &self.groups {
            let bars: Vec<String> = bars
                .iter()
                .map(|bar| {
                    format!("{} {}", bar.name, self.shown(bar.value))
                        .trim()
                        .to_owned()
                })
                .collect();
            text.push_str(&format!(" {group}: {}.", bars.join(", ")));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::tests::{assert_sound, texts};

    fn group(name: &str, bars: &[(&str, f64)]) -> (String, Vec<(String, f64)>) {
        let bars = bars
            .iter()
            .map(|(name, value)| ((*name).to_owned(), *value));
        (name.to_owned(), bars.collect())
    }

    #[test]
    fn every_bar_has_its_value_and_every_colour_its_name() {
        let groups = [
            group("flat", &[("fit", 0.081), ("joint", 0.02)]),
            group("steep", &[("fit", 1.28), ("joint", f64::NAN)]),
        ];
        let figure = bar_chart("gap", "Gap", "", Axis::linear("RMSE in m"), &groups);
        assert_sound(&figure);
        for layout in [&figure.svg, &figure.narrow] {
            assert_eq!(
                layout.matches("bar\" d=").count(),
                3,
                "no bar without a value"
            );
            let texts = texts(layout);
            for text in [
                "flat", "steep", "fit", "joint", "0.081", "0.02", "1.28", "–",
            ] {
                assert!(
                    texts.iter().any(|shown| shown == text),
                    "{text} in {texts:?}"
                );
            }
        }
    }

    #[test]
    fn one_group_needs_no_legend() {
        let groups = [group("", &[("p = 8", 1.2), ("p = 32", -3.4)])];
        let figure = bar_chart("p", "Patches", "", Axis::linear("dB"), &groups);
        let texts = texts(&figure.svg);
        assert_eq!(texts.iter().filter(|text| *text == "p = 8").count(), 1);
        assert!(texts.contains(&"−3.4".to_owned()));
    }

    #[test]
    fn any_values_make_a_chart() {
        let values = [0.0, -1.0, f64::NAN, f64::INFINITY, f64::MAX, 5e-324];
        for axis in [Axis::linear("y"), Axis::logarithmic("y")] {
            assert_sound(&bar_chart("none", "None", "", axis.clone(), &[]));
            let empty = [group("a", &[]), group("b", &[])];
            assert_sound(&bar_chart("empty", "Empty", "", axis.clone(), &empty));
            for value in values {
                let groups = [
                    group("a", &[("x", value)]),
                    group("b", &[("x", 1.0), ("y", value)]),
                ];
                assert_sound(&bar_chart("odd", "Odd", "", axis.clone(), &groups));
            }
        }
    }
}
