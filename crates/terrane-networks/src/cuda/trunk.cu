// The passes between the matrix products of a transformer.
//
// The stream of a transformer has 32-bit floats; T is the type of what goes through products: bf16 with HALF, else the same. A block
// takes a row at a time and a thread four numbers of it. Sums over rows are left in one line per block (`parts`), in one order.

#if HALF
typedef unsigned short T;
struct __align__(8) Four { T of[4]; };
__device__ __forceinline__ float wide(T x) { return __uint_as_float((unsigned)x << 16); }
__device__ __forceinline__ T narrow(float x) {
#ifdef __CUDA_ARCH__
    T y;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y) : "f"(x));
    return y;
#else
    // On the CPU of tests: to the nearest, halves to even.
    const unsigned bits = __float_as_uint(x);
    return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
#endif
}
#else
typedef float T;
struct __align__(16) Four { T of[4]; };
__device__ __forceinline__ float wide(T x) { return x; }
__device__ __forceinline__ T narrow(float x) { return x; }
#endif
struct __align__(16) Floats { float of[4]; };

__device__ __forceinline__ void load(const T *from, size_t at, float *x) {
    const Four four = *(const Four *)(from + at);
#pragma unroll
    for (int k = 0; k < 4; k++) x[k] = wide(four.of[k]);
}

__device__ __forceinline__ void store(T *to, size_t at, const float *x) {
    Four four;
#pragma unroll
    for (int k = 0; k < 4; k++) four.of[k] = narrow(x[k]);
    *(Four *)(to + at) = four;
}

__device__ __forceinline__ void load_floats(const float *from, size_t at, float *x) {
    const Floats four = *(const Floats *)(from + at);
#pragma unroll
    for (int k = 0; k < 4; k++) x[k] = four.of[k];
}

__device__ __forceinline__ void store_floats(float *to, size_t at, const float *x) {
    Floats four;
#pragma unroll
    for (int k = 0; k < 4; k++) four.of[k] = x[k];
    *(Floats *)(to + at) = four;
}

#ifdef WIDTH
#define THREADS (WIDTH / 4)
#define WARPS (THREADS / 32)
#define EPSILON 1e-5f

// Two numbers summed over all threads of the block.
__device__ __forceinline__ float2 sum(float a, float b) {
    __shared__ float2 parts[WARPS];
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) {
        a += __shfl_xor_sync(0xffffffff, a, distance);
        b += __shfl_xor_sync(0xffffffff, b, distance);
    }
    __syncthreads();
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = make_float2(a, b);
    __syncthreads();
    float2 all = make_float2(0.0f, 0.0f);
#pragma unroll
    for (int warp = 0; warp < WARPS; warp++) {
        all.x += parts[warp].x;
        all.y += parts[warp].y;
    }
    return all;
}

// Takes the mean from a row and returns it with one over the deviation.
__device__ __forceinline__ float2 centre(float *x) {
    const float mean = sum(x[0] + x[1] + x[2] + x[3], 0.0f).x / WIDTH;
    float squares = 0.0f;
#pragma unroll
    for (int k = 0; k < 4; k++) {
        x[k] -= mean;
        squares = fmaf(x[k], x[k], squares);
    }
    return make_float2(mean, rsqrtf(sum(squares, 0.0f).x / WIDTH + EPSILON));
}

// From the gradient by a normalised row to that by the row, which is given normalised; adds to the sums for scale and shift.
__device__ __forceinline__ void centre_back(float *g, const float *x, const float *scale, float over, float *by_scale, float *by_shift) {
    float mean = 0.0f, along = 0.0f;
#pragma unroll
    for (int k = 0; k < 4; k++) {
        by_scale[k] = fmaf(g[k], x[k], by_scale[k]);
        by_shift[k] += g[k];
        g[k] *= scale[k];
        mean += g[k];
        along = fmaf(g[k], x[k], along);
    }
    const float2 sums = sum(mean, along);
#pragma unroll
    for (int k = 0; k < 4; k++) g[k] = over * (g[k] - sums.x / WIDTH - x[k] * sums.y / WIDTH);
}

#define COLUMN (4 * threadIdx.x)
#define ROWS for (long long row = blockIdx.x; row < rows; row += gridDim.x)

