# What CI runs; cheapest first.
check: format tree unsafe wasm lint deny test conformance docs

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
    ! cargo tree -p terrane-c -e normal | grep -E 'burn|tokio|terrane-(networks|train|bench|report|serve|cli)'
    ! cargo tree -p terrane-web -e normal --target wasm32-unknown-unknown | grep -E 'burn|tokio|crs-definitions|terrane-(networks|serve|cli)'
    ! cargo tree -p terrane-python -e normal | grep -E 'burn|terrane-(networks|train|bench|report|serve|cli)'

# Where the compiler's word is not enough: the kernels of the context codec, each beside a plain twin that tests compare it with,
# and the doors to C and JavaScript. The workspace denies `unsafe_code`; this keeps `#[expect(unsafe_code)]` where it was audited.
unsafe:
    ! grep -rlE '\bunsafe (fn|extern|impl|\{)|unsafe\(|(allow|expect)\(unsafe_code' crates --include=*.rs | grep -vE \
        '^crates/(terrane-context/src/(simd|distribution|kernel|kernel/(x86|neon|wasm))|terrane-c/(src/[a-z]+|tests/c/header)|terrane-fuzz/src/c|terrane-web/src/door|terrane-cli/src/main|terrane-bench/src/openjpeg|terrane-networks/src/cuda/(mod|hook))\.rs$'

# The light codec and the decoder for the browser; says so where rustup cannot add the target.
wasm:
    if rustup target add wasm32-unknown-unknown; then cargo check -p terrane-codec --no-default-features --target wasm32-unknown-unknown && cargo check -p terrane-web --target wasm32-unknown-unknown; else echo "skipped: the target wasm32-unknown-unknown is not installed"; fi

# Licences, sources and known advisories of all dependencies. Installs cargo-deny where it is missing; says so where the database
# of advisories (RustSec, the one of cargo audit) cannot be reached.
deny:
    #!/usr/bin/env bash
    set -euo pipefail
    command -v cargo-deny > /dev/null || cargo install --quiet --locked cargo-deny@0.20.2
    cargo deny --all-features check licenses bans sources
    if cargo deny fetch db 2> /dev/null; then
        cargo deny --all-features check --disable-fetch advisories
    else
        echo "skipped: the database of advisories cannot be reached"
    fi

# The program as it is released, in target/dist: with the folders of this machine renamed in it.
# Features go to cargo, as in `just dist --no-default-features`.
dist *features:
    #!/usr/bin/env bash
    set -euo pipefail
    # Sources in C say when they were compiled.
    export SOURCE_DATE_EPOCH="${SOURCE_DATE_EPOCH:-315532800}"
    RUSTFLAGS="--remap-path-prefix=$PWD=/terrane --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo" \
        cargo build --locked --profile dist -p terrane-cli {{features}}
    ls -l "${CARGO_TARGET_DIR:-target}/dist/terrane"

# Builds the committed state twice, from folders of different names, and compares the bytes.
reproducible *features="--no-default-features":
    #!/usr/bin/env bash
    set -euo pipefail
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    for name in one another/deeper; do
        mkdir -p "$folder/$name"
        git archive HEAD | tar x -C "$folder/$name"
        (cd "$folder/$name" && CARGO_TARGET_DIR="$folder/$name/target" just dist {{features}})
    done
    sha256sum "$folder"/{one,another/deeper}/target/dist/terrane
    cmp "$folder"/{one,another/deeper}/target/dist/terrane && echo "the same bytes"

# Everything that the program is made of, in CycloneDX form: target/terrane.cdx.json.
sbom:
    #!/usr/bin/env bash
    set -euo pipefail
    command -v cargo-cyclonedx > /dev/null || cargo install --quiet --locked cargo-cyclonedx@0.5.9
    target="${CARGO_TARGET_DIR:-target}"
    mkdir -p "$target"
    # It writes beside every manifest of the workspace.
    trap 'find crates -name terrane.cdx.json -delete' EXIT
    cargo cyclonedx --quiet --manifest-path crates/terrane-cli/Cargo.toml --format json --spec-version 1.5 --override-filename terrane.cdx
    # No folder of this machine in it.
    sed "s|$PWD|/terrane|g" crates/terrane-cli/terrane.cdx.json > "$target/terrane.cdx.json"
    python3 -c 'import json, sys; bom = json.load(open(sys.argv[1])); print(sys.argv[1], len(bom["components"]), "parts")' "$target/terrane.cdx.json"

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

