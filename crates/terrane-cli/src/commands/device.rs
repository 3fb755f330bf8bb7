//! Where a command computes.

use anyhow::Result;
use burn::tensor::Device;

/// Where a command computes.
#[derive(clap::Args)]
pub(crate) struct DeviceArguments {
    /// Where to compute: cpu, cuda, rocm, metal, vulkan or wgpu; cuda:1 is the second card. A training takes several,
    /// as cuda:0,cuda:1.
    #[arg(long, default_value = "cpu")]
    device: String,
}

impl DeviceArguments {
    /// The device.
    pub(crate) fn open(&self) -> Result<Device> {
        Ok(terrane_train::device::parse(&self.device)?)
    }

    /// What to call it in a report: its name, and the model of a CPU where the system tells it.
    pub(crate) fn describe(&self) -> String {
        let information = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = information
            .lines()
            .find_map(|line| line.strip_prefix("model name")?.split_once(':'));
        match model {
            Some((_, model)) if self.device == "cpu" => {
                let threads = std::thread::available_parallelism().map_or(1, usize::from);
                format!("{}, {threads} threads", model.trim())
            }
            _ => self.device.clone(),
        }
    }

    /// All devices that were named.
    pub(crate) fn open_all(&self) -> Result<Vec<Device>> {
        Ok(terrane_train::device::parse_all(&self.device)?)
    }
}
