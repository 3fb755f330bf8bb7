//! How heights are stored in a file: number type, nodata value, scale, offset and unit.

use std::path::Path;

use crate::{BandMetadata, Crs, Error, Georeference, HeightUnit, Quantity, UnitOrigin};

/// The type of the stored numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SampleType {
    /// 8 bits, unsigned.
    U8,
    /// 8 bits, signed.
    I8,
    /// 16 bits, unsigned.
    U16,
    /// 16 bits, signed.
    I16,
    /// 32 bits, unsigned.
    U32,
    /// 32 bits, signed.
    I32,
    /// 32 bits, floating point.
    F32,
    /// 64 bits, floating point.
    F64,
}

/// Heights of this size are no heights: files with a mistyped nodata value carry them.
const ABSURD: f64 = 1e30;

/// Whether a number can be a height.
pub(crate) fn is_height(number: f64) -> bool {
    number.abs() < ABSURD
}

/// What a stored number says of its pixel.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Pixel {
    /// Its height in metres.
    Height(f64),
    /// It has none.
    Missing,
    /// A number that is no height, though nothing declares it to mean "no data".
    NotAHeight,
}

impl SampleType {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::U8,
        Self::I8,
        Self::U16,
        Self::I16,
        Self::U32,
        Self::I32,
        Self::F32,
        Self::F64,
    ];

    /// Bytes of one sample.
    pub fn bytes(self) -> usize {
        match self {
            Self::U8 | Self::I8 => 1,
            Self::U16 | Self::I16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::F64 => 8,
        }
    }

    /// Whether samples are floating-point numbers.
    pub fn is_float(self) -> bool {
        matches!(self, Self::F32 | Self::F64)
    }

    /// The name NumPy and GDAL users know it by.
    pub fn name(self) -> &'static str {
        match self {
            Self::U8 => "uint8",
            Self::I8 => "int8",
            Self::U16 => "uint16",
            Self::I16 => "int16",
            Self::U32 => "uint32",
            Self::I32 => "int32",
            Self::F32 => "float32",
            Self::F64 => "float64",
        }
    }

    /// The least and greatest value of an integer type.
    pub(crate) fn integer_range(self) -> Option<(f64, f64)> {
        match self {
            Self::U8 => Some((0.0, f64::from(u8::MAX))),
            Self::I8 => Some((f64::from(i8::MIN), f64::from(i8::MAX))),
            Self::U16 => Some((0.0, f64::from(u16::MAX))),
            Self::I16 => Some((f64::from(i16::MIN), f64::from(i16::MAX))),
            Self::U32 => Some((0.0, f64::from(u32::MAX))),
            Self::I32 => Some((f64::from(i32::MIN), f64::from(i32::MAX))),
            Self::F32 | Self::F64 => None,
        }
    }

    /// Appends the little-endian bytes of a number that the type can hold.
    pub(crate) fn encode(self, raw: f64, bytes: &mut Vec<u8>) {
        match self {
            Self::U8 => bytes.push(raw as u8),
            Self::I8 => bytes.extend((raw as i8).to_le_bytes()),
            Self::U16 => bytes.extend((raw as u16).to_le_bytes()),
            Self::I16 => bytes.extend((raw as i16).to_le_bytes()),
            Self::U32 => bytes.extend((raw as u32).to_le_bytes()),
            Self::I32 => bytes.extend((raw as i32).to_le_bytes()),
            Self::F32 => bytes.extend((raw as f32).to_le_bytes()),
            Self::F64 => bytes.extend(raw.to_le_bytes()),
        }
    }

    /// Decodes native-endian samples.
    pub(crate) fn decode(self, bytes: &[u8]) -> Vec<f64> {
        fn each<const N: usize>(bytes: &[u8], value: impl Fn([u8; N]) -> f64) -> Vec<f64> {
            bytes
                .as_chunks::<N>()
                .0
                .iter()
                .map(|&chunk| value(chunk))
                .collect()
        }
        match self {
            Self::U8 => bytes.iter().map(|&byte| f64::from(byte)).collect(),
            Self::I8 => bytes.iter().map(|&byte| f64::from(byte as i8)).collect(),
            Self::U16 => each(bytes, |chunk| f64::from(u16::from_ne_bytes(chunk))),
            Self::I16 => each(bytes, |chunk| f64::from(i16::from_ne_bytes(chunk))),
            Self::U32 => each(bytes, |chunk| f64::from(u32::from_ne_bytes(chunk))),
            Self::I32 => each(bytes, |chunk| f64::from(i32::from_ne_bytes(chunk))),
            Self::F32 => each(bytes, |chunk| f64::from(f32::from_ne_bytes(chunk))),
            Self::F64 => each(bytes, f64::from_ne_bytes),
        }
    }
}

