#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    (terrane_fuzz::target("coder").expect("it is a target").run)(data);
});
