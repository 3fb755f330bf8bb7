// What LibTorch has for C++ alone. First, a function of our own in its differentiation: its values are given, its gradients come from a
// callback.

#include <ATen/Context.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/variable.h>

using torch::autograd::variable_list;

// Gradients by the outputs come in, absent where null; those by the inputs go out as new tensors, absent where null. False where that
// was not possible.
typedef bool (*Backward)(void *state, at::Tensor *const *by_outputs, at::Tensor **by_inputs);
typedef void (*Release)(void *state);

namespace {

struct Hook : torch::autograd::Node {
    void *state;
    Backward backward;
    Release release;
    size_t inputs;

    Hook(void *state, Backward backward, Release release, size_t inputs)
        : state(state), backward(backward), release(release), inputs(inputs) {}

    ~Hook() override { release_variables(); }

    variable_list apply(variable_list &&gradients) override {
        TORCH_CHECK(state, "a function of our own is differentiated once");
        std::vector<at::Tensor *> by_outputs;
        for (auto &gradient : gradients) by_outputs.push_back(gradient.defined() ? &gradient : nullptr);
        std::vector<at::Tensor *> by_inputs(inputs, nullptr);
        // The callback takes the state.
        void *taken = state;
        state = nullptr;
        TORCH_CHECK(backward(taken, by_outputs.data(), by_inputs.data()), "a function of our own has no gradient");
        variable_list result(inputs);
        for (size_t i = 0; i < inputs; i++) {
            if (!by_inputs[i]) continue;
            result[i] = *by_inputs[i];
            delete by_inputs[i];
        }
        return result;
    }

    void release_variables() override {
        if (state) release(state);
        state = nullptr;
    }
};

}  // namespace

// Makes outputs of values: new tensors with the same numbers, whose gradients the callback turns into those of the inputs. Where nothing
// waits for a gradient, the state is released at once. False where LibTorch refused; the state is released then, too.
extern "C" bool terrane_hook(
    at::Tensor *const *values, size_t value_count, at::Tensor *const *inputs, size_t input_count, void *state, Backward backward,
    Release release, at::Tensor **outputs
) {
    // Holds the state from here on.
    std::shared_ptr<Hook> hook;
    try {
        hook = std::shared_ptr<Hook>(new Hook(state, backward, release, input_count), torch::autograd::deleteNode);
    } catch (...) {
        release(state);
        return false;
    }
    try {
        variable_list sources;
        for (size_t i = 0; i < input_count; i++) sources.push_back(*inputs[i]);
        bool is_awaited = false;
        for (auto &source : sources) is_awaited |= source.requires_grad();
        is_awaited &= at::GradMode::is_enabled();
        if (is_awaited) hook->set_next_edges(torch::autograd::collect_next_edges(sources));
        std::vector<at::Tensor> made;
        for (size_t i = 0; i < value_count; i++) {
            made.push_back(values[i]->variable_data());
            if (is_awaited) torch::autograd::create_gradient_edge(made.back(), hook);
        }
        for (size_t i = 0; i < value_count; i++) outputs[i] = new at::Tensor(std::move(made[i]));
        return true;
    } catch (...) {
        return false;
    }
}

// Which operations on 32-bit floats may round their factors to 10 bits on cards: products of matrices (1) and convolutions (2).
extern "C" uint32_t terrane_allowed_tf32() {
    const at::Context &context = at::globalContext();
    return (context.allowTF32CuBLAS() ? 1 : 0) | (context.allowTF32CuDNN() ? 2 : 0);
}

// Lets these round, and the others not.
extern "C" void terrane_allow_tf32(uint32_t switches) {
    at::Context &context = at::globalContext();
    context.setAllowTF32CuBLAS(switches & 1);
    context.setAllowTF32CuDNN(switches & 2);
}
