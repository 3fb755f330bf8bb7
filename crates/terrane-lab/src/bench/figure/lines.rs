//! Line and scatter charts.

use super::scale::{Ruler, showable};
use super::svg::{
    Anchor, EDGE, LINE, Layout, Sheet, TEXT, coordinate, marker, series_class, stroke, text_width,
};
use super::{Axis, Figure, Series, Style};
use crate::bench::number::short;

/// A name at the end of a line needs its line to end within this share of the right edge.
const NEAR_END: f64 = 0.12;
/// More series than this have a legend.
const MOST_DIRECT: usize = 8;
/// From this many points on, marks let others shine through.
const CLOUD: usize = 80;
/// From this many points on, marks are dots.
const DOTS: usize = 1000;
/// Up to this many points, each says its values when pointed at.
const MOST_HINTS: usize = 200;
/// Marks on a line that has many points.
const SPARSE: usize = 6;

/// Draws series of points over two axes.
///
/// Points that are not finite, or not above zero on a logarithmic axis, are left out, which the chart says.
pub fn line_chart(
    name: &str,
    title: &str,
    caption: &str,
    x: Axis,
    y: Axis,
    series: &[Series],
) -> Figure {
    let chart = Chart { x, y, series };
    let [svg, narrow] = Layout::BOTH.map(|layout| chart.draw(name, title, layout));
    Figure {
        name: name.to_owned(),
        title: title.to_owned(),
        caption: caption.to_owned(),
        svg,
        narrow,
    }
}

struct Chart<'a> {
    x: Axis,
    y: Axis,
    series: &'a [Series],
}

/// The area that points are drawn in, and where values stand in it.
struct Frame {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
    x: Ruler,
    y: Ruler,
}

impl Frame {
    fn across(&self, value: f64) -> Option<f64> {
        let place = self.x.place(value)?;
        Some(self.left + place * (self.right - self.left))
    }

    fn down(&self, value: f64) -> Option<f64> {
        let place = self.y.place(value)?;
        Some(self.bottom - place * (self.bottom - self.top))
    }

    fn point(&self, (x, y): (f64, f64)) -> Option<(f64, f64)> {
        Some((self.across(x)?, self.down(y)?))
    }
}

