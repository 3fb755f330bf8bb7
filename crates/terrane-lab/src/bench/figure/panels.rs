//! Rows of rasters that share a colour bar.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::scale::Ruler;
use super::svg::{Anchor, EDGE, LINE, Layout, Sheet, TEXT, coordinate, shortened, stroke};
use super::{Colours, Figure};
use crate::bench::number::{MISSING, short};
use crate::picture::map;

/// Share of the values, counted from zero, that diverging colours reach; single extremes would leave the rest white.
const REACH: f64 = 0.99;
/// Sides on a sheet of the widest panel, and of the pictures that both layouts use.
const LARGEST: f64 = 210.0;
const UNIT: f64 = 100.0;
/// A raster smaller than this shows its pixels.
const COARSE: usize = 96;
const GAP: f64 = 8.0;
const BAR: f64 = 12.0;

/// A raster, row by row from the north; no data is NaN.
#[derive(Debug, Clone, PartialEq)]
pub struct Panel {
    /// What it shows, such as the method's name.
    pub title: String,
    /// Pixels in a row.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// One value for each pixel.
    pub values: Vec<f32>,
}

impl Panel {
    /// A raster with one value for each pixel.
    pub fn new(title: &str, width: usize, height: usize, values: Vec<f32>) -> Self {
        assert_eq!(
            values.len(),
            width * height,
            "one value for each pixel of `{title}`"
        );
        Self {
            title: title.to_owned(),
            width,
            height,
            values,
        }
    }
}

/// Rasters that share their colours.
#[derive(Debug, Clone, PartialEq)]
pub struct PanelRow {
    /// What their values are, such as `Laplacian, mountainous`.
    pub label: String,
    /// Unit of the values.
    pub unit: String,
    /// How values become colours.
    pub colours: Colours,
    /// Values at the ends of the colour bar; found from the rasters when absent.
    pub range: Option<(f64, f64)>,
    /// The rasters.
    pub panels: Vec<Panel>,
}

impl PanelRow {
    /// Rasters whose colours reach as far as their values do.
    pub fn new(label: &str, unit: &str, colours: Colours, panels: Vec<Panel>) -> Self {
        Self {
            label: label.to_owned(),
            unit: unit.to_owned(),
            colours,
            range: None,
            panels,
        }
    }

    fn values(&self) -> impl Iterator<Item = f64> {
        let values = self.panels.iter().flat_map(|panel| &panel.values);
        values
            .filter(|value| value.is_finite())
            .map(|&value| f64::from(value))
    }

    fn ends(&self) -> (f64, f64) {
        let usable = |&(low, high): &(f64, f64)| low.is_finite() && high.is_finite() && low < high;
        if let Some(range) = self.range.filter(usable) {
            return range;
        }
        let (low, high) = match self.colours {
            Colours::Sequential => self
                .values()
                .fold((f64::MAX, f64::MIN), |(low, high), value| {
                    (low.min(value), high.max(value))
                }),
            Colours::Diverging => {
                let mut sizes: Vec<f64> = self.values().map(f64::abs).collect();
                sizes.sort_by(f64::total_cmp);
                let last = sizes.len().saturating_sub(1);
                let reach = sizes.get((REACH * last as f64).ceil() as usize).copied();
                let reach = reach.filter(|&reach| reach > 0.0).unwrap_or(1.0);
                (-reach, reach)
            }
        };
        if low < high {
            (low, high)
        } else if low > high {
            (0.0, 1.0)
        } else {
            (low - 0.5, high + 0.5)
        }
    }
}

/// Draws rows of rasters, each row with one colour bar.
pub fn panels(name: &str, title: &str, caption: &str, grid: &[PanelRow]) -> Figure {
    let [svg, narrow] = Layout::BOTH.map(|layout| draw(name, title, grid, layout));
    Figure {
        name: name.to_owned(),
        title: title.to_owned(),
        caption: caption.to_owned(),
        svg,
        narrow,
    }
}

fn draw(name: &str, title: &str, grid: &[PanelRow], layout: Layout) -> String {
    let mut sheet = Sheet::new(name, layout);
    let mut y = sheet.title(title) + 2.0;
    let columns = grid
        .iter()
        .map(|row| row.panels.len())
        .max()
        .unwrap_or(0)
        .max(1);
    for (number, row) in grid.iter().enumerate() {
        let ends = row.ends();
        if layout == Layout::Wide {
            define(&mut sheet, number, row, ends);
        }
        let label = if row.unit.is_empty() {
            row.label.clone()
        } else {
            format!("{} ({})", row.label, row.unit)
        };
        y = sheet.paragraph(y + 8.0, "strong", &label) + 2.0;
        y = match layout {
            Layout::Wide => wide_row(&mut sheet, number, row, ends, columns, y),
            Layout::Narrow => narrow_row(&mut sheet, number, row, ends, columns, y),
        };
    }
    sheet.finish(title, &description(grid), y + EDGE)
}

