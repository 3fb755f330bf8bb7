//! Lines of terrains whose lines are known.

use terrane_codec::format::{MemoryLimit, Window};
use terrane_codec::pixels::Pixels;
use terrane_codec::tiling::Tiling;

use terrane_codec::Terrain;
use terrane_geo::{Affine, Crs, Georeference, Grid, MemoryRaster, SampleType, Storage};

use super::{Cells, ContourLine, Contouring, Field, Joiner, Levels, Line, Point, Tracing};
use crate::{Error, OpenOptions, Settings, Target, fixture};

mod apart;

use apart::check_apart;

const SIDE: usize = 16;
/// Pixels that lines keep from each other.
const GAP: f64 = 1e-4;

/// Pixels of a function of column and row, counted at centres; NaN where there is no data. Tiles without any data are
/// absent, and other gaps filled as a tile's are.
fn pixels(width: usize, height: usize, f: impl Fn(f64, f64) -> f64) -> Pixels<f64> {
    let tiling = Tiling {
        width,
        height,
        side: SIDE,
    };
    let mut pixels = Pixels::missing(tiling, 0, 0, width, height);
    for row in (0..height).step_by(SIDE) {
        for column in (0..width).step_by(SIDE) {
            let window = Window {
                column,
                row,
                width: SIDE.min(width - column),
                height: SIDE.min(height - row),
            };
            let mut heights: Vec<f64> = (0..window.width * window.height)
                .map(|index| {
                    let (x, y) = (column + index % window.width, row + index / window.width);
                    f(x as f64 + 0.5, y as f64 + 0.5)
                })
                .collect();
            let missing: Vec<bool> = heights.iter().map(|height| height.is_nan()).collect();
            if missing.contains(&false) {
                terrane_codec::fill(&mut heights, window.width);
                pixels.paste(window, &heights, Some(&missing));
            }
        }
    }
    pixels
}

/// All lines, traced in blocks of so many cells.
fn lines(pixels: &Pixels<f64>, cells: &Cells, interval: f64, block: usize) -> Vec<Line> {
    let levels = Levels::new(0.0, interval, [-1e4, 1e4]).unwrap();
    let mut joiner = Joiner::new(levels.clone(), GAP);
    let mut lines = Vec::new();
    let tracing = Tracing {
        field: pixels,
        cells,
        levels: &levels,
        gap: GAP,
    };
    let part = |start: usize, end: usize| start..(start + block).min(end);
    for row in cells.rows().step_by(block) {
        for column in cells.columns().step_by(block) {
            let columns = part(column, cells.columns().end);
            let rows = part(row, cells.rows().end);
            let Ok(chains) = tracing.block(columns, rows, &mut |_| true);
            for chain in chains.unwrap() {
                lines.extend(joiner.add(chain));
            }
        }
    }
    assert_eq!(joiner.open_points(), 0, "a line goes on nowhere");
    assert!(joiner.rest().is_empty());
    lines
}

/// Lines of a whole raster, the same whatever the blocks, all on the surface.
fn checked(pixels: &Pixels<f64>, interval: f64) -> Vec<Line> {
    let Tiling { width, height, .. } = pixels.tiling();
    let cells = Cells::whole(width, height);
    let all = lines(pixels, &cells, interval, 1 << 20);
    for block in [5, 16] {
        let parts = lines(pixels, &cells, interval, block);
        assert_eq!(parts.len(), all.len());
        let closed = |lines: &[Line]| lines.iter().filter(|line| line.is_closed()).count();
        assert_eq!(closed(&parts), closed(&all));
        for line in &parts {
            check(pixels, line);
        }
    }
    for line in &all {
        check(pixels, line);
    }
    check_apart(&all);
    all
}

/// Every point has the line's height to 1 mm, no two follow each other in one place, the ground is higher on the right,
/// and an open line ends at the raster's edge or beside a gap.
fn check(pixels: &Pixels<f64>, line: &Line) {
    let Tiling { width, height, .. } = pixels.tiling();
    for &[x, y] in &line.points {
        let found = pixels.height(x, y).unwrap();
        assert!(
            (found - line.height).abs() < 1e-3,
            "{x} {y}: {found} instead of {}",
            line.height
        );
    }
    let mut rise = 0.0;
    for ends in line.points.windows(2) {
        let along = [ends[1][0] - ends[0][0], ends[1][1] - ends[0][1]];
        assert!(along[0].hypot(along[1]) > 0.0);
        let Ok(jet) = Field::jet(pixels, ends[0]);
        let jet = jet.unwrap();
        // Rows run down: the right of (1, 0) is (0, 1).
        rise += along[0] * jet.y - along[1] * jet.x;
    }
    assert!(rise > 0.0, "{rise} at {}", line.height);
    if !line.is_closed() {
        for &[x, y] in [&line.points[0], &line.points[line.points.len() - 1]] {
            let is_edge = x == 0.0 || y == 0.0 || x == width as f64 || y == height as f64;
            let is_beside_gap = || {
                (-1..=1).any(|down| {
                    (-1..=1).any(|across| {
                        let (x, y) = (x + f64::from(across), y + f64::from(down));
                        pixels.height(x, y).is_none()
                    })
                })
            };
            assert!(is_edge || is_beside_gap(), "an end at {x} {y}");
        }
    }
}

