//! Runs what is kept of fuzzing once more: `replay CORPUS [KIND...]`, with a folder for every kind of input, as the seeds have. It is
//! what `just fuzz-coverage` measures.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a program to measure with"
)]

use std::path::Path;

use terrane_fuzz::TARGETS;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let corpus = arguments
        .next()
        .expect("a folder with a folder for every kind of input");
    let kinds: Vec<_> = arguments.collect();
    for target in TARGETS {
        let folder = Path::new(&corpus).join(target.name);
        if !folder.is_dir() || !(kinds.is_empty() || kinds.iter().any(|kind| kind == target.name)) {
            continue;
        }
        let mut count = 0;
        for input in std::fs::read_dir(folder).unwrap() {
            (target.run)(&std::fs::read(input.unwrap().path()).unwrap());
            count += 1;
        }
        println!("{}: {count} inputs", target.name);
    }
}
