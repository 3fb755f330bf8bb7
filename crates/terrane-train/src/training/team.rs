//! Several devices of one machine that share the tiles of every step.
//!
//! Each has a copy of the network and differentiates the loss of its own tiles; the gradients are added on the first
//! device, which takes the step, and the others get its weights. One device is a team of one.

use std::panic::resume_unwind;

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use terrane_networks::dinov3::Teacher;
use terrane_networks::methods::Precision;

use crate::training::differentiation::{self, Differentiation};
use crate::training::learner::Learner;
use crate::{Error, Result};

/// The devices of a training.
#[derive(Debug)]
pub(crate) struct Team<'a> {
    differentiation: Differentiation,
    teacher: Option<&'a Teacher>,
    first: Device,
    others: Vec<(Device, Learner)>,
}

impl<'a> Team<'a> {
    /// A team whose first member has the network already.
    pub(crate) fn new(
        learner: &Learner,
        devices: &[Device],
        batch: usize,
        teacher: Option<&'a Teacher>,
    ) -> Result<Self> {
        let (first, others) = devices.split_first().ok_or(Error::NoDevice)?;
        if devices.len() > batch {
            return Err(Error::TooManyDevices {
                tiles: batch,
                devices: devices.len(),
            });
        }
        if !others.is_empty() && teacher.is_some() {
            return Err(Error::TeacherOnSeveral);
        }
        let differentiation = Differentiation::on(first);
        let weights = differentiation::weights(learner);
        let others = others
            .iter()
            .map(|device| {
                // With weights of its own, also where it is the same device: gradients belong to weights.
                let copy = learner.clone().to_device(&differentiation.device(device));
                let weights = weights.clone().to_device(device);
                (device.clone(), differentiation.scatter(copy, weights))
            })
            .collect();
        Ok(Self {
            differentiation,
            teacher,
            first: first.clone(),
            others,
        })
    }

    /// The loss of a batch and its gradient, on the first device.
    pub(crate) fn gradient(
        &self,
        learner: &Learner,
        batch: Tensor<3>,
        precision: Precision,
    ) -> (Tensor<1>, Tensor<1>) {
        let _scope = precision.scope();
        let [tiles, ..] = batch.dims();
        let members = self.others.len() + 1;
        let part = |index: usize| {
            let (start, end) = (index * tiles / members, (index + 1) * tiles / members);
            (
                batch.clone().narrow(0, start, end - start),
                (end - start) as f64 / tiles as f64,
            )
        };
        let differentiate = |learner: &Learner, batch: Tensor<3>| {
            let recording = self.differentiation.record();
            let loss = learner.loss(batch, precision, self.teacher);
            let gradient = self.differentiation.gradient(&loss, learner);
            drop(recording);
            (loss.inner(), gradient)
        };
        if self.others.is_empty() {
            return differentiate(learner, batch);
        }
        std::thread::scope(|scope| {
            let threads: Vec<_> = self
                .others
                .iter()
                .enumerate()
                .map(|(index, (device, learner))| {
                    let (tiles, weight) = part(index + 1);
                    let tiles = tiles.to_device(device);
                    (scope.spawn(move || differentiate(learner, tiles)), weight)
                })
                .collect();
            let (tiles, weight) = part(0);
            let (loss, gradient) = differentiate(learner, tiles);
            let mut sum = (loss.mul_scalar(weight), gradient.mul_scalar(weight));
            for (thread, weight) in threads {
                let (loss, gradient) = thread.join().unwrap_or_else(|panic| resume_unwind(panic));
                sum.0 = sum.0 + loss.to_device(&self.first).mul_scalar(weight);
                sum.1 = sum.1 + gradient.to_device(&self.first).mul_scalar(weight);
            }
            sum
        })
    }

    /// Gives the new weights to all other devices.
    pub(crate) fn broadcast(&mut self, weights: &Tensor<1>) {
        for (device, learner) in &mut self.others {
            let weights = weights.clone().to_device(device);
            *learner = self.differentiation.scatter(learner.clone(), weights);
        }
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::Distribution;

    use super::*;
    use crate::config::Config;
    use crate::fixture::TINY;

    #[test]
    fn the_gradient_does_not_depend_on_how_many_share_the_tiles() {
        let config = Config::parse(TINY, &[]).unwrap();
        let device = Device::flex();
        let differentiation = Differentiation::on(&device);
        let learner = Learner::new(&config, None, &differentiation.device(&device)).unwrap();
        // Heads start at zero and would hide most of the network.
        let weights = differentiation::weights(&learner);
        let noise = weights.random_like(Distribution::Normal(0.0, 0.1));
        let learner = differentiation.scatter(learner, weights + noise);
        let batch = Tensor::random([5, 32, 32], Distribution::Uniform(0.0, 1.0), &device);
        let gradient = |members: usize| -> (f32, Vec<f32>) {
            let devices = vec![device.clone(); members];
            let team = Team::new(&learner, &devices, 5, None).unwrap();
            let (loss, gradient) = team.gradient(&learner, batch.clone(), Precision::Full);
            (
                loss.into_scalar(),
                gradient.into_data().try_to_vec().unwrap(),
            )
        };
        let (loss, expected) = gradient(1);
        let largest = expected
            .iter()
            .fold(0.0_f32, |most, value| most.max(value.abs()));
        assert!(largest > 0.0);
        for members in [2, 3, 5] {
            let (shared_loss, shared) = gradient(members);
            assert!((shared_loss / loss - 1.0).abs() < 1e-5);
            for (a, b) in expected.iter().zip(&shared) {
                assert!((a - b).abs() < 1e-5 * largest, "{members} devices: {a} {b}");
            }
        }
    }
}
