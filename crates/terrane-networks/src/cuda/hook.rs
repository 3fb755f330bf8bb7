//! A function of our own in LibTorch's differentiation.

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};

use tch::Tensor;

/// Turns gradients by the outputs of a function into gradients by its inputs, each where there is one.
pub(super) type Backward = Box<dyn FnOnce(&[Option<Tensor>]) -> Vec<Option<Tensor>> + Send>;

/// What the hook holds: how many outputs and inputs there are, and what is to be done.
struct State {
    outputs: usize,
    inputs: usize,
    backward: Backward,
}

#[expect(unsafe_code, reason = "a function in C++")]
// SAFETY: the declaration is that of hook.cpp.
unsafe extern "C" {
    fn terrane_hook(
        values: *const *const c_void,
        value_count: usize,
        inputs: *const *const c_void,
        input_count: usize,
        state: *mut c_void,
        backward: extern "C" fn(*mut c_void, *const *mut c_void, *mut *mut c_void) -> bool,
        release: extern "C" fn(*mut c_void),
        outputs: *mut *mut c_void,
    ) -> bool;
}

/// Tensors with the numbers of `values` whose gradients `backward` turns into those of `inputs`.
pub(super) fn hooked(values: &[Tensor], inputs: &[&Tensor], backward: Backward) -> Vec<Tensor> {
    let state = Box::new(State {
        outputs: values.len(),
        inputs: inputs.len(),
        backward,
    });
    let values: Vec<_> = values.iter().map(|value| value.as_ptr().cast()).collect();
    let inputs: Vec<_> = inputs.iter().map(|input| input.as_ptr().cast()).collect();
    let mut outputs = vec![std::ptr::null_mut::<c_void>(); values.len()];
    #[expect(unsafe_code, reason = "a function in C++")]
    // SAFETY: all pointers are of live tensors and of as many as are said; the state is handed over and given back once, to
    // `backward` or to `release`; every output is a new tensor, which is ours.
    unsafe {
        let is_taken = terrane_hook(
            values.as_ptr(),
            values.len(),
            inputs.as_ptr(),
            inputs.len(),
            Box::into_raw(state).cast(),
            backward_of,
            release,
            outputs.as_mut_ptr(),
        );
        assert!(is_taken, "LibTorch takes a function of our own");
        outputs
            .into_iter()
            .map(|output| Tensor::from_ptr(output.cast()))
            .collect()
    }
}

/// False where it panicked, which has been printed: a panic must not run into C++.
extern "C" fn backward_of(
    state: *mut c_void,
    by_outputs: *const *mut c_void,
    by_inputs: *mut *mut c_void,
) -> bool {
    let work = || {
        #[expect(unsafe_code, reason = "called from C++")]
        // SAFETY: the hook gives back the state that it was given, as many gradients as there are outputs, and room for as many as there
        // are inputs; tensors that go out are forgotten here and freed there.
        unsafe {
            let state = Box::from_raw(state.cast::<State>());
            let by_outputs = std::slice::from_raw_parts(by_outputs, state.outputs);
            let gradients: Vec<Option<Tensor>> = by_outputs
                .iter()
                .map(|gradient| {
                    (!gradient.is_null()).then(|| Tensor::clone_from_ptr(gradient.cast()))
                })
                .collect();
            let found = (state.backward)(&gradients);
            assert_eq!(found.len(), state.inputs, "a gradient for every input");
            let room = std::slice::from_raw_parts_mut(by_inputs, state.inputs);
            for (place, gradient) in room.iter_mut().zip(found) {
                if let Some(mut gradient) = gradient {
                    *place = gradient.as_mut_ptr().cast();
                    std::mem::forget(gradient);
                }
            }
        }
    };
    catch_unwind(AssertUnwindSafe(work)).is_ok()
}

extern "C" fn release(state: *mut c_void) {
    #[expect(unsafe_code, reason = "called from C++")]
    // SAFETY: as in `backward_of`; the hook calls one of both, once.
    drop(unsafe { Box::from_raw(state.cast::<State>()) });
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tch::{Device, Kind};

    use super::*;

    /// A number that waits for its gradient.
    fn leaf() -> Tensor {
        Tensor::full([1], 3.0, (Kind::Float, Device::Cpu)).set_requires_grad(true)
    }

    fn gradient(leaf: &Tensor) -> f64 {
        leaf.grad().double_value(&[0])
    }

    #[test]
    fn gradients_are_those_that_are_given_and_absent_ones_are_nothing() {
        let (x, y) = (leaf(), leaf());
        let values = [x.detach() * 2.0, x.detach() * 5.0];
        let outputs = hooked(
            &values,
            &[&x, &y],
            Box::new(|by_outputs| {
                assert!(by_outputs[1].is_none());
                vec![
                    by_outputs[0].as_ref().map(|by_output| by_output * 7.0),
                    None,
                ]
            }),
        );
        assert_eq!(outputs[1].double_value(&[0]), 15.0);
        (&outputs[0] * 10.0).sum(Kind::Float).backward();
        assert_eq!(gradient(&x), 70.0);
        assert!(!y.grad().defined());
    }

    #[test]
    fn what_is_held_is_let_go_where_nothing_waits_for_a_gradient() {
        let held = Arc::new(());
        let kept = Arc::clone(&held);
        let x = leaf().detach();
        hooked(
            &[x.shallow_clone()],
            &[&x],
            Box::new(move |_| {
                drop(kept);
                vec![None]
            }),
        );
        assert_eq!(Arc::strong_count(&held), 1);
    }

    #[test]
    fn a_function_that_panics_ends_the_pass_and_not_the_program() {
        let x = leaf();
        let output = hooked(&[x.detach()], &[&x], Box::new(|_| panic!("on purpose")));
        let pass = AssertUnwindSafe(|| output[0].sum(Kind::Float).backward());
        assert!(catch_unwind(pass).is_err());
        // Nor is it called a second time.
        let again = AssertUnwindSafe(|| output[0].sum(Kind::Float).backward());
        assert!(catch_unwind(again).is_err());
    }
}
