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
    ! cargo tree -p terrane-web -e normal --target wasm32-unknown-unknown | grep -E 'burn|tokio|crs-definitions|terrane-(networks|serve|cli)'
    ! cargo tree -p terrane-python -e normal | grep -E 'burn|terrane-(networks|train|bench|report|serve|cli)'

# The light codec and the decoder for the browser; says so where rustup cannot add the target.
wasm:
    if rustup target add wasm32-unknown-unknown; then cargo check -p terrane-codec --no-default-features --target wasm32-unknown-unknown && cargo check -p terrane-web --target wasm32-unknown-unknown; else echo "skipped: the target wasm32-unknown-unknown is not installed"; fi

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

# The decoder for browsers, web/terrane.wasm, anew. The linker takes what is called from outside alone: the library of map
# projections has exports of its own, which would bring their JavaScript with them. Needs the target
# wasm32-unknown-unknown and Python.
web:
    #!/usr/bin/env bash
    set -euo pipefail
    target="${CARGO_TARGET_DIR:-target}"
    # No folder of this machine in the module.
    flags="-C target-feature=+simd128 --remap-path-prefix=$PWD/="
    for registry in "${CARGO_HOME:-$HOME/.cargo}"/registry/src/*/; do flags+=" --remap-path-prefix=$registry="; done
    CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS="$flags" \
        cargo rustc -p terrane-web --lib --profile web --target wasm32-unknown-unknown --crate-type staticlib
    linker="$(dirname "$(rustc --print target-libdir)")/bin/rust-lld"
    exports=$(printf -- '--export=%s ' buffer ask give model answer answer_length)
    "$linker" -flavor wasm --no-entry --gc-sections --strip-all --stack-first -z stack-size=1048576 $exports \
        "$target/wasm32-unknown-unknown/web/libterrane_web.a" -o "$target/terrane.wasm"
    python3 tools/trim_wasm.py "$target/terrane.wasm" web/terrane.wasm
    ls -l web/terrane.wasm

# The npm package, put together in target/npm: scripts and decoder of web/, models by their hashes, and definitions of
# coordinate systems. `npm pack` there makes what `npm publish` would send.
web-package:
    #!/usr/bin/env bash
    set -euo pipefail
    folder="${CARGO_TARGET_DIR:-target}/npm"
    rm -rf "$folder"
    mkdir -p "$folder/models"
    cp web/*.js web/*.ts web/*.json web/README.md web/terrane.wasm LICENSE-* "$folder"
    for model in crates/terrane-codec/models/*.safetensors; do
        cp "$model" "$folder/models/$(sha256sum "$model" | cut -d ' ' -f 1).safetensors"
    done
    cargo run --quiet -p terrane-geo --example systems > "$folder/systems.txt"
    gzip -9 --keep --stdout "$folder/terrane.wasm" | wc -c

# The package in Node and a site in a headless Chromium; says what is missing. Needs Node 20 or newer, and for the browser
# Python with playwright and pillow, and a Chromium (Debian: chromium).
test-web: web-package
    #!/usr/bin/env bash
    set -euo pipefail
    target="$(realpath "${CARGO_TARGET_DIR:-target}")"
    cargo build --release -p terrane-cli --no-default-features --bin terrane
    export TERRANE="$target/release/terrane" PACKAGE="$target/npm"
    if command -v node > /dev/null; then node --test web/tests/; else echo "skipped: Node is not installed"; fi
    if python3 -c 'import playwright, PIL' 2> /dev/null; then python3 web/tests/browser.py; else echo "skipped: Python has no playwright or no pillow"; fi

# How many tiles the server answers per second and core, how late, and whether a flood of bad requests harms it (Linux).
load:
    cargo build --release --workspace --bin terrane --example load
    "${CARGO_TARGET_DIR:-target}/release/examples/load" "${CARGO_TARGET_DIR:-target}/release/terrane"

# What would be published of every crate: it must hold all that it needs.
package:
    cargo package --workspace --exclude terrane-python --no-verify --allow-dirty
