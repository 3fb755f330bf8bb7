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
use crate::bench::number::short;

const THICK: f64 = 17.0;
const GAP: f64 = 4.0;
const GROUP_GAP: f64 = 14.0;

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
            crate::bench::number::MISSING.to_owned()
        }
    }

    fn draw(&self, name: &str, title: &str, layout: Layout) -> String {
        let mut sheet = Sheet::new(name, layout);
        let top = sheet.title(title) + 6.0;
        let top = sheet.legend(top, &self.series, |sheet, index, [from, to]| {
            let class = format!("{} bar", series_class(index));
            sheet.rectangle(
                &class,
                (from.0 + 6.0, from.1 - 6.0),
                (to.0 - from.0 - 8.0, 12.0),
            );
        });
        let above = layout == Layout::Narrow;
        let label_width = |text: &str| text_width(text, TEXT);
        let widest_name = self
            .groups
            .iter()
            .map(|group| label_width(group.0))
            .fold(0.0, f64::max);
        let widest_value = self
            .values()
            .map(|value| label_width(&self.shown(value)))
            .fold(0.0, f64::max);
        let names = if above {
            0.0
        } else {
            widest_name.min(0.34 * layout.width()) + 10.0
        };
        let below_zero = self.values().any(|value| value < 0.0) && self.axis.scale == Scale::Linear;
        let left = EDGE + names + if below_zero { widest_value + 8.0 } else { 0.0 };
        let right = layout.width() - EDGE - widest_value - 8.0;
        let most = if above { 4 } else { 6 };
        let ruler = Ruler::of_lengths(self.axis.scale, self.values(), most);
        let start = left + ruler.origin() * (right - left);

        let mut bars = Sheet::new(name, layout);
        let mut y = top + 6.0;
        for (group, members) in &self.groups {
            let thickness = members.len() as f64 * (THICK + GAP) - GAP;
            if above {
                let label = shortened(group, TEXT, layout.width() - 2.0 * EDGE);
                bars.text((EDGE, y + 0.75 * LINE), Anchor::Start, "", &label);
                y += LINE + 2.0;
            } else {
                let lines = wrap(group, TEXT, names - 10.0);
                let first = y + 0.5 * thickness - 0.5 * LINE * (lines.len() as f64 - 1.0) + 4.3;
                for (index, line) in lines.iter().enumerate() {
                    let place = (EDGE + names - 10.0, first + LINE * index as f64);
                    bars.text(place, Anchor::End, "", line);
                }
            }
            for bar in members {
                let end = ruler
                    .place(bar.value)
                    .map(|place| left + place * (right - left));
                self.draw_bar(&mut bars, bar, (start, end.unwrap_or(start)), y);
                y += THICK + GAP;
            }
            y += GROUP_GAP - GAP;
        }
        let bottom = y - GROUP_GAP + 8.0;
        for tick in &ruler.ticks {
            let Some(place) = ruler.place(tick.at) else {
                continue;
            };
            let x = left + place * (right - left);
            let class = if tick.label.is_empty() {
                "fine"
            } else {
                "grid"
            };
            sheet.path(class, &stroke((x, top), (x, bottom)));
            sheet.text((x, bottom + 16.0), Anchor::Middle, "soft", &tick.label);
        }
        sheet.absorb(bars);
        sheet.path("axis", &stroke((start, top), (start, bottom)));
        let middle = 0.5 * (left + right);
        sheet.text(
            (middle, bottom + 20.0 + LINE),
            Anchor::Middle,
            "soft",
            &self.axis.label,
        );
        sheet.finish(title, &self.description(), bottom + 20.0 + LINE + EDGE)
    }

    fn draw_bar(&self, sheet: &mut Sheet, bar: &Bar, (start, end): (f64, f64), y: f64) {
        let class = series_class(bar.series);
        let value = self.shown(bar.value);
        let (from, to) = (start.min(end), start.max(end));
        sheet.draw(&format!(
            "<path class=\"{class} bar\" d=\"M{} {}H{}V{}H{}z\"><title>{}</title></path>",
            coordinate(from),
            coordinate(y),
            coordinate(to.max(from + 0.5)),
            coordinate(y + THICK),
            coordinate(from),
            crate::page::escape(&format!("{}: {value}", bar.name))
        ));
        let (x, anchor) = if end < start {
            (from - 6.0, Anchor::End)
        } else {
            (to + 6.0, Anchor::Start)
        };
        sheet.text((x, y + 0.5 * THICK + 4.3), anchor, "", &value);
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
