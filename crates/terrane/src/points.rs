//! Points in a table of text.

use std::path::{Path, PathBuf};

use csv::{Position, ReaderBuilder, Trim};

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

/// What can be wrong with a table of points.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PointsError {
    /// The file cannot be read.
    #[error("{} cannot be read", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// The file is wrong.
    #[error("{}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: Box<Self>,
    },
    /// Not a text.
    #[error("not a text in UTF-8")]
    NotText(#[from] std::str::Utf8Error),
    /// Nothing in it.
    #[error("holds no points")]
    None,
    /// Columns that the first line does not name.
    #[error("the first line does not name the columns {x} and {y}: {line:?}")]
    NoColumns {
        /// The column of x.
        x: String,
        /// The column of y.
        y: String,
        /// The first line.
        line: String,
    },
    /// The first line is neither a point nor names.
    #[error(
        "line {number} holds neither two numbers nor the names of columns, such as x,y or lon,lat: {line:?}; `columns` says which they are"
    )]
    NoNames {
        /// The number of the line.
        number: u64,
        /// The line.
        line: String,
    },
    /// A line that is not a point.
    #[error("line {number} does not hold two numbers: {line:?}")]
    NoPoint {
        /// The number of the line.
        number: u64,
        /// The line.
        line: String,
    },
    /// A table that cannot be read.
    #[error(transparent)]
    Table(#[from] csv::Error),
}

type Result<T> = std::result::Result<T, PointsError>;

/// A table of points.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PointTable {
    /// The points, one of each row.
    pub points: Vec<(f64, f64)>,
    /// The cells of the rows.
    pub rows: Vec<Vec<String>>,
    /// The names of the columns, where the first line has them.
    pub names: Option<Vec<String>>,
    /// Whether the columns that were taken are called longitude and latitude.
    pub is_geographic: bool,
}

/// Reads the points of a CSV file. A first line that names its columns says which they are; `columns` names others. Without
/// names the first two are taken.
pub fn read_points(path: &Path, columns: Option<&(String, String)>) -> Result<PointTable> {
    let bytes = std::fs::read(path).map_err(|source| PointsError::Unreadable {
        path: path.to_owned(),
        source,
    })?;
    parse_points(&bytes, columns).map_err(|source| PointsError::File {
        path: path.to_owned(),
        source: Box::new(source),
    })
}

/// The points of a text, as [`read_points`].
pub fn parse_points(bytes: &[u8], columns: Option<&(String, String)>) -> Result<PointTable> {
    let text = std::str::from_utf8(bytes)?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let first = text.lines().find(|line| !line.trim().is_empty());
    let first = first.ok_or(PointsError::None)?;
    let separator = [';', '\t', ',']
        .into_iter()
        .find(|&separator| first.contains(separator))
        .unwrap_or(' ');
    let mut rows = ReaderBuilder::new()
        .has_headers(false)
        .delimiter(separator as u8)
        .flexible(true)
        .trim(Trim::All)
        .from_reader(text.as_bytes());
    let mut table = PointTable::default();
    let mut taken = None;
    for row in rows.records() {
        let row = row?;
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
                    table.is_geographic =
                        names_degrees(cells[found.0]) && names_degrees(cells[found.1]);
                    table.names = Some(owned(&cells));
                    continue;
                }
                None => *taken.insert((0, 1)),
            },
        };
        let value = |column: usize| {
            let cell = cells.get(column).copied().unwrap_or_default();
            // Where commas do not separate, they may be those of a number.
            let cell = if separator == ',' {
                cell.to_owned()
            } else {
                cell.replace(',', ".")
            };
            cell.parse().ok().filter(|value: &f64| value.is_finite())
        };
        let number = row.position().map_or(0, Position::line);
        let line = || cells.join(",");
        match (value(x), value(y)) {
            (Some(x), Some(y)) => {
                table.points.push((x, y));
                table.rows.push(owned(&cells));
            }
            _ if table.points.is_empty() && columns.is_none() && taken == Some((0, 1)) => {
                return Err(PointsError::NoNames {
                    number,
                    line: line(),
                });
            }
            _ => {
                return Err(PointsError::NoPoint {
                    number,
                    line: line(),
                });
            }
        }
    }
    if table.points.is_empty() {
        return Err(PointsError::None);
    }
    Ok(table)
}

fn owned(cells: &[&str]) -> Vec<String> {
    cells.iter().map(|&cell| cell.to_owned()).collect()
}

/// Whether a column's name is one of longitudes or latitudes.
fn names_degrees(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["lon", "lng", "lat"]
        .iter()
        .any(|start| name.starts_with(start))
}

/// The columns that a first line names; `None` where it names none.
fn named(cells: &[&str], columns: Option<&(String, String)>) -> Result<Option<(usize, usize)>> {
    let find = |name: &str| {
        cells
            .iter()
            .position(|cell| cell.eq_ignore_ascii_case(name.trim()))
    };
    let Some((x, y)) = columns else {
        return Ok(NAMES.iter().find_map(|(x, y)| find(x).zip(find(y))));
    };
    let both = find(x).zip(find(y));
    both.map(Some).ok_or_else(|| PointsError::NoColumns {
        x: x.clone(),
        y: y.clone(),
        line: cells.join(","),
    })
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
            assert_eq!(
                parse_points(text.as_bytes(), None).unwrap().points,
                expected,
                "{text:?}"
            );
        }
        let columns = ("rechts".to_owned(), "hoch".to_owned());
        let text = "id,Hoch,Rechts\n1,1200000.25,2600000.5\n2,8,7\n";
        assert_eq!(
            parse_points(text.as_bytes(), Some(&columns))
                .unwrap()
                .points,
            expected
        );
    }

    #[test]
    fn a_table_keeps_its_cells_and_says_whether_it_is_in_degrees() {
        let table = parse_points(b"id,Longitude,Latitude\na,7.4,46.9\n", None).unwrap();
        assert_eq!(table.names.unwrap(), ["id", "Longitude", "Latitude"]);
        assert_eq!(table.rows, [["a", "7.4", "46.9"]]);
        assert!(table.is_geographic);
        for text in ["x,y\n1,2\n", "1,2\n", "easting,northing\n1,2\n"] {
            assert!(!parse_points(text.as_bytes(), None).unwrap().is_geographic);
        }
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
            let error = crate::sentence(&parse_points(text.as_bytes(), None).unwrap_err());
            assert!(error.contains(expected), "{text:?}: {error}");
        }
        let columns = ("a".to_owned(), "b".to_owned());
        assert!(parse_points(b"x,y\n1,2\n", Some(&columns)).is_err());
    }
}