fn length(line: &Line) -> f64 {
    let step = |ends: &[Point]| (ends[1][0] - ends[0][0]).hypot(ends[1][1] - ends[0][1]);
    line.points.windows(2).map(step).sum()
}

#[test]
fn a_paraboloid_has_circles() {
    let (x, y) = (40.3, 31.6);
    let pixels = pixels(80, 64, |column, row| {
        100.0 - 0.02 * ((column - x).powi(2) + (row - y).powi(2))
    });
    let lines = checked(&pixels, 5.0);
    let circles: Vec<&Line> = lines.iter().filter(|line| line.is_closed()).collect();
    // The edge is 31.6 away: heights from 80.03 on.
    assert_eq!(
        circles.len(),
        3,
        "the summit itself is on a level, and has no line"
    );
    for circle in circles {
        let radius = ((100.0 - circle.height) / 0.02).sqrt();
        for point in &circle.points {
            assert!(((point[0] - x).hypot(point[1] - y) - radius).abs() < 1e-4);
        }
        let around = std::f64::consts::TAU * radius;
        assert!((length(circle) / around - 1.0).abs() < 2e-3);
    }
}

#[test]
fn a_cone_has_as_many_circles_as_heights() {
    let pixels = pixels(70, 70, |column, row| {
        50.0 - (column - 35.2).hypot(row - 34.7)
    });
    let lines = checked(&pixels, 2.0);
    let closed = lines.iter().filter(|line| line.is_closed());
    let mut heights: Vec<f64> = closed.map(|line| line.height).collect();
    heights.sort_by(f64::total_cmp);
    let expected: Vec<f64> = (8..25).map(|number| 2.0 * f64::from(number)).collect();
    assert_eq!(heights, expected);
}

#[test]
fn a_plane_has_straight_lines_from_edge_to_edge() {
    let pixels = pixels(50, 40, |column, row| 0.7 * column + 0.2 * row);
    let lines = checked(&pixels, 1.0);
    assert_eq!(lines.len(), 42, "heights from 1 to 42; 0 touches a corner");
    for line in lines {
        assert!(!line.is_closed());
        for [x, y] in line.points {
            let is_corner = !(1.5..=48.5).contains(&x) && !(1.5..=38.5).contains(&y);
            assert!(is_corner || (0.7 * x + 0.2 * y - line.height).abs() < 1e-5);
        }
    }
}

#[test]
fn lines_through_a_saddle_are_those_of_its_height() {
    // The saddle lies 1 cm above or below the level, at any place of its cell.
    for (x, y) in [(20.0, 20.0), (20.3, 20.1), (19.6, 20.45)] {
        for off in [-0.01, 0.01] {
            let pixels = pixels(40, 40, |column, row| {
                100.0 + off + 0.05 * (column - x) * (row - y)
            });
            let lines = checked(&pixels, 100.0);
            assert_eq!(lines.len(), 2);
            for line in lines {
                // Low ground joins through a low saddle, so that each line stays on one side of it.
                let side = |point: &Point| (point[0] - x) * (point[1] - y) * off;
                assert!(line.points.iter().all(|point| side(point) < 0.0));
            }
        }
    }
}

#[test]
fn a_lake_on_a_level_has_a_line_where_it_flows_out_alone() {
    // A lake at 30 m exactly in a bowl, and one on a hill.
    let distance = |column: f64, row: f64| (column - 30.0).hypot(row - 30.0);
    let bowl = pixels(60, 60, |column, row| {
        30.0 + 0.5 * (distance(column, row) - 12.0).max(0.0)
    });
    let lines = checked(&bowl, 10.0);
    assert!(
        lines.iter().all(|line| line.height > 30.0),
        "the shore is not below"
    );
    let hill = pixels(60, 60, |column, row| {
        30.0 - 0.5 * (distance(column, row) - 12.0).max(0.0)
    });
    let lines = checked(&hill, 10.0);
    let shore: Vec<&Line> = lines.iter().filter(|line| line.height == 30.0).collect();
    assert_eq!(shore.len(), 1);
    assert!(shore[0].is_closed());
    for point in &shore[0].points {
        assert!((distance(point[0], point[1]) - 12.0).abs() < 1.5);
    }
    // All of it on the level: nothing.
    assert!(checked(&pixels(40, 40, |_, _| 30.0), 10.0).is_empty());
}

