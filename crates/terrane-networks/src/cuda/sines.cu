// The passes over all points of a modulated network of sines that are no matrix products, in 32-bit floats.
//
// A block is a patch: COUNT points by WIDTH numbers, of which a warp takes a point at a time and a lane every 32nd number. Sums over
// the points of a patch are taken in one order, so that runs are equal.

#define LANES 32
#define WARPS 8
#define EACH (WIDTH / LANES)

// The sine and cosine of an angle: taken to half a turn around 0, where the quick functions are good to 4e-7.
__device__ __forceinline__ void wave(float angle, float &sine, float &cosine) {
    const float turns = rintf(angle * 0.15915494309189535f);
    float rest = fmaf(turns, -6.28125f, angle);
    rest = fmaf(turns, -1.9353071795864769e-3f, rest);
    sine = __sinf(rest);
    cosine = __cosf(rest);
}

__device__ __forceinline__ void load(const float *from, float *numbers) {
#pragma unroll
    for (int k = 0; k < EACH; k++) numbers[k] = from[k * LANES + threadIdx.x];
}

// A warp's numbers summed over the warps of the block, to one line of the patch.
__device__ __forceinline__ void sum(const float *numbers, float *to) {
    __shared__ float parts[WARPS][WIDTH];
    __syncthreads();
#pragma unroll
    for (int k = 0; k < EACH; k++) parts[threadIdx.y][k * LANES + threadIdx.x] = numbers[k];
    __syncthreads();
    for (int c = threadIdx.y * LANES + threadIdx.x; c < WIDTH; c += LANES * WARPS) {
        float total = 0.0f;
#pragma unroll
        for (int warp = 0; warp < WARPS; warp++) total += parts[warp][c];
        to[(size_t)blockIdx.x * WIDTH + c] = total;
    }
}

__device__ __forceinline__ float sum_of_lanes(float number) {
#pragma unroll
    for (int distance = LANES / 2; distance > 0; distance /= 2) number += __shfl_xor_sync(0xffffffff, number, distance);
    return number;
}

#define OF_PATCH ((size_t)blockIdx.x * WIDTH)
#define OF_POINT (((size_t)blockIdx.x * COUNT + point) * WIDTH)

// The first layer at points of two coordinates: out = amplitude · sin(point · weight + shift).
extern "C" __global__ void first(const float *points, const float *weight, const float *amplitude, const float *shift, float *out) {
    float a[EACH], s[EACH], x[EACH], y[EACH];
    load(amplitude + OF_PATCH, a);
    load(shift + OF_PATCH, s);
    load(weight, x);
    load(weight + WIDTH, y);
    for (int point = threadIdx.y; point < COUNT; point += WARPS) {
        const float px = points[2 * point], py = points[2 * point + 1];
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            float sine, cosine;
            wave(fmaf(px, x[k], fmaf(py, y[k], s[k])), sine, cosine);
            out[OF_POINT + k * LANES + threadIdx.x] = a[k] * sine;
        }
    }
}

// A layer after its matrix product: out = amplitude · sin(angle + shift).
extern "C" __global__ void sine(const float *angle, const float *amplitude, const float *shift, float *out) {
    float a[EACH], s[EACH], u[EACH];
    load(amplitude + OF_PATCH, a);
    load(shift + OF_PATCH, s);
    for (int point = threadIdx.y; point < COUNT; point += WARPS) {
        load(angle + OF_POINT, u);
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            float sine, cosine;
            wave(u[k] + s[k], sine, cosine);
            out[OF_POINT + k * LANES + threadIdx.x] = a[k] * sine;
        }
    }
}

// The last sine layer and the linear one to a single value.
extern "C" __global__ void value(const float *angle, const float *amplitude, const float *shift, const float *weight, const float *bias, float *out) {
    float a[EACH], s[EACH], w[EACH], u[EACH];
    load(amplitude + OF_PATCH, a);
    load(shift + OF_PATCH, s);
    load(weight, w);
    for (int point = threadIdx.y; point < COUNT; point += WARPS) {
        load(angle + OF_POINT, u);
        float f = 0.0f;
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            float sine, cosine;
            wave(u[k] + s[k], sine, cosine);
            f = fmaf(a[k] * sine, w[k], f);
        }
        f = sum_of_lanes(f) + bias[0];
        if (threadIdx.x == 0) out[(size_t)blockIdx.x * COUNT + point] = f;
    }
}

