//! How a damaged file was encoded, as far as it says.

use std::path::PathBuf;

use terrane_codec::format::salvage::Traces;
use terrane_codec::format::{Coding, ErrorBound, LevelTile, Method, Reader, Record, Stored};
use terrane_codec::{Profile, Rate, Resources};

use crate::open::{MODELS, ModelFile, read_model};
use crate::settings::MAX_EFFORT;
use crate::{Error, Prepared, Result, Settings, Target};

/// What somebody knows of how a file was encoded, for what the file does not say. Only what is lost is taken from here.
#[derive(Debug, Clone, Default)]
pub struct Hints {
    /// What it was to reach.
    pub target: Target,
    /// Whether every tile was to reach it by itself.
    pub per_tile: bool,
    /// The method.
    pub method: Option<Method>,
    /// Which of the context codec's models.
    pub profile: Option<Profile>,
    /// How hard the context codec tried.
    pub effort: Option<u8>,
    /// The model's file, where it is neither in the file nor in the program.
    pub model: Option<PathBuf>,
    /// Side of a tile.
    pub tile: Option<u16>,
    /// Bits of a token's symbol.
    pub bits: Option<u8>,
    /// Whether symbols are stored in their width.
    pub fixed_width: bool,
}

/// Trees that are asked for their step, and steps that are tried.
const ASKED: usize = 256;
const STEPS: usize = 4;

/// Efforts to try, the usual one first.
fn efforts(hints: &Hints, method: Method) -> Vec<u8> {
    match hints.effort {
        Some(effort) => vec![effort],
        None if method.stored() == Stored::Wavelet => {
            let usual = Settings::default().effort;
            let others = (0..=MAX_EFFORT).filter(|&effort| effort != usual);
            [usual].into_iter().chain(others).collect()
        }
        None => vec![Settings::default().effort],
    }
}

/// The model of a file whose head is known: the one that was given, one of the program, or the one inside the file.
pub(super) fn model(
    reader: &Reader,
    hints: &Hints,
    resources: Resources,
) -> Result<Option<ModelFile>> {
    let Some(id) = &reader.header().model else {
        return Ok(None);
    };
    let found = if let Some(path) = &hints.model {
        read_model(path, resources.memory)?
    } else if let Some(model) = MODELS.built_in(&id.sha256)
        && let Some(bytes) = MODELS.built_in_bytes(&id.sha256)
    {
        (model, bytes.to_vec())
    } else {
        let bytes = reader.embedded_model(resources.memory)?;
        let bytes = bytes.ok_or(Error::Terrain(terrane_codec::Error::NoModel))?;
        let model = MODELS.load(&bytes, resources.memory);
        (model.map_err(terrane_codec::Error::from)?, bytes)
    };
    if found.0.sha256() == id.sha256 {
        return Ok(Some(found));
    }
    Err(Error::Terrain(terrane_codec::Error::OtherModel {
        name: id.name.clone(),
        expected: hex::encode(id.sha256),
        found: hex::encode(found.0.sha256()),
    }))
}

/// The step that a record says, where it is that of the whole tree.
fn step_of(reader: &Reader, root: LevelTile) -> Option<f64> {
    let pyramid = &reader.header().pyramid;
    let bytes = reader.bytes(root).ok()??;
    let window = pyramid.window(root).ok()?;
    let record = Record::parse(&bytes, pyramid.number(root).ok()?, window, None).ok()?;
    record.step_m()
}

