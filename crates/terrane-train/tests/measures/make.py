"""Computes expected.json with numpy alone; the tests of src/measure.rs rebuild the same integer terrain and compare."""

import json
import pathlib

import numpy as np


def noise(row, column, salt):
    """A 32-bit integer hash, the same in Rust with wrapping arithmetic."""
    mask = 0xFFFFFFFF
    h = (row * 0x9E3779B1 ^ column * 0x85EBCA77 ^ salt * 0xC2B2AE3D) & mask
    h = ((h ^ h >> 15) * 0x2C1B3C6D) & mask
    h = ((h ^ h >> 12) * 0x297A2D39) & mask
    return h ^ h >> 15


def field(width, height, value):
    return np.array([[value(r, c) for c in range(width)] for r in range(height)], dtype=np.float64)


def terrain(width, height):
    """Heights in 1/64 m and errors in 1/512 m, so that float32 holds them exactly."""
    reference = field(width, height, lambda r, c: (32000 + 90 * r + abs((7 * r + 3 * c) % 128 - 64) * 40
                                                   + noise(r, c, 1) % 64) / 64)
    error = field(width, height, lambda r, c: (noise(r, c, 2) % 201 - 100 + (r * c) % 7) / 512)
    return reference, reference + error


def psnr(error, relief):
    return float(min(100.0, 20 * np.log10(relief / np.sqrt(np.mean(error**2)))))


def rms(x):
    return float(np.linalg.norm(np.ravel(x)) / np.sqrt(np.size(x)))


def inner(x):
    return x[1:-1, 1:-1]


def five_point(z):
    return np.diff(z, 2, axis=0)[:, 1:-1] + np.diff(z, 2, axis=1)[1:-1]


def twice(z):
    return inner(sum(np.gradient(np.gradient(z, axis=a), axis=a) for a in (0, 1)))


def tile_measures(z, zhat, derivatives=None):
    slope = np.stack(np.gradient(z))
    slope_hat = np.stack(np.gradient(zhat)) if derivatives is None else np.stack(derivatives[:2])
    lap_hat = five_point(zhat) if derivatives is None else inner(derivatives[2])
    twice_hat = twice(zhat) if derivatives is None else inner(derivatives[2])
    slope_error = np.linalg.norm(slope_hat - slope, axis=0)
    lap_error = np.abs(lap_hat - five_point(z))
    return {
        "range_m": float(np.ptp(z)),
        "psnr_db": psnr(zhat - z, np.ptp(z)),
        "rmse_m": rms(zhat - z),
        "max_error_m": float(np.abs(zhat - z).max()),
        "gradient_rmse_m_per_px": rms(slope_error),
        "mean_gradient_error_m_per_px": float(slope_error.mean()),
        "max_gradient_error_m_per_px": float(slope_error.max()),
        "gradient_magnitude_error_m_per_px": float(
            np.abs(np.linalg.norm(slope_hat, axis=0) - np.linalg.norm(slope, axis=0)).mean()),
        "laplacian_rmse_m_per_px2": rms(lap_error),
        "mean_laplacian_error_m_per_px2": float(lap_error.mean()),
        "max_laplacian_error_m_per_px2": float(lap_error.max()),
        "twice_laplacian_rmse_m_per_px2": rms(twice_hat - twice(z)),
    }


def seam_measures(z, zhat, patch):
    """Seam s lies between pixels s-1 and s; pixel centres nearer than 2 px to it are boundary."""
    def near(n):
        seams = np.arange(patch, n, patch)
        return (np.abs(np.arange(n)[:, None] + 0.5 - seams[None]) < 2).any(axis=1)

    boundary = near(z.shape[0])[:, None] | near(z.shape[1])[None]
    error = zhat - z
    return {
        "boundary_psnr_db": psnr(error[boundary], np.ptp(z)),
        "interior_psnr_db": psnr(error[~boundary], np.ptp(z)),
        "boundary_fraction": float(boundary.mean()),
    }


def raster_measures(z, zhat):
    missing = np.isfinite(z) & ~np.isfinite(zhat)
    invented = ~np.isfinite(z) & np.isfinite(zhat)
    error = zhat - z
    slope_error = np.stack(np.gradient(zhat)) - np.stack(np.gradient(z))
    keep = np.isfinite(error) & np.isfinite(slope_error).all(axis=0)
    lap_error = five_point(zhat) - five_point(z)
    lap_error = lap_error[np.isfinite(lap_error)]
    relief = np.nanmax(z) - np.nanmin(z)
    return {
        "compared_pixels": int(np.isfinite(error).sum()),
        "missing_pixels": int(missing.sum()),
        "invented_pixels": int(invented.sum()),
        "range_m": float(relief),
        "psnr_db": psnr(error[np.isfinite(error)], relief),
        "rmse_m": rms(error[np.isfinite(error)]),
        "max_error_m": float(np.nanmax(np.abs(error))),
        "gradient_rmse": rms(slope_error[:, keep]) * 2**0.5,
        "laplacian_rmse": rms(lap_error),
    }


def main():
    sizes = [(24, 20), (32, 32), (256, 256)]
    tiles = {f"{w}x{h}": tile_measures(*terrain(w, h)) for w, h in sizes}

    z, zhat = terrain(24, 20)
    given = [field(24, 20, lambda r, c, s=s: (noise(r, c, s) % 2048 - 1024) / 256) for s in (3, 4, 5)]

    holed, holed_hat = terrain(32, 32)
    holed[field(32, 32, lambda r, c: noise(r, c, 6) % 17 == 0) > 0] = np.nan
    holed_hat[field(32, 32, lambda r, c: noise(r, c, 6) % 17 == 0 and noise(r, c, 7) % 3 > 0) > 0] = np.nan
    holed_hat[field(32, 32, lambda r, c: noise(r, c, 8) % 61 == 0) > 0] = np.nan

    columns = {key: np.array([tile[key] for tile in tiles.values()]) for key in tiles["24x20"]}
    summary = {"tiles": len(tiles)}
    summary |= {key: float(v.mean()) for key, v in columns.items() if not key.startswith("max_")}
    summary |= {key: float(v.max()) for key, v in columns.items() if key.startswith("max_")}
    summary |= {key.replace("mean_", "max_tile_"): float(v.max())
                for key, v in columns.items() if key.startswith("mean_")}

    # Few distinct values, so that ties occur.
    errors = np.array([noise(i, 0, 9) % 7 for i in range(11)])
    order = np.lexsort((np.arange(11), errors)).tolist()

    square = terrain(256, 256)
    expected = {
        "tiles": tiles,
        "analytic": tile_measures(z, zhat, given),
        "seams": {str(p): seam_measures(*square, p) for p in (8, 16, 32)},
        "uneven_seams": seam_measures(z, zhat, 9),
        "raster": raster_measures(holed, holed_hat),
        "summary": summary,
        "regimes": {"flat": order[:3], "hilly": order[3:7], "rugged": order[7:]},
    }
    pathlib.Path(__file__).with_name("expected.json").write_text(json.dumps(expected, indent=1) + "\n")


main()
