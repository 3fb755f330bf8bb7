//! GDAL's own TIFF tags: nodata (42113) and metadata (42112: scale, offset, unit, description).

use crate::HeightUnit;

/// What the numbers of a band are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Quantity {
    /// Heights, in the unit of the band or else of the vertical system.
    #[default]
    Height,
    /// Something else by its name, such as slopes: no vertical system says anything about its unit.
    Other(String),
}

/// The metadata item that names a quantity other than heights.
const QUANTITY: &str = "TERRANE_QUANTITY";

/// What GDAL's metadata tag may say besides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetadataItem {
    /// The item's name.
    pub name: &'static str,
    /// What it says.
    pub value: String,
    /// Whether it is said of the band and not of the whole raster.
    pub of_band: bool,
}

/// What GDAL's metadata tag says about the one band of a raster.
#[derive(Debug, Clone, PartialEq)]
pub struct BandMetadata {
    /// Units of height per stored step.
    pub scale: f64,
    /// Units of height at the stored value 0.
    pub offset: f64,
    /// Name of the unit, verbatim; empty where none is given.
    pub unit: String,
    /// Free text about the band; empty where none is given.
    pub description: String,
    /// What the numbers are.
    pub quantity: Quantity,
}

impl Default for BandMetadata {
    fn default() -> Self {
        Self {
            scale: 1.0,
            offset: 0.0,
            unit: String::new(),
            description: String::new(),
            quantity: Quantity::Height,
        }
    }
}

impl BandMetadata {
    /// Reads what the XML of the metadata tag says of a band, from 0; items that do not concern the heights are passed over.
    pub fn parse(xml: &str, band: u16) -> Result<Self, String> {
        let document = roxmltree::Document::parse(xml.trim_end_matches('\0'))
            .map_err(|error| format!("its GDAL metadata is not XML: {error}"))?;
        let index = band;
        let mut band = Self::default();
        for item in document
            .descendants()
            .filter(|node| node.has_tag_name("Item"))
        {
            if item
                .attribute("sample")
                .is_some_and(|sample| sample.trim().parse() != Ok(index))
            {
                continue;
            }
            let text = item.text().unwrap_or_default().trim();
            let number = |what: &str| {
                text.parse::<f64>()
                    .ok()
                    .filter(|value| value.is_finite())
                    .ok_or_else(|| format!("its {what} is \"{text}\", not a number"))
            };
            match item.attribute("role") {
                Some("scale") => band.scale = number("scale")?,
                Some("offset") => band.offset = number("offset")?,
                Some("unittype") => text.clone_into(&mut band.unit),
                Some("description") => text.clone_into(&mut band.description),
                _ if item.attribute("name") == Some("NODATA_VALUES") => {
                    return Err("it states nodata as NODATA_VALUES, which is not read here".into());
                }
                _ if item.attribute("name") == Some(QUANTITY) => {
                    band.quantity = Quantity::Other(text.to_owned());
                }
                _ => {}
            }
        }
        if band.scale == 0.0 {
            return Err("its scale is 0".into());
        }
        Ok(band)
    }

    /// Writes the XML of the metadata tag with more items, or `None` where there is nothing to say.
    pub fn to_xml(&self, others: &[MetadataItem]) -> Option<String> {
        let mut items = String::new();
        for MetadataItem {
            name,
            value,
            of_band,
        } in others
        {
            let sample = if *of_band { " sample=\"0\"" } else { "" };
            let value = escape(value);
            items.push_str(&format!("  <Item name=\"{name}\"{sample}>{value}</Item>\n"));
        }
        if let Quantity::Other(name) = &self.quantity {
            let name = escape(name);
            items.push_str(&format!(
                "  <Item name=\"{QUANTITY}\" sample=\"0\">{name}</Item>\n"
            ));
        }
        let mut item = |name: &str, value: &str| {
            let role = name.to_ascii_lowercase();
            items.push_str(&format!(
                "  <Item name=\"{name}\" sample=\"0\" role=\"{role}\">{}</Item>\n",
                escape(value)
            ));
        };
        if !self.description.is_empty() {
            item("DESCRIPTION", &self.description);
        }
        if self.offset != 0.0 || self.scale != 1.0 {
            item("OFFSET", &self.offset.to_string());
            item("SCALE", &self.scale.to_string());
        }
        if !self.unit.is_empty() {
            item("UNITTYPE", &self.unit);
        }
        (!items.is_empty()).then(|| format!("<GDALMetadata>\n{items}</GDALMetadata>\n"))
    }

