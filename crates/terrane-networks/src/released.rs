//! Checkpoints of HUVR and HUVR+SIREN as their authors released them: other names, transposed matrices, packed biases.

use crate::weights::{Array, Weights, WeightsError, fill};
use burn::module::Module;

/// How a released array holds a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layout {
    /// As it is here, up to the grouping of its axes.
    Same,
    /// `[out, in…]` where here it is `[in, out]`.
    Transposed,
    /// All rows but the last of a packed `[in + 1, out]`.
    PackedWeight,
    /// The last row of a packed `[in + 1, out]`.
    PackedBias,
    /// The first or the second half of the rows of `[2 · out, in]`, transposed.
    TransposedHalf(Half),
}

/// One of two arrays that are kept as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Half {
    First,
    Second,
}

/// Fills a network of the HUVR family from a released checkpoint.
///
/// Buffers that are computed here (rotary tables) and heads of a distillation are passed over.
pub fn load_released<M: Module>(checkpoint: &Weights, module: M) -> Result<M, WeightsError> {
    fill(module, |path, shape| {
        let (name, layout) = released_name(path).ok_or_else(|| WeightsError::Missing {
            name: path.to_owned(),
        })?;
        let array = checkpoint
            .arrays
            .get(&name)
            .ok_or(WeightsError::Missing { name: name.clone() })?;
        unpack(&name, array, layout, shape)
    })
}

fn unpack(
    name: &str,
    array: &Array,
    layout: Layout,
    shape: &[usize],
) -> Result<Array, WeightsError> {
    let expected: usize = shape.iter().product();
    let mismatch = || WeightsError::Shape {
        name: name.to_owned(),
        expected: shape.to_vec(),
        found: array.shape.clone(),
    };
    let rows = array.shape.first().copied().unwrap_or(0);
    let outputs = shape.last().copied().unwrap_or(0);
    let values = match layout {
        Layout::Same => array.values.clone(),
        Layout::Transposed if rows == outputs => transposed(&array.values, rows),
        Layout::TransposedHalf(half) if rows == 2 * outputs => {
            let (first, second) = array.values.split_at(array.values.len() / 2);
            let values = if half == Half::First { first } else { second };
            transposed(values, outputs)
        }
        Layout::Transposed | Layout::TransposedHalf(_) => return Err(mismatch()),
        Layout::PackedWeight | Layout::PackedBias => {
            let &[rows, columns] = array.shape.as_slice() else {
                return Err(mismatch());
            };
            let split = rows.saturating_sub(1) * columns;
            if layout == Layout::PackedWeight {
                array.values[..split].to_vec()
            } else {
                array.values[split..].to_vec()
            }
        }
    };
    if values.len() != expected {
        return Err(mismatch());
    }
    Ok(Array {
        shape: shape.to_vec(),
        values,
    })
}

/// The columns one after another of so many rows.
fn transposed(values: &[f32], rows: usize) -> Vec<f32> {
    let columns = values.len() / rows.max(1);
    (0..columns)
        .flat_map(|column| (0..rows).map(move |row| values[row * columns + column]))
        .collect()
}

