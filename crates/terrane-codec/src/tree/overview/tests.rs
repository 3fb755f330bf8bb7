use super::*;
use terrane_context::Matrix;
use terrane_format::TileId;

const TRANSFORMS: [Transform; 2] = [Transform::Lossy, Transform::Lossless];

/// A plane, with a position's coordinates in pixels of the finest level.
fn plane(x: f64, y: f64) -> f64 {
    3.0 + 0.7 * x - 0.3 * y
}

/// Steep and rough ground.
fn hills(x: f64, y: f64) -> f64 {
    let rough = (x * 12.9898 + y * 78.233).sin() * 43758.547;
    200.0
        + 40.0 * (x / 9.0 + y / 31.0).sin()
        + 15.0 * (y / 5.0).cos()
        + 6.0 * (rough - rough.floor())
}

/// The picture that a tile has of some ground, made of those of the tiles below it.
fn picture(
    pyramid: &Pyramid,
    tile: LevelTile,
    transform: Transform,
    ground: fn(f64, f64) -> f64,
) -> Matrix<f64> {
    let window = pyramid.window(tile).unwrap();
    let mut all = Matrix::new(window.width, window.height);
    if tile.level == 0 {
        for row in 0..window.height {
            for (column, value) in all.row_mut(row).iter_mut().enumerate() {
                *value = ground((window.column + column) as f64, (window.row + row) as f64);
            }
        }
        return all;
    }
    for below in pyramid.tiles_below(tile, tile.level - 1) {
        // Large, so that the 5/3's rounding does not count.
        let large = picture(pyramid, below, transform, ground).map(|height| height * 1e5);
        let ll = transform.forward(&large).unwrap().ll;
        let ll = ll.map(|value| value / 1e5 / transform.growth());
        let place = pyramid.window(below).unwrap();
        let (column, row) = (place.column / 2, place.row / 2);
        all.paste(&ll, column - window.column, row - window.row);
    }
    all
}

/// The columns and rows of a tile, with the tile above where there is one.
fn axes(
    pyramid: &Pyramid,
    tile: LevelTile,
    transform: Transform,
    above: Option<[(&Axis, usize); 2]>,
) -> [Axis; 2] {
    [0, 1].map(|rows| {
        let above = above.map(|above| above[rows]);
        Axis::of(pyramid, tile, transform, rows == 1, above)
    })
}

/// Where a tile starts in the one above it.
fn within(pyramid: &Pyramid, tile: LevelTile) -> [usize; 2] {
    let half = usize::from(pyramid.side()) / 2;
    [tile.id.column % 2 * half, tile.id.row % 2 * half]
}

/// Calls a function with every overview of a storey, below the ones above it.
fn each_overview(
    pyramid: &Pyramid,
    transform: Transform,
    ground: fn(f64, f64) -> f64,
    seen: &mut impl FnMut(LevelTile, &Extended),
) {
    fn visit(
        pyramid: &Pyramid,
        tile: LevelTile,
        above: Option<Above>,
        (transform, ground): (Transform, fn(f64, f64) -> f64),
        seen: &mut impl FnMut(LevelTile, &Extended),
    ) {
        let outer = above.as_ref().map(|above| {
            let [columns, rows] = above.picture.axes();
            [(columns, above.column), (rows, above.row)]
        });
        let axes = axes(pyramid, tile, transform, outer);
        let heights = picture(pyramid, tile, transform, ground);
        let extended = Extended::new(&heights.values, axes, above);
        seen(tile, &extended);
        if tile.level == 1 {
            return;
        }
        for below in pyramid.tiles_below(tile, tile.level - 1) {
            let [column, row] = within(pyramid, below);
            let above = Above {
                picture: &extended,
                column,
                row,
            };
            visit(pyramid, below, Some(above), (transform, ground), seen);
        }
    }
    for number in 0..pyramid.trees() {
        let root = pyramid.tree(number).unwrap();
        visit(pyramid, root, None, (transform, ground), seen);
    }
}

/// Widths, heights, sides and levels with wide, narrow and single last tiles, several trees, and all depths.
const PYRAMIDS: [(u32, u32, u16, u8); 9] = [
    (61, 50, 16, 3),
    (171, 17, 16, 4),
    (171, 17, 16, 3),
    (129, 137, 16, 4),
    (133, 3, 16, 2),
    (73, 68, 16, 4),
    (1, 40, 16, 3),
    (150, 41, 18, 4),
    (259, 65, 64, 4),
];