/// How heights are stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Storage {
    /// The type of the stored numbers.
    pub sample: SampleType,
    /// The stored number that means "no data", before scale and offset.
    pub nodata: Option<f64>,
    /// Scale, offset, unit and description.
    pub band: BandMetadata,
}

impl Storage {
    /// Plain metres of the given type.
    pub fn metres(sample: SampleType, nodata: Option<f64>) -> Self {
        Self {
            sample,
            nodata,
            band: BandMetadata::default(),
        }
    }

    /// Values of a quantity other than heights, named, in a unit that may be empty; they are stored as they are given.
    pub fn other(sample: SampleType, nodata: Option<f64>, name: &str, unit: &str) -> Self {
        let mut storage = Self::metres(sample, nodata);
        storage.band.quantity = Quantity::Other(name.to_owned());
        unit.clone_into(&mut storage.band.unit);
        storage
    }

    /// The unit of the heights: from the band, else from the vertical system, else metres.
    pub fn unit(&self, crs: &Crs) -> Result<HeightUnit, String> {
        self.unit_with_origin(crs).map(|(unit, _)| unit)
    }

    /// The unit of the heights, and what states it.
    pub fn unit_with_origin(&self, crs: &Crs) -> Result<(HeightUnit, UnitOrigin), String> {
        if !self.band.unit.is_empty() {
            let unit = self.band.height_unit();
            let unit = unit.map_err(|name| format!("the height unit \"{name}\""))?;
            return Ok((unit, UnitOrigin::Band));
        }
        let unit = match (crs.vertical_unit_code(), crs.vertical_epsg()) {
            (Some(code), _) => HeightUnit::from_epsg_unit(code)
                .ok_or_else(|| format!("the height unit EPSG:{code}"))?,
            (None, Some(code)) => HeightUnit::from_vertical_epsg(code),
            (None, None) => return Ok((HeightUnit::Metre, UnitOrigin::Assumed)),
        };
        Ok((unit, UnitOrigin::VerticalSystem))
    }

    /// The unit of what is written, or why it cannot be. The vertical system of a quantity other than heights is left out.
    pub(crate) fn unit_in(
        &self,
        georeference: &mut Georeference,
        path: &Path,
    ) -> crate::Result<HeightUnit> {
        if let Quantity::Other(_) = self.band.quantity {
            // GDAL would take the unit of heights for that of a band that states none.
            georeference.crs = georeference.crs.horizontal();
            return Ok(HeightUnit::Metre);
        }
        self.unit(&georeference.crs)
            .map_err(|what| Error::Unsupported {
                path: path.to_owned(),
                what,
                advice: "give the band a unit that is known, such as m or ft",
            })
    }

    /// Whether a stored number is the declared nodata value, as GDAL compares them.
    pub(crate) fn is_nodata(&self, raw: f64) -> bool {
        let Some(nodata) = self.nodata else {
            return false;
        };
        let (nodata, epsilon) = match self.sample {
            // A value that the type cannot hold is the infinite one, as in a file of 32-bit floats with 1e39.
            SampleType::F32 => (f64::from(nodata as f32), f64::from(f32::EPSILON)),
            SampleType::F64 => (nodata, f64::EPSILON),
            _ => return raw == nodata,
        };
        // GDAL compares floating-point nodata with two units in the last place to spare, because the tag is text.
        raw == nodata || (raw - nodata).abs() < epsilon * (raw + nodata).abs() * 2.0
    }

