//! The parts of a transformer with few passes between their matrix products, forward and back.

use burn::tensor::{DType, Tensor};
use tch::Kind;

use super::Argument;
use super::hook::hooked;
use super::passes::{Kernels, Raw, Rows, THREADS, Weights, floats, numbers, raw, strided, wrapped};
use crate::blocks::{Dense, Norm};
use crate::tape::keep;

/// The numbers that turn queries and keys, a line for every token.
#[derive(Debug)]
pub(crate) struct Turns<'a> {
    pub(crate) cosines: &'a Tensor<4>,
    pub(crate) sines: &'a Tensor<4>,
}

/// The layers of a block of the encoder.
#[derive(Debug)]
pub(crate) struct BlockLayers<'a> {
    pub(crate) norm1: &'a Norm,
    pub(crate) qkv: &'a Dense,
    pub(crate) proj: &'a Dense,
    pub(crate) norm2: &'a Norm,
    pub(crate) w1: &'a Dense,
    pub(crate) w2: &'a Dense,
    pub(crate) inner_norm: &'a Norm,
    pub(crate) w3: &'a Dense,
    pub(crate) heads: usize,
}

/// A block of the encoder: attention and a gated layer, each on a normalised stream; `None` where there are no kernels.
pub(crate) fn encoder_block(
    x: &Tensor<3>,
    layers: &BlockLayers,
    turns: &Turns,
    trunk: DType,
) -> Option<Tensor<3>> {
    let kernels = Kernels::of(x, trunk)?;
    let [_, tokens, width] = x.dims();
    let [_, hidden] = layers.w1.weight.dims();
    let (rows, gated) = (kernels.rows(width).ok()?, kernels.rows(hidden).ok()?);
    keep(x);
    let x = contiguous(raw(x)?);
    let shape = x.size();
    let batch = shape[0];
    let stream = x.reshape([batch * shape[1], shape[2]]);

    let [queries, keys, values, stream] = attention_input(
        &kernels,
        &rows,
        &stream,
        [batch as usize, tokens],
        layers,
        turns,
    )?;
    let attended = Raw::scaled_dot_product_attention(
        &queries,
        &keys,
        &values,
        None::<Raw>,
        0.0,
        false,
        None,
        false,
    );
    let attended = attended
        .transpose(1, 2)
        .reshape([batch * shape[1], shape[2]]);
    let out = attention_output(&kernels, &rows, &gated, &stream, &attended, layers)?;
    Some(wrapped(out.reshape(shape)))
}

