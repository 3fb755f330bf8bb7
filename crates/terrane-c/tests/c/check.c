/* What the library promises to C programs; ends with 0 where all of it holds. Arguments: a folder to write to, and a file
 * of tokens. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "terrane.h"

#define CHECK(condition)                                                                                                  \
    do {                                                                                                                  \
        if (!(condition)) {                                                                                               \
            fprintf(stderr, "line %d: %s does not hold\n", __LINE__, #condition);                                         \
            exit(1);                                                                                                      \
        }                                                                                                                 \
    } while (0)

enum { WIDTH = 700, HEIGHT = 500, SIDE = 64 };

/* Rough enough that the file is larger than what is read of it when it is opened. */
static double hill(double x, double y)
{
    uint32_t noise = ((uint32_t)x * 2654435761u) ^ ((uint32_t)y * 2246822519u);
    noise = (noise ^ (noise >> 15)) * 3266489917u;
    return x > 600 ? NAN : 100 + 20 * sin(x / 40) * cos(y / 30) + (noise >> 16) / 65536.0;
}

/* ---- Memory that is read as a file ---- */

typedef struct {
    unsigned char *bytes;
    uint64_t length;
    int fails;
    int rounds;
} memory_file;

static int64_t read_memory(void *user, uint64_t offset, void *buffer, size_t length)
{
    memory_file *file = user;
    if (file->fails)
        return -1;
    if (offset >= file->length)
        return 0;
    /* No more than 100 bytes at a time: it must be asked again. */
    size_t count = length < 100 ? length : 100;
    if (count > file->length - offset)
        count = file->length - offset;
    memcpy(buffer, file->bytes + offset, count);
    return (int64_t)count;
}

static int32_t read_parts(void *user, size_t count, const uint64_t *offsets, const size_t *lengths, void **buffers)
{
    memory_file *file = user;
    file->rounds++;
    for (size_t i = 0; i < count; i++) {
        if (file->fails || offsets[i] + lengths[i] > file->length)
            return TRN_ERROR;
        memcpy(buffers[i], file->bytes + offsets[i], lengths[i]);
    }
    return TRN_OK;
}

static memory_file load(const char *path)
{
    memory_file file = {NULL, 0, 0, 0};
    FILE *stream = fopen(path, "rb");
    CHECK(stream);
    fseek(stream, 0, SEEK_END);
    file.length = (uint64_t)ftell(stream);
    rewind(stream);
    file.bytes = malloc(file.length);
    CHECK(fread(file.bytes, 1, file.length, stream) == file.length);
    fclose(stream);
    return file;
}

/* ---- Encoding ---- */

static int32_t fill(void *user, uint32_t column, uint32_t row, uint32_t width, uint32_t height, double *values)
{
    if (user)
        return *(int32_t *)user;
    for (uint32_t r = 0; r < height; r++)
        for (uint32_t c = 0; c < width; c++)
            values[(size_t)r * width + c] = hill(column + c, row + r);
    return TRN_OK;
}

/* The same as whole decimetres above 50 m. */
static int32_t fill_integers(void *user, uint32_t column, uint32_t row, uint32_t width, uint32_t height, double *values)
{
    fill(user, column, row, width, height, values);
    for (size_t i = 0; i < (size_t)width * height; i++)
        values[i] = isnan(values[i]) ? -32768 : round((values[i] - 50) * 10);
    return TRN_OK;
}

static int32_t stop(void *user, double done)
{
    (void)user;
    (void)done;
    return TRN_STOPPED;
}

static void describe_raster(trn_raster *raster)
{
    trn_raster_init(raster, WIDTH, HEIGHT);
    const double affine[6] = {2600000, 1, 0, 1200000, 0, -1};
    memcpy(raster->affine, affine, sizeof(affine));
    raster->is_georeferenced = 1;
    raster->horizontal_epsg = 2056;
    raster->vertical_epsg = 5728;
    raster->read = fill;
}

