//! Rows of rasters that share a colour bar.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::colour_bar::{self, ColourBar};
use super::svg::{Anchor, EDGE, LINE, Layout, Sheet, TEXT, coordinate, shortened};
use super::{Colours, Figure};
use crate::number::{MISSING, short};
use crate::picture::map;

/// Quantile of the magnitudes at which diverging colours saturate; single extremes would leave the rest white.
const QUANTILE: f64 = 0.99;
/// Sides on a sheet of the widest panel, and of the pictures that both layouts use.
const LARGEST: f64 = 210.0;
const UNIT: f64 = 100.0;
/// A raster smaller than this shows its pixels.
const COARSE: usize = 96;
/// How often a panel may be as tall as it is wide.
const TALLEST: f64 = 2.5;
const GAP: f64 = 8.0;

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

    /// Its sides on a sheet within this width; a very tall raster is made narrower.
    fn fit(&self, side: f64) -> (f64, f64) {
        let shape = self.height as f64 / self.width.max(1) as f64;
        let width = side * (TALLEST / shape).min(1.0);
        (width, width * shape)
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
    /// Rasters whose colours span the range of their values.
    pub fn new(label: &str, unit: &str, colours: Colours, panels: Vec<Panel>) -> Self {
        Self {
            label: label.to_owned(),
            unit: unit.to_owned(),
            colours,
            range: None,
            panels,
        }
    }

    fn titles(&self) -> impl Iterator<Item = &str> {
        self.panels.iter().map(|panel| panel.title.as_str())
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
                let limit = sizes.get((QUANTILE * last as f64).ceil() as usize).copied();
                let limit = limit.filter(|&limit| limit > 0.0).unwrap_or(1.0);
                (-limit, limit)
            }
        };
        if low > high {
            (0.0, 1.0)
        } else if (0.0..0.1 * high).contains(&low) {
            (0.0, high)
        } else if low < high {
            (low, high)
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
    let columns = grid.iter().map(|row| row.panels.len()).max();
    let columns = columns.unwrap_or(0).max(1);
    for (number, row) in grid.iter().enumerate() {
        let label = match row.unit.as_str() {
            "" => row.label.clone(),
            unit => format!("{} ({unit})", row.label),
        };
        y = sheet.paragraph(y + 8.0, "strong", &label) + 2.0;
        let above = number.checked_sub(1).map(|above| &grid[above]);
        let drawn = DrawnRow {
            number,
            row,
            ends: row.ends(),
            // What stands over the row above need not stand here again.
            titled: layout == Layout::Narrow
                || above.is_none_or(|above| !above.titles().eq(row.titles())),
        };
        y = match layout {
            Layout::Wide => drawn.draw_wide(&mut sheet, columns, y),
            Layout::Narrow => drawn.draw_narrow(&mut sheet, columns, y),
        };
    }
    sheet.finish(title, &description(grid), y + EDGE)
}

/// A row of a chart.
struct DrawnRow<'a> {
    number: usize,
    row: &'a PanelRow,
    ends: (f64, f64),
    titled: bool,
}