// y = normalised(factor · x) · scale + shift; `moments` gets the mean and one over the deviation of each row.
extern "C" __global__ void __launch_bounds__(THREADS) row_norm(const float *x, const float *scale, const float *shift, long long rows, float factor, T *y, float2 *moments) {
    float s[4], b[4], v[4];
    load_floats(scale, COLUMN, s);
    load_floats(shift, COLUMN, b);
    ROWS {
        load_floats(x, row * WIDTH + COLUMN, v);
#pragma unroll
        for (int k = 0; k < 4; k++) v[k] *= factor;
        const float2 m = centre(v);
#pragma unroll
        for (int k = 0; k < 4; k++) v[k] = fmaf(v[k] * m.y, s[k], b[k]);
        store(y, row * WIDTH + COLUMN, v);
        if (threadIdx.x == 0) moments[row] = m;
    }
}

// Back through `row_norm`, with what comes along the stream beside it: by_x = factor · (stream + back(by_y)).
extern "C" __global__ void __launch_bounds__(THREADS) row_norm_back(
    const T *by_y, const float *x, const float2 *moments, const float *scale, const float *stream, long long rows, float factor,
    float *by_x, float *parts
) {
    float s[4], g[4], v[4], by_scale[4] = {}, by_shift[4] = {};
    load_floats(scale, COLUMN, s);
    ROWS {
        const float2 m = moments[row];
        load(by_y, row * WIDTH + COLUMN, g);
        load_floats(x, row * WIDTH + COLUMN, v);
#pragma unroll
        for (int k = 0; k < 4; k++) v[k] = (factor * v[k] - m.x) * m.y;
        centre_back(g, v, s, m.y, by_scale, by_shift);
        if (stream) {
            load_floats(stream, row * WIDTH + COLUMN, v);
#pragma unroll
            for (int k = 0; k < 4; k++) g[k] += v[k];
        }
#pragma unroll
        for (int k = 0; k < 4; k++) g[k] *= factor;
        store_floats(by_x, row * WIDTH + COLUMN, g);
    }
    store_floats(parts, (size_t)blockIdx.x * 2 * WIDTH + COLUMN, by_scale);
    store_floats(parts, (size_t)blockIdx.x * 2 * WIDTH + WIDTH + COLUMN, by_shift);
}

// y = normalised(silu(gate) · through) · scale + shift.
extern "C" __global__ void __launch_bounds__(THREADS) gated_norm(
    const T *gate, const T *through, const float *scale, const float *shift, long long rows, T *y, float2 *moments
) {
    float s[4], b[4], a[4], v[4];
    load_floats(scale, COLUMN, s);
    load_floats(shift, COLUMN, b);
    ROWS {
        load(gate, row * WIDTH + COLUMN, a);
        load(through, row * WIDTH + COLUMN, v);
#pragma unroll
        for (int k = 0; k < 4; k++) v[k] *= a[k] / (1.0f + __expf(-a[k]));
        const float2 m = centre(v);
#pragma unroll
        for (int k = 0; k < 4; k++) v[k] = fmaf(v[k] * m.y, s[k], b[k]);
        store(y, row * WIDTH + COLUMN, v);
        if (threadIdx.x == 0) moments[row] = m;
    }
}

