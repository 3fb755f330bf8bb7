"""Functa: a latent fitted in a few inner steps, and the second-order gradients of the outer objective."""

import math

import numpy as np

from layers import JET, affine_jet, check_jet, coordinates, linear, sine_jet
from tensors import Weights, close, compared, differ, rounded, stacked, terrain, write

FUNCTA = {"method": "functa", "side": 16, "depth": 4, "width": 12, "latent": 10, "omega": 30.0, "inner_steps": 3}


def make_weights():
    w, c = Weights(30), FUNCTA
    widths = [2] + [c["width"]] * (c["depth"] - 1) + [1]
    bound = math.sqrt(6 / c["width"]) / c["omega"]
    for layer, (inputs, outputs) in enumerate(zip(widths, widths[1:])):
        last = layer + 1 == c["depth"]
        w.uniform(f"siren.{layer}.weight", outputs, inputs, bound=0.5 if layer == 0 else 8 * bound if last else bound)
        w.uniform(f"siren.{layer}.bias", outputs, bound=bound)
    w.normal("modulation.weight", (c["depth"] - 1) * c["width"], c["latent"], deviation=0.1 / math.sqrt(c["latent"]))
    w.normal("modulation.bias", (c["depth"] - 1) * c["width"], deviation=0.01)
    w["inner_rates"] = rounded(w.random.uniform(0.1, 0.9, c["latent"]))
    # Beyond the clip on both sides, where the rate has no gradient.
    w["inner_rates"][:2] = rounded([-0.25, 1.25])
    return w


def pixel_centres(c):
    centres = [(i + 0.5) / c["side"] for i in range(c["side"])]
    return np.array([(y, x) for y in centres for x in centres])


def forward(w, c, latent, points):
    """The values at the points and the phases of the sine layers."""
    shifts = linear(w, "modulation", latent).reshape(c["depth"] - 1, c["width"])
    h, phases = points, []
    for layer in range(c["depth"] - 1):
        phases.append(c["omega"] * (linear(w, f"siren.{layer}", h) + shifts[layer]))
        h = np.sin(phases[-1])
    return linear(w, f"siren.{c['depth'] - 1}", h)[:, 0] + 0.5, phases


def loss(w, c, latent, points, targets):
    return ((forward(w, c, latent, points)[0] - targets) ** 2).mean()


def latent_gradient(w, c, latent, points, targets):
    """The gradient of the loss by the latent, by hand, so that it can be differentiated once more."""
    values, phases = forward(w, c, latent, points)
    at_output = 2 * (values - targets)[:, None] / len(points)
    by_h = at_output @ w[f"siren.{c['depth'] - 1}.weight"]
    by_shift = []
    for layer in reversed(range(c["depth"] - 1)):
        by_sum = by_h * np.cos(phases[layer]) * c["omega"]
        by_shift.insert(0, by_sum.sum(axis=0))
        by_h = by_sum @ w[f"siren.{layer}.weight"]
    return np.concatenate(by_shift) @ w["modulation.weight"]


def fit(w, c, points, targets):
    rates = w["inner_rates"]
    rates = np.where(rates.real < 0, 0, np.where(rates.real > 1, 1, rates)).astype(rates.dtype)
    latent = np.zeros(c["latent"], rates.dtype)
    for _ in range(c["inner_steps"]):
        latent = latent - rates * latent_gradient(w, c, latent, points, targets)
    return latent


def objective(w, c, points, tiles):
    losses = [loss(w, c, fit(w, c, points, tile.ravel()), points, tile.ravel()) for tile in tiles]
    return sum(losses) / len(losses)


def outer_gradients(w, c, points, tiles):
    """The derivative of the whole procedure by every weight, by complex steps, which have no cancellation."""
    step, complex_type = 1e-30, np.result_type(tiles.dtype, np.complex64)
    varied = {name: tensor.astype(complex_type) for name, tensor in w.items()}
    gradients = {}
    for name, tensor in varied.items():
        gradient = np.empty(tensor.shape, tiles.dtype)
        for index in np.ndindex(tensor.shape):
            value = tensor[index]
            tensor[index] = value + step * 1j
            gradient[index] = objective(varied, c, points, tiles).imag / step
            tensor[index] = value
        gradients[name] = gradient
    return gradients


def jet_at(w, c, latent, points):
    shifts = linear(w, "modulation", latent).reshape(c["depth"] - 1, c["width"])
    h = coordinates(points, latent.dtype)
    for layer in range(c["depth"] - 1):
        weight, bias = w[f"siren.{layer}.weight"], w[f"siren.{layer}.bias"]
        h = sine_jet(affine_jet(c["omega"] * weight.T, c["omega"] * (bias + shifts[layer]), h))
    f = affine_jet(w[f"siren.{c['depth'] - 1}.weight"].T, w[f"siren.{c['depth'] - 1}.bias"] + 0.5, h)
    return {d: f[d][:, 0] for d in JET}


def run(w, c, tiles):
    points = pixel_centres(c).astype(tiles.dtype)
    latents = [fit(w, c, points, tile.ravel()) for tile in tiles]
    images = []
    for latent in latents:
        jet = jet_at(w, c, latent, points)
        images.append({d: jet[d].reshape(c["side"], c["side"]) for d in JET})
    results = {"latent": np.array(latents), **stacked(images)}
    results["output"] = results.pop("value")
    gradients = outer_gradients(w, c, points, tiles)
    return {**results, **{f"grad.{name}": gradient for name, gradient in gradients.items()}}


def check(w, c, tiles, results):
    points, target = pixel_centres(c), tiles[0].ravel()
    latent = results["latent"][0]
    close(forward(w, c, latent, points)[0], results["output"][0].ravel(), 1e-12)
    check_jet(lambda p: jet_at(w, c, latent, p), points)

    gradient = latent_gradient(w, c, latent, points, target)
    for i in range(c["latent"]):
        move = np.zeros(c["latent"])
        move[i] = 1e-5
        after, before = (loss(w, c, latent + sign * move, points, target) for sign in (1, -1))
        close((after - before) / 2e-5, gradient[i], 1e-7)

    for name, tensor in w.items():
        for flat in (2, tensor.size - 1):
            index = np.unravel_index(flat % tensor.size, tensor.shape)
            ends = []
            for sign in (1, -1):
                moved = {**w, name: tensor.copy()}
                moved[name][index] += sign * 1e-6
                ends.append(objective(moved, c, points, tiles))
            close((ends[0] - ends[1]) / 2e-6, results[f"grad.{name}"][index], 1e-6)
    close(results["grad.inner_rates"][:2], 0, 0)
    close(fit({**w, "inner_rates": 0 * w["inner_rates"]}, c, points, target), 0, 0)

    # Without the second order the fitted latent is a constant; here the difference has to show.
    last = f"siren.{c['depth'] - 1}.bias"
    first_order = np.mean([2 * (results["output"][i] - tiles[i]).mean() for i in range(len(tiles))])
    differ(first_order, results[f"grad.{last}"][0])
    still = {**c, "inner_steps": 0}
    plain = np.mean([2 * (forward(w, c, 0 * latent, points)[0] - tile.ravel()).mean() for tile in tiles])
    close(outer_gradients(w, still, points, tiles)[last], plain, 1e-12)


def make():
    w, c = make_weights(), FUNCTA
    tiles = terrain(np.random.RandomState(31), c["side"])
    results = compared("functa", run, w, c, tiles)
    check(w, c, tiles, results)
    write("functa", c, w, {"tiles": tiles, **results})