# Contour lines beside those of gdal_contour on a smooth terrain, and their heights; says so where gdal_contour (Debian: gdal-bin)
# is not installed. Given rasters, also whether any line as written crosses or touches another. Needs Python; for rasters with
# pyogrio and shapely.
test-contours *rasters:
    cargo build --release -p terrane-cli --no-default-features
    python3 tools/contours.py check "${CARGO_TARGET_DIR:-target}/release/terrane"
    {{ if rasters == "" { "" } else { "python3 tools/contours.py simple \"${CARGO_TARGET_DIR:-target}/release/terrane\" " + rasters } }}

# A raster of 20000×20000 pixels in less than 300 MB of memory.
test-large:
    cargo test --release -p terrane-geo --test rasters -- --ignored --nocapture a_raster_of_400_million_pixels

# The time of one tile through the paper's network on this machine's CPU.
speed:
    cargo test --release --workspace --test methods -- --ignored --nocapture one_tile_through

# Every small preset learns four tiles to less than 0.1 m within two minutes.
test-learn:
    cargo test --release --workspace --lib -- --ignored --nocapture learns_four_tiles

# Training with LibTorch, here on the CPU: the hook into its differentiation, and transformers by the twins of our kernels beside the
# library. Needs Python with torch 2.11 (PyPI), whose libraries are taken. The kernels themselves run on the CPU in `just test`.
test-libtorch:
    #!/usr/bin/env bash
    set -euo pipefail
    if ! python3 -c 'import torch' 2> /dev/null; then
        echo "skipped: Python has no torch"
        exit
    fi
    packages=$(python3 -c 'import pathlib, torch; print(pathlib.Path(torch.__file__).parents[1])')
    export LD_LIBRARY_PATH="$packages/torch/lib$(printf ':%s' "$packages"/nvidia/*/lib)"
    export LIBTORCH_USE_PYTORCH=1 LIBTORCH_BYPASS_VERSION_CHECK=1
    cargo test -p terrane-networks -p terrane-train --features terrane-networks/libtorch,terrane-train/libtorch --lib

# Every raster of the data through a file and back at four bounds, with three methods.
test-files:
    cargo test --release --workspace --test command -- --ignored --nocapture every_raster_of_the_data

# Every other value of every byte of small files, and a million random damages of larger ones (flips, runs, cuts, zeroed
# sectors, exchanged records): each is noticed, and the counts are printed.
test-corruption:
    cargo test -p terrane --no-default-features --lib -- --ignored --nocapture all_other_values_of_every_byte

# Miri, an interpreter that notices undefined behaviour: the kernels of the context codec beside their definition, plain and
# with AVX2, and the format's smallest parsers. The C library is for Valgrind (`just test-valgrind`): its tests are in C. Needs a nightly
# compiler; says so where it has no Miri.
miri:
    #!/usr/bin/env bash
    set -euo pipefail
    if ! cargo +nightly miri --version > /dev/null 2>&1; then
        echo "skipped: Miri is not installed (rustup component add miri --toolchain nightly)"
        exit
    fi
    cargo +nightly miri test -p terrane-context --lib -- kernel::
    RUSTFLAGS="-C target-feature=+avx2,+fma,+bmi2" cargo +nightly miri test -p terrane-context --lib -- kernel::
    cargo +nightly miri test -p terrane-format --lib -- bytes:: index::tests::locations index::tests::roots salvage::tests::traces

# A second reader, written from the specification alone, on the golden files; needs Python with numpy.
test-conformance:
    python3 conformance/check.py

# The second reader beside ours on so many generated files, from a number on: every field, height and mask. Needs Python with numpy.
test-differential count="3000" first="0": (_differential "-p terrane-codec" "python3" count first)

_differential packages python count first:
    #!/usr/bin/env bash
    set -euo pipefail
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    TERRANE_GENERATED="$folder" TERRANE_COUNT={{count}} TERRANE_FIRST={{first}} \
        cargo test {{packages}} --test generated -- --ignored files_for_the_second_reader
    {{python}} conformance/generated.py "$folder"

