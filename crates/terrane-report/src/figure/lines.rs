//! Line and scatter charts.

use super::scale::{Ruler, showable};
use super::svg::{
    Anchor, EDGE, LINE, Layout, Sheet, TEXT, coordinate, marker, series_class, stroke, text_width,
};
use super::{Axis, Figure, Series, Style};
use crate::number::short;
use crate::text::escape;

/// A name at the end of a line needs its line to end within this share of the right edge.
const NEAR_END: f64 = 0.12;
/// More series than this, or longer names, have a legend.
const MAX_DIRECT: usize = 8;
const WIDEST_DIRECT: f64 = 200.0;
/// From this many points on, marks let others shine through.
const CLOUD: usize = 80;
/// From this many points on, marks are dots.
const DOTS: usize = 1000;
/// Up to this many points, each shows its values under the pointer.
const MAX_HINTS: usize = 200;
/// Marks on a line that has many points.
const SPARSE: usize = 6;

/// Draws series of points over two axes.
///
/// Points that are not finite, or not above zero on a logarithmic axis, are left out, and counted in a note.
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
        let position = self.x.position(value)?;
        Some(self.left + position * (self.right - self.left))
    }

    fn down(&self, value: f64) -> Option<f64> {
        let position = self.y.position(value)?;
        Some(self.bottom - position * (self.bottom - self.top))
    }

    fn point(&self, (x, y): (f64, f64)) -> Option<(f64, f64)> {
        Some((self.across(x)?, self.down(y)?))
    }
}

