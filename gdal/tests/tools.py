"""GDAL's own tools on terrane files: every value is that of `terrane decode`.

Usage: GDAL_DRIVER_PATH=<folder of plugins> TERRANE=<the program> python3 tools.py

Needs gdal-bin, Python with osgeo and numpy. Real rasters are used where they are there.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
from osgeo import gdal

from rasters import all_of, made, same, values

TERRANE = os.environ.get("TERRANE", "terrane")
BOUND = 0.1


def run(*command: object, fails: bool = False) -> str:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if (done.returncode != 0) != fails:
        raise AssertionError(f"{' '.join(map(str, command))}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stderr if fails else done.stdout


def check(condition: bool, what: str) -> None:
    if not condition:
        raise AssertionError(what)


class Ranges(BaseHTTPRequestHandler):
    """Files of a folder by ranges, counted."""

    protocol_version = "HTTP/1.1"
    folder = Path()
    requests: list[tuple[str, str, int]] = []

    def answer(self, with_body: bool) -> None:
        path = self.folder / self.path.lstrip("/")
        if not path.is_file():
            Ranges.requests.append((self.command, self.path, 0))
            self.send_error(404)
            return
        data = path.read_bytes()
        found = re.match(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        start, end = 0, len(data)
        if found:
            start = int(found[1])
            end = min(len(data), int(found[2]) + 1) if found[2] else len(data)
        self.send_response(206 if found else 200)
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Length", str(end - start))
        if found:
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{len(data)}")
        self.end_headers()
        Ranges.requests.append((self.command, self.path, end - start if with_body else 0))
        if with_body:
            self.wfile.write(data[start:end])

    def do_GET(self) -> None:
        self.answer(True)

    def do_HEAD(self) -> None:
        self.answer(False)

    def log_message(self, *_: object) -> None:
        pass


def one_raster(raster: Path, folder: Path) -> None:
    """Info, translate both ways, warp, shading and overviews of one raster."""
    name = raster.stem
    trn, tif = folder / f"{name}.trn", folder / f"{name}.decoded.tif"
    run(TERRANE, "encode", raster, trn, "--max-error", BOUND)
    run(TERRANE, "decode", trn, tif)
    info = json.loads(run("gdalinfo", "-json", "-stats", trn))
    structure = info["metadata"]["IMAGE_STRUCTURE"]
    check(structure["COMPRESSION"] == "TERRANE" and float(structure["MAX_Z_ERROR"]) == BOUND, f"{name}: {structure}")
    check(info["driverShortName"] == "TRN" and info["bands"][0]["unit"] in ("m", "ft"), name)
    ours, theirs = gdal.Open(str(trn)), gdal.Open(str(tif))
    band, decoded = ours.GetRasterBand(1), theirs.GetRasterBand(1)
    check(band.DataType == decoded.DataType, f"{name}: type")
    check(same(values(ours), values(theirs)), f"{name}: values of terrane decode")
    check(repr(band.GetNoDataValue()) == repr(decoded.GetNoDataValue()) or decoded.GetNoDataValue() is None, f"{name}: nodata")
    check(ours.GetGeoTransform() == theirs.GetGeoTransform(), f"{name}: transform")
    check(ours.GetMetadataItem("AREA_OR_POINT") == (theirs.GetMetadataItem("AREA_OR_POINT") or "Area"), f"{name}: point")
    system, other = ours.GetSpatialRef(), theirs.GetSpatialRef()
    check((system is None) == (other is None) and (system is None or system.IsSame(other)), f"{name}: {system} is not {other}")
    check(band.GetDescription() == decoded.GetDescription(), f"{name}: description")
    # The extremes that the file states are those of its numbers.
    low, high = np.nanmin(values(ours)), np.nanmax(values(ours))
    check(band.GetMinimum() == low and band.GetMaximum() == high, f"{name}: {band.GetMinimum()} is not {low}")
    source = values(raster)
    # A band does not live longer than its dataset.
    dataset = gdal.Open(str(raster))
    scale, offset = dataset.GetRasterBand(1).GetScale() or 1.0, dataset.GetRasterBand(1).GetOffset() or 0.0
    unit = 0.3048 if band.GetUnitType() == "ft" else 1.0
    heights = (values(ours) * (band.GetScale() or 1.0) + (band.GetOffset() or 0.0)) * unit
    error = np.nanmax(np.abs(heights - (source * scale + offset) * unit))
    check(error <= BOUND + 1e-4, f"{name}: {error} m off")
    check(bool(np.array_equal(np.isnan(source), np.isnan(values(ours)))), f"{name}: mask")

    # Overviews are the levels of the file.
    for level in range(band.GetOverviewCount()):
        out = folder / f"{name}.{level}.tif"
        run(TERRANE, "decode", trn, out, "--level", level + 1)
        overview = band.GetOverview(level)
        found = np.where(overview.GetMaskBand().ReadAsArray() == 0, np.nan, overview.ReadAsArray().astype(float))
        dataset = gdal.Open(str(out))
        wanted = values(dataset)
        if band.DataType == dataset.GetRasterBand(1).DataType:
            check(same(found, wanted), f"{name}: level {level + 1}")
        else:
            # The band's integers, rounded.
            wanted = (wanted - (band.GetOffset() or 0.0)) / (band.GetScale() or 1.0)
            check(bool(np.array_equal(np.isnan(found), np.isnan(wanted))), f"{name}: mask of level {level + 1}")
            check(np.nanmax(np.abs(found - wanted)) <= 0.501, f"{name}: level {level + 1}")
        out.unlink()

    # Through the tools.
    for command, ending in (
        (["gdal_translate", "-q"], "translated"),
        (["gdal_translate", "-q", "-outsize", "30%", "30%", "-r", "bilinear"], "small"),
        (["gdaldem", "hillshade", "-q"], "shade"),
    ):
        if ending == "small":
            # The overviews of the decoded raster are means of its own.
            run(*command, trn, folder / f"{name}.small.tif")
            continue
        pair = [folder / f"{name}.{ending}.{part}.tif" for part in ("a", "b")]
        run(*command, trn, pair[0])
        run(*command, tif, pair[1])
        check(same(values(pair[0]), values(pair[1])), f"{name}: {ending}")
        check(ending != "shade" or np.nanstd(values(pair[0])) > 1, f"{name}: an empty shade")
    if system is not None and "Mars" not in system.ExportToWkt():
        pair = [folder / f"{name}.warped.{part}.tif" for part in ("a", "b")]
        for path, out in zip((trn, tif), pair):
            run("gdalwarp", "-q", "-t_srs", "EPSG:3857", "-r", "cubic", "-ovr", "NONE", path, out)
        check(same(values(pair[0]), values(pair[1])), f"{name}: warped")
    if band.GetOverviewCount():
        out = folder / f"{name}.ovr.tif"
        run("gdal_translate", "-q", "-ovr", "0", trn, out)
        check(same(gdal.Open(str(out)).ReadAsArray().astype(float), band.GetOverview(0).ReadAsArray().astype(float)), f"{name}: -ovr 0")

    # And from the raster itself: the same file as the program makes.
    copy = folder / f"{name}.copy.trn"
    run("gdal_translate", "-q", "-of", "TRN", "-co", f"MAX_Z_ERROR={BOUND}", raster, copy)
    check(same(values(copy), values(trn)), f"{name}: CreateCopy")
    equal = "the same bytes" if copy.read_bytes() == trn.read_bytes() else "the same heights"
    print(f"ok {name}: {ours.RasterXSize}x{ours.RasterYSize}, {gdal.GetDataTypeName(band.DataType)}, "
          f"{band.GetOverviewCount()} overviews, greatest error {error:.4f} m, CreateCopy {equal}")


def other_formats(folder: Path) -> None:
    """ASCII grids and HGT to terrane files."""
    source = made(folder / "grid.tif", kind=gdal.GDT_Float32, epsg="EPSG:2056", nodata=-9999.0)
    run("gdal_translate", "-q", "-of", "AAIGrid", "-co", "DECIMAL_PRECISION=3", source, folder / "grid.asc")
    heights = np.round(np.nan_to_num(np.tile(values(source)[:400, :400], (4, 4)), nan=-32768.0))[:1201, :1201]
    (folder / "N46E009.hgt").write_bytes(heights.astype(">i2").tobytes())
    for path in (folder / "grid.asc", folder / "N46E009.hgt"):
        out = path.with_suffix(".from.trn")
        run("gdal_translate", "-q", "-of", "TRN", "-co", f"MAX_Z_ERROR={BOUND}", path, out)
        wanted, found = values(path), values(out)
        check(bool(np.array_equal(np.isnan(wanted), np.isnan(found))), f"{path.name}: mask")
        error = float(np.nanmax(np.abs(wanted - found)))
        check(error <= BOUND + 1e-4, f"{path.name}: {error} m off")
        one, other = gdal.Open(str(path)), gdal.Open(str(out))
        check(np.allclose(one.GetGeoTransform(), other.GetGeoTransform(), rtol=0, atol=1e-12), f"{path.name}: transform")
        point = other.GetMetadataItem("AREA_OR_POINT")
        check(point == (one.GetMetadataItem("AREA_OR_POINT") or "Area"), f"{path.name}: {point}")
        run(TERRANE, "verify", out)
        print(f"ok {path.suffix[1:]}: {path.stat().st_size} to {out.stat().st_size} bytes, greatest error {error:.4f} m, {point}")
    lossless = folder / "hgt.trn"
    run("gdal_translate", "-q", "-of", "TRN", "-co", "LOSSLESS=YES", folder / "N46E009.hgt", lossless)
    dataset = gdal.Open(str(lossless))
    check(dataset.GetRasterBand(1).DataType == gdal.GDT_Int16 and dataset.GetRasterBand(1).GetNoDataValue() == -32768, "lossless integers")
    check(same(values(dataset), values(folder / "N46E009.hgt")), "lossless values")
    back = folder / "N46E009.back.hgt"
    run("gdal_translate", "-q", "-of", "ENVI", lossless, back)
    check(dataset.GetMetadataItem("COMPRESSION_REVERSIBILITY", "IMAGE_STRUCTURE") == "LOSSLESS", "reversibility")
    scaled = folder / "scaled.lossless.trn"
    run("gdal_translate", "-q", "-of", "TRN", "-co", "LOSSLESS=YES", folder / "scaled.tif", scaled)
    dataset = gdal.Open(str(scaled))
    band = dataset.GetRasterBand(1)
    check((band.DataType, band.GetScale(), band.GetOffset()) == (gdal.GDT_UInt16, 0.1, -100.0), "scale and offset")
    check(same(values(scaled), values(folder / "scaled.tif")), "scaled integers")
    print("ok lossless: Int16 and scaled UInt16 come back as they were")


def creation_options(folder: Path) -> None:
    source = folder / "compound.tif"
    sizes = {}
    for options in (["RMSE=0.05"], ["BPP=1"], ["PROFILE=fast", "BLOCKSIZE=128", "NUM_THREADS=1"], ["PROFILE=BEST", "EFFORT=0"]):
        out = folder / "options.trn"
        run("gdal_translate", "-q", "-of", "TRN", *(part for option in options for part in ("-co", option)), source, out)
        info = json.loads(run(TERRANE, "info", out, "--json"))
        sizes[" ".join(options)] = info["bytes"]
        if options[0].startswith("RMSE"):
            check(0.049 < info["rmse_m"] <= 0.05, f"RMSE {info['rmse_m']}")
        elif options[0].startswith("BPP"):
            check(0.98 < info["bpp"] <= 1.0, f"BPP {info['bpp']}")
        elif len(options) == 3:
            check(info["tile"] == 128 and "fast" in info["model"]["name"], str(info["model"]))
    for options, reason in (
        (["MAX_Z_ERROR=0.1", "LOSSLESS=YES"], "one of MAX_Z_ERROR"),
        (["LOSSLESS=NO"], "one of MAX_Z_ERROR"),
        (["MAX_Z_ERROR=-1"], "above 0"),
        (["MAX_Z_ERROR=ten"], "number"),
        (["BLOCKSIZE=17"], "even number"),
        (["PROFILE=slow"], "fast, standard or best"),
    ):
        out = folder / "refused.trn"
        message = run("gdal_translate", "-q", "-of", "TRN", *(part for option in options for part in ("-co", option)), source, out, fails=True)
        check(reason in message, f"{options}: {message}")
        check(not out.exists(), f"{options} left a file")
    two = folder / "two.tif"
    run("gdal_translate", "-q", "-b", "1", "-b", "1", source, two)
    check("one band" in run("gdal_translate", "-q", "-of", "TRN", two, folder / "refused.trn", fails=True), "two bands")
    masked = folder / "masked.tif"
    run("gdal_translate", "-q", "-mask", "1", "-a_nodata", "none", "--config", "GDAL_TIFF_INTERNAL_MASK", "YES", source, masked)
    print(f"ok options: {sizes}")


def nothing_is_lost_unsaid(folder: Path) -> None:
    """Without an option every number comes back; what places a raster otherwise than a transform is refused or said to be lost."""
    source, out = folder / "compound.tif", folder / "exact.trn"
    run("gdal_translate", "-q", "-of", "TRN", source, out)
    check(same(values(out), values(source)), "lossless without an option")
    check(gdal.Open(str(out)).GetMetadataItem("COMPRESSION_REVERSIBILITY", "IMAGE_STRUCTURE") == "LOSSLESS", "reversibility")
    slopes = [folder / "slope.trn", folder / "slope.tif"]
    for path, driver in zip(slopes, ("TRN", "GTiff")):
        run("gdaldem", "slope", "-q", "-of", driver, source, path)
    check(same(values(slopes[0]), values(slopes[1])), "slopes are degrees, and no heights within a bound")

    points = [part for x, y in ((0, 0), (700, 0), (0, 466), (700, 466)) for part in ("-gcp", x, y, 2_600_000 + x, 1_200_000 - y)]
    bare = folder / "bare.tif"
    run("gdal_translate", "-q", "-a_srs", "EPSG:2056", "-co", "PROFILE=BASELINE", "--config", "GDAL_PAM_ENABLED", "NO", source, bare)
    tied = folder / "tied.tif"
    run("gdal_translate", "-q", "-a_srs", "EPSG:2056", *points, bare, tied)
    check(gdal.Open(str(tied)).GetGCPCount() == 4, "a source with ground control points")
    rpc = folder / "rpc.vrt"
    gdal.GetDriverByName("VRT").CreateCopy(str(rpc), gdal.Open(str(bare))).SetMetadata({"LINE_OFF": "1"}, "RPC")
    curved = folder / "curved.vrt"
    local = 'ENGCRS["Bore",EDATUM["Bore"],CS[Cartesian,2],AXIS["a",other],AXIS["b",other],LENGTHUNIT["metre",1]]'
    run("gdal_translate", "-q", "-of", "VRT", bare, curved)
    text = curved.read_text()
    curved.write_text(text.replace("<VRTRasterBand", f"<SRS>{local.replace(chr(34), '&quot;')}</SRS><VRTRasterBand", 1))
    for path, reason in ((tied, "4 ground control points"), (rpc, "RPC")):
        refused = folder / "refused.trn"
        message = run("gdal_translate", "-q", "-strict", "-of", "TRN", path, refused, fails=True)
        check(reason in message and not refused.exists(), f"{path.name} with -strict: {message}")
        done = subprocess.run(["gdal_translate", "-q", "-of", "TRN", path, refused], capture_output=True, text=True)
        check(done.returncode == 0 and reason in done.stderr, f"{path.name}: {done.stderr}")
        refused.unlink()
    kept = subprocess.run(["gdal_translate", "-q", "-of", "TRN", curved, folder / "local.trn"], capture_output=True, text=True)
    has_system = gdal.Open(str(folder / "local.trn")).GetSpatialRef() is not None
    check(has_system or "reference system" in kept.stderr, f"a local system: {kept.stderr}")
    print("ok lossless without an option; control points and RPCs refused or said to be lost")


def progress_and_memory(folder: Path) -> None:
    """Progress, cancelling, targets of VSI, and what is refused."""
    source = gdal.Open(str(folder / "compound.tif"))
    driver = gdal.GetDriverByName("TRN")
    told: list[float] = []
    driver.CreateCopy("/vsimem/copy.trn", source, options=[f"MAX_Z_ERROR={BOUND}"], callback=lambda done, *_: told.append(done) or 1)
    check(told == sorted(told) and told[0] == 0 and told[-1] == 1, f"progress {told}")
    check(same(values("/vsimem/copy.trn"), values(folder / "compound.trn")), "a copy in memory")
    stopped = folder / "stopped.trn"
    try:
        made_anyway = driver.CreateCopy(str(stopped), source, callback=lambda *_: 0)
    except RuntimeError as error:
        check("terminated" in str(error), str(error))
        made_anyway = None
    check(made_anyway is None and not stopped.exists(), "cancelling")
    try:
        gdal.Open(str(folder / "compound.trn"), gdal.GA_Update)
        check(False, "update")
    except RuntimeError as error:
        check("cannot be changed in place" in str(error), str(error))
    tokens = Path(__file__).resolve().parents[2] / "conformance/tokens-int8/input.trn"
    check("networks" in run("gdalinfo", tokens, fails=True), "a file of tokens")
    mask = gdal.GetDriverByName("MEM").CreateCopy("", gdal.Open(str(folder / "custom.tif")))
    mask.CreateMaskBand(gdal.GMF_PER_DATASET)
    hidden = np.full((467, 701), 255, np.uint8)
    hidden[100:200, 300:400] = 0
    mask.GetRasterBand(1).GetMaskBand().WriteArray(hidden)
    driver.CreateCopy("/vsimem/masked.trn", mask)
    check(bool(np.array_equal(np.isnan(values("/vsimem/masked.trn")), hidden == 0)), "a mask")
    description = json.loads(gdal.Open(str(folder / "compound.trn")).GetMetadata_List("json:TERRANE")[0])
    check(description["bound_m"] == BOUND and description["vertical_epsg"] == 5728, str(description))
    vertical = gdal.Open(str(folder / "compound.trn")).GetSpatialRef()
    check(vertical.IsCompound() == 1 and vertical.GetAuthorityCode("COMPD_CS|VERT_CS") == "5728", vertical.ExportToWkt())
    print("ok progress, cancelling, /vsimem, masks, metadata, vertical system, update and tokens refused")


def elsewhere(folder: Path, name: str) -> None:
    """Through /vsizip and /vsicurl."""
    trn = folder / f"{name}.trn"
    wanted = values(trn)
    with zipfile.ZipFile(folder / "zipped.zip", "w", zipfile.ZIP_STORED) as archive:
        archive.write(trn, "inside/dem.trn")
    check(same(values(f"/vsizip/{folder}/zipped.zip/inside/dem.trn"), wanted), "/vsizip")
    Ranges.folder = folder
    server = ThreadingHTTPServer(("127.0.0.1", 0), Ranges)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"/vsicurl/http://127.0.0.1:{server.server_port}/{trn.name}"
    counts = {}
    gdal.SetConfigOption("GDAL_DISABLE_READDIR_ON_OPEN", "EMPTY_DIR")
    gdal.SetConfigOption("CPL_VSIL_CURL_ALLOWED_EXTENSIONS", ".trn")
    for what in ("info", "overview", "window", "all"):
        gdal.VSICurlClearCache()
        Ranges.requests = []
        dataset = gdal.Open(address)
        band = dataset.GetRasterBand(1)
        if what == "overview":
            band.GetOverview(band.GetOverviewCount() - 1).ReadAsArray()
        elif what == "window":
            x, y = dataset.RasterXSize // 2, dataset.RasterYSize // 2
            check(bool(np.array_equal(band.ReadAsArray(x, y, 20, 20), gdal.Open(str(trn)).ReadAsArray(x, y, 20, 20))), "a window by /vsicurl")
        elif what == "all":
            check(bool(np.array_equal(dataset.ReadAsArray(), gdal.Open(str(trn)).ReadAsArray())), "/vsicurl")
        counts[what] = (len(Ranges.requests), sum(count for _, _, count in Ranges.requests))
        dataset = band = None
    server.shutdown()
    check(counts["info"][0] <= 3, f"opening takes {Ranges.requests}")
    # The index page, and side by side the records of the tile and of those above it.
    check(counts["overview"][0] <= counts["info"][0] + 2, f"an overview takes {counts}")
    check(counts["window"][0] <= counts["info"][0] + 6 and counts["all"][1] < 1.1 * trn.stat().st_size, f"{counts}")
    print(f"ok /vsizip and /vsicurl of {trn.stat().st_size} bytes; requests and bytes: {counts}")


def main() -> None:
    if gdal.GetDriverByName("TRN") is None:
        sys.exit("the driver TRN is not there: set GDAL_DRIVER_PATH to the folder of plugins")
    check(shutil.which("gdalinfo") is not None, "gdalinfo is not there")
    print(f"GDAL {gdal.VersionInfo('RELEASE_NAME')}, {run('gdalinfo', '--format', 'TRN').splitlines()[2].strip()}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rasters = all_of(folder)
        for raster in rasters:
            one_raster(raster, folder)
        other_formats(folder)
        creation_options(folder)
        nothing_is_lost_unsaid(folder)
        progress_and_memory(folder)
        elsewhere(folder, max(rasters, key=lambda path: path.stat().st_size).stem)
    print("all of it holds")


if __name__ == "__main__":
    main()
