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
    ("huvr-siren", [FLOATS.0, FLOATS.1, 0.0527, 0.0756]),
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

/// PSNR of the last of these with augmentation, which is the paper's HUVR+SIREN.
pub(crate) const AUGMENTED: f64 = FLOATS.0;

/// Numbers stored for a tile, and bits per pixel as 32-bit floats, of each method in the order of its table.
pub(crate) const PAYLOAD: [(&str, usize, f64); 4] = [
    ("functa", 512, 0.250),
    ("huvr", 8224, 4.016),
    ("huvr-siren", 8224, 4.016),
    ("transinr", 197_376, 96.375),
];

/// GFLOPs for a tile: a training step's share, inference, encoder, decoder, coordinate network.
pub(crate) const FLOPS: [(&str, [f64; 5]); 4] = [
    ("transinr", [431.5, 143.8, 109.2, 0.10, 34.6]),
    ("functa", [8698.7, 4832.6, 0.0, 0.02, 483.3]),
    ("huvr", [285.8, 95.3, 46.6, 27.05, 21.6]),
    ("huvr-siren", [275.9, 92.0, 46.6, 27.86, 17.5]),
];

/// Thousands of FLOPs at a point, of HUVR's and HUVR+SIREN's coordinate networks.
pub(crate) const POINT_KFLOP: [(&str, f64); 2] = [("huvr", 329.0), ("huvr-siren", 268.0)];

/// Parameters of HUVR+SIREN's network of sines, from the text.
pub(crate) const SIREN_PARAMETERS: u64 = 132_609;

/// What the paper says of the two coordinate networks: activation, depth and width, output, upsampler.
pub(crate) const NETWORKS: [(&str, [&str; 4]); 2] = [
    (
        "huvr",
        [
            "ReLU",
            "3 × 256",
            "centre of a patch",
            "conv, pixel shuffle",
        ],
    ),
    (
        "huvr-siren",
        ["SIREN, ω₀ 10", "4 × 256", "every pixel", "none"],
    ),
];

/// How a method was trained.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Hyperparameters {
    /// Its optimiser.
    pub optimiser: &'static str,
    /// Learning rate.
    pub rate: f64,
    /// How the rate falls.
    pub schedule: &'static str,
    /// Weight decay, where it is stated.
    pub weight_decay: Option<f64>,
    /// Passes over the training tiles.
    pub epochs: usize,
    /// Tiles of a step.
    pub batch: usize,
}

/// Training tiles, of which the last that do not fill a step are left out of a pass.
pub(crate) const TRAINING_TILES: usize = 3338;

/// How each method was trained.
pub(crate) const HYPERPARAMETERS: [(&str, Hyperparameters); 4] = [
    (
        "transinr",
        Hyperparameters {
            optimiser: "Adam",
            rate: 1e-4,
            schedule: "step at 80 %",
            weight_decay: None,
            epochs: 1000,
            batch: 8,
        },
    ),
    (
        "functa",
        Hyperparameters {
            optimiser: "Adam",
            rate: 5e-5,
            schedule: "cosine",
            weight_decay: None,
            epochs: 200,
            batch: 8,
        },
    ),
    ("huvr", HUVR_TRAINING),
    ("huvr-siren", HUVR_TRAINING),
];

const HUVR_TRAINING: Hyperparameters = Hyperparameters {
    optimiser: "AdamW",
    rate: 1e-4,
    schedule: "cosine",
    weight_decay: Some(0.05),
    epochs: 200,
    batch: 32,
};

impl Hyperparameters {
    /// Steps of the whole training.
    pub(crate) fn steps(&self) -> usize {
        TRAINING_TILES / self.batch * self.epochs
    }
}

/// The worst gradient error in m/px and the worst Laplacian error in m/px².
pub(crate) const WORST: [(&str, [f64; 2]); 2] =
    [("huvr", [4.73, 5.77]), ("huvr-siren", [3.79, 4.67])];

/// Differences from HUVR+SIREN as they are printed, in PSNR, gradient, Laplacian, and PSNR on the training tiles.
pub(crate) const CHANGES: [(&str, [f64; 4]); 11] = [
    ("p8", [4.90, -0.0229, -0.0289, 4.52]),
    ("p32", [-5.04, 0.0239, 0.0162, -4.94]),
    ("d16", [-2.49, 0.0118, 0.0103, -2.17]),
    ("d128", [1.82, -0.0085, -0.0093, 1.89]),
    ("d256", [1.55, -0.0077, -0.0084, 1.51]),
    ("d768", [2.22, -0.0104, -0.0118, 1.89]),
    ("omega5", [-0.91, 0.0045, 0.0043, -0.92]),
    ("omega30", [0.26, -0.0010, -0.0010, 0.26]),
    ("amplitude", [-0.45, 0.0024, 0.0024, -0.48]),
    ("shift", [-0.62, 0.0034, 0.0034, -0.71]),
    ("incode", [-1.36, 0.0061, 0.0053, -1.12]),
];