// Back through `gated_norm`: the gradients take the places of gate and through.
extern "C" __global__ void __launch_bounds__(THREADS) gated_norm_back(
    const T *by_y, T *gate, T *through, const float2 *moments, const float *scale, long long rows, float *parts
) {
    float s[4], g[4], a[4], t[4], v[4], open[4], by_scale[4] = {}, by_shift[4] = {};
    load_floats(scale, COLUMN, s);
    ROWS {
        const float2 m = moments[row];
        load(by_y, row * WIDTH + COLUMN, g);
        load(gate, row * WIDTH + COLUMN, a);
        load(through, row * WIDTH + COLUMN, t);
#pragma unroll
        for (int k = 0; k < 4; k++) {
            open[k] = 1.0f / (1.0f + __expf(-a[k]));
            v[k] = (a[k] * open[k] * t[k] - m.x) * m.y;
        }
        centre_back(g, v, s, m.y, by_scale, by_shift);
#pragma unroll
        for (int k = 0; k < 4; k++) {
            const float silu = a[k] * open[k];
            a[k] = g[k] * t[k] * fmaf(silu, 1.0f - open[k], open[k]);
            t[k] = g[k] * silu;
        }
        store(gate, row * WIDTH + COLUMN, a);
        store(through, row * WIDTH + COLUMN, t);
    }
    store_floats(parts, (size_t)blockIdx.x * 2 * WIDTH + COLUMN, by_scale);
    store_floats(parts, (size_t)blockIdx.x * 2 * WIDTH + WIDTH + COLUMN, by_shift);
}
#elif defined(HEAD)
// Rows are tokens, a block each: queries, keys and values of HEADS heads of HEAD numbers. Tables have TOKENS lines of HEAD numbers, of
// which a pair of neighbours shares one.
#define ALL (HEADS * HEAD)
#define PAIRS(count) for (int pair = threadIdx.x; pair < (count) / 2; pair += blockDim.x)

// Turns pairs of queries and keys by the angles of their token, in place.
extern "C" __global__ void turn(T *x, const float *cosines, const float *sines) {
    const int token = blockIdx.x % TOKENS;
    PAIRS(2 * ALL) {
        const int at = token * HEAD + 2 * pair % HEAD;
        T *two = x + (size_t)blockIdx.x * 3 * ALL + 2 * pair;
        const float c = cosines[at], s = sines[at], a = wide(two[0]), b = wide(two[1]);
        two[0] = narrow(a * c - b * s);
        two[1] = narrow(b * c + a * s);
    }
}

// Back through `turn`, from gradients of queries, keys and values that lie apart, with their strides.
extern "C" __global__ void turn_back(
    const T *by_queries, long long q_batch, long long q_token, long long q_head, const T *by_keys, long long k_batch, long long k_token,
    long long k_head, const T *by_values, long long v_batch, long long v_token, long long v_head, const float *cosines, const float *sines, T *by_x
) {
    const int token = blockIdx.x % TOKENS, batch = blockIdx.x / TOKENS;
    const T *queries = by_queries + batch * q_batch + token * q_token, *keys = by_keys + batch * k_batch + token * k_token,
            *values = by_values + batch * v_batch + token * v_token;
    PAIRS(3 * ALL) {
        const int part = 2 * pair / ALL, number = 2 * pair % ALL / HEAD, in_head = 2 * pair % HEAD;
        const T *two = (part == 0 ? queries + number * q_head : part == 1 ? keys + number * k_head : values + number * v_head) + in_head;
        T *to = by_x + (size_t)blockIdx.x * 3 * ALL + 2 * pair;
        const int at = token * HEAD + in_head;
        const float c = part == 2 ? 1.0f : cosines[at], s = part == 2 ? 0.0f : sines[at], a = wide(two[0]), b = wide(two[1]);
        to[0] = narrow(a * c + b * s);
        to[1] = narrow(b * c - a * s);
    }
}
#else

// sum = factor · stream + branch, over fours of numbers.
extern "C" __global__ void add(const float *stream, const T *branch, long long fours, float factor, float *sum) {
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < fours; i += (long long)gridDim.x * blockDim.x) {
        float x[4], b[4];
        load_floats(stream, 4 * i, x);
        load(branch, 4 * i, b);
#pragma unroll
        for (int k = 0; k < 4; k++) x[k] = fmaf(factor, x[k], b[k]);
        store_floats(sum, 4 * i, x);
    }
}

// The sums of columns over bands of rows: a block takes 128 threads of four columns and every `bands`-th row.
extern "C" __global__ void column_sums(const T *x, long long rows, long long width, float *parts) {
    const long long column = 4 * ((long long)blockIdx.x % ((width + 511) / 512) * 128 + threadIdx.x);
    const long long band = blockIdx.x / ((width + 511) / 512), bands = gridDim.x / ((width + 511) / 512);
    if (column >= width) return;
    float all[4] = {}, v[4];
    for (long long row = band; row < rows; row += bands) {
        load(x, row * width + column, v);
#pragma unroll
        for (int k = 0; k < 4; k++) all[k] += v[k];
    }
    store_floats(parts, band * width + column, all);
}

#endif