static void encode(const char *path)
{
    trn_raster raster;
    describe_raster(&raster);
    trn_encode_settings settings;
    trn_encode_settings_init(&settings);
    settings.target = TRN_TARGET_MAX_ERROR;
    settings.value = 0.02;
    settings.profile = "fast";
    settings.tile = SIDE;
    trn_encoded encoded;
    CHECK(trn_encode(&raster, path, &settings, &encoded, NULL) == TRN_OK);
    CHECK(encoded.max_error_m <= 0.02 && encoded.pixels == 601 * HEIGHT);

    /* An existing file is refused, and the reason given. */
    char *error = NULL;
    CHECK(trn_encode(&raster, path, &settings, NULL, &error) == TRN_ERROR);
    CHECK(strstr(error, "exists"));
    trn_free_string(error);
    settings.overwrite = 1;

    /* Whoever is asked may stop it, and a reader may fail; the file stays as it was. */
    settings.progress = stop;
    CHECK(trn_encode(&raster, path, &settings, NULL, NULL) == TRN_STOPPED);
    settings.progress = NULL;
    int32_t status = TRN_STOPPED;
    raster.user = &status;
    CHECK(trn_encode(&raster, path, &settings, NULL, NULL) == TRN_STOPPED);
    status = TRN_ERROR;
    error = NULL;
    CHECK(trn_encode(&raster, path, &settings, NULL, &error) == TRN_ERROR);
    CHECK(strstr(error, "the caller's function failed"));
    trn_free_string(error);
    raster.user = NULL;

    /* Settings that mean nothing. */
    settings.value = -1;
    CHECK(trn_encode(&raster, path, &settings, NULL, NULL) == TRN_ERROR);
    settings.target = 99;
    CHECK(trn_encode(&raster, path, &settings, NULL, NULL) == TRN_ERROR);
    settings.target = TRN_TARGET_DEFAULT;
    settings.profile = "slow";
    CHECK(trn_encode(&raster, path, &settings, NULL, NULL) == TRN_ERROR);
    settings.profile = NULL;
    settings.tile = 1000000;
    CHECK(trn_encode(&raster, path, &settings, NULL, NULL) == TRN_ERROR);
    settings.tile = SIDE;
    raster.unit = "fathom";
    CHECK(trn_encode(&raster, path, &settings, NULL, NULL) == TRN_ERROR);
    raster.unit = NULL;
    raster.geotiff = (const uint8_t *)"no GeoTIFF";
    raster.geotiff_length = 10;
    CHECK(trn_encode(&raster, path, &settings, NULL, NULL) == TRN_ERROR);
    CHECK(trn_encode(NULL, path, &settings, NULL, NULL) == TRN_ERROR);
    CHECK(trn_encode(&raster, NULL, &settings, NULL, NULL) == TRN_ERROR);
    CHECK(trn_encode(&raster, path, NULL, NULL, NULL) == TRN_ERROR);
}

/* ---- Reading ---- */

