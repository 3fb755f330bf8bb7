//! How long a training step and a pass forward take: `step DEVICE PRECISIONS BATCH REPEATS [PRESET]`.
//!
//! Prints milliseconds per tile of the paper's `huvr-siren` in the precisions that are named, with kernels of our own and by the
//! library alone, and how far the gradients of both are apart.

#![expect(clippy::print_stdout, reason = "a program that prints")]

use std::error::Error;
use std::time::Instant;

use terrane_train::config::Config;
use terrane_train::device;
use terrane_train::training::step::Step;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, precisions, batch, repeats, preset @ ..] = arguments.as_slice() else {
        return Err(
            "step DEVICE PRECISIONS BATCH REPEATS [PRESET], as step cuda tf32,bf16 32 20".into(),
        );
    };
    let (batch, repeats): (usize, usize) = (batch.parse()?, repeats.parse()?);
    let preset = preset.first().map_or("huvr-siren", String::as_str);
    let device = device::parse(name)?;
    for precision in precisions.split(',') {
        let settings = [
            format!("train.batch={batch}"),
            format!("train.precision={precision}"),
        ];
        let config = Config::preset(preset, &settings)?;
        for is_plain in [false, true] {
            switch_off(is_plain);
            let mut step = Step::new(&config, &device)?.run(5)?;
            let clock = Instant::now();
            step = step.run(repeats)?;
            let of_step = clock.elapsed().as_secs_f64() * 1e3 / (repeats * batch) as f64;
            let mut of_forward = Vec::new();
            for tiles in [batch, 1] {
                step.forward(tiles, 3)?;
                let clock = Instant::now();
                step.forward(tiles, repeats)?;
                of_forward.push(clock.elapsed().as_secs_f64() * 1e3 / (repeats * tiles) as f64);
            }
            let kernels = if is_plain { "library" } else { "own kernels" };
            println!(
                "{precision} {kernels}: training step {:.2} ms, {of_step:.3} per tile; forward {:.3} per tile of {batch}, {:.3} of one",
                of_step * batch as f64,
                of_forward[0],
                of_forward[1]
            );
        }
        // The same network and tiles, with both.
        let step = Step::new(&config, &device)?.disturbed(0.01);
        let mut both = Vec::new();
        for is_plain in [false, true, true] {
            switch_off(is_plain);
            both.push(step.gradient()?);
        }
        let apart = |a: &[f32], b: &[f32]| {
            let square = |x: f32| f64::from(x) * f64::from(x);
            let off: f64 = a.iter().zip(b).map(|(a, b)| square(a - b)).sum();
            (off / b.iter().map(|&b| square(b)).sum::<f64>()).sqrt()
        };
        println!(
            "{precision}: losses {:.8} and {:.8}, gradients {:.2e} of their length apart (two of the library {:.2e})",
            both[0].0,
            both[1].0,
            apart(&both[0].1, &both[1].1),
            apart(&both[2].1, &both[1].1)
        );
    }
    Ok(())
}

/// Leaves everything to the library, or not.
fn switch_off(is_off: bool) {
    #[cfg(feature = "libtorch")]
    terrane_networks::cuda::switch_off(is_off);
    #[cfg(not(feature = "libtorch"))]
    let _ = is_off;
}
