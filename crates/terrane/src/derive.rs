//! Slope, aspect, hillshade, curvatures and the rest as rasters.

use std::ops::Range;
use std::str::FromStr;

use terrane_codec::Terrain;
use terrane_codec::format::Window;
use terrane_codec::parallel::by_blocks;
use terrane_geo::derive_rows;
use terrane_geo::{Affine, CogWriter, GroundScale, Output, Product, SampleType, Storage};

use crate::Result;
use crate::georeferencing::{affine, georeference};
use crate::query::GroundSurface;

/// No slope, shade or curvature has this value.
const NODATA: f64 = -9999.0;

/// What a product is derived from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DeriveMode {
    /// The continuous surface; a product that only pixels have is derived from them.
    #[default]
    Analytic,
    /// Decoded pixels, equal to gdaldem where that is right: where the map is the ground within one in a hundred all over
    /// the raster, which is then taken as flat, and where pixels are square and north is up.
    Grid,
}

/// A name that no mode has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no mode {name:?}; modes are {}", DeriveMode::ALL.map(DeriveMode::name).join(" and "))]
pub struct UnknownMode {
    /// What was asked for.
    pub name: String,
}

impl DeriveMode {
    /// Both modes.
    pub const ALL: [Self; 2] = [Self::Analytic, Self::Grid];

    /// The name it is asked for by.
    pub fn name(self) -> &'static str {
        match self {
            Self::Analytic => "analytic",
            Self::Grid => "grid",
        }
    }
}

impl FromStr for DeriveMode {
    type Err = UnknownMode;

    fn from_str(name: &str) -> std::result::Result<Self, UnknownMode> {
        let mut all = Self::ALL.into_iter();
        all.find(|mode| mode.name() == name)
            .ok_or_else(|| UnknownMode { name: name.into() })
    }
}

/// What is derived from a file, at full resolution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Derivation {
    /// The product.
    pub product: Product,
    /// What it is derived from.
    pub mode: DeriveMode,
}

impl Derivation {
    /// Writes the product as a COG; `progress` is told rows done and rows in all, and may stop it.
    pub fn write(
        &self,
        terrain: &Terrain,
        out: &Output,
        jobs: usize,
        progress: &mut dyn FnMut(u64, u64) -> Result<()>,
    ) -> Result<()> {
        out.check()?;
        let source = Source::new(*self, terrain)?;
        let (width, height) = source.size;
        terrain.memory().check(
            "deriving so wide a raster",
            source
                .strip_bytes()
                .saturating_add(CogWriter::memory(width, height)),
            "",
        )?;
        let (name, unit) = (self.product.name(), self.product.unit());
        let mut storage = Storage::other(SampleType::F32, Some(NODATA), name, unit);
        storage.band.description = name.into();
        let mut writer =
            CogWriter::create(out, source.size, georeference(terrain.header()), storage)?;
        for rows in source.strips() {
            let end = rows.end as u64;
            writer.write_rows(&source.rows(rows, jobs)?)?;
            progress(end, height as u64)?;
        }
        writer.finish()?;
        Ok(())
    }

    /// The product of every pixel, row by row; NaN where there is none.
    pub fn array(&self, terrain: &Terrain, jobs: usize) -> Result<Vec<f32>> {
        let source = Source::new(*self, terrain)?;
        let (width, height) = source.size;
        let pixels = width as u64 * height as u64;
        terrain.memory().check(
            "so large an array",
            source
                .strip_bytes()
                .saturating_add(pixels.saturating_mul(4)),
            "",
        )?;
        let mut values = Vec::with_capacity(width * height);
        for rows in source.strips() {
            let rows = source.rows(rows, jobs)?;
            values.extend(rows.into_iter().map(|value| value as f32));
        }
        Ok(values)
    }
}

/// The rows of a product.
struct Source<'a> {
    terrain: &'a Terrain,
    product: Product,
    affine: Affine,
    size: (usize, usize),
    side: usize,
    values: Values<'a>,
}

