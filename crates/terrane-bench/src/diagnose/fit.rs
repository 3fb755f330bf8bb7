//! The amortization gap: tokens, or tokens and all that decodes them, made for every tile by descent.

use std::time::Instant;

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};
use serde::{Deserialize, Serialize};
use terrane_networks::methods::{Method, Model, Precision};
use terrane_train::config::Config;
use terrane_train::data::Dataset;
use terrane_train::evaluate::{Batch, Evaluation};
use terrane_train::measure::Summary;
use terrane_train::training::differentiation::Differentiation;

use super::descent::Descent;
use super::{CurvePoint, State, extend, gain_db, mean_curve, mean_psnr_db};
use crate::Result;

/// What is made for every tile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Freedom {
    /// Its tokens: what an encoder loses by computing them in one pass.
    Tokens,
    /// Its tokens and every weight that decodes them: what sharing the decoder loses as well.
    TokensAndDecoder,
}

/// What was lost by amortisation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fitted {
    /// What was made for every tile.
    pub freedom: Freedom,
    /// How it was made.
    pub descent: Descent,
    /// Numbers that were optimised per tile.
    pub numbers: usize,
    /// Means of what the encoder gives.
    pub amortised: Summary,
    /// Means of what was made for every tile.
    pub fitted: Summary,
    /// The second PSNR less the first.
    pub gap_db: f64,
    /// Time of a tile in the mean, of those that were optimised together.
    pub seconds_per_tile: f64,
    /// Mean PSNR over the steps.
    pub curve: Vec<CurvePoint>,
    /// What the encoder gives, tile by tile.
    pub amortised_tiles: Evaluation,
    /// What was made, tile by tile.
    pub fitted_tiles: Evaluation,
}

/// How tokens are optimised.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FitOptions {
    /// The steps.
    pub descent: Descent,
    /// Tiles that are optimised at once: a matter of speed and memory alone.
    pub batch: usize,
}

/// The tokens of some tiles as weights.
#[derive(Module, Debug)]
struct Tokens {
    values: Param<Tensor<3>>,
}

/// The tokens of a tile and a network of its own.
#[derive(Module, Debug)]
struct Whole {
    tokens: Tokens,
    model: Model,
}

impl Tokens {
    fn new(values: Tensor<3>) -> Self {
        Self {
            values: Param::from_tensor(values),
        }
    }
}

/// Optimises the tokens of every tile from what the encoder gives, with all weights as they are.
pub fn fit_tokens(
    model: &Model,
    config: &Config,
    dataset: &Dataset,
    tiles: &[usize],
    options: FitOptions,
    device: &Device,
    progress: &mut dyn FnMut(State),
) -> Result<Fitted> {
    let descent = options.descent;
    let batches = tiles.chunks(options.batch.max(1));
    let constant = Differentiation::on(device).constant(model.clone());
    let mut gap = Gap::new(Freedom::Tokens, descent, batches.len());
    for numbers in batches {
        let batch = Batch::load(config, dataset, numbers, device)?;
        let start = model.encode(batch.values.clone(), Precision::Full);
        gap.amortised.add(model, config, &batch, &start)?;
        let target = Target::new(&batch, device);
        let errors = |tokens: &Tokens| target.errors(&constant, tokens.values.val());
        let [count, width] = config.method.token_shape();
        gap.numbers = count * width;
        let result = descent.run(
            Tokens::new(start),
            device,
            &errors,
            &mut |step, errors, _| {
                gap.show(step, errors, progress);
                Ok(())
            },
        )?;
        gap.fitted
            .add(model, config, &batch, &result.module.values.val())?;
        gap.end(result.curve);
    }
    gap.finish(tiles.len())
}

/// Optimises the tokens of every tile together with all weights that decode them, one tile after another, each from
/// the trained network.
pub fn upper_bound(
    model: &Model,
    config: &Config,
    dataset: &Dataset,
    tiles: &[usize],
    descent: Descent,
    device: &Device,
    progress: &mut dyn FnMut(State),
) -> Result<Fitted> {
    let mut gap = Gap::new(Freedom::TokensAndDecoder, descent, tiles.len());
    for number in tiles {
        let batch = Batch::load(config, dataset, &[*number], device)?;
        let start = model.encode(batch.values.clone(), Precision::Full);
        gap.amortised.add(model, config, &batch, &start)?;
        let target = Target::new(&batch, device);
        let whole = Whole {
            tokens: Tokens::new(start),
            model: model.clone(),
        };
        let errors = |whole: &Whole| target.errors(&whole.model, whole.tokens.values.val());
        let result = descent.run(whole, device, &errors, &mut |step, errors, _| {
            gap.show(step, errors, progress);
            Ok(())
        })?;
        let Whole { tokens, model } = &result.module;
        gap.fitted
            .add(model, config, &batch, &tokens.values.val())?;
        gap.numbers = result.numbers;
        gap.end(result.curve);
    }
    gap.finish(tiles.len())
}

