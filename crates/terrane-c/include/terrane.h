/* libterrane: elevation rasters as terrane files (.trn), with a guaranteed maximum error.
 *
 *     trn_file *file = trn_open("dem.trn", NULL, &error);
 *     trn_info info;
 *     trn_describe(file, &info, NULL);
 *     trn_part part = {0, 0, 0, 256, 256};
 *     trn_read_f32(file, &part, heights, 0, &error);
 *     trn_close(file);
 *
 * Errors. A function that can fail returns TRN_OK or another status, or NULL instead of a file. `error` may be NULL; else
 * it is written where a call fails: one sentence, which trn_free_string frees. Nothing is thrown, and functions that the
 * caller gives must not throw or jump out of the library either.
 *
 * Threads. An open file may be used by several threads at once. Closing is for one, when the others are done.
 *
 * Heights are metres, NaN where there is no data, row by row from the top. Levels count from 0, full resolution; each
 * has half as many columns and rows as the one before it.
 *
 * Files of tokens need the networks of the program `terrane`; opening one here is an error that says so. */
#ifndef TERRANE_H
#define TERRANE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The generation of this header; trn_abi() tells that of the library. They must be equal. */
#define TRN_ABI 1

/* How a call ended. */
#define TRN_OK 0
#define TRN_ERROR 1
#define TRN_STOPPED 2 /* a function of the caller asked for it */

/* Types of numbers. */
#define TRN_UINT8 1
#define TRN_INT8 2
#define TRN_UINT16 3
#define TRN_INT16 4
#define TRN_UINT32 5
#define TRN_INT32 6
#define TRN_FLOAT32 7
#define TRN_FLOAT64 8

/* What a file guarantees at every pixel with data. */
#define TRN_BOUND_NONE 0
#define TRN_BOUND_MAX_ERROR 1
#define TRN_BOUND_LOSSLESS 2

/* What an encoding is to reach. */
#define TRN_TARGET_DEFAULT 0 /* no pixel farther off than 0.1 m */
#define TRN_TARGET_MAX_ERROR 1 /* no pixel farther off than `value` metres */
#define TRN_TARGET_RMSE 2 /* a root mean square error of `value` metres */
#define TRN_TARGET_BPP 3 /* `value` bits per pixel with data */
#define TRN_TARGET_LOSSLESS 4 /* every number as it was */

/* How a file stands to TRN_TARGET_RMSE or TRN_TARGET_BPP. */
#define TRN_REACHED_TARGET 0 /* it has what was asked for */
#define TRN_REACHED_LOSSLESS 1 /* it has no error at all, which takes no more bytes than what was asked for */
#define TRN_REACHED_SMALLEST 2 /* it has less error than was asked for, and no file of the raster is smaller */

/* An open file. */
typedef struct trn_file trn_file;

/* ---- The library ---- */

uint32_t trn_abi(void);

/* The version of the library, as "0.1.0". */
const char *trn_version(void);

/* Frees the text of an error; NULL is allowed. */
void trn_free_string(char *text);

/* ---- Opening ---- */

/* Reads `length` bytes at `offset` into `buffer`. Returns how many, fewer only where the file ends; below 0 where it fails.
 * Several threads may call it at once. */
typedef int64_t (*trn_read_function)(void *user, uint64_t offset, void *buffer, size_t length);

/* Reads `count` parts at once, each whole: what a server answers side by side. Returns TRN_OK, or TRN_ERROR. Several threads
 * may call it at once. */
typedef int32_t (*trn_read_all_function)(void *user, size_t count, const uint64_t *offsets, const size_t *lengths, void **buffers);

/* What a file may take while it is open. Zeros leave it to the library. */
typedef struct trn_open_settings {
    uint64_t memory_limit; /* bytes; 0: half of what the process may have, 4 GiB at most */
    uint32_t threads; /* that decode a large window; 0: all cores */
    int32_t is_cached_elsewhere; /* the caller keeps what it reads: tiles are not kept here too */
    /* Of a file that the caller reads and whose every read waits, as over a network: parts are asked for side by side, a small file
     * is read whole, and one that is read in its order is read ahead. NULL: parts are read one after another, as they are needed. */
    trn_read_all_function read_all;
} trn_open_settings;

/* Opens a file of this machine; the path is UTF-8. `options` may be NULL. */
trn_file *trn_open(const char *path, const trn_open_settings *options, char **error);

