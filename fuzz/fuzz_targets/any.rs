//! Every kind of input in one program; `TERRANE_FUZZ` names the one that is run.

#![no_main]

use std::sync::LazyLock;

use terrane_fuzz::{TARGETS, Target, target};

static CHOSEN: LazyLock<Target> = LazyLock::new(|| {
    let name = std::env::var("TERRANE_FUZZ").unwrap_or_default();
    target(&name).unwrap_or_else(|| {
        let names = TARGETS.iter().map(|target| target.name);
        let names = names.collect::<Vec<_>>().join(", ");
        eprintln!("TERRANE_FUZZ must be one of {names}, not {name:?}");
        std::process::exit(2);
    })
});

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    (CHOSEN.run)(data);
});