/// The stream to queries, keys and values `[batch, heads, tokens, width]` and the stream again.
fn attention_input(
    kernels: &Kernels,
    rows: &Rows,
    x: &Raw,
    [batch, tokens]: [usize; 2],
    layers: &BlockLayers,
    turns: &Turns,
) -> Option<[Raw; 4]> {
    let heads = layers.heads;
    let head = rows.width / heads;
    let defined = [("HEAD", head), ("HEADS", heads), ("TOKENS", tokens)];
    let turning = kernels.program(&defined).ok()?;
    let [norm, qkv] = [
        Weights::of_norm(layers.norm1)?,
        Weights::of_dense(layers.qkv)?,
    ];
    let [cosines, sines] = [raw(turns.cosines)?, raw(turns.sines)?];
    let trunk = kernels.trunk;
    let all = batch * tokens * 3 * rows.width;
    let (kernels, rows) = (kernels.clone(), rows.clone());
    let x_numbers = x.detach();
    let (y, moments, turned, weight) = tch::no_grad(|| {
        let (y, moments) = rows.norm(&x_numbers, &norm, 1.0);
        let (turned, weight) = kernels.linear(&y, &qkv);
        match &turning {
            Some(turning) => turning.launch(
                "turn",
                batch * tokens,
                (THREADS, 1),
                &[
                    numbers(&turned, trunk, all),
                    floats(&cosines, tokens * head),
                    floats(&sines, tokens * head),
                ],
            ),
            None => plain_turn(&turned, [tokens, head], &cosines, &sines),
        }
        (y, moments, turned, weight)
    });
    let parts = turned.reshape([batch, tokens, 3, heads, head].map(|side| side as i64));
    let part = |index: i64| parts.select(2, index).transpose(1, 2);
    let values = [part(0), part(1), part(2), x_numbers.shallow_clone()];
    let inputs = [x, &norm.weight, &norm.bias, &qkv.weight, &qkv.bias];
    let scale = norm.weight.detach();
    let device = turned.device();
    let finish = move |by_turned: &Raw, gradients: &[Option<Raw>]| -> Vec<Option<Raw>> {
        let [by_y, by_weight, by_bias] = kernels.linear_back(by_turned, &y, &weight);
        let stream = gradients[3].as_ref().map(Raw::contiguous);
        let (by_x, by_norm) =
            rows.norm_back(&by_y, &x_numbers, &moments, &scale, stream.as_ref(), 1.0);
        [by_x, by_norm.scale, by_norm.shift, by_weight, by_bias]
            .map(Some)
            .into()
    };
    let backward = move |gradients: &[Option<Raw>]| {
        let Some(turning) = &turning else {
            let part = |index: usize| gradients[index].as_ref().map(|part| part.transpose(1, 2));
            let parts: Vec<Raw> = (0..3).filter_map(part).collect();
            let by_turned = Raw::stack(&parts, 2).reshape_as(&turned);
            plain_turn(&by_turned, [tokens, head], &cosines, &(-&sines));
            return finish(&by_turned, gradients);
        };
        let by_turned = Raw::empty_like(&turned);
        let mut arguments = Vec::with_capacity(15);
        let parts: Vec<Raw> = gradients[..3]
            .iter()
            .map(|gradient| match gradient {
                Some(gradient) if gradient.stride()[3] == 1 => gradient.shallow_clone(),
                Some(gradient) => gradient.contiguous(),
                None => Raw::zeros(
                    [batch, heads, tokens, head].map(|side| side as i64),
                    (trunk.kind(), device),
                ),
            })
            .collect();
        for part in &parts {
            let stride = part.stride();
            arguments.push(strided(part, trunk, [batch, heads, tokens, head]));
            arguments.extend([stride[0], stride[2], stride[1]].map(Argument::Long));
        }
        arguments.extend([
            floats(&cosines, tokens * head),
            floats(&sines, tokens * head),
            numbers(&by_turned, trunk, all),
        ]);
        turning.launch("turn_back", batch * tokens, (THREADS, 1), &arguments);
        finish(&by_turned, gradients)
    };
    hooked(&values, &inputs, Box::new(backward)).try_into().ok()
}