#[test]
fn lines_end_at_gaps() {
    // A gap inside tiles, a tile without data, and a pixel by itself.
    let pixels = pixels(70, 70, |column, row| {
        let is_gap = (column - 20.0).hypot(row - 50.0) < 6.0
            || (column > 32.0 && column < 48.0 && row > 16.0 && row < 32.0)
            || (column as usize, row as usize) == (55, 40);
        if is_gap {
            f64::NAN
        } else {
            200.0 + 9.0 * (column / 9.0).sin() * (row / 7.0).cos() + 0.3 * column
        }
    });
    let lines = checked(&pixels, 2.0);
    let (closed, open): (Vec<&Line>, Vec<&Line>) = lines.iter().partition(|line| line.is_closed());
    assert!(
        closed.len() > 5 && open.len() > 20,
        "{} {}",
        closed.len(),
        open.len()
    );
}

#[test]
fn parts_meet_at_their_edges() {
    let pixels = pixels(64, 48, |column, row| {
        100.0 + 8.0 * (column / 9.0).sin() * (row / 7.0).cos() + 0.3 * column
    });
    let ends = |low: Point, high: Point, column: f64| {
        let cells = Cells::part(low, high);
        let lines = lines(&pixels, &cells, 1.0, 16);
        for line in &lines {
            for point in &line.points {
                let off = pixels.height(point[0], point[1]).unwrap() - line.height;
                assert!(off.abs() < 1e-3);
            }
        }
        let mut ends: Vec<[u64; 2]> = lines
            .iter()
            .filter(|line| !line.is_closed())
            .flat_map(|line| [line.points[0], line.points[line.points.len() - 1]])
            .filter(|point| point[0] == column)
            .map(|point| point.map(f64::to_bits))
            .collect();
        ends.sort_unstable();
        ends
    };
    let left = ends([0.0, 0.0], [44.7, 48.0], 44.7);
    let right = ends([44.7, 0.0], [64.0, 48.0], 44.7);
    assert!(left.len() > 10);
    assert_eq!(left, right);
}

/// A file of hills with a gap and a tile without data, in tiles of 64.
fn file(folder: &std::path::Path, y_per_row: f64) -> Terrain {
    let mut grid = Grid::missing(300, 270);
    for (index, height) in grid.heights.iter_mut().enumerate() {
        let (x, y) = ((index % 300) as f64, (index / 300) as f64);
        let is_gap = (x - 90.0).hypot(y - 150.0) < 17.5
            || ((128.0..192.0).contains(&x) && (64.0..128.0).contains(&y));
        if !is_gap {
            *height = 431.0 + 12.0 * (x / 21.0).sin() * (y / 17.0).cos() + 3.0 * (x / 7.0).sin();
        }
    }
    let affine = Affine {
        y_per_row,
        ..Affine::north_up(2_600_000.0, 1_200_000.0, 2.0)
    };
    let georeference = Georeference::new(affine, Crs::projected(2056, None));
    let storage = Storage::metres(SampleType::F32, Some(-9999.0));
    let raster = MemoryRaster::new("hills", grid, georeference, storage);
    let path = folder.join("hills.trn");
    let settings = Settings {
        tile: Some(64),
        target: Target::MaxError(0.05),
        ..Settings::default()
    };
    fixture::write(&raster, &settings, &path);
    crate::open(&path).unwrap()
}

fn traced(contouring: &Contouring, terrain: &Terrain, jobs: usize) -> Vec<ContourLine> {
    let mut lines = Vec::new();
    let mut rows = (0, 0);
    let progress = &mut |done, total| {
        assert!(done > rows.0);
        rows = (done, total);
        Ok(())
    };
    let take = &mut |line| {
        lines.push(line);
        Ok(())
    };
    contouring.trace(terrain, jobs, progress, take).unwrap();
    assert_eq!(rows.0, rows.1);
    lines
}