impl Chart<'_> {
    fn draw(&self, name: &str, title: &str, layout: Layout) -> String {
        let mut sheet = Sheet::new(name, layout);
        let mut top = sheet.title(title) + 6.0;
        let (max_x_ticks, plot_height) = match layout {
            Layout::Wide => (8, 300.0),
            Layout::Narrow => (5, 230.0),
        };
        let values = || self.shown().map(|(_, point)| point);
        let x = Ruler::around(self.x.scale, values().map(|point| point.0), max_x_ticks);
        let y = Ruler::around(self.y.scale, values().map(|point| point.1), 6);
        let direct = layout == Layout::Wide && self.ends_at_the_right(&x);
        if !direct {
            top = self.legend(&mut sheet, top);
        }
        top = sheet.paragraph(top, "soft", &self.y.label) + 8.0;
        let label_width = |label: &str| text_width(label, TEXT);
        let widest = y
            .ticks
            .iter()
            .map(|tick| label_width(&tick.label))
            .fold(0.0, f64::max);
        let room = if direct {
            self.widest_name() + 24.0
        } else {
            // Half of the last label may stand beyond the axis.
            let last = x.ticks.last().map(|tick| 0.5 * label_width(&tick.label));
            (last.unwrap_or(0.0) - EDGE + 3.0).max(6.0)
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
        for index in 0..self.series.len() {
            self.draw_series(&mut sheet, &frame, index);
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

    /// How a series is dashed, if it is: each dashed one in its own way.
    fn dashes(&self, index: usize) -> Option<&'static str> {
        const DASHES: [&str; 4] = ["7 4", "2 3", "9 3 2 3", "14 5"];
        let dashed = |series: &&Series| series.style == Style::Dashed;
        let before = self.series[..index].iter().filter(dashed).count();
        dashed(&&self.series[index]).then(|| DASHES[before % DASHES.len()])
    }

    fn draw_series(&self, sheet: &mut Sheet, frame: &Frame, index: usize) {
        let series = &self.series[index];
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
        draw_line(sheet, index, self.dashes(index), &data);
        // A point between gaps would be a line of no length.
        let alone = runs.iter().filter(|run| run.len() == 1).flatten();
        let mut marks = match series.style {
            Style::LinePoints => all,
            Style::Line if self.series.len() > 1 => sparse(&all, index),
            _ => Vec::new(),
        };
        if series.style != Style::LinePoints {
            marks.extend(alone);
        }
        draw_marks(sheet, index, &marks);
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
            1 => Some("One point is not shown: these axes cannot show it.".to_owned()),
            count => Some(format!(
                "{count} points are not shown: these axes cannot show them."
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
            let mut shown = series.points.iter().filter(|point| self.shows(**point));
            let last = shown.next_back().and_then(|point| x.position(point.0));
            series.style != Style::Points && last.is_some_and(|position| position >= 1.0 - NEAR_END)
        };
        (2..=MAX_DIRECT).contains(&self.series.len())
            && self.widest_name() < WIDEST_DIRECT
            && self.series.iter().all(ends)
    }

    fn widest_name(&self) -> f64 {
        let names = self.series.iter();
        let widths = names.map(|series| text_width(&series.name, TEXT));
        widths.fold(0.0, f64::max)
    }

    fn legend(&self, sheet: &mut Sheet, top: f64) -> f64 {
        if self.series.len() < 2 {
            return top;
        }
        let name = |series: &Series| {
            let empty = !series.points.iter().any(|point| self.shows(*point));
            let none = if empty { " (no values)" } else { "" };
            format!("{}{none}", series.name)
        };
        let names: Vec<String> = self.series.iter().map(name).collect();
        sheet.legend(top, &names, |sheet, index, [from, to]| {
            let style = self.series[index].style;
            let class = series_class(index);
            if style != Style::Points {
                draw_line(sheet, index, self.dashes(index), &stroke(from, to));
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
        if shown.len() > MAX_HINTS {
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
                escape(&hint)
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

/// A few points of a line, others for each series.
fn sparse(points: &[(f64, f64)], index: usize) -> Vec<(f64, f64)> {
    let every = points.len().div_ceil(SPARSE).max(1);
    let first = (index * every / 4) % every;
    points.iter().skip(first).step_by(every).copied().collect()
}

fn draw_line(sheet: &mut Sheet, index: usize, dashes: Option<&str>, data: &str) {
    if data.is_empty() {
        return;
    }
    let class = series_class(index);
    match dashes {
        Some(dashes) => sheet.draw(&format!(
            "<path class=\"{class} line dash\" stroke-dasharray=\"{dashes}\" d=\"{data}\"/>"
        )),
        None => sheet.path(&format!("{class} line"), data),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::tests::{assert_sound, texts};

    fn chart(axis: fn(&str) -> Axis, series: &[Series]) -> Figure {
        let figure = line_chart("chart", "Title", "", axis("across"), axis("up"), series);
        assert_sound(&figure);
        figure
    }

    #[test]
    fn names_stand_at_the_ends_of_lines_or_in_a_legend() {
        let line = |name, end| Series::new(name, Style::Line, vec![(0.0, 0.0), (end, 1.0)]);
        let ending_together = chart(Axis::linear, &[line("one", 9.0), line("other", 9.0)]);
        assert!(ending_together.svg.contains("class=\"s1 leader\""));
        assert!(!ending_together.narrow.contains("leader\" d"));
        let apart = chart(Axis::linear, &[line("one", 3.0), line("other", 9.0)]);
        assert!(!apart.svg.contains("leader\" d"));
        for figure in [ending_together, apart] {
            for layout in [&figure.svg, &figure.narrow] {
                let texts = texts(layout);
                assert!(
                    ["one", "other"]
                        .iter()
                        .all(|name| texts.iter().any(|text| text == name))
                );
            }
        }
    }

    #[test]
    fn names_at_the_ends_keep_apart() {
        let ends: Vec<Series> = (0..8)
            .map(|index| {
                let end = 5.0 + 1e-3 * f64::from(index);
                Series::new(
                    &format!("n{index}"),
                    Style::Line,
                    vec![(0.0, 0.0), (9.0, end)],
                )
            })
            .collect();
        let figure = chart(Axis::linear, &ends);
        let document = roxmltree::Document::parse(&figure.svg).unwrap();
        let mut heights: Vec<f64> = document
            .descendants()
            .filter(|node| node.has_tag_name("text") && node.text().unwrap_or("").starts_with('n'))
            .map(|node| node.attribute("y").unwrap().parse().unwrap())
            .collect();
        heights.sort_by(f64::total_cmp);
        assert_eq!(heights.len(), 8);
        assert!(
            heights
                .windows(2)
                .all(|pair| pair[1] - pair[0] >= LINE - 0.2),
            "{heights:?}"
        );
    }

    #[test]
    fn what_has_no_position_is_left_out_and_counted() {
        let points = vec![
            (0.0, 1.0),
            (1.0, 0.0),
            (1.0, 1.0),
            (2.0, f64::NAN),
            (10.0, 10.0),
        ];
        let series = [Series::new("a", Style::LinePoints, points)];
        let figure = chart(Axis::logarithmic, &series);
        assert!(
            texts(&figure.svg)
                .iter()
                .any(|text| text.starts_with("3 points are not shown"))
        );
        assert!(
            chart(Axis::linear, &series)
                .svg
                .contains("One point is not shown")
        );
    }

    #[test]
    fn a_line_breaks_where_a_value_is_missing() {
        let points = vec![
            (0.0, 1.0),
            (1.0, 1.0),
            (2.0, f64::NAN),
            (3.0, 1.0),
            (4.0, 1.0),
        ];
        let figure = chart(Axis::linear, &[Series::new("a", Style::Line, points)]);
        let document = roxmltree::Document::parse(&figure.svg).unwrap();
        let line = document
            .descendants()
            .find(|node| node.attribute("class") == Some("s0 line"));
        let data = line.unwrap().attribute("d").unwrap();
        assert_eq!(
            (data.matches('M').count(), data.matches('L').count()),
            (2, 2)
        );
    }

    #[test]
    fn any_values_make_a_chart() {
        for axis in [Axis::linear, Axis::logarithmic] {
            assert!(chart(axis, &[]).svg.contains("no values"));
            for style in [Style::Line, Style::Points, Style::LinePoints, Style::Dashed] {
                let none = Series::new("none", style, Vec::new());
                let one = Series::new("one", style, vec![(3e-7, 1e9)]);
                assert!(
                    chart(axis, std::slice::from_ref(&none))
                        .svg
                        .contains("no values")
                );
                assert!(
                    chart(axis, std::slice::from_ref(&one))
                        .svg
                        .contains("class=\"s0 mark\"")
                );
                let extremes = [
                    f64::NAN,
                    f64::INFINITY,
                    f64::MAX,
                    -f64::MAX,
                    5e-324,
                    0.0,
                    1.0,
                ];
                let all = extremes.iter().flat_map(|&x| extremes.map(|y| (x, y)));
                chart(axis, &[none, one, Series::new("all", style, all.collect())]);
                let many = (0..2000).map(|index| (f64::from(index), f64::from(index % 7)));
                chart(axis, &[Series::new("many", style, many.collect())]);
            }
        }
    }
}