impl DrawnRow<'_> {
    /// Draws the pictures beside each other, the colours at their right, and returns their lower edge.
    fn draw_wide(&self, sheet: &mut Sheet, columns: usize, top: f64) -> f64 {
        self.define_pictures(sheet);
        let bar_room = 2.0 * GAP + colour_bar::THICK + 60.0;
        let room = sheet.layout.width() - 2.0 * EDGE - bar_room;
        let side = (room / columns as f64 - GAP).min(LARGEST);
        let bottom = self.draw_pictures(sheet, side, columns, top);
        let top = top + self.titles_height();
        let x = EDGE + columns as f64 * (side + GAP) + GAP;
        self.bar().draw_vertical(sheet, (x, top), bottom - top);
        bottom
    }

    /// Draws the pictures in lines, the colours below them, and returns their lower edge.
    fn draw_narrow(&self, sheet: &mut Sheet, columns: usize, top: f64) -> f64 {
        // Three to a line at the most, or the pictures would be stamps.
        let columns = columns.div_ceil(columns.div_ceil(3));
        let room = sheet.layout.width() - 2.0 * EDGE + GAP;
        let side = (room / columns as f64 - GAP).min(LARGEST);
        let bottom = self.draw_pictures(sheet, side, columns, top);
        self.bar().draw_horizontal(sheet, bottom + GAP)
    }

    fn bar(&self) -> ColourBar {
        let (low, high) = self.ends;
        let values = self.row.values();
        ColourBar {
            number: self.number,
            colours: self.row.colours,
            ends: self.ends,
            beyond: values.fold((false, false), |(below, above), value| {
                (below || value < low, above || value > high)
            }),
        }
    }

    fn titles_height(&self) -> f64 {
        let any = self.row.titles().any(|title| !title.is_empty());
        if self.titled && any { LINE + 2.0 } else { 0.0 }
    }

    fn picture_id(&self, sheet: &Sheet, column: usize) -> String {
        sheet.id(&format!("{}-{column}", self.number))
    }

    /// Puts the pictures where both layouts find them.
    fn define_pictures(&self, sheet: &mut Sheet) {
        sheet.draw("<defs>");
        for (column, panel) in self.row.panels.iter().enumerate() {
            let Panel { width, height, .. } = *panel;
            if panel.values.is_empty() {
                continue;
            }
            let picture = map(&panel.values, width, height, self.ends, self.row.colours);
            let png = picture
                .png()
                .expect("a picture with pixels can be encoded in memory");
            let rendering = if width.max(height) < COARSE {
                " style=\"image-rendering:pixelated\""
            } else {
                ""
            };
            let id = self.picture_id(sheet, column);
            sheet.draw(&format!(
                "<image id=\"{id}\" width=\"{UNIT}\" height=\"{}\" preserveAspectRatio=\"none\"{rendering} \
                 href=\"data:image/png;base64,{}\"/>",
                UNIT * height as f64 / width as f64,
                STANDARD.encode(png)
            ));
        }
        sheet.draw("</defs>");
    }

    /// Draws the pictures in lines and returns their lower edge.
    fn draw_pictures(&self, sheet: &mut Sheet, side: f64, columns: usize, top: f64) -> f64 {
        let mut bottom = top - GAP;
        for (line, panels) in self.row.panels.chunks(columns).enumerate() {
            let y = bottom + GAP + self.titles_height();
            let mut tallest = LINE;
            for (column, panel) in panels.iter().enumerate() {
                let x = EDGE + column as f64 * (side + GAP);
                if self.titled {
                    let title = shortened(&panel.title, TEXT, side);
                    sheet.text((x, y - 6.0), Anchor::Start, "soft", &title);
                }
                if panel.values.is_empty() {
                    sheet.text((x, y + 0.75 * LINE), Anchor::Start, "soft", MISSING);
                    continue;
                }
                let id = self.picture_id(sheet, line * columns + column);
                let (width, height) = panel.fit(side);
                tallest = tallest.max(height);
                // A little smaller than the picture, or it would shine through at its edges.
                sheet.rectangle("void", (x + 0.5, y + 0.5), (width - 1.0, height - 1.0));
                sheet.draw(&format!(
                    "<use href=\"#{id}\" transform=\"translate({} {}) scale({:.4})\"/>",
                    coordinate(x),
                    coordinate(y),
                    width / UNIT
                ));
            }
            bottom = y + tallest;
        }
        bottom.max(top + LINE)
    }
}

fn description(grid: &[PanelRow]) -> String {
    let rows = grid.iter().map(|row| {
        let titles: Vec<&str> = row.titles().collect();
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::tests::{assert_sound, texts};

    fn ramp(title: &str, width: usize, height: usize) -> Panel {
        let values = (0..width * height).map(|index| index as f32);
        Panel::new(title, width, height, values.collect())
    }

    #[test]
    fn a_row_shares_its_colours() {
        let row = PanelRow::new(
            "Height",
            "m",
            Colours::Sequential,
            vec![ramp("a", 4, 4), ramp("b", 8, 4)],
        );
        assert_eq!(row.ends(), (0.0, 31.0));
        let figure = panels("heights", "Heights", "", &[row]);
        assert_sound(&figure);
        assert_eq!(figure.svg.matches("<image").count(), 2);
        assert_eq!(figure.svg.matches("<linearGradient").count(), 1);
        assert_eq!(figure.narrow.matches("<image").count(), 0);
        for id in ["heights-0-0", "heights-0-1"] {
            assert!(figure.svg.contains(&format!("<image id=\"{id}\"")));
            assert!(figure.narrow.contains(&format!("<use href=\"#{id}\"")));
        }
        let texts = texts(&figure.svg);
        assert!(
            ["Height (m)", "a", "b", "0", "31"]
                .iter()
                .all(|text| texts.iter().any(|shown| shown == text))
        );
    }

    #[test]
    fn diverging_colours_are_even_about_zero_and_leave_extremes_out() {
        let mut values = vec![-1.0; 500];
        values.extend([0.5; 499]);
        values.push(1000.0);
        let row = PanelRow::new(
            "L",
            "",
            Colours::Diverging,
            vec![Panel::new("", 100, 10, values)],
        );
        assert_eq!(row.ends(), (-1.0, 1.0));
        let drawn = DrawnRow {
            number: 0,
            row: &row,
            ends: row.ends(),
            titled: true,
        };
        assert_eq!(drawn.bar().beyond, (false, true));
    }

    #[test]
    fn any_values_make_a_chart() {
        let odd = [f32::NAN, f32::INFINITY, f32::MAX, -f32::MAX, 0.0, 1e-40];
        for colours in [Colours::Sequential, Colours::Diverging] {
            for value in odd {
                let tall = Panel::new("tall", 1, 40, vec![value; 40]);
                let empty = Panel::new("empty", 0, 0, Vec::new());
                let row = PanelRow::new("R", "m", colours, vec![tall, empty, ramp("ramp", 3, 2)]);
                let none = PanelRow::new("N", "", colours, Vec::new());
                let fixed = PanelRow {
                    range: Some((f64::NAN, 1.0)),
                    ..row.clone()
                };
                assert_sound(&panels("odd", "Odd", "", &[row, none, fixed]));
            }
        }
        assert_sound(&panels("none", "None", "", &[]));
    }
}
