//! The arrays of a safetensors file: eight bytes with the length of a header, the header as JSON, and numbers.

use crate::json::Json;
use crate::{Error, Result};

/// Kinds of numbers, and their bytes.
const KINDS: [(&str, usize); 4] = [("I8", 1), ("U8", 1), ("U16", 2), ("I32", 4)];
/// What the header has besides arrays.
const NOTES: &str = "__metadata__";

/// A file, whose arrays lie one beside the other and are all there.
#[derive(Debug)]
pub(crate) struct Arrays<'a> {
    header: Json,
    data: &'a [u8],
}

impl<'a> Arrays<'a> {
    pub(crate) fn read(bytes: &'a [u8]) -> Result<Self> {
        let damaged = |reason: &str| Error::Safetensors {
            reason: reason.into(),
        };
        let (length, rest) = bytes
            .split_first_chunk()
            .ok_or_else(|| damaged("it is too short"))?;
        let length = usize::try_from(u64::from_le_bytes(*length)).ok();
        let (header, data) = length
            .and_then(|length| rest.split_at_checked(length))
            .ok_or_else(|| damaged("it has no whole header"))?;
        let header = Json::read(header).ok_or_else(|| damaged("its header cannot be read"))?;
        let entries = header
            .object()
            .ok_or_else(|| damaged("its header is no object"))?;
        let mut ranges = Vec::with_capacity(entries.len());
        for (name, entry) in entries.iter().filter(|(name, _)| name != NOTES) {
            let range =
                range(entry).ok_or_else(|| damaged(&format!("the array {name} is none")))?;
            ranges.push(range);
        }
        ranges.sort_unstable();
        let mut end = 0;
        for (from, to) in ranges {
            if from != end || to < from {
                return Err(damaged("its arrays do not lie one beside the other"));
            }
            end = to;
        }
        if end != data.len() {
            return Err(damaged("it does not end where its arrays end"));
        }
        Ok(Self { header, data })
    }

    /// What is noted under a key.
    pub(crate) fn note(&self, key: &str) -> Option<&str> {
        self.header.get(NOTES)?.get(key)?.text()
    }

    /// The bytes of an array of a kind of numbers.
    pub(crate) fn array(&self, name: &str, kind: &str) -> Result<&'a [u8]> {
        let entry = self.header.get(name);
        entry
            .filter(|entry| entry.get("dtype").and_then(Json::text) == Some(kind))
            .and_then(range)
            .and_then(|(from, to)| self.data.get(from..to))
            .ok_or_else(|| Error::Missing { what: name.into() })
    }
}

/// Where an array lies, which must be as long as its shape says where its numbers are of a kind that is known here.
fn range(entry: &Json) -> Option<(usize, usize)> {
    let &[from, to] = entry.get("data_offsets")?.numbers()?.as_slice() else {
        return None;
    };
    let dtype = entry.get("dtype")?.text()?;
    let shape = entry.get("shape")?.numbers()?;
    let kind = KINDS.iter().find(|(name, _)| *name == dtype);
    if let Some(&(_, size)) = kind {
        let length = shape.iter().try_fold(size, |a, b| a.checked_mul(*b))?;
        if from.checked_add(length)? != to {
            return None;
        }
    }
    Some((from, to))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODEL: &[u8] = include_bytes!("../../../conformance/context.safetensors");

    #[test]
    fn arrays_are_those_that_the_library_reads() {
        let ours = Arrays::read(MODEL).unwrap();
        let theirs = safetensors::SafeTensors::deserialize(MODEL).unwrap();
        let mut count = 0;
        for (name, view) in theirs.iter() {
            let kind = format!("{:?}", view.dtype());
            assert_eq!(ours.array(name, &kind).unwrap(), view.data(), "{name}");
            assert!(ours.array(name, "F32").is_err());
            count += 1;
        }
        assert!(count > 50);
        assert!(ours.note("name").is_some() && ours.note("other").is_none());
        assert!(ours.array("other", "I8").is_err());
    }

    #[test]
    fn what_is_not_whole_is_refused() {
        for length in [0, 7, 8, 2000, MODEL.len() - 1] {
            assert!(Arrays::read(&MODEL[..length]).is_err(), "{length}");
        }
        assert!(Arrays::read(&[MODEL, &[0]].concat()).is_err());
        assert!(Arrays::read(&[0xff; 100]).is_err());
        let file = |entry: &str, data: usize| {
            let header = format!("{{\"a\":{entry}}}");
            let length = (header.len() as u64).to_le_bytes();
            [&length, header.as_bytes(), &vec![0; data]].concat()
        };
        let entry = |shape, offsets| {
            format!(r#"{{"dtype":"I32","shape":{shape},"data_offsets":{offsets}}}"#)
        };
        assert!(Arrays::read(&file(&entry("[2,3]", "[0,24]"), 24)).is_ok());
        for (shape, offsets, data) in [
            ("[2,3]", "[0,24]", 23),
            ("[2,4]", "[0,24]", 24),
            ("[2,3]", "[1,25]", 25),
            ("[9223372036854775807,4]", "[0,24]", 24),
            ("[2,3]", "[24,0]", 24),
            ("[2,3]", "[0]", 24),
        ] {
            assert!(
                Arrays::read(&file(&entry(shape, offsets), data)).is_err(),
                "{shape} {offsets}"
            );
        }
    }
}
