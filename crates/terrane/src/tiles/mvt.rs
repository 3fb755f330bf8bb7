//! Mapbox vector tiles, version 2.1: one layer of lines.
//!
//! A tile is a protocol buffer, of which this writes what lines need.

/// A coordinate inside a tile.
pub(super) type Grid = i32;
/// Units across a tile.
pub(super) const EXTENT: Grid = 4096;

/// Lines of one height.
#[derive(Debug)]
pub(super) struct Feature {
    /// In metres.
    pub(super) height: f64,
    /// Whether it is one of those that are drawn bold and labelled.
    pub(super) is_index: bool,
    /// Each of two points or more, no two of which are the same in turn.
    pub(super) lines: Vec<Vec<[Grid; 2]>>,
}

// Field numbers and types of the specification's vector_tile.proto.
const VARINT: u64 = 0;
const FIXED_64: u64 = 1;
const BYTES: u64 = 2;
const TILE_LAYERS: u64 = 3;
const LAYER_NAME: u64 = 1;
const LAYER_FEATURES: u64 = 2;
const LAYER_KEYS: u64 = 3;
const LAYER_VALUES: u64 = 4;
const LAYER_EXTENT: u64 = 5;
const LAYER_VERSION: u64 = 15;
const FEATURE_TAGS: u64 = 2;
const FEATURE_TYPE: u64 = 3;
const FEATURE_GEOMETRY: u64 = 4;
const VALUE_DOUBLE: u64 = 3;
const VALUE_BOOL: u64 = 7;
const LINE_STRING: u64 = 2;
const MOVE_TO: u64 = 1;
const LINE_TO: u64 = 2;
/// Of the layer's keys and of its values, which start with both truths.
const KEYS: [&str; 2] = ["height", "index"];
const TRUTHS: u64 = 2;

/// A tile of one layer; nothing where it has no lines.
pub(super) fn vector_tile(name: &str, features: &[Feature]) -> Vec<u8> {
    if features.is_empty() {
        return Vec::new();
    }
    let mut layer = Vec::new();
    number(&mut layer, LAYER_VERSION, 2);
    bytes(&mut layer, LAYER_NAME, name.as_bytes());
    for (index, feature) in features.iter().enumerate() {
        let mut message = Vec::new();
        let tags = [0, TRUTHS + index as u64, 1, u64::from(feature.is_index)];
        packed(&mut message, FEATURE_TAGS, tags);
        number(&mut message, FEATURE_TYPE, LINE_STRING);
        packed(&mut message, FEATURE_GEOMETRY, geometry(&feature.lines));
        bytes(&mut layer, LAYER_FEATURES, &message);
    }
    for key in KEYS {
        bytes(&mut layer, LAYER_KEYS, key.as_bytes());
    }
    for truth in 0..TRUTHS {
        let mut value = Vec::new();
        number(&mut value, VALUE_BOOL, truth);
        bytes(&mut layer, LAYER_VALUES, &value);
    }
    for feature in features {
        let mut value = Vec::new();
        varint(&mut value, VALUE_DOUBLE << 3 | FIXED_64);
        value.extend(feature.height.to_le_bytes());
        bytes(&mut layer, LAYER_VALUES, &value);
    }
    number(&mut layer, LAYER_EXTENT, u64::from(EXTENT.unsigned_abs()));
    let mut tile = Vec::new();
    bytes(&mut tile, TILE_LAYERS, &layer);
    tile
}

/// Lines as commands: to the first point, and by differences along the others.
fn geometry(lines: &[Vec<[Grid; 2]>]) -> Vec<u64> {
    let mut commands = Vec::new();
    let mut at = [0, 0];
    let command = |id: u64, count: usize| id | (count as u64) << 3;
    for line in lines {
        commands.push(command(MOVE_TO, 1));
        for (index, point) in line.iter().enumerate() {
            if index == 1 {
                commands.push(command(LINE_TO, line.len() - 1));
            }
            for axis in 0..2 {
                let step = point[axis] - at[axis];
                // Zigzag: small differences of either sign are small numbers.
                commands.push(u64::from((step << 1 ^ step >> 31).cast_unsigned()));
            }
            at = *point;
        }
    }
    commands
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn number(out: &mut Vec<u8>, field: u64, value: u64) {
    varint(out, field << 3 | VARINT);
    varint(out, value);
}

fn bytes(out: &mut Vec<u8>, field: u64, value: &[u8]) {
    varint(out, field << 3 | BYTES);
    varint(out, value.len() as u64);
    out.extend(value);
}

fn packed(out: &mut Vec<u8>, field: u64, values: impl IntoIterator<Item = u64>) {
    let mut list = Vec::new();
    for value in values {
        varint(&mut list, value);
    }
    bytes(out, field, &list);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the specification, section 4.3.5: two lines.
    #[test]
    fn geometry_is_that_of_the_specification() {
        let lines = [vec![[2, 2], [2, 10], [10, 10]], vec![[1, 1], [3, 5]]];
        let expected = [9, 4, 4, 18, 0, 16, 16, 0, 9, 17, 17, 10, 4, 8];
        assert_eq!(geometry(&lines), expected);
    }

    #[test]
    fn nothing_is_no_bytes() {
        assert!(vector_tile("contours", &[]).is_empty());
    }
}
