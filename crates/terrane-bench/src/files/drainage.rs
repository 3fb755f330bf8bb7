//! The drainage network: the pixels through which the water of many drains.

use super::flow::Flow;

/// Pixels that make a stream.
pub(super) const MIN_UPSTREAM: u32 = 1000;

/// How well two networks lie on each other, within one pixel: the harmonic mean (F1) of the part of the one that lies on the
/// other and of the part of the other that lies on the one. NaN where neither has a stream.
pub(super) fn agreement(source: &Flow, decoded: &Flow) -> f64 {
    let [source, decoded] = [source, decoded].map(Network::of);
    let (recall, precision) = (source.part_on(&decoded), decoded.part_on(&source));
    match (source.pixels, decoded.pixels) {
        (0, 0) => f64::NAN,
        _ if recall + precision == 0.0 => 0.0,
        _ => 2.0 * recall * precision / (recall + precision),
    }
}

/// The pixels of a network.
struct Network {
    width: usize,
    is_stream: Vec<bool>,
    pixels: usize,
}

impl Network {
    fn of(flow: &Flow) -> Self {
        let streams = flow.upstream.iter().map(|&pixels| pixels >= MIN_UPSTREAM);
        let is_stream: Vec<bool> = streams.collect();
        Self {
            width: flow.width,
            pixels: is_stream.iter().filter(|is_stream| **is_stream).count(),
            is_stream,
        }
    }

    /// The part of it that has a pixel of another at most one away; 0 where it has none.
    fn part_on(&self, other: &Self) -> f64 {
        let near = |pixel: usize| {
            let (column, row) = (pixel % self.width, pixel / self.width);
            let height = self.is_stream.len() / self.width;
            let mut rows = row.saturating_sub(1)..(row + 2).min(height);
            rows.any(|row| {
                let mut columns = column.saturating_sub(1)..(column + 2).min(self.width);
                columns.any(|column| other.is_stream[row * self.width + column])
            })
        };
        let pixels = 0..self.is_stream.len();
        let found = pixels.filter(|&pixel| self.is_stream[pixel] && near(pixel));
        found.count() as f64 / self.pixels.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::super::ground::tests::{ground, surface};
    use super::*;

    const SIDE: usize = 80;

    /// A valley that falls southwards, with its bottom at a column.
    fn valley(bottom: f64) -> Flow {
        let heights = surface(SIDE, SIDE, |column, row| {
            (column - bottom).abs() - 0.1 * row
        });
        Flow::of(&ground(SIDE, &heights))
    }

    #[test]
    fn a_valley_has_one_stream_at_its_bottom() {
        let network = Network::of(&valley(40.0));
        let streams = (0..SIDE * SIDE).filter(|&pixel| network.is_stream[pixel]);
        let columns: Vec<usize> = streams.map(|pixel| pixel % SIDE).collect();
        assert!(columns.len() > SIDE / 2, "{columns:?}");
        assert!(columns.iter().all(|&column| column == 40), "{columns:?}");
    }

    #[test]
    fn streams_agree_within_one_pixel() {
        assert_eq!(agreement(&valley(40.0), &valley(40.0)), 1.0);
        // One valley begins a row before the other at most.
        assert!(agreement(&valley(40.0), &valley(41.0)) > 0.95);
        assert_eq!(agreement(&valley(40.0), &valley(42.0)), 0.0);
    }

    #[test]
    fn without_streams_there_is_no_agreement_to_state() {
        let plane = surface(20, 20, |column, _| column);
        let flow = Flow::of(&ground(20, &plane));
        assert!(agreement(&flow, &flow).is_nan());
    }
}
