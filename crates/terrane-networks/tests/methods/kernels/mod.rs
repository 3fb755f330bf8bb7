//! The kernels for NVIDIA cards, run on the CPU: see `card.h`. Their arithmetic is compared with its definition in 64-bit floats, and
//! sanitizers watch what they read and write (`TERRANE_SANITIZERS` names others, as `thread`). How they run on a card is for
//! `terrane-train/examples/step.rs`.

mod adam;
mod sines;
mod trunk;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use half::{bf16, f16};
use terrane_codec::random::Random;

/// What a kernel is given.
#[derive(Debug, Clone)]
enum Argument {
    Floats(Vec<f32>),
    Bf16(Vec<bf16>),
    F16(Vec<f16>),
    /// A null pointer.
    Nothing,
    Float(f32),
    Long(i64),
}

use Argument::{Bf16, F16, Float, Floats, Long, Nothing};

impl Argument {
    fn to_bytes(&self) -> Vec<u8> {
        let array = |bytes: Vec<u8>| [&(bytes.len() as u64).to_le_bytes()[..], &bytes].concat();
        match self {
            Floats(numbers) => array(numbers.iter().flat_map(|x| x.to_le_bytes()).collect()),
            Bf16(numbers) => array(numbers.iter().flat_map(|x| x.to_le_bytes()).collect()),
            F16(numbers) => array(numbers.iter().flat_map(|x| x.to_le_bytes()).collect()),
            Nothing => array(Vec::new()),
            Float(number) => number.to_le_bytes().into(),
            Long(number) => number.to_le_bytes().into(),
        }
    }

    /// As many numbers, of no value that a kernel may leave.
    fn out(count: usize) -> Self {
        Floats(vec![f32::NAN; count])
    }

    /// The numbers of an array.
    fn numbers(&self) -> Vec<f64> {
        match self {
            Floats(numbers) => numbers.iter().copied().map(f64::from).collect(),
            Bf16(numbers) => numbers.iter().copied().map(f64::from).collect(),
            F16(numbers) => numbers.iter().copied().map(f64::from).collect(),
            _ => Vec::new(),
        }
    }
}

/// A source of kernels, compiled for the CPU.
struct Card {
    folder: tempfile::TempDir,
    program: PathBuf,
}

impl Card {
    /// `None`, with a word, where there is no compiler for C++.
    fn new(source: &str, kernels: &[&str], defined: &[(&str, usize)]) -> Option<Self> {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let folder = tempfile::tempdir().unwrap();
        let text = format!(
            "#include \"card.h\"\n#include \"{source}.cu\"\nint main(int, char **arguments) {{ {} return 2; }}\n",
            kernels
                .iter()
                .map(|name| format!("KERNEL({name})"))
                .collect::<String>()
        );
        let main = folder.path().join("main.cpp");
        std::fs::write(&main, text).unwrap();
        let program = folder.path().join("card");
        let compiler = std::env::var_os("CXX").unwrap_or_else(|| "c++".into());
        let named = std::env::var("TERRANE_SANITIZERS").ok();
        let named = named.as_deref().unwrap_or("address,undefined");
        let sanitizers = [
            format!("-fsanitize={named}"),
            "-fno-sanitize-recover=all".into(),
        ];
        // Where the compiler has no sanitizers, without them.
        for sanitizers in [&sanitizers[..], &[]] {
            let compiled = Command::new(&compiler)
                .args(["-std=c++17", "-O1", "-w", "-pthread"])
                .args(sanitizers)
                .args(
                    defined
                        .iter()
                        .map(|(name, number)| format!("-D{name}={number}")),
                )
                .arg("-I")
                .arg(here.join("tests/methods/kernels"))
                .arg("-I")
                .arg(here.join("src/cuda"))
                .arg(&main)
                .arg("-o")
                .arg(&program)
                .output();
            match compiled {
                Err(_) => {
                    println!("skipped: there is no compiler for C++");
                    return None;
                }
                Ok(output) if output.status.success() => {
                    return Some(Self { folder, program });
                }
                Ok(output) => assert!(
                    !sanitizers.is_empty(),
                    "{}",
                    String::from_utf8_lossy(&output.stderr)
                ),
            }
        }
        None
    }

    /// Runs a kernel on so many blocks of threads; gives the arrays after it.
    fn run(
        &self,
        kernel: &str,
        blocks: usize,
        threads: (usize, usize),
        arguments: &[Argument],
    ) -> Vec<Argument> {
        let mut process = Command::new(&self.program)
            .current_dir(self.folder.path())
            .arg(kernel)
            .args([blocks, threads.0, threads.1].map(|number| number.to_string()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let input: Vec<u8> = arguments.iter().flat_map(Argument::to_bytes).collect();
        process.stdin.take().unwrap().write_all(&input).unwrap();
        let output = process.wait_with_output().unwrap();
        assert!(
            output.status.success(),
            "{kernel}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        let mut bytes = output.stdout.as_slice();
        let mut next = |length: usize| {
            let (these, rest) = bytes.split_at(length);
            bytes = rest;
            these
        };
        let mut arrays = Vec::new();
        for argument in arguments {
            arrays.push(match argument {
                Floats(numbers) => {
                    let chunks = next(4 * numbers.len()).as_chunks().0.iter();
                    Floats(chunks.map(|&chunk| f32::from_le_bytes(chunk)).collect())
                }
                Bf16(numbers) => {
                    let chunks = next(2 * numbers.len()).as_chunks().0.iter();
                    Bf16(chunks.map(|&chunk| bf16::from_le_bytes(chunk)).collect())
                }
                F16(numbers) => {
                    let chunks = next(2 * numbers.len()).as_chunks().0.iter();
                    F16(chunks.map(|&chunk| f16::from_le_bytes(chunk)).collect())
                }
                other => other.clone(),
            });
        }
        assert!(bytes.is_empty());
        arrays
    }
}

/// Numbers around 0 that look like chance, of those that a kernel is given.
fn noise(seed: u64, count: usize) -> Vec<f64> {
    let mut random = Random::new(seed, 0);
    (0..count)
        .map(|_| f64::from((2.0 * random.unit() - 1.0) as f32))
        .collect()
}

fn bf16s(numbers: &[f64]) -> Argument {
    Bf16(numbers.iter().map(|&x| bf16::from_f64(x)).collect())
}

fn f16s(numbers: &[f64]) -> Argument {
    F16(numbers.iter().map(|&x| f16::from_f64(x)).collect())
}

fn floats(numbers: &[f64]) -> Argument {
    Floats(numbers.iter().map(|&x| x as f32).collect())
}

/// Numbers of a kernel, and what they should be, apart by no more than a part of the largest.
fn assert_near(what: &str, found: &Argument, expected: &[f64], part: f64) {
    let found = found.numbers();
    assert_eq!(found.len(), expected.len(), "{what}");
    let largest = expected.iter().fold(0.0_f64, |most, x| most.max(x.abs()));
    for (index, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert!(
            (found - expected).abs() <= part * largest,
            "{what}, number {index}: {found} for {expected}"
        );
    }
}
