// A card for tests: enough of CUDA to run kernels on a CPU, a block after the other, a thread of the system for each of its threads.
//
// A program that includes this and a source of kernels reads its arguments as they stand in the kernel's declaration from its standard
// input: numbers as they are, arrays as their length in bytes (8 bytes; none is a null pointer) and their bytes. It writes all arrays to
// its standard output.

#include <pthread.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <tuple>
#include <type_traits>
#include <vector>

#define __device__
#define __forceinline__ inline
#define __global__
#define __shared__ static
#define __align__(bytes) alignas(bytes)
#define __launch_bounds__(threads)

struct Three { unsigned x, y, z; };
struct float2 { float x, y; };
static inline float2 make_float2(float x, float y) { return {x, y}; }

static thread_local Three threadIdx, blockIdx;
static Three blockDim, gridDim;

static pthread_barrier_t all_threads, of_warp[32];
static float lanes[32][32];

static inline unsigned thread_number() { return threadIdx.y * blockDim.x + threadIdx.x; }
static inline void __syncthreads() { pthread_barrier_wait(&all_threads); }
static inline float __shfl_xor_sync(unsigned, float number, int distance) {
    const unsigned warp = thread_number() / 32, lane = thread_number() % 32;
    lanes[warp][lane] = number;
    pthread_barrier_wait(&of_warp[warp]);
    const float found = lanes[warp][lane ^ distance];
    pthread_barrier_wait(&of_warp[warp]);
    return found;
}

#define __sinf(x) std::sin((float)(x))
#define __cosf(x) std::cos((float)(x))
#define __expf(x) std::exp((float)(x))
static inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
static inline float __uint_as_float(unsigned bits) {
    float x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
}
static inline unsigned __float_as_uint(float x) {
    unsigned bits;
    std::memcpy(&bits, &x, sizeof bits);
    return bits;
}

// 16-bit floats, as their bits.
static inline float wide_on_cpu(uint16_t bits) {
    const int exponent = bits >> 10 & 31, rest = bits & 1023;
    const float size = exponent == 31  ? (rest ? NAN : INFINITY)
                       : exponent == 0 ? std::ldexp((float)rest, -24)
                                       : std::ldexp((float)(1024 + rest), exponent - 25);
    return bits >> 15 ? -size : size;
}
// To the nearest, halves to even.
static inline uint16_t narrow_on_cpu(float x) {
    const float size = std::fabs(x);
    uint16_t bits;
    if (std::isnan(x)) bits = 0x7e00;
    else if (size >= 65520.0f) bits = 0x7c00;
    else if (size < std::ldexp(1.0f, -14)) bits = (uint16_t)std::nearbyint(std::ldexp(size, 24));
    else {
        const int exponent = std::ilogb(size);
        bits = (uint16_t)(((exponent + 15) << 10) + (int)std::nearbyint(std::ldexp(size, 10 - exponent)) - 1024);
    }
    return std::signbit(x) ? bits | 0x8000 : bits;
}

struct Array { char *bytes; uint64_t length; };
static std::vector<Array> arrays;

static void take_bytes(void *to, size_t length) {
    if (fread(to, 1, length, stdin) != length) exit(3);
}

template <class T> static T take() {
    if constexpr (std::is_pointer_v<T>) {
        uint64_t length;
        take_bytes(&length, sizeof length);
        void *bytes = nullptr;
        // Where a card's allocations begin; and no byte more, so that what is beyond is noticed.
        if (length && posix_memalign(&bytes, 256, length)) exit(4);
        if (length) take_bytes(bytes, length);
        arrays.push_back({(char *)bytes, length});
        return (T)bytes;
    } else {
        T number;
        take_bytes(&number, sizeof number);
        return number;
    }
}

template <class... Arguments>
static int run(void (*kernel)(Arguments...), unsigned blocks, unsigned across, unsigned down) {
    const std::tuple<Arguments...> arguments{take<Arguments>()...};
    const unsigned threads = across * down;
    gridDim = {blocks, 1, 1};
    blockDim = {across, down, 1};
    pthread_barrier_init(&all_threads, nullptr, threads);
    for (unsigned first = 0; first < threads; first += 32)
        pthread_barrier_init(&of_warp[first / 32], nullptr, threads - first < 32 ? threads - first : 32);
    std::vector<std::thread> running;
    for (unsigned number = 0; number < threads; number++)
        running.emplace_back([=] {
            threadIdx = {number % across, number / across, 0};
            for (unsigned block = 0; block < blocks; block++) {
                blockIdx = {block, 0, 0};
                std::apply(kernel, arguments);
                __syncthreads();
            }
        });
    for (auto &thread : running) thread.join();
    for (const Array &array : arrays) {
        if (array.length && fwrite(array.bytes, 1, array.length, stdout) != array.length) return 5;
        free(array.bytes);
    }
    return 0;
}

// The body of `main`, called with the name of a kernel, blocks, and threads across and down.
#define KERNEL(name) \
    if (std::string(arguments[1]) == #name) return run(name, atoi(arguments[2]), atoi(arguments[3]), atoi(arguments[4]));