static void read_back(const trn_file *file)
{
    trn_info info;
    CHECK(trn_describe(file, &info, NULL) == TRN_OK);
    CHECK(info.width == WIDTH && info.height == HEIGHT && info.tile == SIDE && info.levels == 5);
    CHECK(info.horizontal_epsg == 2056 && info.vertical_epsg == 5728 && !strcmp(info.crs, "EPSG:2056+5728"));
    CHECK(info.affine[0] == 2600000 && info.affine[5] == -1 && info.is_georeferenced && !info.pixel_is_point);
    CHECK(info.sample == TRN_FLOAT32 && info.has_nodata && info.nodata == -9999 && !strcmp(info.unit, "m"));
    CHECK(info.bound == TRN_BOUND_MAX_ERROR && info.bound_m == 0.02 && info.pixels == 601 * HEIGHT);
    CHECK(strstr(info.json, "\"bound_m\":0.02") && !strcmp(info.method, "context"));
    CHECK(info.geotiff_length > 8 && !memcmp(info.geotiff, "II\x2a", 4));
    trn_geo_keys keys;
    CHECK(trn_describe_keys(file, &keys, NULL) == TRN_OK);
    CHECK(keys.directory_length == 20 && keys.directory[0] == 1);
    trn_level level;
    CHECK(trn_describe_level(file, 1, &level, NULL) == TRN_OK);
    CHECK(level.width == WIDTH / 2 && level.height == HEIGHT / 2);
    CHECK(trn_describe_level(file, 5, &level, NULL) == TRN_ERROR);

    /* A window across tiles, with room after every row. */
    enum { COLUMN = 570, ROW = 100, COLUMNS = 100, ROWS = 70, LINE = 128 };
    float *single = malloc(sizeof(float) * LINE * ROWS);
    double *wide = malloc(sizeof(double) * COLUMNS * ROWS);
    float *stored = malloc(sizeof(float) * COLUMNS * ROWS);
    for (int i = 0; i < LINE * ROWS; i++)
        single[i] = -1;
    trn_part part = {0, COLUMN, ROW, COLUMNS, ROWS};
    CHECK(trn_read_f32(file, &part, single, LINE, NULL) == TRN_OK);
    CHECK(trn_read_f64(file, &part, wide, 0, NULL) == TRN_OK);
    CHECK(trn_read_stored(file, &part, stored, 0, NULL) == TRN_OK);
    for (int row = 0; row < ROWS; row++) {
        for (int column = 0; column < COLUMNS; column++) {
            double expected = hill(COLUMN + column, ROW + row);
            float found = single[row * LINE + column];
            CHECK(isnan(expected) ? isnan(found) : fabs(found - expected) <= 0.02 + 1e-4);
            CHECK(isnan(expected) ? isnan(wide[row * COLUMNS + column]) : (float)wide[row * COLUMNS + column] == found);
            CHECK(stored[row * COLUMNS + column] == (isnan(expected) ? -9999 : found));
        }
        CHECK(single[row * LINE + COLUMNS] == -1);
    }

    /* The last tile is filled up. */
    float *tile = malloc(sizeof(float) * SIDE * SIDE);
    CHECK(trn_read_tile(file, 0, 0, 7, tile, NULL) == TRN_OK);
    CHECK(fabs(tile[0] - hill(0, 7 * SIDE)) < 0.021 && isnan(tile[SIDE * SIDE - 1]));
    CHECK(trn_read_tile(file, 0, 11, 0, tile, NULL) == TRN_ERROR);
    CHECK(trn_read_tile(file, 9, 0, 0, tile, NULL) == TRN_ERROR);

    char *error = NULL;
    part.width = WIDTH;
    CHECK(trn_read_f32(file, &part, single, 0, &error) == TRN_ERROR);
    CHECK(strstr(error, "inside the raster"));
    trn_free_string(error);
    trn_part outside = {0, UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX};
    CHECK(trn_read_f32(file, &outside, single, 0, NULL) == TRN_ERROR);
    CHECK(trn_read_f32(file, NULL, single, 0, NULL) == TRN_ERROR);
    CHECK(trn_read_f32(file, &part, NULL, 0, NULL) == TRN_ERROR);
    part.width = COLUMNS;
    CHECK(trn_read_f32(file, &part, single, 5, NULL) == TRN_ERROR);

    trn_point points[2] = {{.x = 2600100.5, .y = 1199899.5}, {.x = 2600650.5, .y = 1199899.5}};
    CHECK(trn_query(file, points, 2, 0, NULL) == TRN_OK);
    CHECK(fabs(points[0].height_m - hill(100, 100)) < 0.03 && points[0].slope_deg > 0);
    CHECK(points[0].x == 2600100.5 && isnan(points[1].height_m));
    CHECK(trn_query(file, NULL, 2, 0, NULL) == TRN_ERROR);
    CHECK(trn_query(file, points, 2, 70000, NULL) == TRN_ERROR);
    free(single);
    free(wide);
    free(stored);
    free(tile);
}

