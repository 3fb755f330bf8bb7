"""Writes `systems.txt`: the coordinate systems of the EPSG Geodetic Parameter Dataset with the shifts of their datums.

    python make.py      (needs pyproj; the data are those of its PROJ, the versions stand in the file)

Of every shift to WGS 84 that PROJ knows, the table has those without a grid as Helmert's parameters, and of those with
one the name of the grid. A shift of several steps is fitted by one of seven parameters; what the fit leaves over is
added to its accuracy. The coordinate systems that PROJ cannot write as a line of parameters are left out and listed.
"""
import collections
import pathlib
import re
import sqlite3
import warnings

import numpy as np
import pyproj
from pyproj.database import query_crs_info
from pyproj.enums import PJType
from pyproj.transformer import TransformerGroup

warnings.simplefilter("ignore")
WGS_84 = pyproj.CRS.from_epsg(4326)
KINDS = [PJType.PROJECTED_CRS, PJType.GEOGRAPHIC_2D_CRS, PJType.GEOGRAPHIC_3D_CRS, PJType.GEOCENTRIC_CRS]
# Of the datum, not of the system; and what says nothing.
OF_DATUM = ("+ellps=", "+a=", "+b=", "+rf=", "+R=", "+pm=", "+datum=", "+towgs84=")
DROPPED = ("+no_defs", "+type=crs", "+units=m", "+wktext", "+x_0=0", "+y_0=0", "+lon_0=0", "+lat_0=0", "+k=1")
SECOND = np.radians(1 / 3600)
MOST_RESIDUAL_M = 10


def fields(definition):
    return [part if part.startswith("+") else "+" + part for part in definition.split()]


def numbers(step):
    pairs = (part.split("=") for part in step.split() if "=" in part)
    return {key.lstrip("+"): value for key, value in pairs}


def number(value):
    return f"{round(value, 7):.10g}"


def helmert(step):
    """Parameters of one step by position vectors, as `+towgs84` has them."""
    values = numbers(step)
    turn = -1 if values.get("convention") == "coordinate_frame" else 1
    shift = [float(values.get(key, 0)) for key in "xyz"]
    turns = [turn * float(values.get(key, 0)) for key in ("rx", "ry", "rz")]
    return shift + turns + [float(values.get("s", 0))]


def fitted(transformer, base, area):
    """Seven parameters for a shift of several steps, and the metres by which they miss it."""
    west, south, east, north = area
    east = east + 360 if east < west else east
    x, y = (values.ravel() for values in np.meshgrid(np.linspace(west, east, 7), np.linspace(south, north, 7)))
    unit = base.axis_info[0].unit_conversion_factor
    # `area` counts from Greenwich in degrees.
    own_x = (np.radians(x) - np.radians(base.prime_meridian.longitude * base.prime_meridian.unit_conversion_factor * 180 / np.pi)) / unit
    own_y = np.radians(y) / unit
    there_x, there_y = transformer.transform(own_x, own_y)
    good = np.isfinite(there_x) & np.isfinite(there_y)
    if good.sum() < 9:
        return None
    ellipsoid = base.ellipsoid

    def geocentric(a, b, longitude, latitude):
        squared = 1 - (b / a) ** 2
        longitude, latitude = np.radians(longitude), np.radians(latitude)
        across = a / np.sqrt(1 - squared * np.sin(latitude) ** 2)
        return np.array([
            across * np.cos(latitude) * np.cos(longitude),
            across * np.cos(latitude) * np.sin(longitude),
            across * (1 - squared) * np.sin(latitude),
        ])

    old = geocentric(ellipsoid.semi_major_metre, ellipsoid.semi_minor_metre, x[good], y[good])
    new = geocentric(6378137.0, 6356752.314245179, np.asarray(there_x)[good], np.asarray(there_y)[good])
    radius = 6.4e6
    rows, wanted = [], []
    for (X, Y, Z), (dX, dY, dZ) in zip(old.T, (new - old).T):
        # Only what is level counts: a shift in two dimensions keeps no height.
        up = np.array([X, Y, Z]) / np.linalg.norm([X, Y, Z])
        level = np.eye(3) - np.outer(up, up)
        matrix = np.array([
            [1, 0, 0, 0, Z / radius, -Y / radius, X / radius],
            [0, 1, 0, -Z / radius, 0, X / radius, Y / radius],
            [0, 0, 1, Y / radius, -X / radius, 0, Z / radius],
        ])
        rows.append(level @ matrix)
        wanted.append(level @ np.array([dX, dY, dZ]))
    matrix, wanted = np.vstack(rows), np.concatenate(wanted)
    found, *_ = np.linalg.lstsq(matrix, wanted, rcond=1e-9)
    left = np.abs(matrix @ found - wanted).max()
    values = list(found[:3]) + list(found[3:6] / radius / SECOND) + [found[6] / radius * 1e6]
    return values, left