    /// Whether a stored number would be read as no height.
    pub(crate) fn is_missing(&self, raw: f64) -> bool {
        !is_height(raw) || self.is_nodata(raw)
    }

    /// What a stored number says of its pixel.
    pub(crate) fn pixel(&self, raw: f64, unit: HeightUnit) -> Pixel {
        if raw.is_nan() || self.is_nodata(raw) {
            return Pixel::Missing;
        }
        let height_m = self.height(raw, unit);
        if is_height(raw) && is_height(height_m) {
            Pixel::Height(height_m)
        } else {
            Pixel::NotAHeight
        }
    }

    /// The number that stands for every pixel of a block that is absent from the file: nodata where it is declared,
    /// else 0. As GDAL does, an integer type takes a nodata value that it cannot hold as the nearest that it can.
    pub(crate) fn absent(&self) -> f64 {
        match (self.nodata, self.sample.integer_range()) {
            (None, _) => 0.0,
            (Some(nodata), None) => nodata,
            (Some(nodata), Some(_)) if nodata.is_nan() => 0.0,
            (Some(nodata), Some((min, max))) => nodata.round().clamp(min, max),
        }
    }

    /// The height in metres of a stored number.
    pub(crate) fn height(&self, raw: f64, unit: HeightUnit) -> f64 {
        let scaled = raw * self.band.scale;
        // Nothing is added where there is nothing to add: −0 + 0 is 0, and a height comes back bit for bit.
        let scaled = if self.band.offset == 0.0 {
            scaled
        } else {
            scaled + self.band.offset
        };
        scaled * unit.metres()
    }

    /// The stored number of a height in metres, before rounding.
    pub(crate) fn raw(&self, height_m: f64, unit: HeightUnit) -> f64 {
        (height_m / unit.metres() - self.band.offset) / self.band.scale
    }

    /// The stored number of a height in metres or of none (NaN), or why there is no such number: the height does not fit or
    /// would be read back as nodata, or there is no value for none.
    pub fn store(&self, height_m: f64, unit: HeightUnit) -> Result<f64, String> {
        let range = self.sample.integer_range();
        let name = self.sample.name();
        if height_m.is_nan() {
            return match (self.nodata, range) {
                (Some(nodata), Some((min, max))) if nodata >= min && nodata <= max => Ok(nodata),
                (Some(nodata), None) => Ok(nodata),
                (None, None) => Ok(f64::NAN),
                _ => Err(format!("there is no data, and {name} has no nodata value")),
            };
        }
        let shown = match self.band.quantity {
            Quantity::Height => " m",
            Quantity::Other(_) => "",
        };
        let mut raw = self.raw(height_m, unit);
        if let Some((min, max)) = range {
            raw = raw.round();
            if raw < min || raw > max {
                return Err(format!("{height_m}{shown} does not fit into {name}"));
            }
        }
        if self.is_missing(raw) {
            return Err(format!("{height_m}{shown} would be read back as nodata"));
        }
        Ok(raw)
    }

    /// Turns stored numbers into heights in metres, NaN where there is no data; returns how many of them are no heights
    /// without being declared as nodata.
    pub fn heights(&self, numbers: &mut [f64], unit: HeightUnit) -> usize {
        let mut not_heights = 0;
        for number in numbers {
            *number = match self.pixel(*number, unit) {
                Pixel::Height(height_m) => height_m,
                Pixel::Missing => f64::NAN,
                Pixel::NotAHeight => {
                    not_heights += 1;
                    f64::NAN
                }
            };
        }
        not_heights
    }

    /// The stored number of a height in metres as a reader finds it, for statistics of a band.
    pub fn shown(&self, height_m: f64, unit: HeightUnit) -> f64 {
        let raw = self.nearest(height_m, unit);
        match self.sample {
            SampleType::F32 => f64::from(raw as f32),
            _ => raw,
        }
    }