/// The stream, and what the attention found, to the stream after both halves of a block.
fn attention_output(
    kernels: &Kernels,
    rows: &Rows,
    gated: &Rows,
    x: &Raw,
    attended: &Raw,
    layers: &BlockLayers,
) -> Option<Raw> {
    let [proj, w1, w2, w3] = [layers.proj, layers.w1, layers.w2, layers.w3].map(Weights::of_dense);
    let [proj, w1, w2, w3] = [proj?, w1?, w2?, w3?];
    let [norm, inner] = [
        Weights::of_norm(layers.norm2)?,
        Weights::of_norm(layers.inner_norm)?,
    ];
    let (kernels, rows, gated) = (kernels.clone(), rows.clone(), gated.clone());
    let kind = kernels.trunk.kind();
    let given = attended.detach();
    let (out, saved) = tch::no_grad(|| {
        let (branch, proj_weight) = kernels.linear(&given, &proj);
        let middle = kernels.add(&x.detach(), &branch, 1.0);
        let (normed, moments) = rows.norm(&middle, &norm, 1.0);
        let (gate, gate_weight) = kernels.linear(&normed, &w1);
        let (through, through_weight) = kernels.linear(&normed, &w2);
        let (y, inner_moments) = gated.gated_norm(&gate, &through, &inner);
        let (branch, out_weight) = kernels.linear(&y, &w3);
        let out = kernels.add(&middle, &branch, 1.0);
        let weights = [proj_weight, gate_weight, through_weight, out_weight];
        (
            out,
            (
                middle,
                normed,
                moments,
                gate,
                through,
                y,
                inner_moments,
                weights,
            ),
        )
    });
    let inputs = [
        x,
        attended,
        &proj.weight,
        &proj.bias,
        &norm.weight,
        &norm.bias,
        &w1.weight,
        &w1.bias,
        &w2.weight,
        &w2.bias,
        &inner.weight,
        &inner.bias,
        &w3.weight,
        &w3.bias,
    ];
    let [scale, inner_scale] = [&norm, &inner].map(|norm| norm.weight.detach());
    let backward = move |gradients: &[Option<Raw>]| {
        let (middle, normed, moments, gate, through, y, inner_moments, weights) = &saved;
        let [proj_weight, gate_weight, through_weight, out_weight] = weights;
        let Some(by_out) = gradients[0].as_ref().map(Raw::contiguous) else {
            return (0..14).map(|_| None).collect();
        };
        let [by_y, by_w3, by_b3] = kernels.linear_back(&by_out.to_kind(kind), y, out_weight);
        let by_inner = gated.gated_norm_back(&by_y, gate, through, inner_moments, &inner_scale);
        let (by_gate, by_through) = (gate, through);
        let [by_w1, by_b1] = kernels.weights_back(by_gate, normed);
        let [by_w2, by_b2] = kernels.weights_back(by_through, normed);
        let by_normed = by_gate
            .mm(&gate_weight.tr())
            .addmm_(by_through, &through_weight.tr());
        let (by_middle, by_norm) =
            rows.norm_back(&by_normed, middle, moments, &scale, Some(&by_out), 1.0);
        let [by_attended, by_proj, by_proj_bias] =
            kernels.linear_back(&by_middle.to_kind(kind), &given, proj_weight);
        [
            by_middle,
            by_attended,
            by_proj,
            by_proj_bias,
            by_norm.scale,
            by_norm.shift,
            by_w1,
            by_b1,
            by_w2,
            by_b2,
            by_inner.scale,
            by_inner.shift,
            by_w3,
            by_b3,
        ]
        .map(Some)
        .into()
    };
    hooked(&[out], &inputs, Box::new(backward)).pop()
}

