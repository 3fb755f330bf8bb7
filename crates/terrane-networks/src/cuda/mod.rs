//! Kernels of our own for NVIDIA cards, compiled at run time and launched on LibTorch's tensors.
//!
//! What they compute is tested on the CPU, where every kernel runs thread by thread (`tests/methods/kernels`), and every function around
//! them beside the library's own, by a plain twin of each kernel. Where the driver or its compiler cannot be had, the library does
//! everything.
#![expect(
    deprecated,
    reason = "the fastest backend for NVIDIA cards that builds today"
)]

mod adam;
mod hook;
mod passes;
mod sines;
pub(crate) mod trunk;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use burn::backend::LibTorch;
use burn::tensor::Tensor;
use cudarc::driver::{
    CudaContext, CudaFunction, CudaModule, CudaStream, LaunchConfig, PushKernelArg,
};
use cudarc::nvrtc::{CompileOptions, compile_ptx_with_opts};

pub use adam::{Adam, AdamStep};
pub(crate) use sines::Sines;

static IS_OFF: AtomicBool = AtomicBool::new(false);

/// Why there are no kernels.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CudaError {
    /// See [`switch_off`].
    #[error("kernels are switched off")]
    SwitchedOff,
    /// No kernel takes such sizes.
    #[error("there are no kernels for {0}")]
    Sizes(String),
    /// Not on an NVIDIA card of LibTorch.
    #[error("the device is no NVIDIA card of LibTorch")]
    OtherDevice,
    /// The driver or its compiler cannot be had.
    #[error("{0}")]
    Driver(String),
}

/// One source, compiled for a card.
#[derive(Debug)]
struct Program {
    ordinal: usize,
    module: Arc<CudaModule>,
    functions: Mutex<HashMap<&'static str, CudaFunction>>,
    stream: Arc<CudaStream>,
}

/// What a kernel is given.
#[derive(Debug, Clone, Copy)]
enum Argument {
    /// The numbers of a tensor on a card.
    Array {
        address: u64,
        ordinal: usize,
    },
    /// No tensor.
    Nothing,
    Float(f32),
    Long(i64),
}

type Key = (&'static str, usize, Vec<(&'static str, usize)>);

/// A file of kernels.
#[derive(Debug, Clone, Copy)]
struct Source {
    name: &'static str,
    text: &'static str,
}

/// A program, or why there is none.
type Compiled = Result<Arc<Program>, CudaError>;

static PROGRAMS: LazyLock<Mutex<HashMap<Key, Compiled>>> = LazyLock::new(Mutex::default);

#[expect(unsafe_code, reason = "functions in C++")]
// SAFETY: the declarations are those of hook.cpp.
unsafe extern "C" {
    safe fn terrane_allowed_tf32() -> u32;
    safe fn terrane_allow_tf32(switches: u32);
}

/// Which operations of LibTorch on 32-bit floats may round their factors to 10 bits on cards: products of matrices (1) and
/// convolutions (2).
pub(crate) fn allowed_tf32() -> u32 {
    terrane_allowed_tf32()
}

/// Lets these operations round, and the others not.
pub(crate) fn allow_tf32(switches: u32) {
    terrane_allow_tf32(switches);
}

/// Leaves everything to the library from now on, or no longer: for comparisons.
pub fn switch_off(is_off: bool) {
    IS_OFF.store(is_off, Ordering::Relaxed);
}

/// Whether a tensor lies on a card with kernels of our own, and why not.
pub fn check<const D: usize>(tensor: &Tensor<D>) -> Result<(), CudaError> {
    Program::on(ordinal(tensor)?, adam::SOURCE, &[]).map(|_| ())
}

/// The number of the card that a tensor lies on.
fn ordinal<const D: usize>(tensor: &Tensor<D>) -> Result<usize, CudaError> {
    let primitive = tensor
        .clone()
        .try_into_primitive::<LibTorch>()
        .map_err(|_| CudaError::OtherDevice)?;
    match primitive.tensor.device() {
        tch::Device::Cuda(ordinal) => Ok(ordinal),
        _ => Err(CudaError::OtherDevice),
    }
}