/// PSNR that HUVR+SIREN has over HUVR, and with 8 bits per symbol over HUVR's floats, and how many times fewer bits those take.
pub(crate) const OVER_HUVR_DB: f64 = 2.83;
/// The second of them.
pub(crate) const INT8_OVER_HUVR_DB: f64 = 2.68;
/// The third of them.
pub(crate) const INT8_TIMES_SMALLER: f64 = 4.9;

/// PSNR and RMSE of HUVR+SIREN, whose tokens are floats, with the digits of the detailed table.
pub(crate) const FLOATS: (f64, f64) = (51.6907, 0.0655);

/// Bits per symbol, and bits per pixel in a fixed width with the steps.
pub(crate) const FIXED: [(u8, f64); 4] = [(16, 2.016), (8, 1.012), (4, 0.510), (2, 0.259)];

/// What the tokens of the training tiles' patches hold.
pub(crate) struct TokenNumbers {
    /// Patches.
    pub tokens: usize,
    /// Directions with 95 % of the variance.
    pub rank_95: usize,
    /// Participation ratio of the variances.
    pub participation_ratio: f64,
    /// The largest correlation of a dimension with the mean height of its patch.
    pub max_pearson: f64,
    /// What all correlations stay below, partial ones too.
    pub below: f64,
    /// Neighbours of a patch.
    pub k: usize,
    /// Patches among which they are looked for.
    pub pool: usize,
    /// Shared neighbours.
    pub shared: f64,
}

/// The structure of HUVR+SIREN's tokens.
pub(crate) const TOKENS: TokenNumbers = TokenNumbers {
    tokens: 854_528,
    rank_95: 5,
    participation_ratio: 1.85,
    max_pearson: 0.072,
    below: 0.08,
    k: 10,
    pool: 500,
    shared: 0.11,
};

/// Steps and tiles of fitting everything behind the tokens; those of fitting tokens are not stated.
pub(crate) const BOUND: (usize, usize) = (5000, 32);

/// Tiles of the test split.
pub(crate) const TEST_TILES: usize = 432;

/// Bits per symbol, bits per pixel at Shannon's bound, PSNR and RMSE of the quantised tokens.
pub(crate) const QUANTISED: [(u8, f64, f64, f64); 4] = [
    (16, 1.009, 51.6903, 0.0655),
    (8, 0.822, 51.5427, 0.0667),
    (4, 0.381, 42.9898, 0.2069),
    (2, 0.128, 27.9307, 1.2190),
];

/// PSNR of the amortised tokens, of tokens fitted to their tile, and of everything behind them fitted as well.
pub(crate) const AMORTISATION: [f64; 3] = [FLOATS.0, 53.05, 58.95];

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

/// How a method was trained; variants of HUVR+SIREN as it.
pub(crate) fn hyperparameters(method: &str) -> Hyperparameters {
    let known = HYPERPARAMETERS.iter().find(|(name, _)| *name == method);
    known.map_or(HUVR_TRAINING, |(_, values)| *values)
}

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

/// What its text adds to its tables, in percent where that is said.
pub(crate) mod text {
    /// HUVR+SIREN's errors in heights, gradients and Laplacians against HUVR's, in percent.
    pub(crate) const ERRORS_AGAINST_HUVR: [f64; 3] = [-28.0, -23.0, -17.0];
    /// Its worst errors in gradients and Laplacians against HUVR's, in percent.
    pub(crate) const WORST_AGAINST_HUVR: [f64; 2] = [-20.0, -19.0];
    /// PSNR that HUVR has over others.
    pub(crate) const HUVR_OVER_DB: [(&str, f64); 2] = [("transinr", 7.3), ("functa", 13.9)];
    /// Operations of a training step and of inference, as multiples of HUVR+SIREN's, where they are stated.
    pub(crate) const TIMES_OPERATIONS: [(&str, Option<f64>, f64); 3] = [
        ("transinr", Some(1.56), 1.56),
        ("functa", Some(31.5), 52.5),
        ("huvr", None, 1.04),
    ];
    /// Bits per pixel of TransINR's floats as a multiple of HUVR's.
    pub(crate) const TRANSINR_TIMES_FLOATS: f64 = 24.0;
    /// Numbers of a tile with patches of 8.
    pub(crate) const P8_FLOATS: f64 = 32_800.0;
    /// Bits per pixel of floats with 128 dimensions.
    pub(crate) const D128_BPP: f64 = 16.06;
    /// PSNR that 256 dimensions have over 128.
    pub(crate) const D256_OVER_D128_DB: f64 = -0.27;
    /// Operations of HUVR+SIREN's coordinate network at a point against HUVR's, in percent.
    pub(crate) const POINT_AGAINST_HUVR: f64 = -19.0;
    /// PSNR that all tiles have over 1024, and that turned and flipped ones have over all.
    pub(crate) const MORE_TILES_DB: f64 = -0.06;
    /// The second of them.
    pub(crate) const AUGMENTED_DB: f64 = 0.07;
}