#[test]
fn lines_of_a_file_lie_on_its_surface_and_end_at_its_edges() {
    let folder = tempfile::tempdir().unwrap();
    for y_per_row in [-2.0, 2.0] {
        let terrain = file(folder.path(), y_per_row);
        let surface = terrain.surface().unwrap();
        let all = Contouring::every(2.0);
        let lines = traced(&all, &terrain, 2);
        assert_eq!(lines, traced(&all, &terrain, 1), "whatever the threads");
        let closed = lines.iter().filter(|line| line.is_closed()).count();
        assert!(closed > 20 && closed < lines.len(), "{closed}");
        let bottom = 1_200_000.0 + 270.0 * y_per_row;
        for line in &lines {
            assert_eq!(line.is_index, line.height % 10.0 == 0.0);
            let mut rise = 0.0;
            for ends in line.points.windows(2) {
                let sample = surface.at(ends[0][0], ends[0][1]).unwrap();
                assert!((sample.height - line.height).abs() < 1e-3);
                // North is up: the right of (1, 0) is (0, −1).
                rise += (ends[1][1] - ends[0][1]) * sample.gradient[0]
                    - (ends[1][0] - ends[0][0]) * sample.gradient[1];
            }
            assert!(rise > 0.0);
            if line.is_closed() {
                continue;
            }
            for [x, y] in [line.points[0], line.points[line.points.len() - 1]] {
                let is_edge =
                    [2_600_000.0, 2_600_600.0].contains(&x) || [1_200_000.0, bottom].contains(&y);
                let mut around = [-2.0, 0.0, 2.0].into_iter().flat_map(|across| {
                    [-2.0, 0.0, 2.0].map(|down| surface.at(x + across, y + down))
                });
                assert!(is_edge || around.any(|sample| sample.is_err()), "{x} {y}");
            }
        }
        let long = Contouring {
            min_length: 100.0,
            index: 0,
            ..all
        };
        let long = traced(&long, &terrain, 2);
        assert!(long.len() < lines.len() && long.iter().all(|line| !line.is_index));
        let coarse = traced(&Contouring { level: 1, ..all }, &terrain, 2);
        let points =
            |lines: &[ContourLine]| -> usize { lines.iter().map(|line| line.points.len()).sum() };
        let (coarse, fine) = (points(&coarse), points(&lines));
        assert!(
            5 * coarse > fine && 4 * coarse < 3 * fine,
            "{coarse} {fine}"
        );
    }
}

#[test]
fn lines_that_memory_does_not_hold_are_refused_before_they_are_found() {
    let folder = tempfile::tempdir().unwrap();
    file(folder.path(), -2.0);
    let limited = |bytes| {
        let options = OpenOptions {
            memory: MemoryLimit { bytes },
            ..OpenOptions::default()
        };
        let terrain = crate::open_with(&folder.path().join("hills.trn"), &options).unwrap();
        let mut rows = 0;
        let mut progress = |done, _| {
            rows = done;
            Ok(())
        };
        let found = Contouring::every(0.01).trace(&terrain, 1, &mut progress, &mut |_| Ok(()));
        (found, rows)
    };
    let (found, rows) = limited(20_000_000);
    let error = found.unwrap_err().to_string();
    assert!(error.contains("so many contour lines at a time"), "{error}");
    assert_eq!(rows, 0, "not even the first strip is complete");
    assert!(limited(2_000_000_000).0.is_ok());
}

#[test]
fn lines_of_a_box_end_at_its_edges() {
    let folder = tempfile::tempdir().unwrap();
    let terrain = file(folder.path(), -2.0);
    let surface = terrain.surface().unwrap();
    let [left, low, right, high] = [2_600_021.3, 1_199_805.1, 2_600_118.2, 1_199_960.4];
    let part = Contouring {
        bbox: Some([left, low, right, high]),
        ..Contouring::every(2.0)
    };
    let lines = traced(&part, &terrain, 2);
    assert!(lines.len() > 5);
    for line in &lines {
        for &[x, y] in &line.points {
            assert!((surface.at(x, y).unwrap().height - line.height).abs() < 1e-3);
        }
        if !line.is_closed() {
            for [x, y] in [line.points[0], line.points[line.points.len() - 1]] {
                let nearest = [x - left, right - x, y - low, high - y]
                    .into_iter()
                    .map(f64::abs)
                    .fold(f64::INFINITY, f64::min);
                assert!(nearest < 1e-6, "{x} {y}");
            }
        }
    }
    let refused = |contouring: Contouring| {
        contouring
            .trace(&terrain, 1, &mut |_, _| Ok(()), &mut |_| Ok(()))
            .unwrap_err()
    };
    let all = Contouring::every(2.0);
    let beside = Some([0.0, 0.0, 1.0, 1.0]);
    assert!(matches!(
        refused(Contouring {
            bbox: beside,
            ..all
        }),
        Error::OutsideBox
    ));
    assert!(matches!(
        refused(Contouring { level: 9, ..all }),
        Error::NoLevel { .. }
    ));
    assert!(matches!(refused(Contouring::every(0.0)), Error::Levels(_)));
}
