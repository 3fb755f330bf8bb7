//! The name that programs look for when they are started: that of the interface's number, `TRN_ABI`.

fn main() {
    let header = concat!(env!("CARGO_MANIFEST_DIR"), "/include/terrane.h");
    println!("cargo::rerun-if-changed={header}");
    let text = std::fs::read_to_string(header).expect("terrane.h is part of the crate");
    let abi = text
        .lines()
        .find_map(|line| line.strip_prefix("#define TRN_ABI "))
        .expect("terrane.h states TRN_ABI");
    let is_elf =
        std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux" || os.ends_with("bsd"));
    if is_elf {
        println!(
            "cargo::rustc-cdylib-link-arg=-Wl,-soname,libterrane.so.{}",
            abi.trim()
        );
    }
}
