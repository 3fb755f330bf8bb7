// One step of AdamW with clipping and a running mean of the weights: one pass over the vectors of a whole network.

// `length` is that of the gradient; `clip` and `decay` of 0 switch clipping and the running mean off; `rest2` is 1 − `beta2`, which is
// no 32-bit float less another.
extern "C" __global__ void adam(
    float *weights, float *mean, float *square, float *average, const float *gradient, const float *length, long long count,
    float clip, float beta1, float beta2, float rest2, float epsilon, float root_factor, float rate, float keep, float decay
) {
    const float ratio = clip / (length[0] + 1e-6f);
    // A ratio that is no number stays: it must spoil every weight.
    const float factor = clip > 0.0f && !(ratio >= 1.0f) ? ratio : 1.0f;
    const long long all = (long long)gridDim.x * blockDim.x;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += all) {
        const float g = gradient[i] * factor;
        const float m = fmaf(beta1, mean[i] - g, g);
        const float v = fmaf(beta2, square[i], rest2 * g * g);
        const float w = keep * weights[i] - rate * m / (sqrtf(v) * root_factor + epsilon);
        mean[i] = m;
        square[i] = v;
        weights[i] = w;
        if (decay > 0.0f) average[i] = fmaf(decay, average[i] - w, w);
    }
}