# The second reader on the golden files and on some generated ones, with NumPy from PyPI; says so where that cannot be had.
conformance:
    #!/usr/bin/env bash
    set -euo pipefail
    environment="${CARGO_TARGET_DIR:-target}/conformance"
    python="$environment/bin/python"
    if ! { [ -x "$python" ] || python3 -m venv "$environment"; } || ! "$python" -m pip install --quiet numpy; then
        echo "skipped: there is no Python with NumPy"
        exit
    fi
    "$python" conformance/check.py
    just _differential --workspace "$python" 60 0

# So many random GeoTIFFs, from a number on, read as GDAL reads them or refused; needs Python with rasterio and numpy.
test-rasters count="3000" first="0":
    #!/usr/bin/env bash
    set -euo pipefail
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    python3 crates/terrane-geo/tests/flavours/generate.py --out "$folder/rasters" --count {{count}} --first {{first}}
    TERRANE_RASTERS="$folder/rasters" cargo test -p terrane-geo --test rasters -- --ignored --nocapture every_generated_raster

# What holds for all files, with so many cases of each property instead of a few.
test-properties cases="1000":
    PROPTEST_CASES={{cases}} cargo test -p terrane-format --lib -- properties
    PROPTEST_CASES={{cases}} cargo test -p terrane-codec --test generated -- properties
    PROPTEST_CASES={{cases}} cargo test --workspace --test methods -- hostile --nocapture

# Rates of so many generated rasters, with every profile and effort: within 2 %, or refused with the two nearest.
test-rates count="200":
    TERRANE_COUNT={{count}} cargo test --release -p terrane --no-default-features --lib -- --ignored --nocapture rates_of_many_generated_rasters

# The same bytes and heights in release, on 64-bit ARM under emulation and on WebAssembly, with its wider registers and without,
# and the context codec's kernels there; `just test` compares those of debug and of fewer instructions. Needs the two Rust targets,
# a linker and qemu-user (Debian: gcc-aarch64-linux-gnu, qemu-user), and Node.
test-machines:
    #!/usr/bin/env bash
    set -euo pipefail
    export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
    export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64 -L /usr/aarch64-linux-gnu"
    export CARGO_TARGET_WASM32_WASIP1_RUNNER="node --no-warnings {{justfile_directory()}}/tools/wasi.mjs"
    cargo test --release -p terrane-codec --test generated -- hashes
    cargo test -p terrane-codec --test generated --target aarch64-unknown-linux-gnu -- hashes
    cargo test -p terrane-context --lib --target aarch64-unknown-linux-gnu -- machine sizes definition
    cargo test -p terrane-codec --no-default-features --test generated --target wasm32-wasip1 -- hashes
    cargo test -p terrane-context --lib --target wasm32-wasip1 -- machine
    export CARGO_TARGET_WASM32_WASIP1_RUSTFLAGS="-C target-feature=+simd128"
    cargo test -p terrane-codec --no-default-features --test generated --target wasm32-wasip1 -- hashes
    cargo test -p terrane-context --lib --target wasm32-wasip1 -- machine definition

# Times of one tile through the context codec's profiles.
bench:
    cargo bench -p terrane-codec --bench tile

# The program without burn: every command that it has, and what it says of files of tokens.
test-light:
    cargo test -p terrane-cli --no-default-features --test light

# Every call on files of encode, resume, shards, merge, decode and the other commands fails in turn in every way, kills at every call and at
# hundreds of moments, full disks, rasters that change; counts what was tried. Linux, with a C compiler; quick where TMPDIR is in
# memory. TERRANE names another program to try.
test-faults:
    cargo test -p terrane-cli --no-default-features --test faults -- --include-ignored --nocapture --test-threads 1

