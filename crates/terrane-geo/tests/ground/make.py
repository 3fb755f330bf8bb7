"""Writes `expected.tsv`: how maps lie on their ellipsoids, by PROJ (needs pyproj).

Each line is a place on a map: the system, x and y; metres on the ellipsoid of a step of one unit along x and along y, and
the cosine of the angle between them, by geodesics of 200 m around the place; the square metres of a box of `BOX` units
around it, by `Geod` with its edges followed; `1 / areal_scale` of `get_factors`, where PROJ's projection is of the
ellipsoid (its Web Mercator and plate carrée are of a sphere, and it counts from Greenwich; - there); and longitude and latitude on WGS 84.
"""
import pathlib

import numpy as np
import pyproj

LAMBERT = "+proj=lcc +lat_0=45.5 +lon_0=10.25 +lat_1=44 +lat_2=47.5 +x_0=700000 +y_0=250000 +ellps=bessel +units=m"
SHIFT = "577.326,90.129,463.919,5.137,1.474,5.297,2.4232"
# System, longitudes and latitudes on its own datum.
PLACES = {
    "EPSG:4326": [(10, 60), (-70.5, -33.2), (0, 0.5), (20, 88)],
    "EPSG:3857": [(10, 60), (-70.5, -33.2), (0, 0.5)],
    "EPSG:2056": [(7.44, 46.95), (10.4, 46.6)],
    "EPSG:2154": [(3, 46.5), (-4.3, 48.4), (9.2, 42.0)],
    "EPSG:32633": [(15, 48), (12.05, 63), (18, 5)],
    "EPSG:31287": [(13.33, 47.5), (16.4, 48.2), (9.7, 47.2)],
    "EPSG:5514": [(14.4, 50.1), (18.2, 49.8), (21.5, 48.9)],
    "EPSG:2065": [(14.4, 50.1)],
    "EPSG:6933": [(10, 60), (-70.5, -33.2), (120, 0.5)],
    "EPSG:4087": [(10, 60), (-70.5, -33.2), (120, 0.5)],
    "EPSG:3035": [(10, 52), (-8, 38), (28, 68)],
    "EPSG:3413": [(-45, 70), (100, 85)],
    "EPSG:2263": [(-73.9, 40.8)],
    "EPSG:4807": [(2.35, 48.85)],
    "EPSG:26710": [(-122.4, 37.8)],
    "LAMBERT": [(10.25, 45.8), (13.9, 46.9)],
}
BOX = 2000.0

lines = []
for name, places in PLACES.items():
    crs = pyproj.CRS.from_user_input(LAMBERT if name == "LAMBERT" else name)
    base = crs.geodetic_crs
    there = pyproj.Transformer.from_crs(base, crs, always_xy=True)
    geod = pyproj.Geod(a=base.ellipsoid.semi_major_metre, b=base.ellipsoid.semi_minor_metre)
    meridian = base.prime_meridian.longitude * base.prime_meridian.unit_conversion_factor
    unit = crs.axis_info[0].unit_conversion_factor
    base_unit = base.axis_info[0].unit_conversion_factor

    def to_own(longitude, latitude):
        return there.transform((np.radians(longitude) - meridian) / base_unit, np.radians(latitude) / base_unit)

    def to_degrees(x, y):
        longitude, latitude = there.transform(x, y, direction="INVERSE")
        return np.degrees(longitude * base_unit + meridian), np.degrees(latitude * base_unit)

    box = BOX / unit if crs.is_projected else np.degrees(1) * BOX / 6.4e6 / np.degrees(unit)
    step = box / 20
    earth = pyproj.CRS.from_epsg(4326)
    source = crs if name != "LAMBERT" else pyproj.CRS.from_user_input(f"{LAMBERT} +towgs84={SHIFT} +type=crs")
    to_earth = pyproj.Transformer.from_crs(source, earth, always_xy=True)
    for longitude, latitude in places:
        x, y = to_own(longitude, latitude)
        vectors = []
        for dx, dy in ((step, 0), (0, step)):
            ends = [to_degrees(x + sign * dx, y + sign * dy) for sign in (-1, 1)]
            azimuth, _, length = geod.inv(*ends[0], *ends[1])
            # At the middle, between the azimuths of both halves.
            ahead, _, _ = geod.inv(longitude, latitude, *ends[1])
            behind, _, _ = geod.inv(longitude, latitude, *ends[0])
            turn = np.radians((behind + 180 - ahead + 180) % 360 - 180) / 2 + np.radians(ahead)
            vectors.append(length / (2 * step) * np.array([np.sin(turn), np.cos(turn)]))
        lengths = [np.hypot(*vector) for vector in vectors]
        cosine = vectors[0] @ vectors[1] / (lengths[0] * lengths[1])
        part = np.linspace(-0.5, 0.5, 41)[:-1] * box
        edge = np.full(40, box / 2)
        xs = np.concatenate([part, edge, -part, -edge]) + x
        ys = np.concatenate([-edge, part, edge, -part]) + y
        area, _ = geod.polygon_area_perimeter(*to_degrees(xs, ys))
        areal = "-"
        if crs.is_projected and name not in ("EPSG:3857", "EPSG:4087", "EPSG:2065"):
            factors = pyproj.Proj(crs).get_factors(longitude, latitude)
            areal = f"{1 / factors.areal_scale:.12g}"
        on_earth = to_earth.transform(x, y)
        numbers = [x, y, *lengths, cosine, box, abs(area)]
        lines.append("\t".join([name, *(f"{value:.12g}" for value in numbers), areal, *(f"{value:.12g}" for value in on_earth)]))
path = pathlib.Path(__file__).with_name("expected.tsv")
path.write_text("# system\tx\ty\tx_m\ty_m\tcosine\tbox\tbox_m2\tarea_by_factors\tlongitude\tlatitude\n" + "\n".join(lines) + "\n")
