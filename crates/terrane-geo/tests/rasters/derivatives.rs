//! Terrain derivatives of generated and real rasters, for comparison with `gdaldem`.

use std::path::Path;

use terrane_geo::synthetic::{Recipe, generate};
use terrane_geo::{
    Affine, Cell, CogWriter, Crs, CrsKind, Existing, GeoTiff, Georeference, Grid, Output, Product,
    RasterSource, SampleType, Storage, Window, derive_rows,
};

/// What `gdaldem -s` is given for degrees.
const METRES_PER_DEGREE: f64 = 111_120.0;
const PRODUCTS: [Product; 6] = [
    Product::Slope,
    Product::Aspect,
    Product::Hillshade,
    Product::Tri,
    Product::Tpi,
    Product::Roughness,
];

/// Writes rasters and what is derived from them for `check_derivatives.py`, which lets `gdaldem` do the same.
#[test]
#[ignore = "needs Python with rasterio, and gdaldem; run by `just test-gdal`"]
fn derivatives_for_gdal() {
    let folder =
        std::env::var("TERRANE_DERIVATIVES").expect("TERRANE_DERIVATIVES names a folder to write");
    let folder = Path::new(&folder);
    generated(folder);
    real(folder);
}

fn generated(folder: &Path) {
    // gdaldem adds heights in single precision: on a step of 1/64 m the sums are exact, and so is the comparison.
    for (name, step_m, x_m, y_m) in [
        ("plain", None, 2.0, 2.0),
        ("plain_oblong", None, 2.0, 3.0),
        ("steps", Some(1.0 / 64.0), 2.0, 2.0),
        ("steps_oblong", Some(1.0 / 64.0), 2.0, 3.0),
        ("steps_south_up", Some(1.0 / 64.0), 2.0, -2.0),
    ] {
        let terrain = generate(&Recipe {
            width: 500,
            height: 400,
            pixel_m: 2.0,
            relief_m: 300.0,
            ..Recipe::default()
        });
        let height_m = |m: &f32| {
            let m = f64::from(*m);
            step_m.map_or(m, |step_m| (m / step_m).round() * step_m)
        };
        let heights = terrain.heights.iter().map(height_m).collect();
        let grid = Grid::new(terrain.width, terrain.height, heights);
        assert!(!grid.is_complete(), "{name}: a corner is missing");
        let affine = Affine {
            x_per_column: x_m,
            y_per_row: -y_m,
            ..Affine::north_up(2_600_000.0, 1_200_000.0, 1.0)
        };
        let georeference = Georeference::new(affine, Crs::projected(2056, None));
        let storage = Storage::metres(SampleType::F32, Some(-9999.0));
        write(folder, name, &grid, georeference, storage);
    }
}

fn real(folder: &Path) {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let Ok(entries) = std::fs::read_dir(&data) else {
        println!("skipped: no real data beside the project");
        return;
    };
    let mut count = 0;
    for path in entries.map(|entry| entry.unwrap().path()) {
        if path.extension().is_none_or(|extension| extension != "tif") {
            continue;
        }
        let raster = GeoTiff::open(&path).unwrap();
        let info = raster.info();
        let (width, height) = (info.width().min(512), info.height().min(512));
        let window = Window {
            column: (info.width() - width) / 2,
            row: (info.height() - height) / 2,
            width,
            height,
        };
        let grid = raster.read(0, window).unwrap();
        let georeference = info.georeference.cropped(window.column, window.row);
        let name = format!("real_{}", path.file_stem().unwrap().display());
        write(folder, &name, &grid, georeference, info.storage.clone());
        count += 1;
    }
    println!("{count} real rasters derived");
}

fn write(folder: &Path, name: &str, grid: &Grid, georeference: Georeference, storage: Storage) {
    let (affine, kind) = (georeference.affine(), georeference.crs.kind());
    assert!(!affine.is_rotated(), "{name}: gdaldem ignores a rotation");
    let metres = if kind == CrsKind::Geographic {
        METRES_PER_DEGREE
    } else {
        1.0
    };
    let cell = Cell {
        x_m: affine.x_per_column * metres,
        y_m: -affine.y_per_row * metres,
    };
    let size = (grid.width, grid.height);
    let path = folder.join(format!("{name}.tif"));
    let mut writer = CogWriter::create(
        &Output::named_here(&path, Existing::Refuse),
        size,
        georeference,
        storage,
    )
    .unwrap();
    writer.write_rows(&grid.heights).unwrap();
    writer.finish().unwrap();
    for product in PRODUCTS {
        let row = |row: usize| (row < grid.height).then(|| grid.row(row));
        let bytes: Vec<u8> = (0..grid.height)
            .flat_map(|index| {
                let previous = index.checked_sub(1).and_then(row);
                derive_rows(product, previous, grid.row(index), row(index + 1), cell)
            })
            .flat_map(f64::to_le_bytes)
            .collect();
        std::fs::write(folder.join(format!("{name}.{}", product.name())), bytes).unwrap();
    }
}