/* Opens a file of `length` bytes that the caller reads. Function and `user` must live until the file is closed. */
trn_file *trn_open_with(trn_read_function read, void *user, uint64_t length, const trn_open_settings *options, char **error);

/* From now on all work on a file together may take so many seconds, and then fails; 0: any time, as after opening. A file of a
 * few megabytes may say that it has 10^16 pixels. Call it again to give time again, also while other threads read. */
int32_t trn_limit_time(const trn_file *file, double seconds, char **error);

/* Closes a file; NULL is allowed. */
void trn_close(trn_file *file);

/* ---- Describing ---- */

/* What a file says of itself. Texts and arrays live until it is closed; they are never NULL unless it is said. */
typedef struct trn_info {
    uint32_t width;
    uint32_t height;
    uint32_t tile; /* side of a tile in pixels */
    uint32_t levels; /* with full resolution */
    double affine[6]; /* in GDAL's order, from the corner of the first pixel: also where `pixel_is_point` */
    int32_t is_georeferenced; /* else `affine` counts pixels */
    int32_t pixel_is_point;
    uint32_t horizontal_epsg; /* 0 where the system has no code or none is stated */
    uint32_t vertical_epsg; /* as above */
    const char *crs; /* in a few words, as "EPSG:2056+5728" */
    const char *wkt; /* empty where the file has none; most have GeoTIFF keys */
    const uint8_t *geotiff; /* a GeoTIFF of one pixel that states the system; NULL where there is none */
    size_t geotiff_length;
    int32_t sample; /* type of the numbers that trn_read_stored gives */
    int32_t has_nodata;
    double nodata; /* number of pixels without data there; may be NaN */
    double scale; /* height in `unit` = number * scale + offset */
    double offset;
    const char *unit; /* "m", "ft", … */
    double metres_per_unit;
    const char *description; /* of the band; may be empty */
    int32_t source_sample; /* type of the source's numbers; 0 where it is not known */
    int32_t source_has_nodata;
    double source_nodata; /* as the source declared it */
    int32_t bound; /* TRN_BOUND_… */
    double bound_m; /* NaN without a bound, 0 where nothing is lost */
    double max_error_m; /* as measured when the file was made */
    double rmse_m; /* as above */
    uint64_t pixels; /* with data */
    double lowest_m; /* of the decoded heights */
    double highest_m;
    const char *method;
    const char *model; /* name of the method's model; empty where it has none */
    uint64_t bytes; /* of the file */
    const char *json; /* all of it and more, as `terrane info --json` prints it */
} trn_info;

int32_t trn_describe(const trn_file *file, trn_info *info, char **error);

/* GeoTIFF's keys as the source had them (TIFF tags 34735, 34736, 34737); lengths may be 0. */
typedef struct trn_geo_keys {
    const uint16_t *directory;
    size_t directory_length;
    const double *doubles;
    size_t doubles_length;
    const char *text;
} trn_geo_keys;

int32_t trn_describe_keys(const trn_file *file, trn_geo_keys *keys, char **error);

/* A level. Errors are as measured: at full resolution against the source, above it against means of the source's pixels. */
typedef struct trn_level {
    uint32_t width;
    uint32_t height;
    double rmse_m;
    double max_error_m;
} trn_level;

int32_t trn_describe_level(const trn_file *file, uint32_t level, trn_level *out, char **error);

/* ---- Reading ---- */

/* A window of a level in pixels; it must lie inside. */
typedef struct trn_part {
    uint32_t level;
    uint32_t column;
    uint32_t row;
    uint32_t width;
    uint32_t height;
} trn_part;

/* Heights of a window. `line` counts values from a row of `out` to the next; 0 where rows follow each other. Up to four
 * tiles are decoded on the calling thread and kept for a while; more by all threads, and not kept. */
int32_t trn_read_f32(const trn_file *file, const trn_part *part, float *out, size_t line, char **error);
int32_t trn_read_f64(const trn_file *file, const trn_part *part, double *out, size_t line, char **error);

/* The same as numbers of the type `sample` in the unit `unit`, before `scale` and `offset`, with `nodata` where there is no
 * data: what `terrane decode` writes. Integers come back where the source has them and nothing was lost. */
