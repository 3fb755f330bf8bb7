//! Points in a table of text.

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

/// Names of columns that hold an east coordinate and a north coordinate, in the order in which they are looked for.
const NAMES: [(&str, &str); 7] = [
    ("x", "y"),
    ("lon", "lat"),
    ("longitude", "latitude"),
    ("lng", "lat"),
    ("long", "lat"),
    ("easting", "northing"),
    ("e", "n"),
];

/// Reads the points of a CSV file. A first line that names its columns says which they are; `columns` names others. Without
/// names the first two are taken.
pub(crate) fn read(path: &Path, columns: Option<&(String, String)>) -> Result<Vec<(f64, f64)>> {
    let bytes =
        std::fs::read(path).with_context(|| format!("{} cannot be read", path.display()))?;
    let text = std::str::from_utf8(&bytes)
        .with_context(|| format!("{}: not a text in UTF-8", path.display()))?;
    parse(text, columns).with_context(|| path.display().to_string())
}

fn parse(text: &str, columns: Option<&(String, String)>) -> Result<Vec<(f64, f64)>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let first = text.lines().find(|line| !line.trim().is_empty());
    let first = first.context("holds no points")?;
    let separator = [';', '\t', ',']
        .into_iter()
        .find(|&separator| first.contains(separator))
        .unwrap_or(' ');
    let mut rows = csv::ReaderBuilder::new()
        .has_headers(false)
        .delimiter(separator as u8)
        .flexible(true)
        .trim(csv::Trim::All)
        .from_reader(text.as_bytes());
    let mut points = Vec::new();
    let mut taken = None;
    for row in rows.records() {
        let row = row?;
        let line = row.position().map_or(0, csv::Position::line);
        let mut cells: Vec<&str> = row.iter().collect();
        if separator == ' ' {
            cells.retain(|cell| !cell.is_empty());
        }
        if cells.iter().all(|cell| cell.is_empty()) {
            continue;
        }
        let (x, y) = match taken {
            Some(taken) => taken,
            None => match named(&cells, columns)? {
                Some(found) => {
                    taken = Some(found);
                    continue;
                }
                None => *taken.insert((0, 1)),
            },
        };
        let number = |column: usize| {
            let cell = cells.get(column).copied().unwrap_or_default();
            // Where commas do not separate, they may be those of a number.
            let cell = if separator == ',' {
                cell.to_owned()
            } else {
                cell.replace(',', ".")
            };
            cell.parse().ok().filter(|value: &f64| value.is_finite())
        };
        match (number(x), number(y)) {
            (Some(x), Some(y)) => points.push((x, y)),
            _ if points.is_empty() && columns.is_none() && taken == Some((0, 1)) => bail!(
                "line {line} holds neither two numbers nor the names of columns, such as x,y or lon,lat: {:?}; --columns says which they are",
                cells.join(",")
            ),
            _ => bail!(
                "line {line} does not hold two numbers: {:?}",
                cells.join(",")
            ),
        }
    }
    ensure!(!points.is_empty(), "holds no points");
    Ok(points)
}

/// The columns that a first line names; `None` where it names none.
fn named(cells: &[&str], columns: Option<&(String, String)>) -> Result<Option<(usize, usize)>> {
    let find = |name: &str| {
        cells
            .iter()
            .position(|cell| cell.eq_ignore_ascii_case(name.trim()))
    };
    if let Some((x, y)) = columns {
        let both = find(x).zip(find(y));
        return both.map(Some).with_context(|| {
            format!(
                "the first line does not name the columns {x} and {y}: {:?}",
                cells.join(",")
            )
        });
    }
    Ok(NAMES.iter().find_map(|(x, y)| find(x).zip(find(y))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_found_by_the_names_of_their_columns() {
        let expected = vec![(2_600_000.5, 1_200_000.25), (7.0, 8.0)];
        for text in [
            "2600000.5,1200000.25\n7,8\n",
            "\u{feff}2600000.5,1200000.25\n\n7,8",
            "\u{feff}x,y\n2600000.5,1200000.25\n7,8\n",
            "id,X,Y,name\n1,2600000.5,1200000.25,\"a, b\"\n2,7,8,c\n",
            "Lat;id;Lon\n1200000,25;1;2600000,5\n8;2;7\n",
            "2600000,5;1200000,25\n7;8\n",
            "easting\tnorthing\n2600000.5\t1200000.25\n7\t8\n",
            "  2600000.5   1200000.25\n7 8\n",
            "2600000.5,1200000.25,431.2\n7,8,9\n",
        ] {
            assert_eq!(parse(text, None).unwrap(), expected, "{text:?}");
        }
        let columns = ("rechts".to_owned(), "hoch".to_owned());
        let text = "id,Hoch,Rechts\n1,1200000.25,2600000.5\n2,8,7\n";
        assert_eq!(parse(text, Some(&columns)).unwrap(), expected);
    }

    #[test]
    fn a_row_that_is_none_is_named() {
        for (text, expected) in [
            ("26001O0,1200000\n7,8\n", "line 1 holds neither two numbers"),
            ("x,y\n1,2\n3\n", "line 3 does not hold two numbers"),
            ("x,y\n1,2\n3,oak\n", "line 3 does not hold two numbers"),
            ("1,2\nnan,3\n", "line 2 does not hold two numbers"),
            ("rechts,hoch\n1,2\n", "line 1 holds neither two numbers"),
            ("", "holds no points"),
            ("x,y\n", "holds no points"),
        ] {
            let error = format!("{:#}", parse(text, None).unwrap_err());
            assert!(error.contains(expected), "{text:?}: {error}");
        }
        let columns = ("a".to_owned(), "b".to_owned());
        assert!(parse("x,y\n1,2\n", Some(&columns)).is_err());
    }
}