def shifts(base):
    """Shifts of a base system to WGS 84: west, south, east, north, metres of accuracy, parameters or grid."""
    try:
        group = TransformerGroup(base, WGS_84, always_xy=True, allow_ballpark=False)
    except IndexError:  # how pyproj says that there is none
        return []
    found = []
    for transformer in group.transformers:
        if transformer.accuracy < 0 or transformer.area_of_use is None:
            continue
        area = transformer.area_of_use.bounds
        steps = [step for step in transformer.definition.split(" step ")]
        middle = [step for step in steps if re.match(r"(inv )?proj=(?!pipeline|unitconvert|push|pop|cart|longlat|axisswap|noop)", step)]
        accuracy = transformer.accuracy
        if not middle:
            values = [0.0] * 7
        elif len(middle) == 1 and middle[0].startswith("proj=helmert"):
            values = helmert(middle[0])
        else:
            fit = fitted(transformer, base, area)
            if fit is None or fit[1] > MOST_RESIDUAL_M:
                LEFT_OUT["shifts of " + base.name].append(f"{transformer.description}: {fit and fit[1]}")
                continue
            values, left = fit
            accuracy += left
        while len(values) > 3 and not any(values[3:]):
            values = values[:3]
        found.append((area, round(accuracy, 2), ",".join(number(value) for value in values)))
    for operation in group.unavailable_operations:
        definition = operation.to_proj4() or ""
        steps = definition.split(" +step ")
        middle = [step for step in steps if re.match(r"(\+inv )?\+proj=(?!pipeline|unitconvert|axisswap|noop)", step)]
        if operation.accuracy >= 0 and len(middle) == 1 and middle[0].startswith("+proj=hgridshift"):
            grid = numbers(middle[0])["grids"]
            # What it was called before PROJ 7, where that is a format of the shifts still.
            old = OLD_GRIDS.get(grid)
            if old and old.endswith(".gsb"):
                grid += "|" + old
            found.append((operation.area_of_use.bounds, round(operation.accuracy, 2), grid))
    # The best of those for the same area, one with a grid beside it.
    best = {}
    for area, accuracy, what in found:
        key = (area, "." in what and what[0].isalpha())
        if key not in best or accuracy < best[key][0]:
            best[key] = (accuracy, what)
    return [(area, accuracy, what) for (area, _), (accuracy, what) in best.items()]


def codes(rows):
    return {int(code): int(other) for code, other in rows if str(code).isdigit()}