#[test]
fn a_plane_lies_where_the_pixels_of_overviews_lie() {
    for (width, height, side, levels) in PYRAMIDS {
        let pyramid = Pyramid::new(width, height, side, levels).unwrap();
        for transform in TRANSFORMS {
            each_overview(&pyramid, transform, plane, &mut |tile, extended| {
                let window = pyramid.window(tile).unwrap();
                for (index, shown) in extended.shown(tile.level, transform).iter().enumerate() {
                    let middle = |axis: &Axis, first: usize, index: usize| {
                        // Of a single column or row, nothing says how the plane leans.
                        let local = match axis.known().len() {
                            1 => axis.at[BORDER],
                            _ => axis.middle(index),
                        };
                        (first - axis.first) as f64 * axis.size + local
                    };
                    let expected = plane(
                        middle(&extended.columns, window.column, index % window.width),
                        middle(&extended.rows, window.row, index / window.width),
                    );
                    assert!(
                        (shown - expected).abs() < 3e-3,
                        "{width}×{height} {transform:?} {tile:?} {index}: {shown} {expected}"
                    );
                }
            });
        }
    }
}

#[test]
fn overviews_stay_within_the_ground_around_them() {
    for (width, height, side, levels) in PYRAMIDS {
        let pyramid = Pyramid::new(width, height, side, levels).unwrap();
        for transform in TRANSFORMS {
            each_overview(&pyramid, transform, hills, &mut |tile, extended| {
                let window = pyramid.window(tile).unwrap();
                // What the pixel covers, and those beside it.
                let near = |at: usize, count: u32| {
                    let end = ((at + 2) << tile.level).min(count as usize);
                    (at.saturating_sub(1) << tile.level)..end
                };
                for (index, shown) in extended.shown(tile.level, transform).iter().enumerate() {
                    let columns = near(window.column + index % window.width, width);
                    let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
                    for row in near(window.row + index / window.width, height) {
                        for column in columns.clone() {
                            let ground = hills(column as f64, row as f64);
                            (low, high) = (low.min(ground), high.max(ground));
                        }
                    }
                    let beyond = (low - shown).max(shown - high);
                    assert!(
                        beyond < 0.15 * (high - low),
                        "{width}×{height} {transform:?} {tile:?} {index}: {shown} of {low} to {high}"
                    );
                }
            });
        }
    }
}

#[test]
fn positions_never_lie_close_together() {
    let (mut least, mut most, mut miss) = (f64::INFINITY, 0.0_f64, 0.0_f64);
    for side in [16, 18, 22, 32, 64, 512] {
        for levels in 2..=4_u8 {
            // All widths of two trees, or those around their tiles' borders.
            let tree = u32::from(side) << (levels - 1);
            let counts = 1..tree * 2 + 9;
            let counts = counts.filter(|count| side < 32 || (count + 9) % u32::from(side) < 18);
            for count in counts {
                let pyramid = Pyramid::new(count, 1, side, levels).unwrap();
                for transform in TRANSFORMS {
                    let mut above: Vec<Axis> = Vec::new();
                    for level in (1..levels).rev() {
                        let tiles = pyramid.grid(level).unwrap().columns();
                        let row = (0..tiles).map(|column| {
                            let id = TileId { column, row: 0 };
                            let tile = LevelTile { level, id };
                            let [start, _] = within(&pyramid, tile);
                            let outer = above.get(column / 2).map(|axis| (axis, start));
                            Axis::of(&pyramid, tile, transform, false, outer)
                        });
                        let row: Vec<Axis> = row.collect();
                        for axis in &row {
                            let gaps = axis
                                .at
                                .windows(2)
                                .map(|pair| (pair[1] - pair[0]) / axis.size);
                            for gap in gaps {
                                (least, most) = (least.min(gap), most.max(gap));
                            }
                            let taps = taps(0.5 - 0.5 / axis.size, transform);
                            let misses = axis.misses(taps);
                            miss = misses
                                .iter()
                                .fold(miss, |miss, other| miss.max(other.abs()));
                        }
                        above = row;
                    }
                }
            }
        }
    }
    assert!(least > 0.43 && most < 2.21, "{least} to {most} pixels");
    assert!(miss < 0.48, "{miss}");
}

#[test]
fn a_single_pixel_has_a_height() {
    let pyramid = Pyramid::new(1, 1, 16, 1).unwrap();
    let id = TileId { column: 0, row: 0 };
    let tile = LevelTile { level: 0, id };
    let axes = axes(&pyramid, tile, Transform::Lossy, None);
    let picture = Extended::new(&[7.0], axes, None);
    assert_eq!(picture.shown(3, Transform::Lossy), [7.0]);
}
