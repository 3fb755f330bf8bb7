# What CI runs; cheapest first.
check: format tree wasm lint deny test docs

# The README's test command.
test:
    cargo test --workspace

# The methods are named in a macro, where rustfmt does not look for modules.
format:
    cargo fmt --all --check
    rustfmt --check --edition 2024 crates/terrane-networks/src/methods/*.rs

lint:
    cargo clippy --workspace --all-targets -- -D warnings
    cargo clippy -p terrane-cli --no-default-features --all-targets -- -D warnings

docs:
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps

# What each crate may not need: the picture of ARCHITECTURE.md, kept downwards. The light codec and everything below it has
# no network library, no geodata and, without its feature `remote`, no runtime.
tree:
    ! cargo tree -p terrane-format -e normal | grep -E 'burn|tiff|tokio|rayon|terrane-(context|codec|geo)'
    ! cargo tree -p terrane-context -e normal | grep -E 'burn|tiff|tokio|rayon|terrane-(codec|geo)'
    ! cargo tree -p terrane-codec -e normal | grep -E 'burn|tiff|tokio|rayon|terrane-geo'
    ! cargo tree -p terrane-geo -e normal | grep -E 'burn|tokio|terrane-(context|codec)'
    ! cargo tree -p terrane-networks -e normal | grep -E 'tiff|tokio|terrane-geo'
    ! cargo tree -p terrane -e normal --no-default-features | grep -E 'burn|tokio|axum'
    ! cargo tree -p terrane-serve -e normal | grep -E 'burn|terrane-(networks|train|bench|report|cli)'
    ! cargo tree -p terrane-report -e normal | grep -E 'burn|terrane-(codec|networks|train|bench)'
    ! cargo tree -p terrane-train -e normal | grep -E 'terrane-(report|bench|serve)|terrane v'
    ! cargo tree -p terrane-bench -e normal | grep -E 'terrane-(serve|cli)'
    ! cargo tree -p terrane-cli -e normal --no-default-features | grep -E 'burn|terrane-(networks|train|bench|report)'
    ! cargo tree -p terrane-python -e normal | grep -E 'burn|terrane-(networks|train|bench|report|serve|cli)'

# The light codec for the browser; says so where rustup cannot add the target.
wasm:
    if rustup target add wasm32-unknown-unknown; then cargo check -p terrane-codec --no-default-features --target wasm32-unknown-unknown; else echo "skipped: the target wasm32-unknown-unknown is not installed"; fi

# Licences and sources of dependencies; says so where cargo-deny is not installed.
deny:
    if command -v cargo-deny > /dev/null; then cargo deny check licenses bans sources; else echo "skipped: cargo-deny is not installed"; fi

# Every flavour of GeoTIFF at full size, written COGs, and terrain derivatives, against GDAL; needs Python with rasterio,
# rio-cogeo and numpy, and gdaldem (Debian: gdal-bin).
test-gdal:
    #!/usr/bin/env bash
    set -euo pipefail
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    mkdir "$folder/cogs" "$folder/derivatives"
    python3 crates/terrane-geo/tests/flavours/make.py --out "$folder/flavours" --size 900 700 --block 256
    TERRANE_FLAVOURS="$folder/flavours" TERRANE_COGS="$folder/cogs" TERRANE_DERIVATIVES="$folder/derivatives" \
        cargo test --release -p terrane-geo --test rasters -- --ignored --nocapture \
        every_large_flavour written_cogs derivatives_for_gdal
    python3 crates/terrane-geo/tests/check_cogs.py "$folder/cogs"
    python3 crates/terrane-geo/tests/check_derivatives.py "$folder/derivatives"

# A raster of 20000×20000 pixels in less than 300 MB of memory.
test-large:
    cargo test --release -p terrane-geo --test rasters -- --ignored --nocapture a_raster_of_400_million_pixels

# The time of one tile through the paper's network on this machine's CPU.
speed:
    cargo test --release --workspace --test methods -- --ignored --nocapture one_tile_through

# Every small preset learns four tiles to less than 0.1 m within two minutes.
test-learn:
    cargo test --release --workspace --lib -- --ignored --nocapture learns_four_tiles

# Every raster of the data through a file and back at four bounds, with three methods.
test-files:
    cargo test --release --workspace --test command -- --ignored --nocapture every_raster_of_the_data

# A second reader, written from the specification alone, on the golden files; needs Python with numpy.
test-conformance:
    python3 conformance/check.py

# The context codec on other machines: 64-bit ARM under emulation and WebAssembly. Needs the two Rust targets, a linker and
# qemu-user (Debian: gcc-aarch64-linux-gnu, qemu-user), and Node.
test-machines:
    CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc \
        CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64 -L /usr/aarch64-linux-gnu" \
        cargo test -p terrane-context --lib --target aarch64-unknown-linux-gnu -- machine sizes definition
    CARGO_TARGET_WASM32_WASIP1_RUNNER="node --no-warnings {{justfile_directory()}}/tools/wasi.mjs" \
        cargo test -p terrane-context --lib --target wasm32-wasip1 -- machine
    CARGO_TARGET_WASM32_WASIP1_RUNNER="node --no-warnings {{justfile_directory()}}/tools/wasi.mjs" \
        CARGO_TARGET_WASM32_WASIP1_RUSTFLAGS="-C target-feature=+simd128" \
        cargo test -p terrane-context --lib --target wasm32-wasip1 -- machine definition

# Times of one tile through the context codec's profiles.
bench:
    cargo bench -p terrane --bench tile

# The program without burn: every command that it has, and what it says of files of tokens.
test-light:
    cargo test -p terrane-cli --no-default-features --test light

# The Python package: builds it, installs it into an environment of its own below the target folder with everything it works
# with, and runs its tests and the examples of its documentation. Needs Python 3.10 or newer with venv.
test-python *arguments: (_test-python "" arguments)

# The same with networks, and so with the tests of files of tokens.
test-python-networks *arguments: (_test-python "--features networks" arguments)

_test-python build *arguments:
    #!/usr/bin/env bash
    set -euo pipefail
    environment="${CARGO_TARGET_DIR:-target}/python"
    python="$environment/bin/python"
    [ -x "$python" ] || python3 -m venv "$environment"
    "$python" -m pip install --quiet 'maturin>=1.9,<2' numpy xarray rioxarray 'dask[array,distributed]' 'zarr>=3.0.8' 'ray[data]' \
        pytest mypy
    rm -rf "$environment/wheels"
    "$environment/bin/maturin" build --quiet --out "$environment/wheels" {{build}}
    "$python" -m pip install --quiet --force-reinstall --no-deps "$environment"/wheels/*.whl
    "$python" -m pytest -q -rs crates/terrane-python/tests {{arguments}}

# A country of 41,000 km² at 1 m: its plan, and its shards, made up, become one file. Needs Python with rasterio and google-crc32c,
# and 8 GB of disk.
test-country folder:
    cargo build --release --workspace --bin terrane
    python3 tools/country.py "${CARGO_TARGET_DIR:-target}/release/terrane" "{{folder}}"

# The web map in a headless Chromium; needs Python with playwright and pillow, and a Chromium (Debian: chromium).
test-viewer:
    cargo build --release --workspace --bin terrane
    TERRANE="${CARGO_TARGET_DIR:-target}/release/terrane" python3 viewer/tests/viewer.py

# How many tiles the server answers per second and core, how late, and whether a flood of bad requests harms it (Linux).
load:
    cargo build --release --workspace --bin terrane --example load
    "${CARGO_TARGET_DIR:-target}/release/examples/load" "${CARGO_TARGET_DIR:-target}/release/terrane"

# What would be published of every crate: it must hold all that it needs.
package:
    cargo package --workspace --exclude terrane-python --no-verify --allow-dirty

# Inputs to start fuzzing from.
fuzz-seeds:
    cargo run --release -p terrane-fuzz --example seeds -- conformance fuzz/corpus

# Fuzzes one kind of input for so many seconds; needs a nightly compiler and cargo-fuzz. What it finds belongs into fuzz/findings.
fuzz target seconds="60": fuzz-seeds
    cargo +nightly fuzz run --release {{target}} -- -dict=fuzz/terrane.dict -max_total_time={{seconds}} -rss_limit_mb=1500 -timeout=20