/* ---- Threads ---- */

static void *read_tiles(void *user)
{
    trn_file *file = user;
    float *tile = malloc(sizeof(float) * SIDE * SIDE);
    double *sum = calloc(1, sizeof(double));
    for (uint32_t turn = 0; turn < 2; turn++)
        for (uint32_t row = 0; row < 7; row++)
            for (uint32_t column = 0; column < 9; column++) {
                CHECK(trn_read_tile(file, 0, column, row, tile, NULL) == TRN_OK);
                for (int i = 0; i < SIDE * SIDE; i++)
                    *sum += tile[i];
            }
    free(tile);
    return sum;
}

static void read_by_threads(trn_file *file)
{
    pthread_t threads[4];
    double sums[4];
    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, read_tiles, file) == 0);
    for (int i = 0; i < 4; i++) {
        void *sum = NULL;
        CHECK(pthread_join(threads[i], &sum) == 0);
        sums[i] = *(double *)sum;
        free(sum);
        CHECK(sums[i] == sums[0] && isfinite(sums[i]));
    }
}

/* ---- What is wrong with a file ---- */

static void damage(memory_file good)
{
    memory_file file = good;
    file.bytes = malloc(good.length);
    for (unsigned seed = 1; seed <= 60; seed++) {
        memcpy(file.bytes, good.bytes, good.length);
        file.length = good.length;
        if (seed % 3 == 0)
            file.length = good.length * seed / 61;
        else
            for (unsigned i = 0; i < 8; i++)
                file.bytes[seed * 7919u * (i + 1) % (seed % 3 == 1 ? 400 : good.length)] ^= (unsigned char)(seed + i);
        char *error = NULL;
        trn_file *open = trn_open_with(read_memory, &file, file.length, NULL, &error);
        if (!open) {
            CHECK(error && strlen(error) > 10);
            trn_free_string(error);
            continue;
        }
        float *tile = malloc(sizeof(float) * SIDE * SIDE);
        trn_info info;
        CHECK(trn_describe(open, &info, NULL) == TRN_OK);
        for (uint32_t row = 0; row < 8 && info.tile <= SIDE; row++)
            for (uint32_t column = 0; column < 11; column++)
                (void)trn_read_tile(open, row % 2, column, row, tile, NULL);
        free(tile);
        trn_close(open);
    }
    free(file.bytes);
}