/// Puts the pictures and the colours of a row where both layouts find them.
fn define(sheet: &mut Sheet, number: usize, row: &PanelRow, ends: (f64, f64)) {
    sheet.draw("<defs>");
    for (column, panel) in row.panels.iter().enumerate() {
        if panel.values.is_empty() {
            continue;
        }
        let picture = map(&panel.values, panel.width, panel.height, ends, row.colours);
        let png = picture
            .png()
            .expect("a picture with pixels can be encoded in memory");
        let smooth = panel.width.max(panel.height) >= COARSE;
        let rendering = if smooth {
            ""
        } else {
            " style=\"image-rendering:pixelated\""
        };
        let height = UNIT * panel.height as f64 / panel.width as f64;
        sheet.draw(&format!(
            "<image id=\"{}\" width=\"{UNIT}\" height=\"{height}\" preserveAspectRatio=\"none\"{rendering} \
             href=\"data:image/png;base64,{}\"/>",
            sheet.id(&format!("{number}-{column}")),
            STANDARD.encode(png)
        ));
    }
    sheet.draw("</defs>");
}

fn wide_row(
    sheet: &mut Sheet,
    number: usize,
    row: &PanelRow,
    ends: (f64, f64),
    columns: usize,
    top: f64,
) -> f64 {
    let bar_room = 3.0 * GAP + BAR + 52.0;
    let room = sheet.layout.width() - 2.0 * EDGE - bar_room + GAP;
    let side = (room / columns as f64 - GAP).min(LARGEST);
    let bottom = pictures(sheet, number, row, side, columns, top);
    let x = EDGE + columns as f64 * (side + GAP) + GAP;
    let titles = titles_height(row);
    upright_bar(
        sheet,
        number,
        row,
        ends,
        (x, top + titles),
        bottom - top - titles,
    );
    bottom
}

fn narrow_row(
    sheet: &mut Sheet,
    number: usize,
    row: &PanelRow,
    ends: (f64, f64),
    columns: usize,
    top: f64,
) -> f64 {
    // Three to a line at the most, or the pictures would be stamps.
    let lines = columns.div_ceil(3);
    let columns = columns.div_ceil(lines);
    let room = sheet.layout.width() - 2.0 * EDGE + GAP;
    let side = (room / columns as f64 - GAP).min(LARGEST);
    let bottom = pictures(sheet, number, row, side, columns, top);
    lying_bar(sheet, number, row, ends, bottom + GAP)
}

fn titles_height(row: &PanelRow) -> f64 {
    if row.panels.iter().all(|panel| panel.title.is_empty()) {
        0.0
    } else {
        LINE + 2.0
    }
}

/// Draws the pictures of a row in lines and says how far down they reach.
fn pictures(
    sheet: &mut Sheet,
    number: usize,
    row: &PanelRow,
    side: f64,
    columns: usize,
    top: f64,
) -> f64 {
    let titles = titles_height(row);
    let shape = |panel: &Panel| panel.height as f64 / panel.width.max(1) as f64;
    let mut bottom = top;
    for (line, panels) in row.panels.chunks(columns).enumerate() {
        let y = if line == 0 { top } else { bottom + GAP } + titles;
        let tallest = panels.iter().map(shape).fold(0.0, f64::max).min(3.0);
        for (column, panel) in panels.iter().enumerate() {
            let x = EDGE + column as f64 * (side + GAP);
            let title = shortened(&panel.title, TEXT, side);
            if !title.is_empty() {
                sheet.text((x, y - 6.0), Anchor::Start, "soft", &title);
            }
            // Very tall rasters are made narrower instead.
            let (width, height) = if shape(panel) > 3.0 {
                (side * 3.0 / shape(panel), side * 3.0)
            } else {
                (side, side * shape(panel))
            };
            if panel.values.is_empty() {
                let place = (x + 0.5 * side, y + 0.5 * LINE);
                sheet.text(place, Anchor::Middle, "soft", MISSING);
                continue;
            }
            sheet.rectangle("void", (x, y), (width, height));
            let id = sheet.id(&format!("{number}-{}", line * columns + column));
            sheet.draw(&format!(
                "<use href=\"#{id}\" transform=\"translate({} {}) scale({:.4})\"/>",
                coordinate(x),
                coordinate(y),
                width / UNIT
            ));
        }
        bottom = y + (side * tallest).max(LINE);
    }
    bottom
}

