//! A rate is reached within 2 %, or refused with the two nearest that there are.

use std::path::Path;

use terrane_codec::random::Random;
use terrane_codec::{Profile, Resources};
use terrane_geo::{
    Crs, Existing, Georeference, Grid, Kind, MemoryRaster, Output, SampleType, Storage,
};

use super::Reached;
use crate::{Destination, Encoded, Error, Settings, Target, encode};

/// What heights are like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ground {
    Noise,
    NoisyHills,
    Canopy,
    Hills,
    WholeMetres,
    Plane,
    Stairs,
    Mask,
    HalfNoise,
    Constant,
    Tiny,
}

impl Ground {
    const ALL: [Self; 11] = [
        Self::Noise,
        Self::NoisyHills,
        Self::Canopy,
        Self::Hills,
        Self::WholeMetres,
        Self::Plane,
        Self::Stairs,
        Self::Mask,
        Self::HalfNoise,
        Self::Constant,
        Self::Tiny,
    ];

    /// A raster of it.
    fn raster(self, seed: u64, width: usize, height: usize) -> MemoryRaster {
        let mut random = Random::new(seed, 0x7a7e5);
        let mut part = || random.unit();
        let [a, b] = [part(), part()];
        let heights = (0..width * height).map(|index| {
            let (x, y) = ((index % width) as f64, (index / width) as f64);
            let hills = 600.0
                + 80.0 * (x / 43.0 + a).sin() * (y / 37.0 + b).cos()
                + 4.0 * (x / 7.0 + y / 11.0).sin();
            let (noise, other) = (part(), part());
            let plane = 100.0 + a * x - b * y;
            match self {
                Self::Noise => 1000.0 * noise,
                Self::NoisyHills => hills + 20.0 * noise,
                Self::Canopy if noise < 0.3 => hills + 30.0 * other,
                Self::Canopy | Self::Hills => hills + 0.05 * noise,
                Self::WholeMetres => (hills + 3.0 * noise).round(),
                Self::Plane => plane,
                Self::Stairs => 5.0 * (plane / 5.0).floor(),
                Self::Mask if (x / 29.0).sin() + (y / 31.0 + a).cos() > 0.9 => f64::NAN,
                Self::Mask => hills + 2.0 * noise,
                Self::HalfNoise if y < x => 100.0 * noise,
                Self::HalfNoise => 50.0,
                Self::Constant => 431.25,
                Self::Tiny => 10.0 * noise,
            }
        });
        let heights = heights.map(|height| f64::from(height as f32)).collect();
        let sample = match self {
            Self::WholeMetres => SampleType::I16,
            _ => SampleType::F32,
        };
        MemoryRaster::new(
            format!("{self:?}"),
            Grid::new(width, height, heights),
            Georeference::of_pixels(Crs::default()),
            Storage::metres(sample, None),
        )
    }
}

fn settings(profile: Profile, effort: u8, target: Target) -> Settings {
    Settings {
        profile,
        effort,
        target,
        ..Settings::default()
    }
}

/// Encodes a raster; also counts the encodings of it all.
fn tried(
    raster: &MemoryRaster,
    settings: &Settings,
    out: &Path,
) -> (crate::Result<Encoded>, usize) {
    let resources = Resources::of_jobs(1);
    let destination = Destination {
        out: Output::new(out, Existing::Replace, Kind::Terrain),
        resumable: None,
        resources,
    };
    let prepared = settings.prepare(resources.memory).unwrap();
    let mut tries = 0;
    let encoded = encode(raster, &prepared, destination, &mut |at| {
        tries += usize::from(at.tiles == at.of);
        Ok(())
    });
    (encoded, tries)
}

fn bpp(encoded: &Encoded) -> f64 {
    encoded.bytes as f64 * 8.0 / encoded.measured.pixels as f64
}

fn is_within(reached: f64, target: f64) -> bool {
    (reached / target - 1.0).abs() <= 0.02
}

/// How a rate that was asked for ended.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Outcome {
    Reached,
    Lossless,
    /// With the nearest below and above.
    Refused(Option<f64>, Option<f64>),
}

/// Asks for bits per pixel, and checks that what comes of it is what was promised.
fn ask(raster: &MemoryRaster, profile: Profile, effort: u8, target: f64) -> (Outcome, f64, usize) {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("x.trn");
    let (encoded, tries) = tried(
        raster,
        &settings(profile, effort, Target::Bpp(target)),
        &out,
    );
    let encoded = match encoded {
        Ok(encoded) => encoded,
        Err(Error::Unreachable { below, above, .. }) => {
            assert!(below.is_none_or(|below| below < 0.98 * target), "{below:?}");
            assert!(above.is_none_or(|above| above > 1.02 * target), "{above:?}");
            assert!(below.or(above).is_some() && !out.exists());
            return (Outcome::Refused(below, above), 0.0, tries);
        }
        Err(error) => panic!("{error}"),
    };
    assert_eq!(std::fs::metadata(&out).unwrap().len(), encoded.bytes);
    let reached = bpp(&encoded);
    let miss = reached / target - 1.0;
    if encoded.reached == Reached::Lossless {
        assert_eq!(encoded.measured.max_error_m, 0.0);
        assert!(miss < 0.02, "{reached} for {target}");
        return (Outcome::Lossless, 0.0, tries);
    }
    assert!(
        is_within(reached, target),
        "{reached} for {target}: {profile:?}, effort {effort}, {}",
        raster_name(raster)
    );
    (Outcome::Reached, miss.abs(), tries)
}