/// A layer of the decoder without attention: twice the stream, and a layer with a GELU inside; `None` where there are no kernels.
pub(crate) fn decoder_layer(
    x: &Tensor<3>,
    norm: &Norm,
    inner: &Dense,
    outer: &Dense,
    trunk: DType,
) -> Option<Tensor<3>> {
    const FACTOR: f64 = 2.0;
    let kernels = Kernels::of(x, trunk)?;
    let [.., width] = x.dims();
    let rows = kernels.rows(width).ok()?;
    if !inner.weight.dims()[1].is_multiple_of(4) {
        return None;
    }
    let (norm, inner, outer) = (
        Weights::of_norm(norm)?,
        Weights::of_dense(inner)?,
        Weights::of_dense(outer)?,
    );
    keep(x);
    let x = contiguous(raw(x)?);
    let size = x.size();
    let x = x.reshape([-1, width as i64]);
    let given = x.detach();
    let kind = kernels.trunk.kind();
    let (out, saved) = tch::no_grad(|| {
        let (normed, moments) = rows.norm(&given, &norm, FACTOR);
        let (hidden, inner_weight) = kernels.linear(&normed, &inner);
        let active = hidden.gelu("none");
        let (branch, outer_weight) = kernels.linear(&active, &outer);
        let out = kernels.add(&given, &branch, FACTOR);
        let weights = [inner_weight, outer_weight];
        (out, (normed, moments, hidden, active, weights))
    });
    let inputs = [
        &x,
        &norm.weight,
        &norm.bias,
        &inner.weight,
        &inner.bias,
        &outer.weight,
        &outer.bias,
    ];
    let scale = norm.weight.detach();
    let backward = move |gradients: &[Option<Raw>]| {
        let (normed, moments, hidden, active, [inner_weight, outer_weight]) = &saved;
        let Some(by_out) = gradients[0].as_ref().map(Raw::contiguous) else {
            return (0..7).map(|_| None).collect();
        };
        let [by_active, by_outer, by_outer_bias] =
            kernels.linear_back(&by_out.to_kind(kind), active, outer_weight);
        let by_hidden = hidden.gelu_backward(&by_active, "none");
        let [by_normed, by_inner, by_inner_bias] =
            kernels.linear_back(&by_hidden, normed, inner_weight);
        let (by_x, by_norm) =
            rows.norm_back(&by_normed, &given, moments, &scale, Some(&by_out), FACTOR);
        [
            by_x,
            by_norm.scale,
            by_norm.shift,
            by_inner,
            by_inner_bias,
            by_outer,
            by_outer_bias,
        ]
        .map(Some)
        .into()
    };
    let out = hooked(&[out], &inputs, Box::new(backward)).pop()?;
    Some(wrapped(out.reshape(size)))
}

/// Normalisation of the last axis in full precision; `None` where there are no kernels.
pub(crate) fn norm<const D: usize>(x: &Tensor<D>, norm: &Norm) -> Option<Tensor<D>> {
    let kernels = Kernels::of(x, DType::F32)?;
    let width = x.dims()[D - 1];
    let rows = kernels.rows(width).ok()?;
    let norm = Weights::of_norm(norm)?;
    keep(x);
    let x = contiguous(raw(x)?);
    let size = x.size();
    let x = x.reshape([-1, width as i64]);
    let given = x.detach();
    let (y, moments) = tch::no_grad(|| rows.norm(&given, &norm.detach(), 1.0));
    let inputs = [&x, &norm.weight, &norm.bias];
    let scale = norm.weight.detach();
    let backward = move |gradients: &[Option<Raw>]| {
        let Some(by_y) = gradients[0].as_ref().map(Raw::contiguous) else {
            return vec![None, None, None];
        };
        let (by_x, by_norm) = rows.norm_back(&by_y, &given, &moments, &scale, None, 1.0);
        [by_x, by_norm.scale, by_norm.shift].map(Some).into()
    };
    let y = hooked(&[y], &inputs, Box::new(backward)).pop()?;
    Some(wrapped(y.reshape(size)))
}

/// The twin of `turn`: pairs of queries and keys, in place.
fn plain_turn(x: &Raw, [tokens, head]: [usize; 2], cosines: &Raw, sines: &Raw) {
    let (tokens, head) = (tokens as i64, head as i64);
    let all = x.view([-1, tokens, 3, x.size()[1] / 3 / head, head / 2, 2]);
    let mut turning = all.narrow(2, 0, 2);
    let of_pair = |table: &Raw| {
        table
            .view([1, tokens, 1, 1, head / 2, 2])
            .select(5, 0)
            .shallow_clone()
    };
    let (cosine, sine) = (of_pair(cosines), of_pair(sines));
    let wide = turning.to_kind(Kind::Float);
    let (first, second) = (wide.select(5, 0), wide.select(5, 1));
    let turned = [
        &first * &cosine - &second * &sine,
        second * cosine + first * sine,
    ];
    let turned = Raw::stack(&turned, 5);
    turning.copy_(&turned);
}

fn contiguous(x: Raw) -> Raw {
    if x.is_contiguous() { x } else { x.contiguous() }
}

#[cfg(test)]
mod tests;
