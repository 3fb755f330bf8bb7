//! What a training changes: a network, and the heads that compare it with a teacher.

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use terrane_networks::dinov3::{Teacher, prepare};
use terrane_networks::distillation::{Distillation, DistillationConfig, DistillationWidths};
use terrane_networks::init::Init;
use terrane_networks::methods::{Method, MethodConfig, Model, Precision};

use crate::config::Config;
use crate::{Error, Result};

/// Everything that learns: the network, and the heads that compare it with a teacher.
#[derive(Module, Debug)]
pub(crate) struct Learner {
    /// The network.
    pub(crate) model: Model,
    distillation: Option<Distillation>,
}

impl Learner {
    /// A network of a configuration with initial weights; a teacher is needed where the configuration follows one.
    pub(crate) fn new(config: &Config, teacher: Option<&Teacher>, device: &Device) -> Result<Self> {
        let model = config.method.init(config.seed, device);
        if !config.train.distil {
            return Ok(Self {
                model,
                distillation: None,
            });
        }
        let teacher = teacher.ok_or(Error::NoTeacher)?;
        let (encoder, decoder, patch) = match &config.method {
            MethodConfig::Huvr(method) => (method.encoder, method.decoder, method.patch),
            MethodConfig::HuvrSiren(method) => (method.encoder, method.decoder, method.patch),
            _ => return Err(Error::NotDistillable),
        };
        if teacher.patch() != patch {
            return Err(Error::TeacherPatch {
                teacher: teacher.patch(),
                method: patch,
            });
        }
        let widths = DistillationWidths {
            encoder: encoder.width,
            decoder: decoder.width,
            teacher: teacher.width(),
        };
        let mut init = Init::new(config.seed.wrapping_add(1), device);
        let heads = DistillationConfig::default().init(&widths, &mut init);
        Ok(Self {
            model,
            distillation: Some(heads),
        })
    }

    /// The mean square error of a batch in normalised heights; with a teacher as HUVR's authors have it, in units of
    /// [−1, 1] and with the differences from the teacher.
    pub(crate) fn loss(
        &self,
        batch: Tensor<3>,
        precision: Precision,
        teacher: Option<&Teacher>,
    ) -> Tensor<1> {
        if let (Some(heads), Some(teacher)) = (&self.distillation, teacher)
            && let Some(states) = self.model.forward_states(batch.clone(), precision)
        {
            let features = teacher.forward(prepare(batch.clone()), precision);
            let error = (states.output - batch).mul_scalar(2.0).square().mean();
            return error + heads.loss(states.encoder, states.decoder, &features);
        }
        self.model.square_error(batch, precision)
    }
}