# A real S3-compatible server (moto, from PyPI, into the target folder): files are read from it as from the disk; throttling, expired
# keys, files that change, and what users see then.
test-s3:
    #!/usr/bin/env bash
    set -euo pipefail
    cargo build -p terrane-cli --no-default-features
    target="${CARGO_TARGET_DIR:-target}"
    environment="$target/s3"
    [ -x "$environment/bin/python" ] || python3 -m venv "$environment"
    "$environment/bin/python" -m pip install --quiet 'moto[s3,server]' boto3
    "$environment/bin/python" tools/s3.py "$target/debug/terrane"

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

# The web map of the light program, or of the one that TERRANE names, in a headless Chromium; needs Python with playwright and pillow, and a Chromium (Debian: chromium).
test-viewer:
    #!/usr/bin/env bash
    set -euo pipefail
    if [ -z "${TERRANE:-}" ]; then
        cargo build --release -p terrane-cli --no-default-features --bin terrane
        export TERRANE="${CARGO_TARGET_DIR:-target}/release/terrane"
    fi
    python3 crates/terrane-serve/viewer/tests/viewer.py

# The decoder for browsers, crates/terrane-serve/web/terrane.wasm, anew. The linker takes what is called from outside alone: the library of map
# projections would export more. The standard library is built along, for size and without what it says of panics, which nobody would
# read. Needs the target wasm32-unknown-unknown, the standard library's source (rustup component add rust-src), Python, and npm for
# wasm-opt; the unstable switches are let through by RUSTC_BOOTSTRAP, so that the stable compiler does. The same compiler gives the same bytes.
web:
    #!/usr/bin/env bash
    set -euo pipefail
    target="${CARGO_TARGET_DIR:-target}"
    library="$(rustc --print sysroot)/lib/rustlib/src/rust/"
    [ -d "$library" ] || { echo "the standard library's source is missing: rustup component add rust-src"; exit 1; }
    flags="-C target-feature=+simd128 -Zunstable-options -Cpanic=immediate-abort -Zfmt-debug=shallow -Zlocation-detail=none"
    # No folder of this machine in the module.
    flags+=" --remap-path-prefix=$PWD/= --remap-path-prefix=$library="
    for registry in "${CARGO_HOME:-$HOME/.cargo}"/registry/src/*/; do flags+=" --remap-path-prefix=$registry="; done
    RUSTC_BOOTSTRAP=1 CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS="$flags" \
        cargo rustc -Zbuild-std=std,panic_abort -Zbuild-std-features=optimize_for_size \
        -p terrane-web --lib --profile web --target wasm32-unknown-unknown --crate-type staticlib
    linker="$(dirname "$(rustc --print target-libdir)")/bin/rust-lld"
    exports=$(printf -- '--export=%s ' buffer ask give model answer answer_length)
    "$linker" -flavor wasm --no-entry --gc-sections --stack-first -z stack-size=1048576 $exports \
        "$target/wasm32-unknown-unknown/web/libterrane_web.a" -o "$target/named.wasm"
    # Projections that no coordinate system of EPSG has; `terrane-geo` refuses them there.
    others='aeqd|eqdc|estmerc|geos|gnom|mill|moll|ortho|robin|sinu|tpers'
    python3 tools/trim_wasm.py "$target/named.wasm" "$target/trimmed.wasm" --without "proj4rs::projections::($others)::"
    npm install --silent --no-audit --no-fund --prefix "$target/binaryen" binaryen@132.0.0
    # What nothing calls any more, and a few of its passes: all of them (-Oz) are half a percent smaller and decode 8 % slower.
    "$target/binaryen/node_modules/.bin/wasm-opt" --enable-simd --enable-bulk-memory --enable-nontrapping-float-to-int --enable-sign-ext \
        --enable-mutable-globals --enable-multivalue --enable-reference-types --remove-unused-module-elements --duplicate-function-elimination \
        --optimize-instructions --vacuum --merge-blocks --remove-unused-brs --vacuum "$target/trimmed.wasm" -o crates/terrane-serve/web/terrane.wasm
    ls -l crates/terrane-serve/web/terrane.wasm

# The npm package, put together in target/npm: the scripts of crates/terrane-serve/web and, each inside a script of its own, the decoder,
# packed models by their hashes, and definitions of coordinate systems. `npm pack` there makes what `npm publish` would send.
web-package:
    #!/usr/bin/env bash
    set -euo pipefail
    folder="${CARGO_TARGET_DIR:-target}/npm"
    web=crates/terrane-serve/web
    rm -rf "$folder" "$folder-files"
    mkdir -p "$folder" "$folder-files/models"
    cp "$web"/*.js LICENSE-* "$folder"
    cp "$web"/npm/* "$folder"
    rm "$folder/worker.js"
    cp "$web/terrane.wasm" "$folder-files"
    for model in crates/terrane-codec/models/*.safetensors; do
        cargo run --quiet -p terrane-context --example pack -- "$model" "$folder-files/models/$(sha256sum "$model" | cut -d ' ' -f 1).packed"
    done
    cargo run --quiet -p terrane-geo --example systems > "$folder-files/systems.txt"
    python3 tools/web_package.py "$web" "$folder-files" "$folder/files"
    size() { cat "$@" | gzip -9 | wc -c; }
    fast="$folder/files/$(sha256sum crates/terrane-codec/models/context-fast.safetensors | cut -d ' ' -f 1).packed.js"
    echo "bytes by gzip: decoder $(size "$folder/files/terrane.wasm.js"), scripts $(size "$folder"/*.js "$folder"/files/{index,worker.js}.js), model fast $(size "$fast"), all three $(size "$folder"/files/{terrane.wasm,index,worker.js}.js "$folder"/*.js "$fast")"

# The package in Node, in bundlers and in a page, and a site in a headless Chromium; says what is missing. Needs Node 20.16 or newer and,
# for the browser, Python with playwright and pillow, and a Chromium (Debian: chromium).
test-web: web-package
    #!/usr/bin/env bash
    set -euo pipefail
    target="$(realpath "${CARGO_TARGET_DIR:-target}")"
    if [ -z "${TERRANE:-}" ]; then
        cargo build --release -p terrane-cli --no-default-features --bin terrane
        export TERRANE="$target/release/terrane"
    fi
    export PACKAGE="$target/npm"
    if command -v node > /dev/null; then node --test crates/terrane-serve/web/tests/; else echo "skipped: Node is not installed"; fi
    if ! python3 -c 'import playwright, PIL' 2> /dev/null; then
        echo "skipped: Python has no playwright or no pillow"
        exit
    fi
    python3 crates/terrane-serve/web/tests/browser.py
    if command -v npm > /dev/null; then python3 crates/terrane-serve/web/tests/bundlers.py; else echo "skipped: npm is not installed"; fi

# PMTiles by the light program, read by PyPI's pmtiles and Pillow and shown by MapLibre; names what is missing and skips it. Takes
# the packages pmtiles, pillow, numpy and playwright of PyPI and pmtiles of npm into the target folder where it can.
test-pmtiles:
    #!/usr/bin/env bash
    set -euo pipefail
    cargo build --release -p terrane-cli --no-default-features
    target="${CARGO_TARGET_DIR:-target}"
    environment="$target/pmtiles"
    [ -x "$environment/bin/python" ] || python3 -m venv "$environment"
    "$environment/bin/python" -m pip install --quiet pmtiles pillow numpy playwright || echo "PyPI cannot be reached"
    npm install --silent --no-audit --no-fund --prefix "$environment" pmtiles || echo "npm cannot be reached"
    TERRANE="$target/release/terrane" MODULES="$environment/node_modules" "$environment/bin/python" tools/tile_archive.py

# How many tiles the server answers per second and core, how late, and whether a flood of bad requests harms it (Linux).
load:
    cargo build --release --workspace --bin terrane --example load
    "${CARGO_TARGET_DIR:-target}/release/examples/load" "${CARGO_TARGET_DIR:-target}/release/terrane"

# What would be published of every crate: it must hold all that it needs.
package:
    cargo package --workspace --exclude terrane-python --no-verify --allow-dirty
# The C library: libterrane.so with its version, libterrane.a, terrane.h and terrane.pc below a folder, as /usr/local.
install-c prefix:
    #!/usr/bin/env bash
    set -euo pipefail
    cargo build --profile dist -p terrane-c
    built="${CARGO_TARGET_DIR:-target}/dist"
    version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
    mkdir -p "{{prefix}}/lib/pkgconfig" "{{prefix}}/include"
    for library in "$built"/libterrane.dylib "$built"/libterrane.a; do
        [ ! -e "$library" ] || install -m 644 "$library" "{{prefix}}/lib/"
    done
    # Programs look for the name in the library, which changes with TRN_ABI.
    if [ -e "$built/libterrane.so" ]; then
        soname=libterrane.so.$(sed -n 's/^#define TRN_ABI //p' crates/terrane-c/include/terrane.h)
        install -m 644 "$built/libterrane.so" "{{prefix}}/lib/libterrane.so.$version"
        ln -sf "libterrane.so.$version" "{{prefix}}/lib/$soname"
        ln -sf "$soname" "{{prefix}}/lib/libterrane.so"
    fi
    install -m 644 crates/terrane-c/include/terrane.h "{{prefix}}/include/"
    sed "s|@PREFIX@|$(realpath "{{prefix}}")|; s|@VERSION@|$version|" crates/terrane-c/terrane.pc.in > "{{prefix}}/lib/pkgconfig/terrane.pc"

# The GDAL driver for the GDAL that CMake finds, below gdalplugins/<version> of the target folder. Arguments go to CMake:
# just gdal-plugin -DTERRANE_GDAL_INCLUDE=/headers -DTERRANE_GDAL_LIBRARY=/lib/libgdal.so.36
gdal-plugin *arguments:
    #!/usr/bin/env bash
    set -euo pipefail
    mkdir -p "${CARGO_TARGET_DIR:-target}"
    target=$(realpath "${CARGO_TARGET_DIR:-target}")
    # What another version left behind would be taken for this one.
    rm -rf "$target/gdal"
    # First what says in seconds that CMake or GDAL's headers are missing, then what compiles for minutes.
    cmake -S gdal -B "$target/gdal" -DTERRANE_LIBRARY="$target/release/libterrane.a" -DTERRANE_PLUGINS="$target/gdalplugins" {{arguments}}
    cargo build --release -p terrane-c
    cmake --build "$target/gdal"

# The driver in GDAL's own tools, on hostile files, and in rasterio; `python` has osgeo and numpy, `rasterio` has rasterio. Run
# `just gdal-plugin` first. Parts that are not installed are skipped by name.
test-gdal-plugin python="/usr/bin/python3" rasterio="python3":
    #!/usr/bin/env bash
    set -euo pipefail
    target=$(realpath "${CARGO_TARGET_DIR:-target}")
    export GDAL_DRIVER_PATH="${GDAL_DRIVER_PATH:-$target/gdalplugins}"
    export TERRANE="${TERRANE:-$target/release/terrane}"
    [ -x "$TERRANE" ] || cargo build --release -p terrane-cli --no-default-features
    if ! command -v gdalinfo > /dev/null || ! "{{python}}" -c 'import osgeo.gdal, numpy' 2> /dev/null; then
        echo "skipped: GDAL's tools, since gdal-bin or {{python}} with osgeo and numpy is not installed"
    else
        "{{python}}" gdal/tests/tools.py
        "{{python}}" gdal/tests/hostile.py
    fi
    if "{{rasterio}}" -c 'import rasterio' 2> /dev/null; then
        "{{rasterio}}" gdal/tests/in_rasterio.py "$GDAL_DRIVER_PATH"
    else
        echo "skipped: rasterio, which {{rasterio}} does not have"
    fi

# The driver in QGIS without a screen (Debian: python3-qgis). Run `just gdal-plugin` first.
test-qgis python="/usr/bin/python3" picture="":
    #!/usr/bin/env bash
    set -euo pipefail
    target=$(realpath "${CARGO_TARGET_DIR:-target}")
    export GDAL_DRIVER_PATH="${GDAL_DRIVER_PATH:-$target/gdalplugins}"
    export TERRANE="${TERRANE:-$target/release/terrane}"
    if "{{python}}" -c 'import qgis.core' 2> /dev/null; then
        [ -x "$TERRANE" ] || cargo build --release -p terrane-cli --no-default-features
        "{{python}}" gdal/tests/in_qgis.py {{picture}}
    else
        echo "skipped: QGIS, which {{python}} does not have"
    fi

# The C library under Valgrind: encoding, reading by four threads, closing, and 60 damaged files.
test-valgrind:
    #!/usr/bin/env bash
    set -euo pipefail
    if ! command -v valgrind > /dev/null; then
        echo "skipped: valgrind is not installed"
        exit
    fi
    cargo build -p terrane-c
    target="${CARGO_TARGET_DIR:-target}"
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    cc -std=c11 -g -O1 -Icrates/terrane-c/include crates/terrane-c/tests/c/check.c "$target/debug/libterrane.a" -lpthread -ldl -lm -o "$folder/check"
    # Rust's handle of the main thread counts as possibly lost.
    valgrind --error-exitcode=9 --leak-check=full --errors-for-leak-kinds=definite,indirect "$folder/check" "$folder" conformance/tokens-int8/input.trn

# The wheel for Linux as PyPI takes it: linked for an old C library by zig, which comes from PyPI as maturin does.
wheel:
    #!/usr/bin/env bash
    set -euo pipefail
    environment="${CARGO_TARGET_DIR:-target}/wheel"
    [ -x "$environment/bin/python" ] || python3 -m venv "$environment"
    "$environment/bin/python" -m pip install --quiet 'maturin>=1.9,<2' ziglang
    PATH="$(realpath "$environment")/bin:$PATH" maturin build --profile dist --zig --compatibility manylinux2014 --out "${CARGO_TARGET_DIR:-target}/wheels"

# Inputs to start fuzzing from.
fuzz-seeds:
    cargo run --release -p terrane-fuzz --example seeds -- conformance crates/terrane-geo/tests/flavours fuzz/corpus

# Fuzzes one kind of input for so many seconds; needs a nightly compiler and cargo-fuzz. What it finds belongs into fuzz/findings.
fuzz kind seconds="60": fuzz-seeds
    mkdir -p fuzz/artifacts/{{kind}}
    TERRANE_FUZZ={{kind}} cargo +nightly fuzz run any fuzz/corpus/{{kind}} -- -dict=fuzz/terrane.dict -artifact_prefix=fuzz/artifacts/{{kind}}/ -max_total_time={{seconds}} -rss_limit_mb=1500 -timeout=20

# A folder to fuzz all kinds at once from, or some, on this machine or on one without Rust: `DIR/fuzz.sh SECONDS JOBS OUT [KIND...]`.
fuzz-kit dir: fuzz-seeds
    cargo +nightly fuzz build any
    mkdir -p {{dir}}/seeds
    strip -o {{dir}}/any "${CARGO_TARGET_DIR:-fuzz/target}/x86_64-unknown-linux-gnu/release/any"
    cp -r fuzz/corpus/. {{dir}}/seeds
    cp fuzz/terrane.dict tools/fuzz.sh {{dir}}

# How much of the code the kept inputs of fuzzing reach, by lines of each file: of the seeds, or of the corpus.tar.xz of `fuzz.sh`,
# unpacked. Needs the compiler's own LLVM tools (rustup component add llvm-tools).
fuzz-coverage corpus *kinds:
    #!/usr/bin/env bash
    set -euo pipefail
    tools="$(rustc --print target-libdir)/../bin"
    [ -x "$tools/llvm-cov" ] || { echo "the compiler's LLVM tools are missing: rustup component add llvm-tools"; exit 1; }
    target="${CARGO_TARGET_DIR:-target}/coverage"
    mkdir -p "$target"
    rm -f "$target"/*.profraw
    # With a target named, build scripts are left as they are.
    host=$(rustc -vV | sed -n 's/^host: //p')
    RUSTFLAGS="-C instrument-coverage" cargo build --quiet --release --target "$host" --target-dir "$target" -p terrane-fuzz --example replay
    program="$target/$host/release/examples/replay"
    LLVM_PROFILE_FILE="$(realpath "$target")/%p.profraw" "$program" "{{corpus}}" {{kinds}}
    "$tools/llvm-profdata" merge --sparse "$target"/*.profraw -o "$target/all.profdata"
    "$tools/llvm-cov" report "$program" --instr-profile="$target/all.profdata" --show-region-summary=false --show-branch-summary=false \
        --ignore-filename-regex='/(registry|rustc|fuzz|examples)/|terrane-fuzz'
