//! Values as JavaScript reads them: a letter for their kind, and what they hold.
//!
//! Numbers are 64-bit floats and lengths 32-bit numbers, little-endian. As JSON they would be written in decimals, whose tables
//! alone are a twentieth of the module.

use serde_json::Value;

fn length(bytes: &mut Vec<u8>, length: usize) {
    bytes.extend((length as u32).to_le_bytes());
}

fn text(bytes: &mut Vec<u8>, text: &str) {
    length(bytes, text.len());
    bytes.extend(text.as_bytes());
}

/// Writes a value behind others.
pub(crate) fn write(bytes: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Null => bytes.push(b'0'),
        Value::Bool(false) => bytes.push(b'f'),
        Value::Bool(true) => bytes.push(b't'),
        Value::Number(number) => {
            bytes.push(b'n');
            bytes.extend(number.as_f64().unwrap_or(f64::NAN).to_le_bytes());
        }
        Value::String(value) => {
            bytes.push(b's');
            text(bytes, value);
        }
        Value::Array(values) => {
            bytes.push(b'a');
            length(bytes, values.len());
            for value in values {
                write(bytes, value);
            }
        }
        Value::Object(entries) => {
            bytes.push(b'o');
            length(bytes, entries.len());
            for (key, value) in entries {
                text(bytes, key);
                write(bytes, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_kind_of_value_is_written() {
        let mut bytes = Vec::new();
        write(
            &mut bytes,
            &json!({ "a": [null, true, false, 1.5], "é": "ü", "n": -3 }),
        );
        let number = |value: f64| value.to_le_bytes().to_vec();
        let expected = [
            b"o\x03\0\0\0\x01\0\0\0aa\x04\0\0\x000tfn".to_vec(),
            number(1.5),
            b"\x01\0\0\0nn".to_vec(),
            number(-3.0),
            "\x02\0\0\0és\x02\0\0\0ü".into(),
        ];
        assert_eq!(bytes, expected.concat());
    }
}
