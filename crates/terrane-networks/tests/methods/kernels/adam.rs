use super::{Argument, Card, Float, Long, Nothing, assert_near, floats, noise};

struct Step {
    clip: f64,
    decay: f64,
}

const BETA1: f64 = 0.9;
const BETA2: f64 = 0.999;
const EPSILON: f64 = 1e-8;
const ROOT_FACTOR: f64 = 1.7;
const RATE: f64 = 0.03;
const KEEP: f64 = 0.9997;

#[test]
fn a_step_of_the_optimiser_is_as_defined() {
    let Some(card) = Card::new("adam", &["adam"], &[]) else {
        return;
    };
    let count = 1_003;
    let [weights, mean, gradient, average] = [1, 2, 3, 4].map(|seed| noise(seed, count));
    let square: Vec<f64> = noise(5, count).iter().map(|x| x.abs()).collect();
    for Step { clip, decay } in [
        Step {
            clip: 0.0,
            decay: 0.0,
        },
        Step {
            clip: 1.0,
            decay: 0.0,
        },
        Step {
            clip: 1e6,
            decay: 0.99,
        },
    ] {
        let length = gradient.iter().map(|g| g * g).sum::<f64>().sqrt();
        let out = card.run(
            "adam",
            2,
            (256, 1),
            &[
                floats(&weights),
                floats(&mean),
                floats(&square),
                if decay > 0.0 {
                    floats(&average)
                } else {
                    Nothing
                },
                floats(&gradient),
                floats(&[length]),
                Long(count as i64),
                Float(clip as f32),
                Float(BETA1 as f32),
                Float(BETA2 as f32),
                Float((1.0 - BETA2) as f32),
                Float(EPSILON as f32),
                Float(ROOT_FACTOR as f32),
                Float(RATE as f32),
                Float(KEEP as f32),
                Float(decay as f32),
            ],
        );
        let factor = if clip > 0.0 {
            (clip / (length + 1e-6)).min(1.0)
        } else {
            1.0
        };
        let mut expected = [const { Vec::new() }; 4];
        for index in 0..count {
            let g = gradient[index] * factor;
            let m = BETA1 * mean[index] + (1.0 - BETA1) * g;
            let v = BETA2 * square[index] + (1.0 - BETA2) * g * g;
            let w = KEEP * weights[index] - RATE * m / (v.sqrt() * ROOT_FACTOR + EPSILON);
            for (list, value) in
                expected
                    .iter_mut()
                    .zip([w, m, v, decay * average[index] + (1.0 - decay) * w])
            {
                list.push(value);
            }
        }
        for (name, index) in [("weights", 0), ("mean", 1), ("square", 2)] {
            assert_near(name, &out[index], &expected[index], 1e-6);
        }
        if decay > 0.0 {
            assert_near("average", &out[3], &expected[3], 1e-6);
        }
    }
}

/// As the plain step: a gradient that is no number spoils every weight, so that it is seen.
#[test]
fn a_gradient_that_is_no_number_is_not_clipped_away() {
    let Some(card) = Card::new("adam", &["adam"], &[]) else {
        return;
    };
    let numbers = || floats(&[0.5, 0.25, 0.125]);
    let mut arguments = vec![numbers(), numbers(), numbers(), Nothing, numbers()];
    arguments.extend([floats(&[f64::NAN]), Long(3)]);
    arguments.extend([1.0, 0.9, 0.999, 0.001, 1e-8, 1.0, 0.1, 1.0, 0.0].map(Float));
    let out: Vec<Argument> = card.run("adam", 1, (256, 1), &arguments);
    assert!(out[0].numbers().iter().all(|weight| weight.is_nan()));
}
