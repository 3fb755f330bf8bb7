//! Generated files with everything that this reader gets from them, for the second one to compare (`conformance/generated.py`).

use std::path::Path;

use crate::recipe::{Recipe, levels, open};

/// Of each file: `N.trn`, `N.json` with its head, and `N.f64` with the heights of all levels, finest first.
fn write(folder: &Path, number: u64) -> bool {
    let Ok((file, _)) = Recipe::of_number(number).encode(1) else {
        // A rate that a tile cannot have.
        return false;
    };
    let terrain = open(&file);
    terrain.reader().check_layout().unwrap();
    let heights = levels(&terrain).concat();
    let heights: Vec<u8> = heights
        .iter()
        .flat_map(|height| height.to_le_bytes())
        .collect();
    let path = |ending: &str| folder.join(format!("{number}.{ending}"));
    let head = serde_json::to_vec(terrain.header()).unwrap();
    std::fs::write(path("json"), head).unwrap();
    std::fs::write(path("f64"), heights).unwrap();
    std::fs::write(path("trn"), file).unwrap();
    true
}

/// Writes files to `TERRANE_GENERATED`: those from number `TERRANE_FIRST` on, `TERRANE_COUNT` of them.
#[test]
#[ignore = "writes files for the second reader; run by `just test-differential`"]
fn files_for_the_second_reader() {
    let variable = |name: &str| std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set"));
    let number = |name: &str| variable(name).parse::<u64>().unwrap();
    let folder = variable("TERRANE_GENERATED");
    let (first, count) = (number("TERRANE_FIRST"), number("TERRANE_COUNT"));
    let written = (first..first + count).filter(|&number| write(Path::new(&folder), number));
    let written = written.count() as u64;
    assert!(
        10 * written >= 9 * count,
        "only {written} of {count} files could be made"
    );
}