fn raster_name(raster: &MemoryRaster) -> String {
    use terrane_geo::RasterSource;
    raster.info().path.display().to_string()
}

fn lossless(raster: &MemoryRaster, profile: Profile) -> f64 {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("x.trn");
    bpp(
        &tried(raster, &settings(profile, 1, Target::Lossless), &out)
            .0
            .unwrap(),
    )
}

#[test]
fn noise_whose_symbols_become_zeros_all_at_once_has_every_rate() {
    let raster = Ground::Noise.raster(1, 340, 300);
    for target in [0.3, 0.5, 1.0, 1.5, 2.0] {
        let (outcome, ..) = ask(&raster, Profile::Fast, 1, target);
        assert_eq!(outcome, Outcome::Reached, "{target}");
    }
}

#[test]
fn noise_has_every_error() {
    let raster = Ground::Noise.raster(1, 340, 300);
    let folder = tempfile::tempdir().unwrap();
    for target in [140.0, 200.0, 260.0] {
        let settings = settings(Profile::Fast, 1, Target::Rmse(target));
        let encoded = tried(&raster, &settings, &folder.path().join("x.trn"))
            .0
            .unwrap();
        let reached = encoded.measured.rmse_m();
        assert!(is_within(reached, target), "{reached} for {target}");
        assert_eq!(encoded.reached, Reached::Target);
    }
}

#[test]
fn hills_with_noise_and_canopy_have_every_rate() {
    for ground in [Ground::NoisyHills, Ground::Canopy] {
        let raster = ground.raster(2, 340, 300);
        let (outcome, ..) = ask(&raster, Profile::Standard, 1, 1.0);
        assert_eq!(outcome, Outcome::Reached, "{ground:?}");
    }
}

#[test]
fn more_than_the_lossless_file_takes_gives_that_file() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("x.trn");
    for (ground, rates) in [
        (Ground::NoisyHills, [30.0, 100.0]),
        (Ground::WholeMetres, [6.0, 100.0]),
        (Ground::Stairs, [2.0, 8.0]),
        (Ground::Constant, [1.0, 8.0]),
    ] {
        let raster = ground.raster(3, 200, 200);
        let whole = lossless(&raster, Profile::Fast);
        for target in rates {
            assert!(whole <= target, "{ground:?}: {whole}");
            let settings = settings(Profile::Fast, 1, Target::Bpp(target));
            let encoded = tried(&raster, &settings, &out).0.unwrap();
            assert_eq!(encoded.reached, Reached::Lossless, "{ground:?}, {target}");
            assert!((bpp(&encoded) - whole).abs() < 1e-9 && encoded.measured.max_error_m == 0.0);
        }
    }
}

#[test]
fn an_error_below_all_others_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("x.trn");
    for (ground, target) in [
        (Ground::WholeMetres, 0.01),
        (Ground::Hills, 1e-9),
        (Ground::Constant, 0.1),
    ] {
        let raster = ground.raster(4, 150, 150);
        let settings = settings(Profile::Fast, 1, Target::Rmse(target));
        let encoded = tried(&raster, &settings, &out).0.unwrap();
        assert_eq!(encoded.reached, Reached::Lossless, "{ground:?}");
        assert_eq!(encoded.measured.max_error_m, 0.0);
    }
}

#[test]
fn an_error_above_all_others_gives_the_smallest_file() {
    let raster = Ground::Plane.raster(5, 150, 150);
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("x.trn");
    let settings = settings(Profile::Fast, 1, Target::Rmse(1e4));
    let encoded = tried(&raster, &settings, &out).0.unwrap();
    assert_eq!(encoded.reached, Reached::Smallest);
    assert!(encoded.measured.rmse_m() > 1.0 && bpp(&encoded) < 0.5);
}

#[test]
fn what_there_is_not_is_refused_with_the_nearest() {
    let raster = Ground::Hills.raster(6, 100, 100);
    let (outcome, ..) = ask(&raster, Profile::Fast, 1, 0.001);
    let Outcome::Refused(None, Some(above)) = outcome else {
        panic!("{outcome:?}");
    };
    let error = Error::Unreachable {
        what: "rate",
        target: 0.5,
        below: Some(above),
        above: Some(1.0),
    };
    let text = format!(
        "a rate of 0.5 cannot be reached: the nearest that there are are {above:.4} and 1.0000"
    );
    assert_eq!(error.to_string(), text);
}

