//! What can be asked, as JavaScript writes it: numbers, then texts.
//!
//! Numbers are 64-bit floats, little-endian, in the order of [`Request`]'s fields and with those of the line last; texts come
//! after them, a zero between two. JSON would need a reader of numbers and names, which is a twentieth of the module.

use std::str::Utf8Error;

/// The kinds of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ask {
    /// Opens a file and describes it; `without_system` where nobody knows its coordinate system.
    #[default]
    Open,
    /// Forgets a file.
    Close,
    /// Gives the `definition` of the coordinate system `epsg` as PROJ writes it.
    Define,
    /// The TileJSON of a `layer` or of `contours`, with the file's `name` and the `address` of its tiles, a template.
    Tilejson,
    /// The pixels of a map tile, `side` across: red, green, blue and alpha.
    Tile,
    /// Contour lines of a map tile as a Mapbox vector tile, `interval` metres apart or as suits the zoom.
    Contours,
    /// What is known at `longitude` and `latitude`.
    Point,
    /// Heights along a `line` at `count` points.
    Profile,
    /// Heights of pixels of a `level`, as 64-bit floats; no number where there is no data.
    Window,
}

/// A request: the fields of all kinds.
#[derive(Debug, Clone, PartialEq, Default)]
#[expect(missing_docs, reason = "the kinds of requests say what they need")]
pub struct Request {
    /// A number that JavaScript chose when it opened the file.
    pub file: u32,
    pub without_system: bool,
    pub epsg: u16,
    pub z: u8,
    pub x: u32,
    pub y: u32,
    pub side: usize,
    pub interval: Option<f64>,
    pub longitude: f64,
    pub latitude: f64,
    pub count: usize,
    pub level: u8,
    pub column: usize,
    pub row: usize,
    pub width: usize,
    pub height: usize,
    pub line: Vec<(f64, f64)>,
    pub ask: Ask,
    pub definition: String,
    pub layer: String,
    pub name: String,
    pub address: String,
}

/// What can be wrong with a request.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum RequestError {
    /// It ends too early.
    #[error("the request cannot be read: it is not whole")]
    Short,
    /// A text is none.
    #[error("the request cannot be read: {0}")]
    Text(#[from] Utf8Error),
    /// A number is not one of those that it may be.
    #[error("the request cannot be read: {0} is no number for its {1}")]
    Number(f64, &'static str),
    /// Nobody knows what is asked.
    #[error("the request cannot be read: nothing is known by the name of {0}")]
    Ask(String),
}

impl Ask {
    fn of(name: &str) -> Result<Self, RequestError> {
        Ok(match name {
            "open" => Self::Open,
            "close" => Self::Close,
            "define" => Self::Define,
            "tilejson" => Self::Tilejson,
            "tile" => Self::Tile,
            "contours" => Self::Contours,
            "point" => Self::Point,
            "profile" => Self::Profile,
            "window" => Self::Window,
            _ => return Err(RequestError::Ask(name.to_owned())),
        })
    }
}

/// Numbers that are still to be read.
struct Numbers<'a>(&'a [u8]);

impl Numbers<'_> {
    fn next(&mut self) -> Result<f64, RequestError> {
        let (number, rest) = self.0.split_first_chunk().ok_or(RequestError::Short)?;
        self.0 = rest;
        Ok(f64::from_le_bytes(*number))
    }

    /// A whole number from 0 to the largest of its kind.
    fn whole<T: TryFrom<u64>>(&mut self, name: &'static str) -> Result<T, RequestError> {
        let number = self.next()?;
        // Beyond 2^53 not every whole number is one.
        let is_whole = number >= 0.0 && number <= (1_u64 << 53) as f64 && number.fract() == 0.0;
        is_whole
            .then(|| T::try_from(number as u64).ok())
            .flatten()
            .ok_or(RequestError::Number(number, name))
    }
}

