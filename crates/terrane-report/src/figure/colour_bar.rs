//! The bar that maps colours to values.

use super::Colours;
use super::scale::{Ruler, minus};
use super::svg::{Anchor, EDGE, Sheet, coordinate, stroke};
use crate::number::short;

/// How thick a bar is, and how far its points extend beyond its ends.
pub(super) const THICK: f64 = 12.0;
const TIP: f64 = 0.7 * THICK;
const STOPS: u32 = 20;

/// The colours of a row of rasters.
#[derive(Debug)]
pub(super) struct ColourBar {
    /// Tells it from the other bars of the chart.
    pub(super) number: usize,
    pub(super) colours: Colours,
    /// The values at its ends.
    pub(super) ends: (f64, f64),
    /// Whether there are values below the low end and above the high one, which a point shows.
    pub(super) beyond: (bool, bool),
}

impl ColourBar {
    /// Draws the bar with its high end at the top.
    pub(super) fn draw_vertical(&self, sheet: &mut Sheet, (x, top): (f64, f64), height: f64) {
        let (below, above) = self.tips();
        let (start, length) = (top + height - below, (height - below - above).max(1.0));
        let gradient = self.gradient(sheet, "up", "x1=\"0\" y1=\"1\" x2=\"0\" y2=\"0\"");
        let position = |along: f64, across: f64| (x + across, start - along);
        self.draw(sheet, &gradient, length, position);
        for (fraction, label) in self.labels(length / 22.0) {
            let (x, y) = position(fraction * length, THICK);
            sheet.path("axis", &stroke((x, y), (x + 4.0, y)));
            sheet.text((x + 8.0, y + 4.3), Anchor::Start, "soft", &label);
        }
    }

    /// Draws the bar over the width of the sheet with its high end at the right, and returns its lower edge.
    pub(super) fn draw_horizontal(&self, sheet: &mut Sheet, top: f64) -> f64 {
        // Half a label stands beyond each end.
        let left = EDGE + 18.0;
        let length = sheet.layout.width() - 2.0 * left;
        let gradient = self.gradient(sheet, "along", "");
        let position = |along: f64, across: f64| (left + along, top + across);
        self.draw(sheet, &gradient, length, position);
        for (fraction, label) in self.labels(5.0) {
            let (x, y) = position(fraction * length, THICK);
            sheet.path("axis", &stroke((x, y), (x, y + 4.0)));
            sheet.text((x, y + 17.0), Anchor::Middle, "soft", &label);
        }
        top + THICK + 22.0
    }

    fn tips(&self) -> (f64, f64) {
        let tip = |there| if there { TIP } else { 0.0 };
        (tip(self.beyond.0), tip(self.beyond.1))
    }

    /// Draws the colours and the points; `position` maps a distance along the bar and across it to the sheet.
    fn draw(
        &self,
        sheet: &mut Sheet,
        gradient: &str,
        length: f64,
        position: impl Fn(f64, f64) -> (f64, f64),
    ) {
        let mut shape = |paint: &str, corners: &[(f64, f64)]| {
            let corners = corners.iter().map(|&(along, across)| {
                let (x, y) = position(along, across);
                format!("{} {}", coordinate(x), coordinate(y))
            });
            let corners: Vec<String> = corners.collect();
            sheet.draw(&format!(
                "<path fill=\"{paint}\" d=\"M{}z\"/>",
                corners.join("L")
            ));
        };
        shape(
            &format!("url(#{gradient})"),
            &[(0.0, 0.0), (length, 0.0), (length, THICK), (0.0, THICK)],
        );
        let (below, above) = self.tips();
        for (tip, base, point, fraction) in [
            (below, 0.0, -below, 0.0),
            (above, length, length + above, 1.0),
        ] {
            if tip > 0.0 {
                let corners = [(base, 0.0), (point, 0.5 * THICK), (base, THICK)];
                shape(&self.colour(fraction), &corners);
            }
        }
    }

    fn colour(&self, fraction: f64) -> String {
        let [red, green, blue] = self.colours.at(fraction);
        format!("#{red:02x}{green:02x}{blue:02x}")
    }

    /// Defines the colours and gives their name.
    fn gradient(&self, sheet: &mut Sheet, direction: &str, attributes: &str) -> String {
        let id = sheet.id(&format!("{}-{direction}", self.number));
        let stops: String = (0..=STOPS)
            .map(|step| {
                let fraction = f64::from(step) / f64::from(STOPS);
                let colour = self.colour(fraction);
                format!("<stop offset=\"{fraction}\" stop-color=\"{colour}\"/>")
            })
            .collect();
        sheet.draw(&format!(
            "<defs><linearGradient id=\"{id}\" {attributes}>{stops}</linearGradient></defs>"
        ));
        id
    }

    /// The values at the ends, and round ones between them, if there is room for about `most` labels.
    fn labels(&self, most: f64) -> Vec<(f64, String)> {
        let (low, high) = self.ends;
        let ruler = Ruler::exactly(low, high, most.max(2.0) as usize);
        let free = 0.8 / most.max(1.0);
        let inner = ruler.ticks.iter().filter_map(|tick| {
            let fraction = ruler.position(tick.at)?;
            let inside = (free..=1.0 - free).contains(&fraction);
            inside.then(|| (fraction, tick.label.clone()))
        });
        let mut labels = vec![(0.0, minus(&short(low))), (1.0, minus(&short(high)))];
        labels.extend(inner);
        labels
    }
}