enum Values<'a> {
    Analytic(GroundSurface<'a>),
    Grid(GroundScale),
}

impl<'a> Source<'a> {
    fn new(derivation: Derivation, terrain: &'a Terrain) -> Result<Self> {
        let Derivation { product, mode } = derivation;
        let header = terrain.header();
        let (width, height) = header.pyramid.size(0).unwrap_or_default();
        let affine = affine(terrain.corner_affine());
        let is_analytic = mode == DeriveMode::Analytic && product.is_of_surface();
        let values = if is_analytic {
            Values::Analytic(GroundSurface::new(terrain)?)
        } else {
            let size = (width as usize, height as usize);
            Values::Grid(GroundScale::of_pixels(&georeference(header), size)?)
        };
        Ok(Self {
            terrain,
            product,
            affine,
            size: (width as usize, height as usize),
            side: header.pyramid.side().into(),
            values,
        })
    }

    /// Rows that end where tiles do, so that few tiles are decoded twice.
    fn strips(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let (side, height) = (self.side, self.size.1);
        (0..height)
            .step_by(side)
            .map(move |row| row..(row + side).min(height))
    }

    /// Memory of a strip: heights with a row above and below, and what is derived from them.
    fn strip_bytes(&self) -> u64 {
        let heights = (self.size.0 * (self.side + 2)) as u64 * 8;
        heights.saturating_mul(2)
    }

    fn rows(&self, rows: Range<usize>, jobs: usize) -> Result<Vec<f64>> {
        match &self.values {
            Values::Analytic(surface) => self.of_surface(surface, rows, jobs),
            Values::Grid(scale) => self.of_pixels(scale, rows, jobs),
        }
    }

    fn of_surface(
        &self,
        surface: &GroundSurface,
        rows: Range<usize>,
        jobs: usize,
    ) -> Result<Vec<f64>> {
        let jobs = self.terrain.decoders(jobs)?;
        let values = by_blocks(self.size.0, rows, self.side, jobs, &|column, row| {
            let (x, y) = self.affine.apply(column as f64 + 0.5, row as f64 + 0.5);
            let value = surface
                .at(x, y)?
                .and_then(|sample| self.product.from_derivatives(&sample.derivatives));
            Ok(value.unwrap_or(f64::NAN))
        });
        Ok(values?)
    }

    fn of_pixels(&self, scale: &GroundScale, rows: Range<usize>, jobs: usize) -> Result<Vec<f64>> {
        let (width, height) = self.size;
        let (first, last) = (rows.start.saturating_sub(1), (rows.end + 1).min(height));
        let window = Window {
            column: 0,
            row: first,
            width,
            height: last - first,
        };
        let mut heights = self.terrain.read_with(0, window, jobs)?;
        // As gdaldem sees them: a decoded raster holds 32-bit floats.
        for value in &mut heights {
            *value = f64::from(*value as f32);
        }
        let at = |row: usize| &heights[(row - first) * width..][..width];
        let ground = |column: usize, row: usize| {
            let (x, y) = self.affine.apply(column as f64 + 0.5, row as f64 + 0.5);
            scale.at(x, y).of_pixels(&self.affine)
        };
        // Along a row of a raster that is not rotated y stays, and with it the ground.
        let is_even = scale.is_constant() || (scale.is_even_along_x() && !self.affine.is_rotated());
        let derive = |row: usize| {
            let previous = (row > 0).then(|| at(row - 1));
            let next = (row + 1 < height).then(|| at(row + 1));
            if is_even {
                return derive_rows(self.product, previous, at(row), next, ground(0, row));
            }
            let mut values = vec![f64::NAN; width];
            if let (Some(previous), Some(next)) = (previous, next) {
                for column in 1..width.saturating_sub(1) {
                    let lines = [previous, at(row), next];
                    let z = std::array::from_fn(|index| lines[index / 3][column - 1 + index % 3]);
                    values[column] = self.product.from_neighbourhood(&z, ground(column, row));
                }
            }
            values
        };
        Ok(rows.flat_map(derive).collect())
    }
}
