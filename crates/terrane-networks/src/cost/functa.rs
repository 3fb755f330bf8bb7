//! What Functa costs.

use super::{Account, BACKWARD, Convention, learned, linear, siren};

/// Functa: one sine network for all tiles, shifted by a latent that a few gradient steps find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FunctaShape {
    /// Side of a tile in pixels.
    pub side: usize,
    /// Width of the latent.
    pub latent: usize,
    /// Width of a sine layer.
    pub siren_width: usize,
    /// Sine layers, before the linear one.
    pub sine_layers: usize,
    /// Gradient steps that find a latent.
    pub inner_steps: usize,
}

impl FunctaShape {
    /// The sizes of the paper's text.
    pub const fn paper() -> Self {
        Self {
            side: 256,
            latent: 512,
            siren_width: 256,
            sine_layers: 4,
            inner_steps: 3,
        }
    }

    /// The sizes that the paper's FLOPs table describes: the upstream default, its depth read as sine layers.
    pub const fn flops_table() -> Self {
        Self {
            siren_width: 512,
            sine_layers: 15,
            ..Self::paper()
        }
    }

    /// The account of this network.
    pub fn account(&self, convention: Convention) -> Account {
        let network = siren(self.siren_width, self.sine_layers, 1);
        let shifts = linear(1, self.latent, self.sine_layers * self.siren_width);
        let parts = [
            ("network", network),
            ("shifts", shifts),
            ("inner rates", learned(self.latent)),
        ];
        let (pixels, point) = (self.side.pow(2), network.flops(Convention::Paper));
        let flops = [point, 0, shifts.flops(convention), pixels as u64 * point];
        let pass = Account::new(&parts, [self.latent, 1, pixels], flops);
        let steps = self.inner_steps as u64;
        let (inner, second_order) = (steps * (1 + BACKWARD), steps * BACKWARD);
        Account {
            decoder: steps * pass.decoder,
            inference: (inner + 1) * pass.forward,
            training: (inner + second_order + 1 + BACKWARD) * pass.forward,
            ..pass
        }
    }
}