impl Chart<'_> {
    fn draw(&self, name: &str, title: &str, layout: Layout) -> String {
        let mut sheet = Sheet::new(name, layout);
        let mut top = sheet.title(title) + 6.0;
        let (most_x, plot_height) = match layout {
            Layout::Wide => (8, 300.0),
            Layout::Narrow => (5, 230.0),
        };
        let values = || self.shown().map(|(_, point)| point);
        let x = Ruler::around(self.x.scale, values().map(|point| point.0), most_x);
        let y = Ruler::around(self.y.scale, values().map(|point| point.1), 6);
        let direct = layout == Layout::Wide && self.ends_at_the_right(&x);
        if !direct {
            top = self.legend(&mut sheet, top);
        }
        top = sheet.paragraph(top, "soft", &self.y.label) + 8.0;
        let label_width = |name: &str| text_width(name, TEXT);
        let widest = y
            .ticks
            .iter()
            .map(|tick| label_width(&tick.label))
            .fold(0.0, f64::max);
        let names = self.series.iter().map(|series| label_width(&series.name));
        let room = if direct {
            names.fold(0.0, f64::max) + 24.0
        } else {
            6.0
        };
        let frame = Frame {
            left: EDGE + widest + 8.0,
            right: layout.width() - EDGE - room,
            top,
            bottom: top + plot_height,
            x,
            y,
        };
        draw_grid(&mut sheet, &frame);
        for (index, series) in self.series.iter().enumerate() {
            draw_series(&mut sheet, &frame, index, series, self.series.len() > 1);
        }
        if direct {
            self.name_ends(&mut sheet, &frame);
        }
        self.hints(&mut sheet, &frame);
        if self.shown().next().is_none() {
            let middle = (
                0.5 * (frame.left + frame.right),
                0.5 * (frame.top + frame.bottom),
            );
            sheet.text(middle, Anchor::Middle, "soft", "no values");
        }
        let mut bottom = frame.bottom + 22.0 + LINE;
        let middle = 0.5 * (frame.left + frame.right);
        sheet.text((middle, bottom), Anchor::Middle, "soft", &self.x.label);
        bottom += 8.0;
        if let Some(note) = self.left_out() {
            bottom = sheet.paragraph(bottom + 2.0, "soft", &note);
        }
        sheet.finish(title, &self.description(), bottom + EDGE - 4.0)
    }

    /// Points that both axes can show, with their series.
    fn shown(&self) -> impl Iterator<Item = (usize, (f64, f64))> {
        let all = self.series.iter().enumerate();
        let all =
            all.flat_map(|(index, series)| series.points.iter().map(move |&point| (index, point)));
        all.filter(|(_, point)| self.shows(*point))
    }

    fn shows(&self, (x, y): (f64, f64)) -> bool {
        showable(self.x.scale, x) && showable(self.y.scale, y)
    }

    fn left_out(&self) -> Option<String> {
        let all: usize = self.series.iter().map(|series| series.points.len()).sum();
        match all - self.shown().count() {
            0 => None,
            1 => Some("One point is not shown: it has no place on these axes.".to_owned()),
            count => Some(format!(
                "{count} points are not shown: they have no place on these axes."
            )),
        }
    }

    fn description(&self) -> String {
        let mut text = format!("{} against {}.", self.y.label, self.x.label);
        for series in self.series {
            let points: Vec<_> = series
                .points
                .iter()
                .filter(|point| self.shows(**point))
                .collect();
            let (Some(first), Some(last)) = (points.first(), points.last()) else {
                text.push_str(&format!(" {}: no values.", series.name));
                continue;
            };
            text.push_str(&format!(
                " {}: {} points, from {} at {} to {} at {}.",
                series.name,
                points.len(),
                short(first.1),
                short(first.0),
                short(last.1),
                short(last.0)
            ));
        }
        text
    }

    /// Whether every series is a line that ends near the right edge, so that its name can stand there.
    fn ends_at_the_right(&self, x: &Ruler) -> bool {
        let ends = |series: &Series| {
            let shown = series.points.iter().filter(|point| self.shows(**point));
            let last = shown.last().and_then(|point| x.place(point.0));
            series.style != Style::Points && last.is_some_and(|place| place >= 1.0 - NEAR_END)
        };
        (2..=MOST_DIRECT).contains(&self.series.len()) && self.series.iter().all(ends)
    }

    fn legend(&self, sheet: &mut Sheet, top: f64) -> f64 {
        if self.series.len() < 2 {
            return top;
        }
        let names: Vec<&str> = self
            .series
            .iter()
            .map(|series| series.name.as_str())
            .collect();
        sheet.legend(top, &names, |sheet, index, [from, to]| {
            let style = self.series[index].style;
            let class = series_class(index);
            if style != Style::Points {
                draw_line(sheet, index, style, &stroke(from, to));
            }
            if style != Style::Dashed {
                let middle = (0.5 * (from.0 + to.0), from.1);
                sheet.path(
                    &format!("{class} {}", mark_class(index)),
                    &marker(index, middle, 4.0),
                );
            }
        })
    }

    /// Writes the names where the lines end, apart from each other, each joined with its line.
    fn name_ends(&self, sheet: &mut Sheet, frame: &Frame) {
        let mut ends: Vec<(usize, (f64, f64), f64)> = Vec::new();
        for (index, series) in self.series.iter().enumerate() {
            let last = series
                .points
                .iter()
                .rev()
                .find_map(|&point| frame.point(point));
            ends.extend(last.map(|point| (index, point, point.1)));
        }
        ends.sort_by(|left, right| left.1.1.total_cmp(&right.1.1));
        let mut lowest = frame.top;
        for end in &mut ends {
            end.2 = end.2.max(lowest);
            lowest = end.2 + LINE;
        }
        let mut highest = frame.bottom;
        for end in ends.iter_mut().rev() {
            end.2 = end.2.min(highest);
            highest = end.2 - LINE;
        }
        for (index, (x, y), label) in ends {
            let start = frame.right + 14.0;
            let leader = format!(
                "{}L{} {}",
                stroke((x + 5.0, y), (frame.right + 3.0, y)),
                coordinate(start - 3.0),
                coordinate(label)
            );
            sheet.path(&format!("{} leader", series_class(index)), &leader);
            sheet.text(
                (start, label + 4.3),
                Anchor::Start,
                "",
                &self.series[index].name,
            );
        }
    }

    /// Lets every point say its values, where there are not too many.
    fn hints(&self, sheet: &mut Sheet, frame: &Frame) {
        let shown: Vec<_> = self.shown().collect();
        if shown.len() > MOST_HINTS {
            return;
        }
        for (index, point) in shown {
            let Some((x, y)) = frame.point(point) else {
                continue;
            };
            let hint = format!(
                "{}: {} at {}",
                self.series[index].name,
                short(point.1),
                short(point.0)
            );
            sheet.draw(&format!(
                "<circle class=\"hit\" cx=\"{}\" cy=\"{}\" r=\"7\"><title>{}</title></circle>",
                coordinate(x),
                coordinate(y),
                crate::page::escape(&hint)
            ));
        }
    }
}

