//! An open file.

use std::path::PathBuf;
use std::time::Duration;

use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use terrane::change::{Change, ChangeArrays};
use terrane::georeferencing::{affine, georeference, is_exact, storage};
use terrane::{
    ContourLine, Contouring, Decoding, Derivation, GroundSample, GroundSurface, OpenOptions, View,
};
use terrane_codec::format::{LevelTile, TileId, Window, record};
use terrane_codec::{RemoteOptions, Terrain};
use terrane_geo::{Affine, HeightUnit, SampleType, Storage};

use crate::array::{Heights, Numbers, array};
use crate::failure::{Outcome, TerraneError, detach, parse, refuse};
use crate::rasters::by_rows;
use crate::settings::{detached, memory, threads};

/// Tiles that are decoded for a window and kept for the next one; more are only passed through.
const KEPT_TILES: usize = 4;
/// Whole numbers up to this are 32-bit floats.
const F32_WHOLE: f64 = 16_777_216.0;

/// An open file.
#[pyclass(frozen, module = "pyterrane._pyterrane")]
pub(crate) struct File {
    terrain: Terrain,
    jobs: usize,
}

/// A contour line: its height, whether it is an index line, and its points.
type Contour<'py> = (f64, bool, Bound<'py, PyArray2<f64>>);

/// Six numbers in rasterio's order.
fn numbers(affine: &Affine) -> [f64; 6] {
    [
        affine.x_per_column,
        affine.x_per_row,
        affine.x,
        affine.y_per_column,
        affine.y_per_row,
        affine.y,
    ]
}

/// What can be asked of the surface at a point.
fn quantity(name: &str, sample: &GroundSample) -> Option<f64> {
    let GroundSample {
        height,
        derivatives,
    } = sample;
    Some(match name {
        "height" => *height,
        "gradient_east" => derivatives.gradient[0],
        "gradient_north" => derivatives.gradient[1],
        "slope" => derivatives.slope_deg(),
        "aspect" => derivatives.aspect_deg().unwrap_or(f64::NAN),
        "laplacian" => derivatives.laplacian(),
        "profile_curvature" => derivatives.profile_curvature(),
        "plan_curvature" => derivatives.plan_curvature().unwrap_or(f64::NAN),
        _ => return None,
    })
}

impl File {
    /// The source's integers, where heights are exactly those.
    fn integers(&self) -> Outcome<Option<Numbers>> {
        let header = self.terrain.header();
        let stored = storage(header, is_exact(header))?;
        let is_metre = matches!(
            stored.unit(&georeference(header).crs),
            Ok(HeightUnit::Metre)
        );
        let Storage {
            sample,
            nodata,
            band,
        } = stored;
        let is_plain = is_metre && band.scale == 1.0 && band.offset == 0.0;
        let (width, height) = header.pyramid.size(0).unwrap_or_default();
        let has_gaps = header.statistics.pixels < u64::from(width) * u64::from(height);
        Ok(
            (is_plain && !sample.is_float() && (!has_gaps || nodata.is_some())).then_some(
                Numbers {
                    sample,
                    nodata: nodata.unwrap_or_default(),
                },
            ),
        )
    }

    /// The numbers of a type that is asked for, of full resolution or not; or else floats as wide as the source's, and for
    /// integers as wide as they or the error bound need.
    fn numbers(&self, dtype: Option<&str>, is_full: bool) -> Outcome<Numbers> {
        let integers = self.integers()?;
        let Some(name) = dtype else {
            let statistics = &self.terrain.header().statistics;
            let most = statistics.lowest_m.abs().max(statistics.highest_m.abs());
            if integers.is_some() && most <= F32_WHOLE {
                return Ok(Numbers::floats(false));
            }
            let sample = storage(self.terrain.header(), false)?.sample;
            return Ok(Numbers::floats(sample == SampleType::F64));
        };
        match (name, integers.filter(|_| is_full)) {
            ("float32" | "float64", _) => Ok(Numbers::floats(name == "float64")),
            (_, Some(numbers)) if name == numbers.sample.name() => Ok(numbers),
            (_, Some(Numbers { sample, .. })) => refuse(format!(
                "`dtype` must be {}, float32 or float64, not {name}",
                sample.name()
            )),
            (_, None) => refuse(format!(
                "`dtype` must be float32 or float64, not {name}: other heights than a lossless file's own integers in metres, at full resolution, are floats"
            )),
        }
    }
}

/// How an address is read within so many seconds.
pub(crate) fn remote_options(timeout: Option<f64>) -> Outcome<RemoteOptions> {
    let Some(seconds) = timeout else {
        return Ok(RemoteOptions::default());
    };
    match Duration::try_from_secs_f64(seconds) {
        Ok(timeout) if !timeout.is_zero() => Ok(RemoteOptions { timeout }),
        _ => refuse(format!(
            "`remote_timeout` must be a number of seconds above 0, not {seconds}"
        )),
    }
}