/// What tiles should become.
struct Target {
    values: Tensor<3>,
    units: Tensor<1>,
}

impl Target {
    fn new(batch: &Batch, device: &Device) -> Self {
        Self {
            values: batch.values.clone(),
            units: Tensor::from_floats(batch.square_units().as_slice(), device),
        }
    }

    /// The mean square error of every tile in heights from 0 to 1.
    fn errors(&self, model: &Model, tokens: Tensor<3>) -> Tensor<1> {
        let decoded = model.decode(tokens, Precision::Full);
        let [tiles, height, width] = decoded.dims();
        let errors = (decoded - self.values.clone())
            .square()
            .reshape([tiles, height * width])
            .mean_dim(1)
            .reshape([tiles]);
        errors * self.units.clone()
    }
}

/// A fit at work.
struct Gap {
    freedom: Freedom,
    descent: Descent,
    batches: usize,
    done: usize,
    numbers: usize,
    amortised: Evaluation,
    fitted: Evaluation,
    curves: Vec<(usize, Vec<f32>)>,
    clock: Instant,
}

impl Gap {
    fn new(freedom: Freedom, descent: Descent, batches: usize) -> Self {
        Self {
            freedom,
            descent,
            batches,
            done: 0,
            numbers: 0,
            amortised: Evaluation::default(),
            fitted: Evaluation::default(),
            curves: Vec::new(),
            clock: Instant::now(),
        }
    }

    fn show(&self, step: usize, errors: &[f32], progress: &mut dyn FnMut(State)) {
        progress(State {
            step: self.done * self.descent.steps + step,
            steps: self.batches * self.descent.steps,
            psnr_db: mean_psnr_db(errors),
        });
    }

    fn end(&mut self, curve: Vec<(usize, Vec<f32>)>) {
        extend(&mut self.curves, curve);
        self.done += 1;
    }

    fn finish(self, tiles: usize) -> Result<Fitted> {
        let (amortised, fitted) = (self.amortised.summary()?, self.fitted.summary()?);
        Ok(Fitted {
            freedom: self.freedom,
            descent: self.descent,
            numbers: self.numbers,
            amortised,
            fitted,
            gap_db: gain_db(&amortised, &fitted),
            seconds_per_tile: self.clock.elapsed().as_secs_f64() / tiles as f64,
            curve: mean_curve(&self.curves),
            amortised_tiles: self.amortised,
            fitted_tiles: self.fitted,
        })
    }
}

#[cfg(test)]
mod tests {
    use terrane_networks::methods::{MethodConfig, functa, huvr, transinr};
    use terrane_train::fixture::{config, dataset};
    use terrane_train::training::{Start, train};

    use super::*;

    fn options(steps: usize, rate: f64, batch: usize) -> FitOptions {
        FitOptions {
            descent: Descent::constant(steps, rate, 5),
            batch,
        }
    }

    fn fit(model: &Model, config: &Config, dataset: &Dataset, options: FitOptions) -> Fitted {
        let tiles = dataset.split("val");
        let device = Device::flex();
        fit_tokens(
            model,
            config,
            dataset,
            &tiles,
            options,
            &device,
            &mut |_| {},
        )
        .unwrap()
    }

    /// A trained network, its configuration and its dataset.
    fn trained(folder: &std::path::Path) -> (Model, Config, Dataset) {
        let dataset = dataset(folder);
        let config = config(&[
            "train.steps=80",
            "train.ema=0",
            "train.batch=4",
            "train.validate_every=0",
        ]);
        let device = Device::flex();
        let run = folder.join("run");
        let model = train(
            &config,
            &dataset,
            &run,
            Start::New,
            &[device],
            None,
            &mut |_| {},
        )
        .unwrap();
        (model, config, dataset)
    }