fn draw_grid(sheet: &mut Sheet, frame: &Frame) {
    let mut free_from = f64::MIN;
    for tick in &frame.x.ticks {
        let Some(x) = frame.across(tick.at) else {
            continue;
        };
        let half = 0.5 * text_width(&tick.label, TEXT);
        let labelled = !tick.label.is_empty();
        let class = if labelled { "grid" } else { "fine" };
        sheet.path(class, &stroke((x, frame.top), (x, frame.bottom)));
        let fits = x - half >= free_from && x + half <= sheet.layout.width() - 2.0;
        if labelled && fits {
            sheet.text(
                (x, frame.bottom + 18.0),
                Anchor::Middle,
                "soft",
                &tick.label,
            );
            free_from = x + half + 6.0;
        }
    }
    let mut free_below = f64::MAX;
    for tick in &frame.y.ticks {
        let Some(y) = frame.down(tick.at) else {
            continue;
        };
        let labelled = !tick.label.is_empty();
        let class = if labelled { "grid" } else { "fine" };
        sheet.path(class, &stroke((frame.left, y), (frame.right, y)));
        if labelled && y + 0.5 * TEXT <= free_below {
            sheet.text(
                (frame.left - 8.0, y + 4.3),
                Anchor::End,
                "soft",
                &tick.label,
            );
            free_below = y - 0.5 * TEXT;
        }
    }
    let corner = format!(
        "M{} {}V{}H{}",
        coordinate(frame.left),
        coordinate(frame.top),
        coordinate(frame.bottom),
        coordinate(frame.right)
    );
    sheet.path("axis", &corner);
}

fn draw_series(sheet: &mut Sheet, frame: &Frame, index: usize, series: &Series, several: bool) {
    let mut runs: Vec<Vec<(f64, f64)>> = vec![Vec::new()];
    for point in series.points.iter().map(|&point| frame.point(point)) {
        match (point, runs.last_mut()) {
            (Some(point), Some(run)) => run.push(point),
            _ => runs.push(Vec::new()),
        }
    }
    let all: Vec<(f64, f64)> = runs.iter().flatten().copied().collect();
    if series.style == Style::Points {
        draw_marks(sheet, index, &all);
        return;
    }
    let mut data = String::new();
    for run in &runs {
        for (number, (x, y)) in run.iter().enumerate() {
            let command = if number == 0 { 'M' } else { 'L' };
            data.push_str(&format!("{command}{} {}", coordinate(*x), coordinate(*y)));
        }
    }
    draw_line(sheet, index, series.style, &data);
    // A point between gaps would be a line of no length.
    let alone = runs.iter().filter(|run| run.len() == 1).flatten();
    let mut marks: Vec<(f64, f64)> = match series.style {
        Style::LinePoints => all.clone(),
        Style::Line if several => sparse(&all, index),
        _ => Vec::new(),
    };
    if series.style != Style::LinePoints {
        marks.extend(alone);
    }
    draw_marks(sheet, index, &marks);
}

/// A few points of a line, others for each series.
fn sparse(points: &[(f64, f64)], index: usize) -> Vec<(f64, f64)> {
    let every = points.len().div_ceil(SPARSE).max(1);
    let first = (index * every / 4) % every;
    points.iter().skip(first).step_by(every).copied().collect()
}

fn draw_line(sheet: &mut Sheet, index: usize, style: Style, data: &str) {
    const DASHES: [&str; 4] = ["7 4", "2 3", "9 3 2 3", "12 5"];
    if data.is_empty() {
        return;
    }
    let class = series_class(index);
    if style == Style::Dashed {
        let dashes = DASHES[index % DASHES.len()];
        sheet.draw(&format!(
            "<path class=\"{class} line dash\" stroke-dasharray=\"{dashes}\" d=\"{data}\"/>"
        ));
    } else {
        sheet.path(&format!("{class} line"), data);
    }
}

fn draw_marks(sheet: &mut Sheet, index: usize, points: &[(f64, f64)]) {
    if points.is_empty() {
        return;
    }
    let class = series_class(index);
    if points.len() >= DOTS {
        let dots = points
            .iter()
            .map(|(x, y)| format!("M{} {}h0", coordinate(*x), coordinate(*y)));
        sheet.path(&format!("{class} dots"), &dots.collect::<String>());
        return;
    }
    let (radius, kind) = if points.len() >= CLOUD {
        (2.6, "cloud")
    } else {
        (4.0, mark_class(index))
    };
    let marks: String = points
        .iter()
        .map(|&point| marker(index, point, radius))
        .collect();
    sheet.path(&format!("{class} {kind}"), &marks);
}

/// Marks are full, or hollow once the colours come round.
fn mark_class(index: usize) -> &'static str {
    if (index / 8).is_multiple_of(2) {
        "mark"
    } else {
        "hollow"
    }
}
