/* Encodes a small raster, opens it again, describes it, reads a window and asks for a point.
 *
 *     cc dem.c -I../include -L../../../target/release -lterrane -o dem && ./dem hill.trn
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "terrane.h"

/* A hill of 300 by 200 metres, without data in its first row. */
static double hill(double x, double y)
{
    return y < 1 ? NAN : 500 - 0.004 * ((x - 150) * (x - 150) + (y - 100) * (y - 100));
}

static int32_t fill(void *user, uint32_t column, uint32_t row, uint32_t width, uint32_t height, double *values)
{
    (void)user;
    for (uint32_t r = 0; r < height; r++)
        for (uint32_t c = 0; c < width; c++)
            values[(size_t)r * width + c] = hill(column + c, row + r);
    return TRN_OK;
}

static int32_t told(void *user, double done)
{
    (void)user;
    fprintf(stderr, "%.0f %%\n", 100 * done);
    return TRN_OK;
}

/* Prints the sentence of an error and ends the program. */
static void fail(const char *what, char *error)
{
    fprintf(stderr, "%s: %s\n", what, error ? error : "no reason given");
    trn_free_string(error);
    exit(1);
}

static void encode(const char *path)
{
    char *error = NULL;
    trn_raster raster;
    trn_raster_init(&raster, 300, 200);
    const double affine[6] = {2600000, 1, 0, 1200000, 0, -1};
    for (int i = 0; i < 6; i++)
        raster.affine[i] = affine[i];
    raster.is_georeferenced = 1;
    raster.horizontal_epsg = 2056;
    raster.vertical_epsg = 5728;
    raster.has_nodata = 1;
    raster.nodata = -9999;
    raster.read = fill;

    trn_encode_settings settings;
    trn_encode_settings_init(&settings);
    settings.target = TRN_TARGET_MAX_ERROR;
    settings.value = 0.05;
    settings.tile = 64;
    settings.overwrite = 1;
    settings.progress = told;

    trn_encoded encoded;
    if (trn_encode(&raster, path, &settings, &encoded, &error) != TRN_OK)
        fail(path, error);
    printf("encoded %llu pixels, greatest error %.3f m\n", (unsigned long long)encoded.pixels, encoded.max_error_m);
}

int main(int count, char **arguments)
{
    const char *path = count > 1 ? arguments[1] : "hill.trn";
    char *error = NULL;
    printf("libterrane %s\n", trn_version());
    encode(path);

    trn_file *file = trn_open(path, NULL, &error);
    if (!file)
        fail(path, error);
    trn_info info;
    if (trn_describe(file, &info, &error) != TRN_OK)
        fail(path, error);
    printf("%u by %u pixels, %u levels, tiles of %u, %s\n", info.width, info.height, info.levels, info.tile, info.crs);
    printf("within %g m, decoded nodata %g, heights in %s\n", info.bound_m, info.nodata, info.unit);

    /* Two rows of four pixels from column 148 on. */
    float heights[8];
    trn_part part = {0, 148, 0, 4, 2};
    if (trn_read_f32(file, &part, heights, 0, &error) != TRN_OK)
        fail(path, error);
    for (int i = 0; i < 8; i++)
        printf("%9.2f%s", heights[i], i % 4 == 3 ? "\n" : "");

    trn_point point = {.x = 2600100.5, .y = 1199899.5};
    if (trn_query(file, &point, 1, 0, &error) != TRN_OK)
        fail(path, error);
    printf("height %.1f m, slope %.1f degrees towards %.0f\n", point.height_m, point.slope_deg, point.aspect_deg);
    trn_close(file);
    return 0;
}