int main(int count, char **arguments)
{
    CHECK(count == 3 && trn_abi() == TRN_ABI);
    char path[4096];
    snprintf(path, sizeof(path), "%s/check.trn", arguments[1]);
    encode(path);

    trn_file *file = trn_open(path, NULL, NULL);
    CHECK(file);
    read_back(file);
    read_by_threads(file);
    trn_close(file);

    memory_file memory = load(path);
    const trn_open_settings settings = {0, 2, 1, read_parts};
    file = trn_open_with(read_memory, &memory, memory.length, &settings, NULL);
    CHECK(file);
    /* A file that can no longer be read is an error like others, and is read again where it can. */
    memory.fails = 1;
    char *error = NULL;
    float *tile = malloc(sizeof(float) * SIDE * SIDE);
    CHECK(trn_read_tile(file, 0, 3, 3, tile, &error) == TRN_ERROR && strstr(error, "the caller's read function failed"));
    free(tile);
    trn_free_string(error);
    memory.fails = 0;
    read_back(file);
    /* It was read ahead: in few rounds, however many tiles there are. */
    CHECK(memory.rounds > 1 && memory.rounds < 10);
    trn_close(file);

    /* Time that is up, and time that is given again. */
    file = trn_open_with(read_memory, &memory, memory.length, NULL, NULL);
    CHECK(file);
    tile = malloc(sizeof(float) * SIDE * SIDE);
    error = NULL;
    CHECK(trn_limit_time(file, 1e-9, NULL) == TRN_OK);
    CHECK(trn_read_tile(file, 0, 3, 3, tile, &error) == TRN_ERROR && strstr(error, "longer than"));
    trn_free_string(error);
    CHECK(trn_limit_time(file, -1, NULL) == TRN_ERROR && trn_limit_time(NULL, 1, NULL) == TRN_ERROR);
    CHECK(trn_limit_time(file, 0, NULL) == TRN_OK && trn_read_tile(file, 0, 3, 3, tile, NULL) == TRN_OK);
    free(tile);
    trn_close(file);
    error = NULL;

    /* Less memory than a window takes. */
    const trn_open_settings small = {20 * 1000 * 1000, 1, 0, NULL};
    file = trn_open_with(read_memory, &memory, memory.length, &small, &error);
    CHECK(file);
    trn_close(file);
    const trn_open_settings tiny = {1000, 1, 0, NULL};
    error = NULL;
    CHECK(!trn_open_with(read_memory, &memory, memory.length, &tiny, &error) && strstr(error, "memory"));
    trn_free_string(error);

    /* Integers come back as they were. */
    trn_raster raster;
    describe_raster(&raster);
    raster.sample = TRN_INT16;
    raster.has_nodata = 1;
    raster.nodata = -32768;
    raster.scale = 0.1;
    raster.offset = 50;
    raster.pixel_is_point = 1;
    raster.read = fill_integers;
    trn_encode_settings lossless;
    trn_encode_settings_init(&lossless);
    lossless.target = TRN_TARGET_LOSSLESS;
    lossless.tile = SIDE;
    lossless.overwrite = 1;
    CHECK(trn_encode(&raster, path, &lossless, NULL, NULL) == TRN_OK);
    file = trn_open(path, NULL, NULL);
    trn_info info;
    CHECK(trn_describe(file, &info, NULL) == TRN_OK);
    CHECK(info.sample == TRN_INT16 && info.scale == 0.1 && info.offset == 50 && info.nodata == -32768);
    CHECK(info.pixel_is_point && info.affine[0] == 2600000 && info.bound == TRN_BOUND_LOSSLESS);
    double *expected = malloc(sizeof(double) * WIDTH * HEIGHT);
    int16_t *found = malloc(sizeof(int16_t) * WIDTH * HEIGHT);
    trn_part whole = {0, 0, 0, WIDTH, HEIGHT};
    fill_integers(NULL, 0, 0, WIDTH, HEIGHT, expected);
    CHECK(trn_read_stored(file, &whole, found, 0, NULL) == TRN_OK);
    for (int i = 0; i < WIDTH * HEIGHT; i++)
        CHECK(found[i] == expected[i]);
    trn_part overview = {2, 0, 0, WIDTH / 4, HEIGHT / 4};
    CHECK(trn_read_stored(file, &overview, found, 0, NULL) == TRN_OK);
    CHECK(abs(found[0] - (int)expected[0]) < 40);
    free(expected);
    free(found);
    trn_close(file);

    /* Files that are none, and one that needs networks. */
    error = NULL;
    CHECK(!trn_open("nowhere.trn", NULL, &error) && strstr(error, "nowhere.trn"));
    trn_free_string(error);
    error = NULL;
    CHECK(!trn_open(arguments[2], NULL, &error) && strstr(error, "networks"));
    trn_free_string(error);
    CHECK(!trn_open(NULL, NULL, NULL) && !trn_open("\xff", NULL, NULL) && !trn_open_with(NULL, NULL, 0, NULL, NULL));
    CHECK(trn_describe(NULL, &info, NULL) == TRN_ERROR && trn_query(NULL, NULL, 0, 0, NULL) == TRN_ERROR);
    trn_close(NULL);
    trn_free_string(NULL);

    damage(memory);
    free(memory.bytes);
    puts("all of it holds");
    return 0;
}
