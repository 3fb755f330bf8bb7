//! How long 65,536 symbols take to be written and read, at the rates of lossy and of lossless coding.
#![expect(clippy::print_stdout, reason = "it prints what it measures")]

use std::hint::black_box;
use std::time::Instant;

use terrane_context::{Context, Distributions};
use terrane_format::coder::{Decoder, Encoder, GROUP};

const COUNT: usize = 256 * 256;
const RUNS: usize = 31;

/// The median of some runs, in milliseconds.
fn time(mut work: impl FnMut()) -> f64 {
    let mut times: Vec<f64> = (0..RUNS)
        .map(|_| {
            let start = Instant::now();
            work();
            start.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[RUNS / 2]
}

fn main() -> terrane_context::Result<()> {
    let tables = Distributions::logistic()?;
    for (name, scales) in [
        ("lossy", -3500..-200),
        ("lossless", 2300..5200),
        ("rough", 4000..9000),
    ] {
        let mut state = 88_172_645_463_325_252_u64;
        let mut random = |range: std::ops::Range<i32>| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            range.start + ((state >> 20) % range.len() as u64) as i32
        };
        let sums: Vec<[i32; 3]> = (0..COUNT)
            .map(|_| [random(-900..900), random(scales.clone()), random(-2500..0)])
            .collect();
        let mut contexts = vec![Context::default(); COUNT];
        let made = time(|| {
            for (context, &[mean, scale, shape]) in contexts.iter_mut().zip(&sums) {
                *context = Context::new(mean, scale, shape);
            }
            black_box(&contexts);
        });
        // What noise decodes to is as likely as the contexts say.
        let noise: Vec<u8> = (0..4 * COUNT).map(|_| random(0..256) as u8).collect();
        let mut symbols = vec![0; COUNT];
        tables.read_group(&mut Decoder::grouped(&noise), &contexts, &mut symbols);
        let mut bytes = Vec::new();
        let written = time(|| {
            let mut encoder = Encoder::grouped();
            for (contexts, symbols) in contexts.chunks(GROUP).zip(symbols.chunks(GROUP)) {
                tables.write_group(&mut encoder, contexts, symbols);
            }
            bytes = encoder.finish();
        });
        let mut found = vec![0; COUNT];
        let mut is_whole = true;
        let read = time(|| {
            let mut decoder = Decoder::grouped(&bytes);
            for (contexts, symbols) in contexts.chunks(GROUP).zip(found.chunks_mut(GROUP)) {
                tables.read_group(&mut decoder, contexts, symbols);
            }
            is_whole &= decoder.end().is_ok();
        });
        let cost: f64 = contexts
            .iter()
            .zip(&symbols)
            .map(|(&context, &symbol)| f64::from(tables.cost(context, symbol)))
            .sum();
        let shifted = contexts.iter().filter(|context| context.shift > 0).count();
        println!(
            "{name}: {:.3} bits per symbol ({:+.3} % of their cost), {:.0} % shifted; contexts {made:.3} ms, \
             written in {written:.3} ms, read in {read:.3} ms, {}",
            bytes.len() as f64 * 8.0 / COUNT as f64,
            (bytes.len() as f64 * 8.0 / cost - 1.0) * 100.0,
            100.0 * shifted as f64 / COUNT as f64,
            if is_whole && found == symbols {
                "equal"
            } else {
                "DIFFERENT"
            },
        );
    }
    Ok(())
}