    #[test]
    fn every_tile_gains_and_none_sees_another() {
        let folder = tempfile::tempdir().unwrap();
        let (model, config, dataset) = trained(folder.path());
        let mut seen = Vec::new();
        let tiles = dataset.split("val");
        let together = fit_tokens(
            &model,
            &config,
            &dataset,
            &tiles,
            options(20, 0.05, 3),
            &Device::flex(),
            &mut |progress| {
                seen.push((progress.step, progress.steps));
            },
        )
        .unwrap();
        assert_eq!(together.numbers, 17 * 8);
        assert_eq!(together.fitted_tiles.tiles, tiles);
        for (before, after) in together
            .amortised_tiles
            .measures
            .iter()
            .zip(&together.fitted_tiles.measures)
        {
            assert!(after.psnr_db > before.psnr_db, "{before:?} {after:?}");
        }
        let steps: Vec<usize> = together.curve.iter().map(|point| point.step).collect();
        assert_eq!(steps, [0, 5, 10, 15, 20]);
        assert!((together.curve[0].psnr_db - together.amortised.mean.psnr_db).abs() < 1e-3);
        assert!((together.curve[4].psnr_db - together.fitted.mean.psnr_db).abs() < 1e-3);
        assert!(together.curve.is_sorted_by(|a, b| a.psnr_db <= b.psnr_db));
        assert_eq!((seen[0], seen[9]), ((0, 40), (40, 40)));

        let section = together.section();
        assert_eq!(section.tables[0].json()[1]["gain_db"], together.gap_db);
        assert_eq!(section.figures.len(), 1);

        let alone = fit(&model, &config, &dataset, options(20, 0.05, 1));
        for (a, b) in together
            .fitted_tiles
            .measures
            .iter()
            .zip(&alone.fitted_tiles.measures)
        {
            assert!((a.psnr_db - b.psnr_db).abs() < 0.01, "{a:?} {b:?}");
        }
    }

    #[test]
    fn steps_that_lead_astray_are_not_kept() {
        let folder = tempfile::tempdir().unwrap();
        let (model, config, dataset) = trained(folder.path());
        for rate in [1e4, f64::NAN] {
            let fitted = fit(&model, &config, &dataset, options(3, rate, 2));
            assert!(fitted.gap_db >= 0.0, "{}", fitted.gap_db);
        }
    }

    #[test]
    fn a_decoder_of_its_own_gives_a_tile_back_better_than_tokens_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let (model, config, dataset) = trained(folder.path());
        let tiles = &dataset.split("val")[..1];
        let device = Device::flex();
        let tokens = fit_tokens(
            &model,
            &config,
            &dataset,
            tiles,
            options(200, 0.1, 1),
            &device,
            &mut |_| {},
        )
        .unwrap();
        let descent = Descent::constant(200, 2e-3, 0);
        let bound = upper_bound(
            &model,
            &config,
            &dataset,
            tiles,
            descent,
            &device,
            &mut |_| {},
        )
        .unwrap();
        assert_eq!(bound.amortised, tokens.amortised);
        assert!(
            bound.gap_db > tokens.gap_db && tokens.gap_db > 0.0,
            "{} {}",
            bound.gap_db,
            tokens.gap_db
        );
        assert_eq!(bound.curve.len(), 2);
        let whole = model.num_params();
        let Model::HuvrSiren(parts) = &model else {
            unreachable!("the configuration is HUVR+SIREN's")
        };
        let frozen =
            parts.input.num_params() + parts.encoder.num_params() + parts.down.num_params();
        assert_eq!(bound.numbers, whole - frozen + 17 * 8);
        // The trained network itself is as it was.
        let again = upper_bound(
            &model,
            &config,
            &dataset,
            tiles,
            Descent::constant(0, 1.0, 0),
            &device,
            &mut |_| {},
        )
        .unwrap();
        assert_eq!((again.gap_db, again.amortised), (0.0, bound.amortised));
    }

    #[test]
    fn every_method_can_be_fitted() {
        let folder = tempfile::tempdir().unwrap();
        let dataset = dataset(folder.path());
        let tiny = config(&[]);
        let MethodConfig::HuvrSiren(siren) = &tiny.method else {
            unreachable!("the configuration is HUVR+SIREN's")
        };
        let huvr = huvr::Config {
            side: 32,
            patch: 8,
            bottleneck: 8,
            encoder: siren.encoder,
            decoder: siren.decoder,
            mlp_width: 16,
            frequencies: 4,
        };
        let functa = functa::Config {
            side: 32,
            latent: 16,
            width: 16,
            sines: 2,
            omega: 30.0,
            inner_steps: 2,
            coordinates: functa::Coordinates::Unit,
        };
        let transinr = transinr::Config {
            side: 32,
            width: 16,
            depth: 1,
            heads: 2,
            hidden: 16,
            groups: 4,
            mlp_depth: 3,
            mlp_width: 16,
            frequencies: 4,
        };
        for method in [
            MethodConfig::Huvr(huvr),
            MethodConfig::Functa(functa),
            MethodConfig::TransInr(transinr),
        ] {
            let config = Config {
                method,
                ..tiny.clone()
            };
            let model = config.method.init(1, &Device::flex());
            let fitted = fit(&model, &config, &dataset, options(5, 0.01, 4));
            assert!(fitted.gap_db > 0.0, "{:?}", config.method);
        }
    }
}
