// A function of our own in LibTorch's differentiation: its values are given, its gradients come from a callback.

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/variable.h>

using torch::autograd::variable_list;

// Gradients by the outputs come in, absent where null; those by the inputs go out as new tensors, absent where null.
typedef void (*Backward)(void *state, at::Tensor *const *by_outputs, at::Tensor **by_inputs);
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
        backward(taken, by_outputs.data(), by_inputs.data());
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
// waits for a gradient, the state is released at once.
extern "C" void terrane_hook(
    at::Tensor *const *values, size_t value_count, at::Tensor *const *inputs, size_t input_count, void *state, Backward backward,
    Release release, at::Tensor **outputs
) {
    variable_list sources;
    for (size_t i = 0; i < input_count; i++) sources.push_back(*inputs[i]);
    bool is_awaited = false;
    for (auto &source : sources) is_awaited |= source.requires_grad();
    is_awaited &= at::GradMode::is_enabled();
    std::shared_ptr<Hook> hook;
    if (is_awaited) {
        hook = std::shared_ptr<Hook>(new Hook(state, backward, release, input_count), torch::autograd::deleteNode);
        hook->set_next_edges(torch::autograd::collect_next_edges(sources));
    } else {
        release(state);
    }
    for (size_t i = 0; i < value_count; i++) {
        at::Tensor output = values[i]->variable_data();
        if (hook) torch::autograd::create_gradient_edge(output, hook);
        outputs[i] = new at::Tensor(std::move(output));
    }
}
