//! Outputs, which must not be inputs.

use std::path::Path;

use terrane_geo::is_same_file;

use crate::{Error, Result};

/// Refuses an output that is one of the inputs, by whatever name or link.
pub fn refuse_inputs(output: &Path, inputs: &[&Path]) -> Result<()> {
    match inputs.iter().find(|input| is_same_file(output, input)) {
        Some(input) => Err(Error::IsInput {
            path: output.to_owned(),
            input: input.to_path_buf(),
        }),
        None => Ok(()),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn an_input_is_known_by_any_name() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("a"), b"a").unwrap();
        std::fs::write(at("b"), b"a").unwrap();
        std::fs::create_dir(at("deep")).unwrap();
        std::fs::hard_link(at("a"), at("hard")).unwrap();
        std::os::unix::fs::symlink("a", at("soft")).unwrap();
        let input = at("a");
        for name in ["a", "hard", "soft", "deep/../a"] {
            let text = refuse_inputs(&at(name), &[&at("b"), &input])
                .unwrap_err()
                .to_string();
            assert!(text.contains(&format!("{name}: is the input")), "{text}");
        }
        for name in ["b", "new", "deep"] {
            refuse_inputs(&at(name), &[&input]).unwrap();
        }
        assert!(refuse_inputs(folder.path(), &[&at("deep/..")]).is_err());
    }
}
