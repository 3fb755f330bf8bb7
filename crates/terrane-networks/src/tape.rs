//! Keeps intermediate tensors whole while a library behind Burn differentiates.
//!
//! Burn writes over a tensor that nobody else holds. LibTorch's own differentiation needs many of them later, and
//! refuses to go on when one was overwritten. While a recording runs, the parts of a network put such tensors here, so
//! that they are held by somebody. Without a recording this does nothing.

use std::any::Any;
use std::cell::RefCell;

use burn::tensor::Tensor;

thread_local! {
    static KEPT: RefCell<Option<Vec<Box<dyn Any>>>> = const { RefCell::new(None) };
}

/// A recording of this thread; it ends when this is dropped.
#[derive(Debug)]
#[must_use = "the recording ends when this is dropped"]
pub struct Recording(());

impl Recording {
    /// Starts keeping what this thread computes.
    pub fn start() -> Self {
        KEPT.set(Some(Vec::new()));
        Self(())
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        KEPT.take();
    }
}

/// Whether a recording of this thread runs.
#[cfg(feature = "libtorch")]
pub(crate) fn is_recording() -> bool {
    KEPT.with_borrow(Option::is_some)
}

/// Keeps a tensor until the end of the recording, where one runs.
pub(crate) fn keep<const D: usize>(tensor: &Tensor<D>) {
    KEPT.with_borrow_mut(|kept| {
        if let Some(kept) = kept {
            kept.push(Box::new(tensor.clone()));
        }
    });
}

/// Keeps a tensor and hands it on.
pub fn kept<const D: usize>(tensor: Tensor<D>) -> Tensor<D> {
    keep(&tensor);
    tensor
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;

    fn count() -> Option<usize> {
        KEPT.with_borrow(|kept| kept.as_ref().map(Vec::len))
    }

    #[test]
    fn tensors_are_kept_during_a_recording_alone() {
        let tensor = Tensor::<1>::zeros([3], &Device::flex());
        keep(&tensor);
        assert_eq!(count(), None);
        let recording = Recording::start();
        keep(&tensor);
        keep(&tensor.unsqueeze::<2>());
        assert_eq!(count(), Some(2));
        drop(recording);
        assert_eq!(count(), None);
    }
}