impl Request {
    /// Reads what JavaScript wrote.
    pub fn read(bytes: &[u8]) -> Result<Self, RequestError> {
        let mut numbers = Numbers(bytes);
        let request = Self {
            file: numbers.whole("file")?,
            without_system: numbers.whole::<u64>("switch")? > 0,
            epsg: numbers.whole("system")?,
            z: numbers.whole("zoom")?,
            x: numbers.whole("column of tiles")?,
            y: numbers.whole("row of tiles")?,
            side: numbers.whole("side")?,
            interval: Some(numbers.next()?).filter(|interval| !interval.is_nan()),
            longitude: numbers.next()?,
            latitude: numbers.next()?,
            count: numbers.whole("count")?,
            level: numbers.whole("level")?,
            column: numbers.whole("column")?,
            row: numbers.whole("row")?,
            width: numbers.whole("width")?,
            height: numbers.whole("height")?,
            ..Self::default()
        };
        let mut line = Vec::new();
        for _ in 0..numbers.whole::<u64>("corners")? {
            line.push((numbers.next()?, numbers.next()?));
        }
        let mut texts = std::str::from_utf8(numbers.0)?.split('\0');
        let mut text = || texts.next().ok_or(RequestError::Short);
        Ok(Self {
            line,
            ask: Ask::of(text()?)?,
            definition: text()?.to_owned(),
            layer: text()?.to_owned(),
            name: text()?.to_owned(),
            address: text()?.to_owned(),
            ..request
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(numbers: &[f64], texts: &str) -> Vec<u8> {
        let mut bytes: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
        bytes.extend(texts.as_bytes());
        bytes
    }

    const NUMBERS: [f64; 21] = [
        7.0,
        1.0,
        3794.0,
        14.0,
        8531.0,
        5770.0,
        256.0,
        f64::NAN,
        7.25,
        -46.5,
        300.0,
        2.0,
        10.0,
        20.0,
        30.0,
        40.0,
        2.0,
        1.5,
        2.5,
        3.5,
        4.5,
    ];

    #[test]
    fn a_request_is_read_as_it_was_written() {
        let request =
            Request::read(&bytes(&NUMBERS, "profile\0+proj=utm\0slope\0a b\0{z}")).unwrap();
        let expected = Request {
            file: 7,
            without_system: true,
            epsg: 3794,
            z: 14,
            x: 8531,
            y: 5770,
            side: 256,
            interval: None,
            longitude: 7.25,
            latitude: -46.5,
            count: 300,
            level: 2,
            column: 10,
            row: 20,
            width: 30,
            height: 40,
            line: vec![(1.5, 2.5), (3.5, 4.5)],
            ask: Ask::Profile,
            definition: "+proj=utm".into(),
            layer: "slope".into(),
            name: "a b".into(),
            address: "{z}".into(),
        };
        assert_eq!(request, expected);
    }

    #[test]
    fn what_is_no_request_is_refused() {
        let texts = "open\0\0\0\0";
        assert!(Request::read(&bytes(&NUMBERS, texts)).is_ok());
        assert_eq!(Request::read(&[]), Err(RequestError::Short));
        assert!(Request::read(&bytes(&NUMBERS[..20], texts)).is_err());
        assert!(Request::read(&bytes(&NUMBERS, "fly\0\0\0\0")).is_err());
        assert!(Request::read(&bytes(&NUMBERS, "open\0\0")).is_err());
        for (place, number) in [
            (0, -1.0),
            (3, 256.0),
            (4, 0.5),
            (6, f64::NAN),
            (16, 1e9),
            (2, 1e300),
        ] {
            let mut numbers = NUMBERS;
            numbers[place] = number;
            assert!(
                Request::read(&bytes(&numbers, texts)).is_err(),
                "{place} {number}"
            );
        }
        let mut broken = bytes(&NUMBERS, texts);
        broken.push(0xff);
        assert!(matches!(Request::read(&broken), Err(RequestError::Text(_))));
    }
}