    /// The unit of the heights, or its name where it is not known.
    pub fn height_unit(&self) -> Result<HeightUnit, &str> {
        HeightUnit::from_name(&self.unit).ok_or(&self.unit)
    }
}

/// Whether the metadata tag of a file beside a raster says that it is a mask of all bands.
pub(crate) fn is_mask_of_all(xml: &str) -> bool {
    const PER_DATASET: &str = "2";
    let Ok(document) = roxmltree::Document::parse(xml.trim_end_matches('\0')) else {
        return false;
    };
    let is_flag = |item: roxmltree::Node| item.attribute("name") == Some("INTERNAL_MASK_FLAGS_1");
    let mut items = document.descendants();
    let flag = items.find(|item| item.has_tag_name("Item") && is_flag(*item));
    flag.and_then(|item| item.text()).map(str::trim) == Some(PER_DATASET)
}

/// Reads the text of the nodata tag; text that is no number is no nodata value, as for GDAL.
pub(crate) fn parse_nodata(text: &str) -> Option<f64> {
    let text = text.trim_matches(|character: char| character.is_whitespace() || character == '\0');
    match text.to_ascii_lowercase().as_str() {
        "nan" | "-nan" | "+nan" => Some(f64::NAN),
        number => number.parse().ok(),
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let band = BandMetadata {
            scale: 0.01,
            offset: -100.5,
            unit: "ft".into(),
            description: "height <of> \"land\" & sea".into(),
            quantity: Quantity::Height,
        };
        assert_eq!(
            BandMetadata::parse(&band.to_xml(&[]).unwrap(), 0),
            Ok(band.clone())
        );
        let slope = BandMetadata {
            quantity: Quantity::Other("slope".into()),
            ..band
        };
        assert_eq!(
            BandMetadata::parse(&slope.to_xml(&[]).unwrap(), 0),
            Ok(slope)
        );
        assert_eq!(BandMetadata::default().to_xml(&[]), None);
    }

    #[test]
    fn other_bands_and_statistics_are_passed_over() {
        let xml = r#"<GDALMetadata>
            <Item name="STATISTICS_MAXIMUM" sample="0">12</Item>
            <Item name="SCALE" sample="1" role="scale">7</Item>
        </GDALMetadata>"#;
        assert_eq!(BandMetadata::parse(xml, 0), Ok(BandMetadata::default()));
        assert_eq!(BandMetadata::parse(xml, 1).unwrap().scale, 7.0);
    }

    #[test]
    fn nonsense_is_refused() {
        let item = |role: &str, value: &str| {
            format!("<GDALMetadata><Item role=\"{role}\">{value}</Item></GDALMetadata>")
        };
        for xml in [
            "<GDALMetadata>",
            &item("scale", "ten"),
            &item("scale", "0"),
            &item("offset", "inf"),
            "<GDALMetadata><Item name=\"NODATA_VALUES\">7</Item></GDALMetadata>",
        ] {
            assert!(BandMetadata::parse(xml, 0).is_err(), "{xml}");
        }
        assert_eq!(parse_nodata("-9999 \0"), Some(-9999.0));
        assert!(parse_nodata("nan").unwrap().is_nan());
        assert_eq!(parse_nodata("none"), None);
    }
}
