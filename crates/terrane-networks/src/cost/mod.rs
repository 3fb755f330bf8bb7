//! What the four methods cost: parameters, payload and FLOPs from plain sizes, without building a network.
//!
//! The paper does not print its counts of elementwise operations; those below are chosen so that its table comes out.

mod functa;
mod huvr;
mod transinr;

pub use functa::FunctaShape;
pub use huvr::{HuvrShape, Modulation};
pub use transinr::TransInrShape;

const SOFTMAX: usize = 5; // scale, shift, exponential, sum, division
const NORM: usize = 5; // mean, variance, standardisation, gain, offset
const GELU: usize = 10; // exact: an error function counted as the polynomial and exponential that evaluate it
const SILU: usize = 4; // negation, exponential, sum, division
// Product with the base weight, division by the column's norm. The norm itself is not counted: with it HUVR's training
// step would pass the figure that the paper prints.
const FORMED_WEIGHT: usize = 2;
const BACKWARD: u64 = 2; // in units of a forward pass, as the paper states it
const CHANNELS: usize = 3; // of a pixel at the entry of a vision transformer and at HUVR's exit

/// What is counted as a floating-point operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Convention {
    /// The paper's table: products, biases and elementwise operations; attention in the decoder of the HUVR family
    /// whether it is there or not; HUVR's MLP at every pixel, but not its upsampler, heads and projection down.
    Paper,
    /// The network as it runs: all its products and no others, with biases and elementwise operations only in the
    /// coordinate network.
    AsRun,
}

/// What a method holds, stores for a tile, and computes for a tile in FLOPs; only the FLOPs follow the convention.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// Parameters by part, in the order in which data pass through them.
    pub parts: Vec<(&'static str, u64)>,
    /// Numbers stored.
    pub payload_floats: usize,
    /// Scales stored beside quantised numbers: one for each dimension of a token.
    pub scales: usize,
    /// Pixels of the tile.
    pub pixels: usize,
    /// The coordinate network at one point.
    pub point: u64,
    /// From the tile to the payload; nothing for Functa, whose inner loop is in `inference`.
    pub encoder: u64,
    /// From the payload to what the coordinate network takes; for Functa once for each inner step.
    pub decoder: u64,
    /// The coordinate network over the tile, with forming its weights where the convention counts that.
    pub neural_decoder: u64,
    /// One pass from the tile to the heights; for Functa from the latent.
    pub forward: u64,
    /// What a tile costs to encode and decode, with Functa's inner loop.
    pub inference: u64,
    /// A training step's share for one tile.
    pub training: u64,
}

impl Account {
    /// An account without an inner loop; parts without parameters are left out.
    fn new(parts: &[(&'static str, Work)], payload: [usize; 3], flops: [u64; 4]) -> Self {
        let [payload_floats, scales, pixels] = payload;
        let [point, encoder, decoder, neural_decoder] = flops;
        let forward = encoder + decoder + neural_decoder;
        let parts = parts.iter().map(|(name, work)| (*name, work.0[0]));
        Self {
            parts: parts.filter(|(_, parameters)| *parameters > 0).collect(),
            payload_floats,
            scales,
            pixels,
            point,
            encoder,
            decoder,
            neural_decoder,
            forward,
            inference: forward,
            training: (1 + BACKWARD) * forward,
        }
    }

    /// All parameters.
    pub fn parameters(&self) -> u64 {
        self.parts.iter().map(|(_, parameters)| parameters).sum()
    }

    /// Rate with every number stored in so many bits, without scales.
    pub fn bits_per_pixel(&self, bits: u32) -> f64 {
        self.payload_floats as f64 * f64::from(bits) / self.pixels as f64
    }
}

/// Parameters, FLOPs in products and all other FLOPs of a piece of a network.
#[derive(Debug, Clone, Copy)]
struct Work([u64; 3]);

impl Work {
    fn times(self, count: usize) -> Self {
        Self(self.0.map(|amount| amount * count as u64))
    }

    fn when(self, present: bool) -> Self {
        self.times(usize::from(present))
    }

    fn flops(self, convention: Convention) -> u64 {
        let Self([_, products, rest]) = self;
        products + u64::from(convention == Convention::Paper) * rest
    }
}

impl std::ops::Add for Work {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(std::array::from_fn(|index| self.0[index] + other.0[index]))
    }
}

fn learned(count: usize) -> Work {
    Work([count as u64, 0, 0])
}

fn elements(count: usize) -> Work {
    Work([0, 0, count as u64])
}

fn product(rows: usize, input: usize, output: usize) -> Work {
    Work([0, 2 * rows as u64 * input as u64 * output as u64, 0])
}

fn unbiased(rows: usize, input: usize, output: usize) -> Work {
    product(rows, input, output) + learned(input * output)
}

fn linear(rows: usize, input: usize, output: usize) -> Work {
    unbiased(rows, input, output) + learned(output) + elements(rows * output)
}

fn norm(rows: usize, width: usize) -> Work {
    learned(2 * width) + elements(NORM * rows * width)
}

/// A linear map behind a norm. The norm's operations are not counted: the paper's difference between the decoders of
/// HUVR and HUVR+SIREN has no room for them.
fn head(rows: usize, input: usize, output: usize) -> Work {
    learned(2 * input) + linear(rows, input, output)
}

/// One point through a layer with so many elementwise operations on each output beside the bias.
fn point_layer(input: usize, output: usize, each: usize) -> Work {
    linear(1, input, output) + elements(output * each)
}

/// One point through a sine network: each sine has a frequency factor, the sine itself and its modulations.
fn siren(width: usize, sine_layers: usize, modulations: usize) -> Work {
    let deeper = point_layer(width, width, 2 + modulations).times(sine_layers - 1);
    point_layer(2, width, 2 + modulations) + deeper + linear(1, width, 1)
}

/// Sizes of a transformer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransformerShape {
    /// Width of a token.
    pub width: usize,
    /// Layers.
    pub depth: usize,
    /// Attention heads of a layer.
    pub heads: usize,
    /// Width of the hidden layer of a layer.
    pub hidden: usize,
}

