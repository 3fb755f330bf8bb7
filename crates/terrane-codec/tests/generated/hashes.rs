//! Files and their heights are those that were made before: on every machine, with any of its instructions, in debug and in
//! release, on x86-64, ARM and WebAssembly.
//!
//! Where the encoder is changed on purpose, `RENEW_HASHES=1 cargo test -p terrane-codec --test generated` writes them anew.

use std::fmt::Write;

use sha2::{Digest, Sha256};

use terrane_codec::context::simd::{LIMIT, instructions};
use terrane_codec::portable;
use terrane_codec::random::Random;

use crate::recipe::{Recipe, levels, open};

/// How many files.
const COUNT: u64 = 120;

/// One line per file: its number, its bytes, the hash of them, and that of the heights of all its levels; and one of logarithms.
const KNOWN: &str = include_str!("hashes.tsv");

fn hash(bytes: &[u8]) -> String {
    hex::encode(&Sha256::digest(bytes)[..8])
}

fn line(number: u64) -> String {
    match Recipe::of_number(number).encode(1) {
        Err(error) => format!("{number}\t{error}"),
        Ok((file, _)) => {
            // A missing pixel is one NaN or another.
            let heights = levels(&open(&file)).concat();
            let bits = heights.iter().map(|height| {
                let height = if height.is_nan() { f64::NAN } else { *height };
                height.to_bits().to_le_bytes()
            });
            let bits: Vec<u8> = bits.flatten().collect();
            format!("{number}\t{}\t{}\t{}", file.len(), hash(&file), hash(&bits))
        }
    }
}

/// The logarithms and powers that the encoder asks for. Of those of a machine's own library only one of 32 bits is left, for the
/// costs of symbols: it is tried for all that it is asked.
fn logarithms() -> String {
    let costs: Vec<u8> = (1..=u16::MAX)
        .flat_map(|frequency| f32::from(frequency).log2().to_le_bytes())
        .collect();
    let mut random = Random::new(7, 7);
    let steps = (0..20_000).flat_map(|_| {
        let x = random.unit();
        [
            portable::ln(1000.0 * x),
            portable::log2(3000.0 * x),
            portable::exp(6.0 * x - 3.0),
            portable::exp2(11.0 * x - 8.0),
        ]
    });
    let steps: Vec<u8> = steps.flat_map(f64::to_le_bytes).collect();
    format!("logarithms\t\t{}\t{}", hash(&costs), hash(&steps))
}

#[test]
fn files_and_heights_are_as_ever() {
    if let Ok(asked) = std::env::var(LIMIT) {
        assert_eq!(instructions(), asked, "the machine has them, and no others");
    }
    let mut found = String::from("number\tbytes\tfile\theights\n");
    writeln!(found, "{}", logarithms()).unwrap();
    for number in 0..COUNT {
        writeln!(found, "{}", line(number)).unwrap();
    }
    if std::env::var_os("RENEW_HASHES").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/generated/hashes.tsv");
        std::fs::write(path, &found).unwrap();
        return;
    }
    let differing: Vec<_> = found
        .lines()
        .zip(KNOWN.lines())
        .filter(|(found, known)| found != known)
        .map(|(found, known)| {
            let number = found.split('\t').next().and_then(|word| word.parse().ok());
            format!("{found}\n{known}\n{:?}", number.map(Recipe::of_number))
        })
        .collect();
    assert!(differing.is_empty(), "{}", differing.join("\n\n"));
    assert_eq!(found.lines().count(), KNOWN.lines().count());
}

/// As above with fewer instructions: in processes of their own, since a process asks its machine once. The C library's
/// logarithms and powers have kinds of their own, which are limited with them.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
#[test]
fn no_byte_depends_on_the_instructions() {
    if std::env::var_os("RENEW_HASHES").is_some() {
        return;
    }
    let own = instructions();
    for (name, hidden) in [
        ("plain", "-AVX512F,-AVX512VL,-AVX2,-FMA,-FMA4,-AVX"),
        ("avx2", "-AVX512F,-AVX512VL"),
        ("avx512", "-AVX512_VNNI"),
    ] {
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        child
            .args(["--exact", "hashes::files_and_heights_are_as_ever"])
            .env(LIMIT, name)
            .env("GLIBC_TUNABLES", format!("glibc.cpu.hwcaps={hidden}"));
        let output = child.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{name}: {said}");
        assert!(said.contains("1 passed"), "{name}: {said}");
        if name == own {
            break;
        }
    }
}