// The same, and back again from the square of what the value is off: the angle's gradient takes the angle's place.
extern "C" __global__ void value_and_back(
    float *angle, const float *amplitude, const float *shift, const float *weight, const float *bias, const float *expected, float factor,
    float *by_amplitude, float *by_shift, float *by_weight, float *by_bias, float *square
) {
    float a[EACH], s[EACH], w[EACH], u[EACH], da[EACH] = {}, ds[EACH] = {}, dw[EACH] = {};
    float db = 0.0f, squares = 0.0f;
    load(amplitude + OF_PATCH, a);
    load(shift + OF_PATCH, s);
    load(weight, w);
    const float b = bias[0];
    for (int point = threadIdx.y; point < COUNT; point += WARPS) {
        load(angle + OF_POINT, u);
        float sines[EACH], f = 0.0f;
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            float cosine;
            wave(u[k] + s[k], sines[k], cosine);
            u[k] = cosine;
            f = fmaf(a[k] * sines[k], w[k], f);
        }
        const float off = sum_of_lanes(f) + b - expected[(size_t)blockIdx.x * COUNT + point];
        const float df = 2.0f * factor * off;
        squares = fmaf(off, off, squares);
        db += df;
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            const float dh = df * w[k], du = dh * a[k] * u[k];
            dw[k] = fmaf(df, a[k] * sines[k], dw[k]);
            da[k] = fmaf(dh, sines[k], da[k]);
            ds[k] += du;
            angle[OF_POINT + k * LANES + threadIdx.x] = du;
        }
    }
    sum(da, by_amplitude);
    sum(ds, by_shift);
    sum(dw, by_weight);
    // All lanes of a warp have the same of these two.
    __shared__ float ends[2][WARPS];
    if (threadIdx.x == 0) {
        ends[0][threadIdx.y] = db;
        ends[1][threadIdx.y] = squares;
    }
    __syncthreads();
    if (threadIdx.x == 0 && threadIdx.y == 0) {
        float bias_sum = 0.0f, square_sum = 0.0f;
        for (int warp = 0; warp < WARPS; warp++) {
            bias_sum += ends[0][warp];
            square_sum += ends[1][warp];
        }
        by_bias[blockIdx.x] = bias_sum;
        square[blockIdx.x] = square_sum;
    }
}

// Back through `sine`: the gradient by the angle takes the place of that by the output.
extern "C" __global__ void sine_back(
    float *gradient, const float *angle, const float *amplitude, const float *shift, float *by_amplitude, float *by_shift
) {
    float a[EACH], s[EACH], u[EACH], g[EACH], da[EACH] = {}, ds[EACH] = {};
    load(amplitude + OF_PATCH, a);
    load(shift + OF_PATCH, s);
    for (int point = threadIdx.y; point < COUNT; point += WARPS) {
        load(angle + OF_POINT, u);
        load(gradient + OF_POINT, g);
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            float sine, cosine;
            wave(u[k] + s[k], sine, cosine);
            const float du = g[k] * a[k] * cosine;
            da[k] = fmaf(g[k], sine, da[k]);
            ds[k] += du;
            gradient[OF_POINT + k * LANES + threadIdx.x] = du;
        }
    }
    sum(da, by_amplitude);
    sum(ds, by_shift);
}

// Back through `first`; the gradient by the weight is left for each patch.
extern "C" __global__ void first_back(
    const float *gradient, const float *points, const float *weight, const float *amplitude, const float *shift,
    float *by_amplitude, float *by_shift, float *by_first, float *by_second
) {
    float a[EACH], s[EACH], x[EACH], y[EACH], g[EACH], da[EACH] = {}, ds[EACH] = {}, dx[EACH] = {}, dy[EACH] = {};
    load(amplitude + OF_PATCH, a);
    load(shift + OF_PATCH, s);
    load(weight, x);
    load(weight + WIDTH, y);
    for (int point = threadIdx.y; point < COUNT; point += WARPS) {
        const float px = points[2 * point], py = points[2 * point + 1];
        load(gradient + OF_POINT, g);
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            float sine, cosine;
            wave(fmaf(px, x[k], fmaf(py, y[k], s[k])), sine, cosine);
            const float du = g[k] * a[k] * cosine;
            da[k] = fmaf(g[k], sine, da[k]);
            ds[k] += du;
            dx[k] = fmaf(du, px, dx[k]);
            dy[k] = fmaf(du, py, dy[k]);
        }
    }
    sum(da, by_amplitude);
    sum(ds, by_shift);
    sum(dx, by_first);
    sum(dy, by_second);
}