impl TransformerShape {
    const fn new([width, depth, heads, hidden]: [usize; 4]) -> Self {
        Self {
            width,
            depth,
            heads,
            hidden,
        }
    }

    /// What stands between the norm and the sum with the residual.
    fn branch(&self, tokens: usize, inner: Work) -> Work {
        norm(tokens, self.width) + inner + elements(tokens * self.width)
    }

    /// The way in is `linear` or `unbiased`: methods differ in whether queries, keys and values have a bias.
    fn attention(&self, tokens: usize, way_in: fn(usize, usize, usize) -> Work) -> Work {
        let scores = product(2 * tokens, self.width, tokens);
        let softmax = elements(SOFTMAX * self.heads * tokens * tokens);
        let way_in = way_in(tokens, self.width, 3 * self.width);
        let way_out = linear(tokens, self.width, self.width);
        self.branch(tokens, way_in + scores + softmax + way_out)
    }

    fn plain(&self, tokens: usize) -> Work {
        let way_in = linear(tokens, self.width, self.hidden);
        let gelu = elements(GELU * tokens * self.hidden);
        let way_out = linear(tokens, self.hidden, self.width);
        self.branch(tokens, way_in + gelu + way_out)
    }

    fn gated(&self, tokens: usize) -> Work {
        let way_in = linear(tokens, self.width, 2 * self.hidden);
        let gate = elements((SILU + 1) * tokens * self.hidden) + norm(tokens, self.hidden);
        let way_out = linear(tokens, self.hidden, self.width);
        self.branch(tokens, way_in + gate + way_out)
    }
}

#[cfg(test)]
mod tests {
    use super::Convention::{AsRun, Paper};
    use super::*;

    const HUVR: HuvrShape = HuvrShape::paper(Modulation::RankOne);
    const SIREN: HuvrShape = HuvrShape::paper(Modulation::AmplitudeShift);

    fn accounts(convention: Convention, functa: FunctaShape) -> [Account; 4] {
        let [huvr, siren] = [HUVR, SIREN].map(|shape| shape.account(convention));
        let transinr = TransInrShape::paper().account(convention);
        [huvr, siren, transinr, functa.account(convention)]
    }

    fn changed(mut shape: HuvrShape, change: impl Fn(&mut HuvrShape)) -> Account {
        change(&mut shape);
        shape.account(AsRun)
    }

    fn giga(accounts: &[Account], decimals: usize, of: fn(&Account) -> u64) -> String {
        let column: Vec<_> = accounts.iter().map(|a| of(a) as f64 / 1e9).collect();
        format!("{column:.decimals$?}")
    }

    #[test]
    fn parameters_are_those_of_the_released_networks() {
        let accounts = accounts(AsRun, FunctaShape::paper());
        let totals = accounts.each_ref().map(Account::parameters);
        assert_eq!(totals, [120_156_048, 121_071_207, 44_631_297, 724_225]);
        let parts = |account: &Account| account.parts.iter().map(|part| part.1).collect::<Vec<_>>();
        let [huvr, siren, transinr, functa] = accounts.each_ref().map(parts);
        assert_eq!(huvr[..4], [85_708_800, 26_144, 33_856, 33_583_104]);
        assert_eq!(huvr[4..], [528_896, 164_608, 110_640]);
        assert_eq!(siren[5..], [1_586_688, 132_609]);
        assert_eq!(transinr[..3], [62_976, 602_112, 197_376]);
        assert_eq!(transinr[3..], [42_513_408, 992_000, 263_425]);
        assert_eq!(functa, [198_401, 525_312, 512]);
        let table = FunctaShape::flops_table().account(AsRun);
        assert_eq!(parts(&table), [3_679_233, 3_939_840, 512]);
    }