LEFT_OUT = collections.defaultdict(list)
database = sqlite3.connect(pathlib.Path(pyproj.datadir.get_data_dir()) / "proj.db")
OLD_GRIDS = dict(database.execute("SELECT proj_grid_name, old_proj_grid_name FROM grid_alternatives"))
BASE_OF = codes(database.execute("SELECT code, geodetic_crs_code FROM projected_crs WHERE auth_name = 'EPSG' AND geodetic_crs_auth_name = 'EPSG'"))
DATUM_OF = codes(database.execute("SELECT code, datum_code FROM geodetic_crs WHERE auth_name = 'EPSG' AND datum_auth_name = 'EPSG'"))
datums, systems, bases = {}, [], {}
infos = query_crs_info(auth_name="EPSG", pj_types=KINDS, allow_deprecated=True)
for code in sorted({int(info.code) for info in infos}):
    if code > 65535:
        continue
    crs = pyproj.CRS.from_epsg(code)
    base = crs.geodetic_crs
    try:
        definition = fields(crs.to_proj4())
    except pyproj.exceptions.CRSError:
        definition = []
    if not definition:
        LEFT_OUT[crs.coordinate_operation.method_name if crs.coordinate_operation else "no line"].append(code)
        continue
    datum = DATUM_OF.get(BASE_OF.get(code, code))
    if datum is None:
        LEFT_OUT["no datum"].append(code)
        continue
    own = [part for part in definition if not part.startswith(OF_DATUM) and part not in DROPPED]
    if crs.is_geographic:
        unit = np.degrees(crs.axis_info[0].unit_conversion_factor)
        if abs(unit - 1) > 1e-9:
            own.append(f"+to_degrees={unit:.12g}")
    # A map that is drawn on a sphere of its own.
    if "+nadgrids=@null" in own:
        own += [part for part in definition if part.startswith(("+a=", "+b="))]
    systems.append((code, datum, " ".join(own), crs.area_of_use.bounds if crs.area_of_use else (-180, -90, 180, 90)))
    # The two-dimensional one is the one that shifts are published for.
    if crs.is_geographic and (datum not in bases or len(bases[datum].axis_info) > 2 and len(crs.axis_info) == 2):
        bases[datum] = crs
    elif datum not in bases:
        bases[datum] = base

for datum, base in bases.items():
    definition = fields(base.to_proj4())
    ellipsoid = base.ellipsoid
    named = [part for part in definition if part.startswith(("+ellps=", "+a=", "+b=", "+rf=", "+R="))]
    if any(part.startswith("+datum=") for part in definition):
        name = {"NAD27": "clrk66", "NAD83": "GRS80", "WGS84": "WGS84"}
        stated = next(part for part in definition if part.startswith("+datum="))
        named = ["+ellps=" + name[stated.removeprefix("+datum=")]]
    meridian = base.prime_meridian
    longitude = meridian.longitude * meridian.unit_conversion_factor * 180 / np.pi
    if longitude:
        named.append(f"+pm={longitude:.15g}")
    datums[datum] = (" ".join(named), shifts(base))

metadata = dict(database.execute("SELECT key, value FROM metadata"))
lines = [
    f"# EPSG Geodetic Parameter Dataset {metadata['EPSG.VERSION']} ({metadata['EPSG.DATE']}), International Association of Oil & Gas Producers (IOGP),",
    f"# https://epsg.org, by way of PROJ {metadata['PROJ.VERSION']}'s database; made by make.py, rearranged: this is not the dataset itself.",
]
bound = lambda value: f"{value:.6g}"


def middle(area):
    west, south, east, north = area
    longitude = (west + (east + 360 if east < west else east)) / 2
    return f"{bound(longitude - 360 if longitude > 180 else longitude)},{bound((south + north) / 2)}"


for datum, (definition, rows) in sorted(datums.items()):
    lines.append(f"datum {datum} {definition}")
    for area, accuracy, what in rows:
        lines.append(f"shift {' '.join(map(bound, area))} {accuracy:g} {what}")
for code, datum, definition, area in systems:
    lines.append(f"{code} {datum} {middle(area)} {definition}")
path = pathlib.Path(__file__).with_name("systems.txt")
path.write_text("\n".join(lines) + "\n")
print(len(systems), "systems,", len(datums), "datums,", sum(len(rows) for _, rows in datums.values()), "shifts,", path.stat().st_size, "bytes")
for why, what in LEFT_OUT.items():
    print("left out:", why, *what)