impl Program {
    /// A source with some numbers defined, for a card; compiled once.
    fn on(
        ordinal: usize,
        source: Source,
        defined: &[(&'static str, usize)],
    ) -> Result<Arc<Self>, CudaError> {
        if IS_OFF.load(Ordering::Relaxed) {
            return Err(CudaError::SwitchedOff);
        }
        PROGRAMS
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .entry((source.name, ordinal, defined.to_vec()))
            .or_insert_with(|| Self::compile(source.text, ordinal, defined).map(Arc::new))
            .clone()
    }

    fn compile(
        source: &str,
        ordinal: usize,
        defined: &[(&'static str, usize)],
    ) -> Result<Self, CudaError> {
        // Libraries that are missing are a panic of the bindings.
        let compiled = std::panic::catch_unwind(|| {
            let context =
                CudaContext::new(ordinal).map_err(|error| CudaError::Driver(error.to_string()))?;
            let (major, minor) = context
                .compute_capability()
                .map_err(|error| CudaError::Driver(error.to_string()))?;
            if major < 8 {
                return Err(CudaError::Driver(format!(
                    "kernels need a card of compute capability 8.0 or above, not {major}.{minor}"
                )));
            }
            let mut options = vec![format!("--gpu-architecture=compute_{major}{minor}")];
            options.extend(
                defined
                    .iter()
                    .map(|(name, number)| format!("-D{name}={number}")),
            );
            let options = CompileOptions {
                options,
                ..CompileOptions::default()
            };
            let ptx = compile_ptx_with_opts(source, options)
                .map_err(|error| CudaError::Driver(error.to_string()))?;
            let module = context
                .load_module(ptx)
                .map_err(|error| CudaError::Driver(error.to_string()))?;
            Ok(Self {
                ordinal,
                module,
                functions: Mutex::default(),
                // LibTorch's own stream, so that everything comes in order.
                stream: context.default_stream(),
            })
        });
        compiled.unwrap_or_else(|_| {
            Err(CudaError::Driver(
                "the driver's libraries cannot be loaded".to_owned(),
            ))
        })
    }

    /// Starts a kernel on so many blocks of threads.
    fn launch(
        &self,
        name: &'static str,
        blocks: usize,
        threads: (u32, u32),
        arguments: &[Argument],
    ) {
        let function = self
            .functions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .entry(name)
            .or_insert_with(|| {
                let function = self.module.load_function(name);
                function.expect("the source has the kernel")
            })
            .clone();
        let mut builder = self.stream.launch_builder(&function);
        for argument in arguments {
            match argument {
                Argument::Array { address, ordinal } => {
                    assert_eq!(*ordinal, self.ordinal, "a kernel's tensors lie on its card");
                    builder.arg(address)
                }
                Argument::Nothing => builder.arg(&0_u64),
                Argument::Float(number) => builder.arg(number),
                Argument::Long(number) => builder.arg(number),
            };
        }
        let config = LaunchConfig {
            grid_dim: (u32::try_from(blocks).expect("a grid of 32 bits"), 1, 1),
            block_dim: (threads.0, threads.1, 1),
            shared_mem_bytes: 0,
        };
        #[expect(
            unsafe_code,
            reason = "kernels take addresses; every launch checks the tensors behind them"
        )]
        // SAFETY: the addresses are those of tensors whose type, length and alignment `address_of` checked for this kernel, they are on
        // its card, and they live until the stream, LibTorch's own, has come to what frees them.
        let launched = unsafe { builder.launch(config) };
        launched.expect("a kernel that was compiled is launched");
    }
}

/// The address of a tensor's numbers, which are so many 32-bit floats in one piece on a card.
fn address<const D: usize>(tensor: &Tensor<D>, count: usize) -> Argument {
    let primitive = tensor
        .clone()
        .try_into_primitive::<LibTorch>()
        .expect("a kernel's tensors are LibTorch's");
    address_of(&primitive.tensor, tch::Kind::Float, count)
}

/// The address of so many numbers of a kind in one piece on a card, of which kernels may take four at a time.
fn address_of(tensor: &tch::Tensor, kind: tch::Kind, count: usize) -> Argument {
    assert!(
        tensor.kind() == kind && tensor.is_contiguous() && tensor.numel() == count,
        "a kernel needs {count} of {kind:?} in one piece, not {tensor:?}"
    );
    let array = array(tensor);
    if let Argument::Array { address, .. } = array {
        let four = 4 * kind.elt_size_in_bytes() as u64;
        assert!(
            count < 4 || address.is_multiple_of(four),
            "a kernel needs numbers at multiples of four, not {tensor:?}"
        );
    }
    array
}

/// The address of a tensor on a card, whatever its numbers.
fn array(tensor: &tch::Tensor) -> Argument {
    let tch::Device::Cuda(ordinal) = tensor.device() else {
        panic!("a kernel needs numbers on a card, not {tensor:?}");
    };
    Argument::Array {
        address: tensor.data_ptr() as u64,
        ordinal,
    }
}