    #[test]
    fn ablations_change_parameters_and_payload() {
        let ablations = [
            (changed(SIREN, |s| s.patch = 8), 120_628_839, 32_800),
            (changed(SIREN, |s| s.patch = 32), 122_840_679, 2_080),
            (changed(SIREN, |s| s.bottleneck = 16), 121_042_487, 4_112),
            (changed(SIREN, |s| s.bottleneck = 128), 121_243_527, 32_896),
            (changed(SIREN, |s| s.bottleneck = 256), 121_473_287, 65_792),
            (changed(SIREN, |s| s.bottleneck = 768), 121_800_199, 197_376),
        ];
        for (account, parameters, floats) in ablations {
            assert_eq!(account.parameters(), parameters);
            assert_eq!(account.payload_floats, floats);
        }
        let modulations = [Modulation::Amplitude, Modulation::Shift, Modulation::Incode];
        let totals = modulations.map(|m| HuvrShape::paper(m).account(AsRun).parameters());
        assert_eq!(totals, [120_277_863, 120_277_863, 122_639_463]);
        let attention = changed(HUVR, |s| s.decoder_attention = true);
        assert_eq!(attention.parameters(), 136_945_552);
    }

    #[test]
    fn payloads_have_the_rates_of_the_paper() {
        let accounts = accounts(AsRun, FunctaShape::paper());
        let floats = accounts.each_ref().map(|a| a.payload_floats);
        assert_eq!(floats, [8_224, 8_224, 197_376, 512]);
        let rates = accounts.each_ref().map(|a| a.bits_per_pixel(32));
        assert_eq!(format!("{rates:.4?}"), "[4.0156, 4.0156, 96.3750, 0.2500]");
    }

    #[test]
    fn the_table_of_the_paper_comes_out() {
        let accounts = accounts(Paper, FunctaShape::flops_table());
        let column = |decimals, of| giga(&accounts, decimals, of);
        assert_eq!(column(1, |a| a.training), "[285.8, 275.9, 431.5, 8698.7]");
        assert_eq!(column(1, |a| a.inference), "[95.3, 92.0, 143.8, 4832.6]");
        assert_eq!(
            column(2, |a| a.inference),
            "[95.25, 91.96, 143.82, 4832.59]"
        );
        assert_eq!(column(1, |a| a.encoder), "[46.6, 46.6, 109.2, 0.0]");
        assert_eq!(column(3, |a| a.decoder), "[27.052, 27.858, 0.101, 0.024]");
        assert_eq!(column(1, |a| a.neural_decoder), "[21.6, 17.5, 34.6, 483.3]");
        let points = accounts.each_ref().map(|a| a.point);
        assert_eq!(points, [329_216, 267_521, 527_361, 7_373_825]);
        let tiles = column(2, |a| a.point * 65_536);
        assert_eq!(tiles, "[21.58, 17.53, 34.56, 483.25]");
        let ratios = |decimals, of: fn(&Account) -> u64| {
            let ratio = |account| of(account) as f64 / of(&accounts[1]) as f64;
            format!("{:.decimals$?}", accounts.each_ref().map(ratio))
        };
        assert_eq!(ratios(2, |a| a.inference), "[1.04, 1.00, 1.56, 52.55]");
        assert_eq!(ratios(1, |a| a.inference), "[1.0, 1.0, 1.6, 52.5]");
        assert_eq!(ratios(1, |a| a.training), "[1.0, 1.0, 1.6, 31.5]");
    }

    #[test]
    fn networks_as_run_cost_their_own_products() {
        let accounts = accounts(AsRun, FunctaShape::paper());
        let column = |decimals, of| giga(&accounts, decimals, of);
        assert_eq!(column(1, |a| a.forward), "[66.1, 82.0, 143.2, 26.1]");
        assert_eq!(column(1, |a| a.training), "[198.2, 246.0, 429.5, 470.5]");
        assert_eq!(column(1, |a| a.inference), "[66.1, 82.0, 143.2, 261.4]");
        assert_eq!(
            column(2, |a| a.neural_decoder),
            "[2.25, 17.53, 34.56, 26.14]"
        );
        let [huvr, _, _, functa] = accounts;
        assert_eq!(huvr.neural_decoder / 65_536, 34_400);
        assert_eq!(functa.point, 398_849);
        let patches = [8, 32].map(|patch| changed(SIREN, |s| s.patch = patch));
        assert_eq!(giga(&patches, 1, |a| a.forward), "[302.8, 33.6]");
    }
}
