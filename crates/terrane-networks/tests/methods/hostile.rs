//! Models of networks as a stranger may put them into a file. `PROPTEST_CASES` asks for more cases of each method than the few
//! that every run tries.

use burn::tensor::Device;
use terrane_codec::Networks;
use terrane_codec::random::Random;
use terrane_format::tokens::alphabet;
use terrane_format::{MemoryLimit, TokenTables};
use terrane_networks::NETWORKS;
use terrane_networks::methods::MethodConfig;
use terrane_networks::model::{CONFIG_KEY, table_arrays};
use terrane_networks::weights::Weights;

use crate::sizes::odd;

/// What one model may take.
const MEMORY: MemoryLimit = MemoryLimit { bytes: 16 << 20 };
/// Numbers that no training gives.
const STRANGE: [f32; 9] = [
    f32::NAN,
    f32::INFINITY,
    f32::NEG_INFINITY,
    f32::MAX,
    f32::MIN,
    f32::MIN_POSITIVE,
    -0.0,
    0.5,
    65_536.0,
];
/// What a configuration is changed with.
const TEXTS: [&str; 14] = [
    "0", "1", "9", "-", ".", "e9", "nan", "inf", "\"", "[", "]", "\n", "=", "99999999",
];

/// A whole model of a method.
fn model(config: &MethodConfig) -> Weights {
    let [_, channels] = config.token_shape();
    let mut weights = Weights::of(&config.init(1, &Device::flex()));
    let tables = TokenTables::from_counts(channels, |bits, _| vec![1; alphabet(bits)]).unwrap();
    weights.arrays.extend(table_arrays(&tables));
    let method = toml::Value::try_from(config).unwrap();
    let settings = toml::toml! {
        name = "odd"
        [data]
        normalise = "min-max"
    };
    let settings = settings.into_iter().chain([("method".to_owned(), method)]);
    let text = toml::to_string(&settings.collect::<toml::Table>()).unwrap();
    weights.metadata.insert(CONFIG_KEY.into(), text);
    weights
}

/// The file of the model with one thing or a few changed.
fn changed(weights: &Weights, chance: &mut Random) -> Vec<u8> {
    let mut weights = weights.clone();
    let names: Vec<String> = weights.arrays.keys().cloned().collect();
    let mut of_bytes = 0;
    for _ in 0..=chance.below(3) {
        let name = &names[chance.below(names.len())];
        match chance.below(8) {
            0 | 1 => {
                let text = weights.metadata.get_mut(CONFIG_KEY).unwrap();
                let at = chance.below(text.len());
                let end = text.len().min(at + chance.below(12));
                if text.is_char_boundary(at) && text.is_char_boundary(end) {
                    text.replace_range(at..end, TEXTS[chance.below(TEXTS.len())]);
                }
            }
            2 | 3 => {
                if let Some(array) = weights.arrays.get_mut(name) {
                    for _ in 0..=chance.below(4) {
                        let at = chance.below(array.values.len());
                        if let Some(value) = array.values.get_mut(at) {
                            *value = STRANGE[chance.below(STRANGE.len())];
                        }
                    }
                }
            }
            4 => {
                // All of them.
                let value = STRANGE[chance.below(STRANGE.len())];
                if let Some(array) = weights.arrays.get_mut(name) {
                    array.values.fill(value);
                }
            }
            5 => {
                if let Some(array) = weights.arrays.get_mut(name) {
                    array.shape.reverse();
                }
            }
            6 => drop(weights.arrays.remove(name)),
            _ => of_bytes += 1,
        }
    }
    let mut bytes = weights.to_bytes().unwrap();
    for _ in 0..of_bytes {
        if bytes.is_empty() {
            break;
        }
        // The description of the arrays is at the front.
        let within = if chance.below(2) == 0 {
            2_000
        } else {
            usize::MAX
        };
        let at = chance.below(bytes.len().min(within));
        match chance.below(3) {
            0 => bytes[at] ^= 1 << chance.below(8),
            1 => bytes[at] = chance.below(256) as u8,
            _ => bytes.truncate(at),
        }
    }
    bytes
}

/// Whatever is in it, a model is refused with a sentence, or codes tiles: what it says of them may be anything.
fn is_refused(bytes: &[u8]) -> bool {
    let model = match NETWORKS.load(bytes, MEMORY) {
        Ok(model) => model,
        Err(error) => {
            let text = error.to_string();
            assert!(!text.is_empty() && text.lines().count() == 1, "{text}");
            return true;
        }
    };
    let [count, channels] = model.token_shape();
    for value in [0.0, 1.0, -1.0e4, f32::NAN] {
        let tokens = vec![value; count * channels];
        let side = model.side();
        assert_eq!(model.decode(&tokens).unwrap().len(), side * side);
        if let Some(surface) = model.surface(&tokens) {
            for (column, row) in [(0.5, 0.5), (-2.0, side as f64 + 2.0), (side as f64, 0.0)] {
                surface.jet(column, row);
            }
        }
    }
    false
}

#[test]
fn changed_models_are_refused_or_code_tiles() {
    let asked = std::env::var("PROPTEST_CASES").ok();
    let cases: usize = asked.and_then(|cases| cases.parse().ok()).unwrap_or(60);
    let mut chance = Random::new(18, 0);
    let mut outcomes = [0, 0];
    for config in odd() {
        let model = model(&config);
        let whole = model.to_bytes().unwrap();
        NETWORKS.load(&whole, MEMORY).unwrap();
        assert!(!is_refused(&whole));
        for _ in 0..cases {
            outcomes[usize::from(is_refused(&changed(&model, &mut chance)))] += 1;
        }
    }
    println!(
        "{} changed models code tiles, {} are refused",
        outcomes[0], outcomes[1]
    );
    assert!(outcomes.iter().all(|&count| count > cases), "{outcomes:?}");
}
