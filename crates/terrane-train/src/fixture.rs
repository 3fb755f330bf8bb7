//! A network and a dataset that train in milliseconds, for tests.

use std::path::Path;

use terrane_geo::Existing;
use terrane_geo::synthetic::{Recipe, generate};

use crate::config::Config;
use crate::data::{Dataset, DatasetWriter, Source};

/// A network that trains in milliseconds on tiles of 32 pixels.
pub const TINY: &str = r#"
    name = "tiny"
    seed = 3
    [data]
    tiles = 0
    augment = true
    shuffle = true
    normalise = "min-max"
    [method]
    kind = "huvr-siren"
    side = 32
    patch = 8
    bottleneck = 8
    siren_width = 16
    omega = 10.0
    modulation = "amplitude-shift"
    [method.encoder]
    width = 32
    depth = 1
    heads = 2
    [method.decoder]
    width = 32
    depth = 1
    hidden = 32
    attention_heads = 0
    [train]
    steps = 6
    batch = 2
    precision = "full"
    clip_norm = 1.0
    distil = false
    ema = 0.5
    log_every = 1
    validate_every = 3
    checkpoint_every = 3
    [train.optimiser]
    beta1 = 0.9
    beta2 = 0.999
    epsilon = 1e-8
    weight_decay = 0.01
    [train.schedule]
    kind = "cosine"
    peak = 2e-3
    floor = 1e-6
    warmup_steps = 2
"#;

/// [`TINY`] with settings.
pub fn config(settings: &[&str]) -> Config {
    Config::parse(
        TINY,
        &settings.iter().map(ToString::to_string).collect::<Vec<_>>(),
    )
    .expect("settings of tests are sound")
}

/// A source whose name is its split.
pub(crate) fn source(split: &str) -> Source {
    Source {
        file: format!("{split}.tif"),
        region: split.into(),
        country: String::new(),
        split: split.into(),
        resolution_m: 1.0,
        affine: [0.0, 1.0, 0.0, 0.0, 0.0, -1.0],
        is_georeferenced: true,
        geo_keys: (vec![], vec![], String::new()),
    }
}

/// Four tiles to train on and four others.
pub fn dataset(folder: &Path) -> Dataset {
    let mut writer = DatasetWriter::create(&folder.join("set"), 32, Existing::Replace, &[])
        .expect("the folder of a test can be written");
    for (split, seed) in [("train", 1), ("val", 2)] {
        let terrain = generate(&Recipe {
            width: 96,
            height: 96,
            seed,
            nodata_corner: false,
            ..Recipe::default()
        });
        writer.add_source(source(split));
        for (row, column) in [(0, 0), (32, 32), (64, 0), (0, 64)] {
            let tile: Vec<f32> = (row..row + 32)
                .flat_map(|row| terrain.heights[row * 96 + column..][..32].to_vec())
                .collect();
            writer
                .add_tile(column, row, &tile)
                .expect("the folder of a test can be written");
        }
    }
    writer
        .finish()
        .expect("the folder of a test can be written")
}
