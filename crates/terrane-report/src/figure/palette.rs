//! The colours of series.

use crate::page::Colour;

/// Blue, red, green, mauve, amber, sky, dark and brown, on light and on dark paper.
///
/// Found by search near Okabe and Ito's: each two stay apart for every kind of sight, and all stand out from the paper,
/// both of which the tests of this file measure. Marks and dashes differ too.
pub(super) const SERIES: [Colour; 8] = [
    Colour::new("s0", "#0a3d77", "#318ddc"),
    Colour::new("s1", "#a11d00", "#e56724"),
    Colour::new("s2", "#0a8051", "#74efa2"),
    Colour::new("s3", "#b06faf", "#c86b96"),
    Colour::new("s4", "#c97708", "#fdca00"),
    Colour::new("s5", "#1294ec", "#aec7ff"),
    Colour::new("s6", "#473538", "#e3d8df"),
    Colour::new("s7", "#680a08", "#a18662"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::COLOURS;

    type Matrix = [[f64; 3]; 3];

    // Full colour vision, then none of one kind of cone: Machado, Oliveira and Fernandes (2009), severity 1.
    const SIGHTS: [Matrix; 4] = [
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
        [
            [0.152_286, 1.052_583, -0.204_868],
            [0.114_503, 0.786_281, 0.099_216],
            [-0.003_882, -0.048_116, 1.051_998],
        ],
        [
            [0.367_322, 0.860_646, -0.227_968],
            [0.280_085, 0.672_501, 0.047_413],
            [-0.011_820, 0.042_940, 0.968_881],
        ],
        [
            [1.255_528, -0.076_749, -0.178_779],
            [-0.078_411, 0.930_809, 0.147_602],
            [0.004_733, 0.691_367, 0.303_900],
        ],
    ];
    const TO_XYZ: Matrix = [
        [0.4124, 0.3576, 0.1805],
        [0.2126, 0.7152, 0.0722],
        [0.0193, 0.1192, 0.9505],
    ];

    fn linear(hex: &str) -> [f64; 3] {
        std::array::from_fn(|channel| {
            let digits = &hex[1 + 2 * channel..3 + 2 * channel];
            let value = f64::from(u8::from_str_radix(digits, 16).unwrap()) / 255.0;
            if value <= 0.040_45 {
                value / 12.92
            } else {
                ((value + 0.055) / 1.055).powf(2.4)
            }
        })
    }

    fn times(matrix: &Matrix, vector: [f64; 3]) -> [f64; 3] {
        matrix.map(|row| row.iter().zip(vector).map(|(a, b)| a * b).sum())
    }

    fn lab(rgb: [f64; 3]) -> [f64; 3] {
        let white = times(&TO_XYZ, [1.0; 3]);
        let xyz = times(&TO_XYZ, rgb.map(|value| value.clamp(0.0, 1.0)));
        let [x, y, z] = std::array::from_fn(|index| {
            let share = xyz[index] / white[index];
            if share > 0.008_856 {
                share.cbrt()
            } else {
                7.787 * share + 16.0 / 116.0
            }
        });
        [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
    }

    fn contrast(one: &str, other: &str) -> f64 {
        let [one, other] = [one, other].map(|hex| times(&TO_XYZ, linear(hex))[1] + 0.05);
        one.max(other) / one.min(other)
    }

    #[test]
    fn series_stand_out_from_the_paper() {
        let paper = COLOURS
            .iter()
            .find(|colour| colour.name == "paper")
            .unwrap();
        for colour in &SERIES {
            assert!(
                contrast(colour.light, paper.light) >= 3.0,
                "{}",
                colour.name
            );
            assert!(contrast(colour.dark, paper.dark) >= 3.0, "{}", colour.name);
        }
    }

    #[test]
    fn series_stay_apart_for_every_kind_of_sight() {
        // A distance of 2.3 in CIELAB is just noticed.
        for sight in &SIGHTS {
            for (index, one) in SERIES.iter().enumerate() {
                for other in &SERIES[..index] {
                    for (one, other) in [(one.light, other.light), (one.dark, other.dark)] {
                        let [one, other] = [one, other].map(|hex| lab(times(sight, linear(hex))));
                        let apart: f64 = one.iter().zip(other).map(|(a, b)| (a - b).powi(2)).sum();
                        assert!(apart.sqrt() >= 20.0, "{one:?} and {other:?}");
                    }
                }
            }
        }
    }
}