/// The released name of a parameter and how it is held there.
fn released_name(path: &str) -> Option<(String, Layout)> {
    // A network may be one of several behind a name of its own.
    let path = ["HuvrSiren.", "Huvr."]
        .iter()
        .find_map(|prefix| path.strip_prefix(prefix))
        .unwrap_or(path);
    let parts: Vec<&str> = path.split('.').collect();
    let layout_of = |leaf: &str| {
        if leaf == "weight" {
            Layout::Transposed
        } else {
            Layout::Same
        }
    };
    let head = |from: String, part: &str, leaf: &str| {
        Some(match part {
            "norm" => (format!("{from}.0.{leaf}"), Layout::Same),
            _ => (format!("{from}.1.{leaf}"), layout_of(leaf)),
        })
    };
    match *parts.as_slice() {
        ["input", leaf] => Some((format!("input_proj.{leaf}"), layout_of(leaf))),
        ["encoder", "class_token"] => Some(("transformer_encoder.cls_token".into(), Layout::Same)),
        ["encoder", "embed", leaf] => Some((
            format!("transformer_encoder.patch_embed.proj.{leaf}"),
            layout_of(leaf),
        )),
        ["encoder", "norm", leaf] => {
            Some((format!("transformer_encoder.norm.{leaf}"), Layout::Same))
        }
        ["encoder", "blocks", block, part, leaf] => {
            let (name, layout) = match part {
                "norm1" | "norm2" => (part.to_owned(), Layout::Same),
                "qkv" | "proj" => (format!("attn.{part}"), layout_of(leaf)),
                "inner_norm" => ("mlp.ffn_ln".to_owned(), Layout::Same),
                _ => (format!("mlp.{part}"), layout_of(leaf)),
            };
            Some((
                format!("transformer_encoder.blocks.{block}.{name}.{leaf}"),
                layout,
            ))
        }
        ["down", part, leaf] => head("dimension_downsample".into(), part, leaf),
        ["up", part, leaf] => head("dimension_upsample".into(), part, leaf),
        ["decoder", "layers", layer, "norm", leaf] => Some((
            format!("transformer_decoder.layers.{layer}.1.norm.{leaf}"),
            Layout::Same,
        )),
        ["decoder", "layers", layer, part @ ("inner" | "outer"), leaf] => {
            let index = if part == "inner" { 0 } else { 3 };
            Some((
                format!("transformer_decoder.layers.{layer}.1.fn.net.{index}.{leaf}"),
                layout_of(leaf),
            ))
        }
        ["decoder", "layers", layer, "attention_norm", leaf] => Some((
            format!("transformer_decoder.layers.{layer}.0.norm.{leaf}"),
            Layout::Same,
        )),
        ["decoder", "layers", layer, "attention", part, leaf] => {
            let (name, layout) = match part {
                "query" => ("to_q", layout_of(leaf)),
                // One product gives both, the keys first.
                "key" => ("to_kv", Layout::TransposedHalf(Half::First)),
                "value" => ("to_kv", Layout::TransposedHalf(Half::Second)),
                // A dropout that does nothing comes after the layer.
                _ => ("to_out.0", layout_of(leaf)),
            };
            Some((
                format!("transformer_decoder.layers.{layer}.0.fn.{name}.{leaf}"),
                layout,
            ))
        }
        ["amplitudes", layer, part, leaf] => {
            head(format!("mod_postfc.mod{layer}_postfc"), part, leaf)
        }
        ["phases", layer, part, leaf] => {
            head(format!("shift_postfc.shift{layer}_postfc"), part, leaf)
        }
        ["incode", layer, part, leaf] => {
            head(format!("incode_postfc.incode{layer}_postfc"), part, leaf)
        }
        ["patch_head", part, leaf] => head("wtoken_postfc.wb1_patch_postfc".into(), part, leaf),
        ["global_head", part, leaf] => head("wtoken_postfc.wb1_global_postfc".into(), part, leaf),
        ["siren", "layers", layer, "weight"] => {
            Some((format!("base_params.wb{layer}"), Layout::PackedWeight))
        }
        ["siren", "layers", layer, "bias"] => {
            Some((format!("base_params.wb{layer}"), Layout::PackedBias))
        }
        ["layers", layer, "packed"] => Some((format!("base_params.wb{layer}"), Layout::Same)),
        ["convolution", "packed"] => Some(("base_params.cnn_wb0".into(), Layout::Same)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_values_are_the_halves_of_one_array() {
        let both = Array {
            shape: vec![4, 3],
            values: (0..12_u8).map(f32::from).collect(),
        };
        let half = |half| unpack("to_kv", &both, Layout::TransposedHalf(half), &[3, 2]).unwrap();
        assert_eq!(half(Half::First).values, [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);
        assert_eq!(half(Half::Second).values, [6.0, 9.0, 7.0, 10.0, 8.0, 11.0]);
    }

    #[test]
    fn an_array_that_lies_the_other_way_is_refused() {
        let turned = Array {
            shape: vec![3, 2],
            values: vec![0.0; 6],
        };
        for layout in [Layout::Transposed, Layout::TransposedHalf(Half::First)] {
            let fault = unpack("to_q", &turned, layout, &[3, 2]).unwrap_err();
            assert!(matches!(fault, WeightsError::Shape { .. }), "{fault}");
        }
    }
}
