//! Devices by their names.

use burn::tensor::Device;

/// A device that cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`device` {name}: {reason}")]
pub struct DeviceError {
    /// The name given.
    pub name: String,
    /// Why it cannot be had.
    pub reason: String,
}

/// The device of a name: `cpu`, `cuda[:N]`, `rocm[:N]`, `metal`, `vulkan` or `wgpu`.
///
/// NVIDIA cards are driven by `LibTorch` where the program was built with the feature `libtorch`, else by Burn's own
/// kernels with the feature `cuda`; `libtorch` is the CPU under `LibTorch`, for comparisons.
#[cfg_attr(
    feature = "libtorch",
    expect(
        deprecated,
        reason = "the fastest backend for NVIDIA cards that builds today"
    )
)]
pub fn parse(name: &str) -> Result<Device, DeviceError> {
    let refuse = |reason: String| DeviceError {
        name: name.to_owned(),
        reason,
    };
    let (kind, number) = name.split_once(':').unwrap_or((name, "0"));
    let index: usize = number
        .parse()
        .map_err(|_| refuse(format!("\"{number}\" is no number of a device")))?;
    let _ = index;
    match kind {
        "cpu" => Ok(Device::flex()),
        #[cfg(feature = "libtorch")]
        "libtorch" => Ok(Device::libtorch()),
        #[cfg(feature = "libtorch")]
        "cuda" => Ok(Device::libtorch_cuda(index)),
        #[cfg(all(feature = "cuda", not(feature = "libtorch")))]
        "cuda" => Ok(Device::cuda(index)),
        #[cfg(feature = "rocm")]
        "rocm" => Ok(Device::rocm(index)),
        #[cfg(feature = "metal")]
        "metal" => Ok(Device::metal(burn::tensor::DeviceKind::DefaultDevice)),
        #[cfg(feature = "vulkan")]
        "vulkan" => Ok(Device::vulkan(burn::tensor::DeviceKind::DefaultDevice)),
        #[cfg(feature = "wgpu")]
        "wgpu" => Ok(Device::wgpu(burn::tensor::DeviceKind::DefaultDevice)),
        // Only those that were not built in come so far.
        #[allow(
            unreachable_patterns,
            clippy::allow_attributes,
            reason = "which are reached depends on the features of the build"
        )]
        "cuda" | "rocm" | "metal" | "vulkan" | "wgpu" => {
            let feature = if kind == "cuda" {
                "libtorch or cuda"
            } else {
                kind
            };
            Err(refuse(format!(
                "this program was built without it; build it with --features {feature}"
            )))
        }
        _ => Err(refuse(
            "there are cpu, cuda[:N], rocm[:N], metal, vulkan and wgpu".into(),
        )),
    }
}

/// Why a training on a device is slower than it could be, where it is.
pub fn slowed_by(device: &Device) -> Option<String> {
    #[cfg(feature = "libtorch")]
    {
        use terrane_networks::cuda::{self, CudaError};
        let tensor = burn::tensor::Tensor::<1>::zeros([1], device);
        match cuda::check(&tensor) {
            Ok(()) | Err(CudaError::OtherDevice) => None,
            Err(error) => Some(format!("there are no kernels of our own: {error}")),
        }
    }
    #[cfg(not(feature = "libtorch"))]
    {
        let _ = device;
        None
    }
}

/// Several devices by their names, with commas between them: `cuda:0,cuda:1`.
pub fn parse_all(names: &str) -> Result<Vec<Device>, DeviceError> {
    names.split(',').map(|name| parse(name.trim())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpu_is_always_there_and_nonsense_is_not() {
        assert!(parse("cpu").is_ok());
        assert!(parse("tpu").unwrap_err().to_string().contains("cuda[:N]"));
        assert!(
            parse("cuda:x")
                .unwrap_err()
                .to_string()
                .contains("no number")
        );
    }
}
