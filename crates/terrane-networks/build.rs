//! Compiles the hook into LibTorch's differentiation, where LibTorch is built in.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    #[cfg(feature = "libtorch")]
    hook();
}

#[cfg(feature = "libtorch")]
fn hook() {
    const SOURCE: &str = "src/cuda/hook.cpp";
    println!("cargo:rerun-if-changed={SOURCE}");
    let libraries =
        std::env::var("DEP_TCH_LIBTORCH_LIB").expect("torch-sys says where LibTorch is");
    let headers = std::path::Path::new(&libraries).with_file_name("include");
    cc::Build::new()
        .cpp(true)
        .warnings(false)
        .std("c++17")
        .include(&headers)
        .include(headers.join("torch/csrc/api/include"))
        .file(SOURCE)
        .compile("terrane_hook");
}
