// The passes over all points of a modulated network of sines that are no matrix products, in 32-bit floats.
//
// N is the type of what goes through products: 16-bit floats with HALF, which have as many bits as TF32 keeps of a factor, else the
// same. Gradients that go through products are by sums of squares (not by means) and multiplied with RAISED, so that 16 bits hold
// them; `unit` takes both back.
//
// A block is a patch: COUNT points by WIDTH numbers, of which a warp takes a point at a time and a lane every 32nd number. Sums over
// the points of a patch are taken in one order, so that runs are equal.

#define LANES 32
#define WARPS 8
#define EACH (WIDTH / LANES)

#if HALF
typedef unsigned short N;
__device__ __forceinline__ float wide(N x) {
#ifdef __CUDA_ARCH__
    float y;
    asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x));
    return y;
#else
    return wide_on_cpu(x);
#endif
}
__device__ __forceinline__ N narrow(float x) {
#ifdef __CUDA_ARCH__
    N y;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x));
    return y;
#else
    return narrow_on_cpu(x);
#endif
}
#else
typedef float N;
__device__ __forceinline__ float wide(N x) { return x; }
__device__ __forceinline__ N narrow(float x) { return x; }
#endif

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

__device__ __forceinline__ void load_narrow(const N *from, float *numbers) {
#pragma unroll
    for (int k = 0; k < EACH; k++) numbers[k] = wide(from[k * LANES + threadIdx.x]);
}

// A warp's numbers summed over the warps of the block, times a unit, to one line of the patch.
__device__ __forceinline__ void sum(const float *numbers, float unit, float *to) {
    __shared__ float parts[WARPS][WIDTH];
    __syncthreads();
#pragma unroll
    for (int k = 0; k < EACH; k++) parts[threadIdx.y][k * LANES + threadIdx.x] = numbers[k];
    __syncthreads();
    for (int c = threadIdx.y * LANES + threadIdx.x; c < WIDTH; c += LANES * WARPS) {
        float total = 0.0f;
#pragma unroll
        for (int warp = 0; warp < WARPS; warp++) total += parts[warp][c];
        to[(size_t)blockIdx.x * WIDTH + c] = unit * total;
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
extern "C" __global__ void first(const float *points, const float *weight, const float *amplitude, const float *shift, N *out) {
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
            out[OF_POINT + k * LANES + threadIdx.x] = narrow(a[k] * sine);
        }
    }
}

// A layer after its matrix product: out = amplitude · sin(angle + shift).
extern "C" __global__ void sine(const float *angle, const float *amplitude, const float *shift, N *out) {
    float a[EACH], s[EACH], u[EACH];
    load(amplitude + OF_PATCH, a);
    load(shift + OF_PATCH, s);
    for (int point = threadIdx.y; point < COUNT; point += WARPS) {
        load(angle + OF_POINT, u);
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            float sine, cosine;
            wave(u[k] + s[k], sine, cosine);
            out[OF_POINT + k * LANES + threadIdx.x] = narrow(a[k] * sine);
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

// The same, and back again from the square of what the value is off.
extern "C" __global__ void value_and_back(
    const float *angle, const float *amplitude, const float *shift, const float *weight, const float *bias, const float *expected, float unit,
    N *by_angle, float *by_amplitude, float *by_shift, float *by_weight, float *by_bias, float *square
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
        const float df = 2.0f * (float)RAISED * off;
        squares = fmaf(off, off, squares);
        db += df;
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            const float dh = df * w[k], du = dh * a[k] * u[k];
            dw[k] = fmaf(df, a[k] * sines[k], dw[k]);
            da[k] = fmaf(dh, sines[k], da[k]);
            ds[k] += du;
            by_angle[OF_POINT + k * LANES + threadIdx.x] = narrow(du);
        }
    }
    sum(da, unit, by_amplitude);
    sum(ds, unit, by_shift);
    sum(dw, unit, by_weight);
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
        by_bias[blockIdx.x] = unit * bias_sum;
        square[blockIdx.x] = square_sum;
    }
}

// Back through `sine`: the gradient by the angle takes the place of that by the output.
extern "C" __global__ void sine_back(
    N *gradient, const float *angle, const float *amplitude, const float *shift, float unit, float *by_amplitude, float *by_shift
) {
    float a[EACH], s[EACH], u[EACH], g[EACH], da[EACH] = {}, ds[EACH] = {};
    load(amplitude + OF_PATCH, a);
    load(shift + OF_PATCH, s);
    for (int point = threadIdx.y; point < COUNT; point += WARPS) {
        load(angle + OF_POINT, u);
        load_narrow(gradient + OF_POINT, g);
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            float sine, cosine;
            wave(u[k] + s[k], sine, cosine);
            const float du = g[k] * a[k] * cosine;
            da[k] = fmaf(g[k], sine, da[k]);
            ds[k] += du;
            gradient[OF_POINT + k * LANES + threadIdx.x] = narrow(du);
        }
    }
    sum(da, unit, by_amplitude);
    sum(ds, unit, by_shift);
}

// Back through `first`; the gradient by the weight is left for each patch.
extern "C" __global__ void first_back(
    const N *gradient, const float *points, const float *weight, const float *amplitude, const float *shift, float unit,
    float *by_amplitude, float *by_shift, float *by_first, float *by_second
) {
    float a[EACH], s[EACH], x[EACH], y[EACH], g[EACH], da[EACH] = {}, ds[EACH] = {}, dx[EACH] = {}, dy[EACH] = {};
    load(amplitude + OF_PATCH, a);
    load(shift + OF_PATCH, s);
    load(weight, x);
    load(weight + WIDTH, y);
    for (int point = threadIdx.y; point < COUNT; point += WARPS) {
        const float px = points[2 * point], py = points[2 * point + 1];
        load_narrow(gradient + OF_POINT, g);
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
    sum(da, unit, by_amplitude);
    sum(ds, unit, by_shift);
    sum(dx, unit, by_first);
    sum(dy, unit, by_second);
}