    /// The number nearest to a height that can be stored, or of none (NaN): what an overview holds, whose heights lie between
    /// those that the type and the nodata value were chosen for.
    pub fn nearest(&self, height_m: f64, unit: HeightUnit) -> f64 {
        if height_m.is_nan() {
            return match (self.nodata, self.sample.integer_range()) {
                (None, None) => f64::NAN,
                _ => self.absent(),
            };
        }
        let raw = self.raw(height_m, unit);
        let Some((min, max)) = self.sample.integer_range() else {
            return match self.nodata {
                // Farther from nodata than what GDAL takes for the same.
                Some(nodata) if self.is_nodata(raw) => {
                    let step = match self.sample {
                        SampleType::F32 => f64::from(f32::EPSILON),
                        _ => f64::EPSILON,
                    };
                    nodata + 8.0 * step * nodata.abs().max(1.0)
                }
                _ => raw,
            };
        };
        let raw = raw.round().clamp(min, max);
        match self.nodata {
            Some(nodata) if raw == nodata && raw < max => raw + 1.0,
            Some(nodata) if raw == nodata => raw - 1.0,
            _ => raw,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overviews_are_never_nodata_by_chance() {
        let storage = |sample, nodata| Storage::metres(sample, nodata);
        let metre = HeightUnit::Metre;
        let bytes = storage(SampleType::U8, Some(255.0));
        for (height_m, expected) in [(-7.0, 0.0), (99.5, 100.0), (254.8, 254.0), (300.0, 254.0)] {
            assert_eq!(bytes.nearest(height_m, metre), expected);
        }
        assert_eq!(bytes.nearest(f64::NAN, metre), 255.0);
        assert_eq!(storage(SampleType::I16, Some(0.0)).nearest(0.2, metre), 1.0);
        for nodata in [0.0, -9999.0, 1e-9] {
            for sample in [SampleType::F32, SampleType::F64] {
                let storage = storage(sample, Some(nodata));
                let near = storage.nearest(nodata, metre);
                assert!(!storage.is_missing(near) && (near - nodata).abs() < 0.01);
            }
        }
        assert!(
            storage(SampleType::F32, None)
                .nearest(f64::NAN, metre)
                .is_nan()
        );
    }

    #[test]
    fn nodata_is_found_as_gdal_finds_it() {
        let storage = |nodata| Storage::metres(SampleType::F32, nodata);
        assert!(storage(Some(-9999.0)).is_missing(-9999.0));
        assert!(!storage(Some(-9999.0)).is_missing(-9998.9));
        // 0.1 as text is not the float nearest to 0.1.
        assert!(storage(Some(0.1)).is_missing(f64::from(0.1_f32)));
        assert!(storage(Some(f64::NAN)).is_missing(f64::NAN));
        assert!(storage(None).is_missing(f64::from(f32::MIN)));
        assert!(!storage(None).is_missing(0.0));
        assert!(!Storage::metres(SampleType::I16, Some(-9999.0)).is_missing(-9998.0));
    }

    #[test]
    fn numbers_that_are_no_heights_are_told_from_declared_nodata() {
        let pixel =
            |sample, nodata, raw| Storage::metres(sample, nodata).pixel(raw, HeightUnit::Metre);
        let least = f64::from(f32::MIN);
        for (nodata, raw, expected) in [
            (None, 1e30, Pixel::NotAHeight),
            (None, -1e30, Pixel::NotAHeight),
            (None, f64::INFINITY, Pixel::NotAHeight),
            (None, f64::NAN, Pixel::Missing),
            (None, 9.9e29, Pixel::Height(9.9e29)),
            (Some(-9999.0), least, Pixel::NotAHeight),
            (Some(least), least, Pixel::Missing),
            // One unit in the last place off, as ESRI's files state it.
            (Some(-3.402_823_060_737_096_5e38), least, Pixel::Missing),
            (Some(-3.4e38), least, Pixel::NotAHeight),
            (Some(f64::INFINITY), f64::INFINITY, Pixel::Missing),
            (Some(f64::INFINITY), f64::NEG_INFINITY, Pixel::NotAHeight),
            (Some(1e39), f64::INFINITY, Pixel::Missing),
        ] {
            let found = pixel(SampleType::F32, nodata, raw);
            assert_eq!(found, expected, "{raw} beside {nodata:?}");
        }
        assert_eq!(pixel(SampleType::F64, Some(1e39), 1e39), Pixel::Missing);
        assert_eq!(
            pixel(SampleType::F64, Some(1e39), f64::INFINITY),
            Pixel::NotAHeight
        );
        let mut storage = Storage::metres(SampleType::F64, None);
        storage.band.scale = 1e10;
        assert_eq!(storage.pixel(1e25, HeightUnit::Metre), Pixel::NotAHeight);
    }

    #[test]
    fn an_absent_block_is_what_gdal_fills_it_with() {
        // Asked of GDAL 3.10, with the tag of sparse files set to each.
        for (sample, nodata, absent) in [
            (SampleType::F32, None, 0.0),
            (SampleType::F32, Some(-9999.0), -9999.0),
            (SampleType::U8, Some(123.0), 123.0),
            (SampleType::U8, Some(-99.0), 0.0),
            (SampleType::U8, Some(300.0), 255.0),
            (SampleType::U8, Some(f64::NAN), 0.0),
            (SampleType::U8, Some(0.5), 1.0),
            (SampleType::I16, Some(99_999.0), 32_767.0),
        ] {
            assert_eq!(Storage::metres(sample, nodata).absent(), absent);
        }
        assert!(
            Storage::metres(SampleType::F32, Some(f64::NAN))
                .absent()
                .is_nan()
        );
    }

    #[test]
    fn the_unit_comes_from_the_band_before_the_system() {
        let mut storage = Storage::metres(SampleType::F32, None);
        let feet = Crs::projected(2264, Some(6360));
        assert_eq!(storage.unit(&feet), Ok(HeightUnit::UsSurveyFoot));
        storage.band.unit = "m".into();
        assert_eq!(storage.unit(&feet), Ok(HeightUnit::Metre));
        storage.band.unit = "fathom".into();
        assert!(storage.unit(&feet).unwrap_err().contains("fathom"));
    }

    #[test]
    fn a_zero_below_zero_keeps_its_sign() {
        let storage = Storage::metres(SampleType::F32, None);
        let height = storage.height(-0.0, HeightUnit::Metre);
        assert_eq!(height.to_bits(), (-0.0_f64).to_bits());
        let stored = storage.store(height, HeightUnit::Metre).unwrap();
        assert_eq!(stored.to_bits(), (-0.0_f64).to_bits());
    }

    #[test]
    fn scale_offset_and_unit_are_undone_on_the_way_back() {
        let mut storage = Storage::metres(SampleType::I16, Some(-32768.0));
        storage.band.scale = 0.1;
        storage.band.offset = 100.0;
        for raw in [-32767.0, -1.0, 0.0, 12345.0, 32767.0] {
            let height = storage.height(raw, HeightUnit::Foot);
            assert_eq!(storage.raw(height, HeightUnit::Foot).round(), raw);
        }
    }

    #[test]
    fn a_height_without_a_number_takes_the_nearest_that_has_one() {
        let storage = |sample, nodata| Storage::metres(sample, nodata);
        let near = |storage: Storage, height| storage.nearest(height, HeightUnit::Metre);
        let integer = storage(SampleType::I16, Some(-32768.0));
        assert_eq!(near(integer.clone(), 7.6), 8.0);
        assert_eq!(near(integer.clone(), -40_000.0), -32767.0);
        assert_eq!(near(integer.clone(), 40_000.0), 32767.0);
        assert_eq!(near(integer, f64::NAN), -32768.0);
        let float = storage(SampleType::F32, Some(0.5));
        let stored = near(float.clone(), 0.5);
        assert!((stored - 0.5).abs() < 1e-5 && !float.is_missing(f64::from(stored as f32)));
    }
}