/// A path or an address as others may see it.
#[pyfunction]
pub(crate) fn shown(path: PathBuf) -> String {
    terrane_codec::shown(&path)
}

/// What a file says of itself, as JSON; needs no model.
#[pyfunction]
pub(crate) fn describe(py: Python, path: PathBuf) -> PyResult<String> {
    let open = || -> Outcome<_> { Ok(terrane::open_reader(&path, RemoteOptions::default())?) };
    let reader = detach(py, open)?;
    Ok(terrane::describe(&reader).to_string())
}

#[pymethods]
impl File {
    /// Opens a file of this machine or at an address.
    #[new]
    #[pyo3(signature = (path, model=None, jobs=None, memory_limit=None, remote_timeout=None))]
    fn open(
        py: Python,
        path: PathBuf,
        model: Option<PathBuf>,
        jobs: Option<usize>,
        memory_limit: Option<f64>,
        remote_timeout: Option<f64>,
    ) -> PyResult<Self> {
        let open = || -> Outcome<_> {
            let options = OpenOptions {
                model,
                memory: memory(memory_limit)?,
                remote: remote_options(remote_timeout)?,
            };
            Ok(terrane::open_with(&path, &options)?)
        };
        let terrain = detach(py, open)?;
        Ok(Self {
            terrain,
            jobs: threads(jobs),
        })
    }

    /// From now on all work on the file together may take so many seconds.
    fn limit_time(&self, seconds: Option<f64>) -> PyResult<()> {
        let limit = seconds.map(Duration::try_from_secs_f64).transpose();
        let Ok(limit) = limit else {
            return Ok(refuse(
                "`seconds` must be a number of seconds, 0 or above, or None",
            )?);
        };
        self.terrain.limit_time(limit);
        Ok(())
    }

    /// What the file says of itself, as JSON.
    fn describe(&self) -> String {
        terrane::describe(self.terrain.reader()).to_string()
    }

    /// Where the bytes of the file are, as JSON.
    fn parts(&self, py: Python) -> PyResult<String> {
        let parts = detach(py, || -> Outcome<_> {
            let go_on = &mut |_, _| -> terrane::Result<()> { Ok(()) };
            Ok(terrane::parts(self.terrain.reader(), go_on)?)
        })?;
        let text = serde_json::to_string(&parts);
        text.map_err(|error| TerraneError::new_err(error.to_string()))
    }

    /// The transform from pixel corners at a level, in rasterio's order.
    fn transform(&self, level: u8) -> [f64; 6] {
        if level == 0 {
            return numbers(&affine(self.terrain.corner_affine()));
        }
        let georeference = georeference(self.terrain.header());
        numbers(&georeference.coarsened(f64::from(level).exp2()).affine())
    }

