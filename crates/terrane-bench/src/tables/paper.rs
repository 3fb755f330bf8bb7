//! What the paper reports, to stand beside what we measure; its figures were measured on other data.

/// One row of the paper's tables.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct PaperRow {
    /// Peak signal-to-noise ratio.
    pub psnr_db: f64,
    /// Root mean square height error.
    pub rmse_m: f64,
    /// Gradient error in metres per pixel.
    pub gradient: f64,
    /// Laplacian error in metres per pixel².
    pub laplacian: f64,
}

const ROWS: [(&str, [f64; 4]); 15] = [
    ("transinr", [41.56, 0.222, 0.095, 0.103]),
    ("functa", [35.00, 0.498, 0.115, 0.095]),
    ("huvr", [48.86, 0.092, 0.068, 0.091]),
    ("huvr-siren", [51.69, 0.0655, 0.0527, 0.0756]),
    ("p8", [56.59, 0.0368, 0.0298, 0.0467]),
    ("p32", [46.65, 0.1195, 0.0767, 0.0918]),
    ("d16", [49.20, 0.0885, 0.0646, 0.0858]),
    ("d128", [53.52, 0.0529, 0.0442, 0.0662]),
    ("d256", [53.24, 0.0546, 0.0450, 0.0671]),
    ("d768", [53.92, 0.0505, 0.0423, 0.0637]),
    ("omega5", [50.78, 0.0729, 0.0573, 0.0799]),
    ("omega30", [51.95, 0.0635, 0.0517, 0.0746]),
    ("amplitude", [51.24, 0.0690, 0.0551, 0.0780]),
    ("shift", [51.07, 0.0705, 0.0561, 0.0790]),
    ("incode", [50.33, 0.0771, 0.0588, 0.0809]),
];

/// PSNR after the same number of steps on the first 64, 256, 1024 and all 3338 tiles, without augmentation.
pub(crate) const SCALING: [(usize, f64); 4] =
    [(64, 44.16), (256, 50.41), (1024, 51.68), (3338, 51.62)];

/// Bits per symbol, bits per pixel at Shannon's bound, PSNR and RMSE of the quantised tokens.
pub(crate) const QUANTISED: [(u8, f64, f64, f64); 4] = [
    (16, 1.009, 51.6903, 0.0655),
    (8, 0.822, 51.5427, 0.0667),
    (4, 0.381, 42.9898, 0.2069),
    (2, 0.128, 27.9307, 1.2190),
];

/// PSNR of the amortised tokens, of tokens fitted to their tile, and of everything behind them fitted as well.
pub(crate) const AMORTISATION: [f64; 3] = [51.69, 53.05, 58.95];

/// Boundary minus interior PSNR by variant.
pub(crate) const SEAMS: [(&str, f64); 5] = [
    ("huvr-siren", -1.09),
    ("p8", -0.18),
    ("p32", -1.74),
    ("d16", -1.54),
    ("d768", -0.77),
];

/// PSNR and RMSE by regime (flat, hilly, rugged) of each method.
pub(crate) const REGIMES: [(&str, [[f64; 2]; 3]); 4] = [
    ("transinr", [[41.56, 0.10], [41.21, 0.24], [41.91, 0.33]]),
    ("functa", [[35.69, 0.19], [34.45, 0.53], [34.85, 0.77]]),
    ("huvr", [[47.96, 0.04], [49.01, 0.10], [49.61, 0.14]]),
    ("huvr-siren", [[50.47, 0.03], [51.95, 0.07], [52.66, 0.10]]),
];

/// Milliseconds of one decoding on an RTX A5000.
pub(crate) const WALL_CLOCK_MS: [(&str, f64); 3] =
    [("huvr", 15.96), ("huvr-siren", 18.11), ("transinr", 18.31)];

/// The paper's row of a method or a variant.
pub(crate) fn row(name: &str) -> Option<PaperRow> {
    let (_, [psnr_db, rmse_m, gradient, laplacian]) = ROWS.iter().find(|(key, _)| *key == name)?;
    Some(PaperRow {
        psnr_db: *psnr_db,
        rmse_m: *rmse_m,
        gradient: *gradient,
        laplacian: *laplacian,
    })
}