int32_t trn_read_stored(const trn_file *file, const trn_part *part, void *out, size_t line, char **error);

/* Heights of a tile: `tile` rows of `tile` values, NaN beyond the raster. */
int32_t trn_read_tile(const trn_file *file, uint32_t level, uint32_t column, uint32_t row, float *out, char **error);

/* ---- The continuous surface ---- */

/* A point: the caller writes x and y, the library everything else, NaN where it is not defined. Derivatives are on the
 * ground, where the file's system says how long its units are. */
typedef struct trn_point {
    double x;
    double y;
    double height_m;
    double gradient_east;
    double gradient_north;
    double slope_deg;
    double aspect_deg; /* clockwise from north, of the direction downwards */
    double laplacian_per_m;
    double profile_curvature_per_m;
    double plan_curvature_per_m;
} trn_point;

/* The surface at points. Their x and y are in the system of `epsg`, or in the file's own where it is 0. */
int32_t trn_query(const trn_file *file, trn_point *points, size_t count, uint32_t epsg, char **error);

/* ---- Encoding ---- */

/* Fills a window of `width * height` values with the raster's numbers, before scale and offset; NaN has no data. Returns
 * TRN_OK, or TRN_STOPPED to stop, or TRN_ERROR. Called on the thread that encodes; windows may come again where a rate is searched. */
typedef int32_t (*trn_heights_function)(void *user, uint32_t column, uint32_t row, uint32_t width, uint32_t height, double *values);

/* Is told how much is done, from 0 to 1, after every tree of tiles (2048 by 2048 pixels with tiles of 256); where a rate is
 * searched it starts again several times. Returns TRN_OK to go on, or TRN_STOPPED. */
typedef int32_t (*trn_progress_function)(void *user, double done);

/* A raster to be encoded; trn_raster_init fills it. */
typedef struct trn_raster {
    uint32_t width;
    uint32_t height;
    uint32_t block_width; /* columns of the blocks it is stored in, so that more is read at once where they are wide; or 0 */
    int32_t is_georeferenced;
    double affine[6]; /* in GDAL's order, from the corner of the first pixel */
    int32_t pixel_is_point;
    uint32_t horizontal_epsg; /* or 0 */
    uint32_t vertical_epsg; /* or 0 */
    const uint8_t *geotiff; /* bytes of any GeoTIFF in the raster's system, instead of the codes; or NULL */
    size_t geotiff_length;
    int32_t sample; /* type of the raster's numbers */
    int32_t has_nodata;
    double nodata;
    double scale; /* height in `unit` = number * scale + offset */
    double offset;
    const char *unit; /* NULL: as the vertical system says, or metres */
    const char *description; /* or NULL */
    trn_heights_function read;
    void *user; /* of `read` */
} trn_raster;

/* How it is to be encoded; trn_encode_settings_init fills it. */
typedef struct trn_encode_settings {
    int32_t target; /* TRN_TARGET_… */
    double value;
    const char *profile; /* "fast", "standard" or "best"; NULL: standard */
    uint32_t effort; /* from 0 to 3 */
    uint32_t tile; /* side of a tile; 0: 256 */
    uint32_t threads; /* 0: all cores */
    uint64_t memory_limit; /* bytes; 0: half of what the process may have, 4 GiB at most */
    int32_t overwrite; /* else an existing file is refused */
    trn_progress_function progress; /* or NULL */
    void *user; /* of `progress` */
} trn_encode_settings;

/* A file that was made. */
typedef struct trn_encoded {
    uint64_t bytes;
    uint64_t pixels; /* with data */
    double rmse_m;
    double max_error_m;
    uint64_t not_heights; /* pixels whose number is infinite or absurdly large without being nodata: they have no data now */
    int32_t reached; /* TRN_REACHED_… */
} trn_encoded;

/* A raster of 32-bit floats in metres that lies nowhere; `read` is still to be set. */
void trn_raster_init(trn_raster *raster, uint32_t width, uint32_t height);

/* The defaults of `terrane encode`. */
void trn_encode_settings_init(trn_encode_settings *settings);

/* Encodes a raster to a file of this machine, which appears under its name when it is complete. `encoded` may be NULL. */
int32_t trn_encode(const trn_raster *raster, const char *path, const trn_encode_settings *options, trn_encoded *encoded, char **error);

#ifdef __cplusplus
}
#endif

#endif