/// Defines the colours of a row's bar and says how to paint with them.
fn gradient(sheet: &mut Sheet, number: usize, row: &PanelRow, direction: &str) -> String {
    let id = sheet.id(&format!("{number}-{direction}"));
    let end = if direction == "up" {
        "x1=\"0\" y1=\"1\" x2=\"0\" y2=\"0\""
    } else {
        ""
    };
    let stops: String = (0..=20)
        .map(|step| {
            let place = f64::from(step) / 20.0;
            let colour = hex(row.colours.at(place));
            format!("<stop offset=\"{place}\" stop-color=\"{colour}\"/>")
        })
        .collect();
    sheet.draw(&format!(
        "<defs><linearGradient id=\"{id}\" {end}>{stops}</linearGradient></defs>"
    ));
    format!("url(#{id})")
}

/// Whether there are values below and above the ends of the bar.
fn beyond(row: &PanelRow, (low, high): (f64, f64)) -> (bool, bool) {
    row.values().fold((false, false), |(below, above), value| {
        (below || value < low, above || value > high)
    })
}

fn hex(colour: [u8; 3]) -> String {
    format!("#{:02x}{:02x}{:02x}", colour[0], colour[1], colour[2])
}

/// A bar whose high end is at the top; a point at an end tells that there are values beyond.
fn upright_bar(
    sheet: &mut Sheet,
    number: usize,
    row: &PanelRow,
    ends: (f64, f64),
    (x, top): (f64, f64),
    height: f64,
) {
    let paint = gradient(sheet, number, row, "up");
    let (below, above) = beyond(row, ends);
    let tip = 0.7 * BAR;
    let (start, end) = (
        top + if above { tip } else { 0.0 },
        top + height - if below { tip } else { 0.0 },
    );
    sheet.draw(&format!(
        "<rect x=\"{}\" y=\"{}\" width=\"{BAR}\" height=\"{}\" fill=\"{paint}\"/>",
        coordinate(x),
        coordinate(start),
        coordinate((end - start).max(0.0))
    ));
    for (there, base, point, place) in [(above, start, top, 1.0), (below, end, top + height, 0.0)] {
        if there {
            sheet.draw(&format!(
                "<path fill=\"{}\" d=\"M{} {}h{BAR}L{} {}z\"/>",
                hex(row.colours.at(place)),
                coordinate(x),
                coordinate(base),
                coordinate(x + 0.5 * BAR),
                coordinate(point)
            ));
        }
    }
    let most = ((end - start) / 34.0).max(2.0) as usize;
    let ruler = Ruler::exactly(ends.0, ends.1, most);
    for tick in &ruler.ticks {
        let Some(place) = ruler.place(tick.at) else {
            continue;
        };
        let y = end - place * (end - start);
        sheet.path("axis", &stroke((x + BAR, y), (x + BAR + 4.0, y)));
        sheet.text((x + BAR + 8.0, y + 4.3), Anchor::Start, "soft", &tick.label);
    }
}

/// A bar whose high end is at the right, and how far down it reaches.
fn lying_bar(sheet: &mut Sheet, number: usize, row: &PanelRow, ends: (f64, f64), top: f64) -> f64 {
    let paint = gradient(sheet, number, row, "along");
    let (below, above) = beyond(row, ends);
    let tip = 0.7 * BAR;
    let (left, right) = (EDGE + 2.0 * GAP, sheet.layout.width() - EDGE - 2.0 * GAP);
    sheet.draw(&format!(
        "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{BAR}\" fill=\"{paint}\"/>",
        coordinate(left),
        coordinate(top),
        coordinate(right - left)
    ));
    for (there, base, point, place) in [
        (above, right, right + tip, 1.0),
        (below, left, left - tip, 0.0),
    ] {
        if there {
            sheet.draw(&format!(
                "<path fill=\"{}\" d=\"M{} {}v{BAR}L{} {}z\"/>",
                hex(row.colours.at(place)),
                coordinate(base),
                coordinate(top),
                coordinate(point),
                coordinate(top + 0.5 * BAR)
            ));
        }
    }
    let ruler = Ruler::exactly(ends.0, ends.1, 5);
    for tick in &ruler.ticks {
        let Some(place) = ruler.place(tick.at) else {
            continue;
        };
        let x = left + place * (right - left);
        sheet.path("axis", &stroke((x, top + BAR), (x, top + BAR + 4.0)));
        sheet.text((x, top + BAR + 17.0), Anchor::Middle, "soft", &tick.label);
    }
    top + BAR + 22.0
}

fn description(grid: &[PanelRow]) -> String {
    let rows = grid.iter().map(|row| {
        let titles: Vec<&str> = row
            .panels
            .iter()
            .map(|panel| panel.title.as_str())
            .collect();
        let (low, high) = row.ends();
        format!(
            "{}: {}; colours from {} to {} {}.",
            row.label,
            titles.join(", "),
            short(low),
            short(high),
            row.unit
        )
    });
    rows.collect::<Vec<_>>().join(" ")
}