/// The rates that a file may have been encoded at.
fn rates(reader: &Reader, hints: &Hints) -> Vec<Rate> {
    let header = reader.header();
    match header.bound {
        ErrorBound::MaxError(bound) => return vec![Rate::MaxError(bound)],
        ErrorBound::Lossless { .. } => return vec![Rate::Lossless],
        ErrorBound::None => {}
    }
    match hints.target {
        Target::Rmse(target) if hints.per_tile => return vec![Rate::Rmse(target)],
        Target::Bpp(target) if hints.per_tile => return vec![Rate::Bpp(target)],
        _ => {}
    }
    // One step for all: that of most trees that are whole. Flat ground has another.
    let mut steps: Vec<(f64, usize)> = Vec::new();
    let roots = (0..header.pyramid.trees()).filter_map(|number| header.pyramid.tree(number));
    let finest = roots.filter(|root| header.pyramid.storey(root.level) == 0);
    for step_m in finest.filter_map(|root| step_of(reader, root)).take(ASKED) {
        match steps.iter_mut().find(|(step, _)| *step == step_m) {
            Some((_, count)) => *count += 1,
            None => steps.push((step_m, 1)),
        }
    }
    steps.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
    let mut rates: Vec<Rate> = steps.iter().map(|&(step, _)| Rate::Step(step)).collect();
    rates.truncate(STEPS);
    if header.method.has_tokens() {
        rates.insert(0, Rate::Tokens);
    }
    rates
}

/// The ways in which a file whose head is known may have been encoded, the most likely first.
pub(super) fn of_head(
    reader: &Reader,
    hints: &Hints,
    resources: Resources,
) -> Result<Vec<Prepared>> {
    let header = reader.header();
    let model = model(reader, hints, resources)?;
    let tokens = (
        hints.bits.unwrap_or(8),
        if hints.fixed_width {
            Coding::Fixed
        } else {
            Coding::Shortest
        },
    );
    let mut ways = Vec::new();
    for rate in rates(reader, hints) {
        for effort in efforts(hints, header.method) {
            ways.push(Prepared::of_file(
                header,
                model.clone(),
                rate,
                effort,
                tokens,
            ));
        }
    }
    Ok(ways)
}

/// The ways in which a file whose head is lost may have been encoded, but for whether its model is inside.
pub(super) fn of_traces(start: &[u8], traces: &Traces, hints: &Hints) -> Vec<Settings> {
    let both = |hint, trace, usual| match hint {
        Some(hint) => vec![Some(hint)],
        None => distinct([trace, usual]),
    };
    let usual = Settings::default();
    let methods = both(hints.method, traces.method, Some(Method::Context));
    let sides = match hints.tile {
        Some(tile) => vec![Some(tile)],
        None => distinct([traces.side, usual.tile]),
    };
    let traced = match traces.bound {
        Some(ErrorBound::MaxError(bound)) => Some(Target::MaxError(bound)),
        Some(ErrorBound::Lossless { .. }) => Some(Target::Lossless),
        _ => None,
    };
    let targets = match hints.target {
        Target::Default => distinct([traced.unwrap_or_default(), Target::Default]),
        target => vec![target],
    };
    let profiles = match hints.profile {
        Some(profile) => vec![profile],
        None => likely_profiles(start),
    };
    let mut ways = Vec::new();
    for target in targets {
        for &method in &methods {
            for &tile in &sides {
                for &profile in &profiles {
                    for effort in efforts(hints, method.unwrap_or(Method::Context)) {
                        ways.push(Settings {
                            method,
                            profile,
                            effort,
                            model: hints.model.clone(),
                            embed_model: false,
                            target,
                            per_tile: hints.per_tile,
                            bits: hints.bits,
                            fixed_width: hints.fixed_width,
                            tile,
                        });
                    }
                }
            }
        }
    }
    ways
}

/// The profiles whose models the first bytes of a file name, or all.
fn likely_profiles(start: &[u8]) -> Vec<Profile> {
    let is_named = |profile: &Profile| {
        let sha256 = profile.model().sha256();
        start.windows(sha256.len()).any(|bytes| bytes == sha256)
    };
    if let Some(named) = Profile::ALL.into_iter().find(is_named) {
        return vec![named];
    }
    let usual = Settings::default().profile;
    let mut profiles = Profile::ALL.to_vec();
    profiles.sort_by_key(|&profile| profile != usual);
    profiles
}

fn distinct<T: PartialEq + Copy>([first, second]: [T; 2]) -> Vec<T> {
    if first == second {
        vec![first]
    } else {
        vec![first, second]
    }
}
