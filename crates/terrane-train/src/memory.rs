//! How much memory networks may take: what does not fit is refused before it is made.

use burn::tensor::Device;
pub use terrane_codec::format::MemoryLimit;
use terrane_networks::methods::MethodConfig;

use crate::config::Config;
use crate::context::ContextConfig;
use crate::{Error, Result};

/// What networks need of memory.
pub trait NetworkMemory {
    /// Refuses what takes more; `None` is more than can be counted.
    fn require(self, what: &'static str, bytes: Option<u64>) -> Result<()>;

    /// Refuses a network that cannot be trained on a device.
    fn require_training(self, config: &Config, device: &Device) -> Result<()>;

    /// Refuses a network whose weights and the decoding of a tile take more.
    fn require_network(self, method: &MethodConfig) -> Result<()>;

    /// Refuses a context model that cannot be trained.
    fn require_context(self, config: &ContextConfig, device: &Device) -> Result<()>;
}

impl NetworkMemory for MemoryLimit {
    fn require(self, what: &'static str, bytes: Option<u64>) -> Result<()> {
        match bytes {
            Some(bytes) if bytes <= self.bytes => Ok(()),
            bytes => Err(Error::Memory {
                what,
                bytes,
                limit: self.bytes,
            }),
        }
    }

    fn require_training(self, config: &Config, device: &Device) -> Result<()> {
        let method = &config.method;
        let tiles = on_the_host(device, config.train.batch);
        self.require("training this network", method.training_bytes(tiles))
    }

    fn require_network(self, method: &MethodConfig) -> Result<()> {
        let weights = method.parameters().and_then(|count| count.checked_mul(4));
        let both = weights.and_then(|weights| weights.checked_add(method.working_bytes()?));
        self.require("this network", both)
    }

    fn require_context(self, config: &ContextConfig, device: &Device) -> Result<()> {
        let windows = on_the_host(device, config.train.batch);
        self.require("training this network", config.training_bytes(windows))
    }
}

/// A card has memory of its own, of which nothing is known here.
fn on_the_host(device: &Device, tiles: usize) -> usize {
    if *device == Device::flex() { tiles } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_too_much_is_said_in_gigabytes() {
        let limit = MemoryLimit {
            bytes: 2_000_000_000,
        };
        assert!(limit.require("this", Some(2_000_000_000)).is_ok());
        assert_eq!(
            limit
                .require("this", Some(2_000_000_001))
                .unwrap_err()
                .to_string(),
            "this takes about 2.0 GB of memory, and the limit is 2.0 GB: make it smaller, or raise `memory_limit`"
        );
        let text = limit.require("this", None).unwrap_err().to_string();
        assert!(
            text.starts_with("this takes more memory than can be counted"),
            "{text}"
        );
    }

    #[test]
    fn small_networks_are_trained_anywhere_and_vast_ones_nowhere() {
        let device = Device::flex();
        let needs = |preset: &str, settings: &[&str]| {
            let settings: Vec<String> = settings.iter().map(ToString::to_string).collect();
            let config = Config::preset(preset, &settings).unwrap();
            MemoryLimit {
                bytes: 8_000_000_000,
            }
            .require_training(&config, &device)
        };
        for preset in [
            "functa-small",
            "transinr-small",
            "huvr-small",
            "huvr-siren-small",
        ] {
            needs(preset, &[]).unwrap();
        }
        for (preset, settings) in [
            ("functa-small", vec!["method.width=16384"]),
            ("functa-small", vec!["train.batch=100000"]),
            ("functa-small", vec!["method.side=16384"]),
            ("huvr-small", vec!["method.encoder.depth=1024"]),
            ("huvr-siren-small", vec!["method.patch=1"]),
            ("transinr-small", vec!["method.frequencies=16384"]),
        ] {
            let text = needs(preset, &settings).unwrap_err().to_string();
            assert!(text.contains("training this network takes about"), "{text}");
        }
    }
}