    /// The type of the heights without another being asked for: `float32` or `float64`.
    fn dtype(&self) -> PyResult<&'static str> {
        Ok(self.numbers(None, true)?.sample.name())
    }

    /// The type of the source's integers and their number for no data, where heights are exactly those.
    fn integer_dtype(&self) -> PyResult<Option<(&'static str, Option<f64>)>> {
        let (integers, nodata) = (self.integers()?, self.terrain.header().samples.nodata);
        Ok(integers.map(|numbers| (numbers.sample.name(), nodata)))
    }

    /// Heights of a window of a level; NaN where there is no data.
    fn window(
        &self,
        py: Python,
        level: u8,
        corner: (usize, usize),
        size: (usize, usize),
        dtype: Option<&str>,
    ) -> PyResult<Py<PyAny>> {
        let ((column, row), (width, height)) = (corner, size);
        let window = Window {
            column,
            row,
            width,
            height,
        };
        let numbers = self.numbers(dtype, level == 0)?;
        let side = usize::from(self.terrain.header().pyramid.side());
        let tiles = |first: usize, size: usize| (first % side + size).div_ceil(side);
        let heights = detach(py, || -> Outcome<Heights> {
            self.terrain.check_window(level, window)?;
            if tiles(column, width) * tiles(row, height) <= KEPT_TILES {
                let heights = self.terrain.read(level, window)?;
                return Ok(Heights::new(heights, numbers));
            }
            let view = View::of_window(&self.terrain, level, window)?;
            Heights::of_view(&view, numbers, self.jobs)
        })?;
        heights.into_array(py, (height, width))
    }

    /// Heights of a part at any pixel size, and their transform.
    fn read(
        &self,
        py: Python,
        bbox: Option<[f64; 4]>,
        resolution: Option<f64>,
        level: u8,
        dtype: Option<&str>,
    ) -> PyResult<(Py<PyAny>, [f64; 6])> {
        let decoding = Decoding {
            bbox,
            resolution,
            level,
            ..Decoding::default()
        };
        let form = self.numbers(dtype, level == 0 && resolution.is_none())?;
        let (heights, shape, transform) = detach(py, || -> Outcome<_> {
            let view = decoding.view(&self.terrain)?;
            let heights = Heights::of_view(&view, form, self.jobs)?;
            let transform = numbers(&view.georeference.affine());
            Ok((heights, (view.height, view.width), transform))
        })?;
        Ok((heights.into_array(py, shape)?, transform))
    }

    /// A product at every pixel as 32-bit floats; NaN where there is none.
    fn derive(&self, py: Python, product: &str, mode: &str) -> PyResult<Py<PyAny>> {
        let derivation = Derivation {
            product: parse(product)?,
            mode: parse(mode)?,
        };
        let derive = || -> Outcome<_> { Ok(derivation.array(&self.terrain, self.jobs)?) };
        let values = detach(py, derive)?;
        let (width, height) = self.terrain.header().pyramid.size(0).unwrap_or_default();
        array(py, values, (height as usize, width as usize))
    }

    /// Contour lines, so far apart from a height on: their heights, whether they are index lines, and their points of the map.
    fn contours<'py>(
        &self,
        py: Python<'py>,
        heights: (f64, f64),
        bbox: Option<[f64; 4]>,
        level: u8,
        min_length: f64,
        index: u32,
    ) -> PyResult<Vec<Contour<'py>>> {
        let (interval, base) = heights;
        let contouring = Contouring {
            interval,
            base,
            bbox,
            level,
            min_length,
            index,
        };
        let lines = detach(py, || -> Outcome<_> {
            let (mut lines, mut bytes) = (Vec::new(), 0_u64);
            let memory = self.terrain.memory();
            let take = &mut |line: ContourLine| -> terrane::Result<()> {
                bytes = bytes.saturating_add(size_of_val(&line.points[..]) as u64);
                memory.check(
                    "so many contour lines",
                    bytes,
                    "take a larger `interval` or a part with `bbox`, or ",
                )?;
                lines.push(line);
                Ok(())
            };
            let go_on = &mut |_, _| -> terrane::Result<()> { Ok(()) };
            contouring.trace(&self.terrain, self.jobs, go_on, take)?;
            Ok(lines)
        })?;
        let array = |line: ContourLine| {
            let shape = [line.points.len(), 2];
            let points = line.points.into_flattened().into_pyarray(py);
            Ok((line.height, line.is_index, points.reshape(shape)?))
        };
        lines.into_iter().map(array).collect()
    }

    /// What changed since an older file: this one minus it, where that is proven, the transform, and a report as JSON.
    #[expect(
        clippy::type_complexity,
        reason = "each is a part of the answer in Python"
    )]
    fn diff(
        &self,
        py: Python,
        old: &Self,
        resolution: Option<f64>,
    ) -> PyResult<(Py<PyAny>, Option<Py<PyAny>>, [f64; 6], String)> {
        let (found, shape, transform) = detached(py, None, |progress| {
            let change = Change::between(&self.terrain, &old.terrain, resolution)?;
            let found = change.arrays(self.jobs, &mut by_rows(progress))?;
            let (width, height) = change.size();
            let transform = numbers(&change.georeference().affine());
            Ok((found, (height, width), transform))
        })?;
        let ChangeArrays {
            difference,
            proven,
            report,
        } = found;
        let proven = proven.map(|proven| array(py, proven, shape)).transpose()?;
        let report = report.json().to_string();
        Ok((array(py, difference, shape)?, proven, transform, report))
    }

    /// A quantity of the surface at points; NaN where there is no data.
    fn sample<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        x: PyReadonlyArray1<f64>,
        y: PyReadonlyArray1<f64>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let points: Vec<(f64, f64)> = x
            .as_array()
            .iter()
            .copied()
            .zip(y.as_array().iter().copied())
            .collect();
        let values = detach(py, || -> Outcome<Vec<f64>> {
            let samples = GroundSurface::new(&self.terrain)?.at_points(&points, self.jobs)?;
            let value = |sample: &Option<GroundSample>| quantity(name, sample.as_ref()?);
            Ok(samples
                .iter()
                .map(|sample| value(sample).unwrap_or(f64::NAN))
                .collect())
        })?;
        Ok(values.into_pyarray(py))
    }

    /// The record of a tile as it stands in the file, with the checksum of tile 0; `None` where it has no data.
    fn record<'py>(
        &self,
        py: Python<'py>,
        level: u8,
        column: usize,
        row: usize,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let tile = LevelTile {
            level,
            id: TileId { column, row },
        };
        let bytes = detach(py, || -> Outcome<_> {
            let number = self.terrain.header().pyramid.number(tile)?;
            let bytes = self.terrain.reader().bytes(tile)?;
            let bytes = bytes.map(|bytes| record::renumber(bytes, number, 0));
            Ok(bytes.transpose()?)
        })?;
        Ok(bytes.map(|bytes| PyBytes::new(py, &bytes)))
    }
}