#[test]
fn ordinary_terrain_takes_few_tries() {
    let raster = Ground::Hills.raster(7, 300, 200);
    for target in [0.5, 1.0, 3.0] {
        let (outcome, _, tries) = ask(&raster, Profile::Fast, 1, target);
        assert_eq!(outcome, Outcome::Reached);
        assert!(tries <= 8, "{tries} tries for {target}");
    }
}

/// Counts of the cases of one ground.
#[derive(Debug, Default, Clone, Copy)]
struct Counts {
    reached: usize,
    lossless: usize,
    /// Those between 0.1 bits per pixel and three quarters of the lossless file, and how many of them were refused.
    between: usize,
    refused: usize,
    /// Refused because the smallest file there is takes more.
    too_small: usize,
    worst: f64,
    tries: usize,
}

/// Asks rasters of every ground for rates, with every profile and effort.
fn ask_all(numbers: std::ops::Range<u64>, profiles: &[Profile], efforts: &[u8]) -> Vec<Counts> {
    let mut counts = vec![Counts::default(); Ground::ALL.len()];
    for number in numbers {
        let mut random = Random::new(number, 0x9a7e);
        let mut pick = |bound: usize| random.below(bound);
        let kind = (number % Ground::ALL.len() as u64) as usize;
        let ground = Ground::ALL[kind];
        let (width, height) = match ground {
            Ground::Tiny => (1 + pick(60), 1 + pick(60)),
            _ => (160 + pick(181), 160 + pick(121)),
        };
        let raster = ground.raster(number, width, height);
        for &profile in profiles {
            let whole = lossless(&raster, profile);
            for &effort in efforts {
                // One in five at or above the lossless file.
                let (low, high) = match pick(5) {
                    0 => (whole, 3.0 * whole),
                    _ => (0.1, (0.75 * whole).max(0.1)),
                };
                let target = low * (high / low).powf(pick(1001) as f64 / 1000.0);
                let (outcome, miss, tries) = ask(&raster, profile, effort, target);
                let is_between = target >= 0.1 && target < 0.75 * whole;
                let count = &mut counts[kind];
                count.tries += tries;
                count.between += usize::from(is_between);
                count.worst = count.worst.max(miss);
                match outcome {
                    Outcome::Reached => count.reached += 1,
                    Outcome::Lossless => {
                        count.lossless += 1;
                        assert!(whole <= target * 1.02, "{ground:?}: {whole} for {target}");
                    }
                    Outcome::Refused(below, above) => {
                        println!(
                            "{number} {ground:?} {width}x{height} {profile:?} effort {effort}: {target:.4} refused, {below:?} {above:?}, lossless {whole:.4}"
                        );
                        assert!(target < whole, "{ground:?}: {whole} for {target}");
                        count.refused += usize::from(is_between);
                        count.too_small += usize::from(is_between && below.is_none());
                    }
                }
            }
        }
    }
    counts
}

fn sum(counts: &[Counts], of: impl Fn(&Counts) -> usize) -> usize {
    counts.iter().map(of).sum()
}

#[test]
fn rates_of_generated_rasters_are_reached_or_refused() {
    let counts = ask_all(0..11, &[Profile::Fast], &[0, 1]);
    assert!(sum(&counts, |count| count.reached) >= 10, "{counts:?}");
}

/// `just test-rates COUNT`: the table of so many rasters.
#[test]
#[ignore = "takes minutes"]
fn rates_of_many_generated_rasters() {
    let count = std::env::var("TERRANE_COUNT").ok();
    let count = count.and_then(|text| text.parse().ok()).unwrap_or(200);
    let counts = ask_all(0..count, &Profile::ALL, &[0, 1, 2, 3]);
    println!(
        "ground | reached | lossless | refused of those between | below the smallest | worst miss | tries"
    );
    for (ground, count) in Ground::ALL.iter().zip(&counts) {
        let Counts {
            reached,
            lossless,
            between,
            refused,
            too_small,
            worst,
            tries,
        } = count;
        println!(
            "{ground:?} | {reached} | {lossless} | {refused} of {between} | {too_small} | {:.2} % | {tries}",
            100.0 * worst
        );
    }
    // No file is smaller than its head, which is most of a tiny one.
    let (refused, too_small) = (
        sum(&counts, |count| count.refused),
        sum(&counts, |count| count.too_small),
    );
    let between = sum(&counts, |count| count.between);
    println!("refused {refused} of {between}, {too_small} of them below the smallest file");
    assert!((refused - too_small) * 20 <= between);
    let of_tiny = |of: fn(&Counts) -> usize| of(&counts[Ground::ALL.len() - 1]);
    let (tiny, among) = (
        of_tiny(|count| count.refused),
        of_tiny(|count| count.between),
    );
    assert!((refused - tiny) * 20 <= between - among);
}
