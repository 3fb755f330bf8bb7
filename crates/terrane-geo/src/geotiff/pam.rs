//! GDAL's file beside a raster (`dem.tif.aux.xml`), which counts before what the raster itself says.
//!
//! GDAL reads the children of the first element, whatever their case, and of several the first. What it takes of them is read
//! here; where its versions differ, or where it takes something that is not read here, the raster is refused.

use std::path::Path;

use roxmltree::{Document, Node, ParsingOptions};

use super::{REWRITE_ADVICE, malformed, unsupported};
use crate::crs_text::{CrsTextError, crs};
use crate::metadata::parse_nodata;
use crate::{Affine, BandMetadata, Crs, Result};

/// Statistics and attribute tables are smaller.
pub(super) const MAX_BYTES: usize = 16 << 20;
const MAX_NODES: u32 = 1 << 20;

/// What the file beside a raster says of it.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Pam {
    /// The coordinate reference system; an empty one where the file says that there is none.
    pub(super) crs: Option<std::result::Result<Crs, CrsTextError>>,
    /// The transform from the corner of the first pixel.
    pub(super) transform: Option<Affine>,
    /// The stored number that means "no data".
    pub(super) nodata: Option<f64>,
    /// Scale and offset.
    pub(super) scale: Option<(f64, f64)>,
    /// The unit of the band.
    pub(super) unit: Option<String>,
}

impl Pam {
    /// Reads what the file says of the raster and of one of its bands, from 1.
    pub(super) fn parse(path: &Path, bytes: &[u8], band: u16) -> Result<Self> {
        let bad =
            |reason: &str| malformed(path, &format!("the file beside it (.aux.xml) {reason}"));
        if bytes.len() > MAX_BYTES {
            return Err(bad("is too large"));
        }
        // What is not UTF-8 is text that says nothing of heights.
        let text = String::from_utf8_lossy(bytes);
        let text = text.trim_start_matches('\u{feff}').trim();
        if text.is_empty() {
            return Ok(Self::default());
        }
        let options = ParsingOptions {
            nodes_limit: MAX_NODES,
            ..ParsingOptions::default()
        };
        let document = Document::parse_with_options(text, options)
            .map_err(|error| bad(&format!("is not XML: {error}")))?;
        let root = document.root_element();
        let pam = Self::of(path, root, band)?;
        // GDAL takes a declaration or a comment for the first element, and then finds nothing.
        if pam != Self::default() && root.range().start > 0 {
            return Err(unsupported(
                path,
                "a file beside it (.aux.xml) that GDAL passes over, as its first line is a declaration or a comment",
                "take that line away, or the file",
            ));
        }
        Ok(pam)
    }

    fn of(path: &Path, root: Node, band: u16) -> Result<Self> {
        let bad =
            |reason: &str| malformed(path, &format!("the file beside it (.aux.xml) {reason}"));
        if child(root, "GCPList").is_some_and(|list| child(list, "GCP").is_some()) {
            return Err(unsupported(
                path,
                "a raster placed by ground control points in the file beside it (.aux.xml)",
                super::WARP_ADVICE,
            ));
        }
        if root
            .descendants()
            .any(|node| is_named(node, "GeodataXform"))
        {
            return Err(unsupported(
                path,
                "a transformation of ArcGIS in the file beside it (.aux.xml)",
                REWRITE_ADVICE,
            ));
        }
        let is_mask =
            |item: Node| is_named(item, "MDI") && item.attribute("key") == Some("NODATA_VALUES");
        if root.descendants().any(is_mask) {
            return Err(unsupported(
                path,
                "nodata as NODATA_VALUES in the file beside it (.aux.xml)",
                "give it with `nodata`",
            ));
        }
        let mut pam = Self::default();
        if let Some(node) = child(root, "SRS") {
            pam.crs = Some(system(node).map(|crs| crs.of_points(is_point(root))));
        }
        // GDAL warns of another number of numbers, and passes over them.
        if let Some(node) = child(root, "GeoTransform")
            && let Ok(parts) = <[&str; 6]>::try_from(text(node).split(',').collect::<Vec<_>>())
        {
            let numbers: Option<Vec<f64>> =
                parts.iter().map(|part| part.trim().parse().ok()).collect();
            let numbers = numbers.and_then(|numbers| <[f64; 6]>::try_from(numbers).ok());
            let numbers = numbers.ok_or_else(|| bad("has a transform that is not six numbers"))?;
            pam.transform = Some(Affine::from_numbers(numbers));
        }
        let is_band = |node: &Node| {
            let number = node.attribute("band").map(|text| text.trim().parse());
            is_named(*node, "PAMRasterBand") && number == Some(Ok(band))
        };
        for node in root.children().filter(is_band) {
            pam.read_band(node).map_err(|reason| bad(&reason))?;
        }
        Ok(pam)
    }

    fn read_band(&mut self, band: Node) -> std::result::Result<(), String> {
        let number = |name: &str| match child(band, name).map(text) {
            None | Some("") => Ok(None),
            Some(text) => match text.parse::<f64>() {
                Ok(number) if number.is_finite() => Ok(Some(number)),
                _ => Err(format!("says that its {name} is \"{text}\"")),
            },
        };
        if let Some(node) = child(band, "NoDataValue").filter(|node| !text(*node).is_empty()) {
            // The bytes of the number, which its text may not hold in full.
            let exact = node.attribute("le_hex_equiv").map(|text| {
                let bytes = (text.len() == 16).then(|| u64::from_str_radix(text, 16).ok());
                bytes
                    .flatten()
                    .map(|bits| f64::from_bits(bits.swap_bytes()))
            });
            let value = exact.unwrap_or_else(|| parse_nodata(text(node)));
            let value = value.ok_or_else(|| format!("says that nodata is \"{}\"", text(node)))?;
            self.nodata = Some(value);
        }
        let (scale, offset) = (number("Scale")?, number("Offset")?);
        if scale == Some(0.0) {
            return Err("says that its Scale is 0".into());
        }
        if scale.is_some() || offset.is_some() {
            self.scale = Some((scale.unwrap_or(1.0), offset.unwrap_or(0.0)));
        }
        if let Some(node) = child(band, "UnitType").filter(|node| !text(*node).is_empty()) {
            self.unit = Some(text(node).to_owned());
        }
        Ok(())
    }

    /// Puts what it says of the band over what the raster says. GDAL 3.6 takes the raster's scale and unit where both state
    /// one, GDAL 3.10 those beside it: where they differ it cannot be known which are meant.
    pub(super) fn apply(&self, path: &Path, metadata: &mut BandMetadata) -> Result<()> {
        let differs = |what: &str| {
            Err(unsupported(
                path,
                format!("{what} in the raster and another one in the file beside it (.aux.xml)"),
                REWRITE_ADVICE,
            ))
        };
        if let Some(beside) = self.scale {
            let own = (metadata.scale, metadata.offset);
            if own != (1.0, 0.0) && own != beside {
                return differs("a scale or an offset");
            }
            (metadata.scale, metadata.offset) = beside;
        }
        if let Some(beside) = &self.unit {
            if !metadata.unit.is_empty() && metadata.unit != *beside {
                return differs("a unit");
            }
            beside.clone_into(&mut metadata.unit);
        }
        Ok(())
    }
}

/// The system that an element states; empty where it says that there is none.
fn system(node: Node) -> std::result::Result<Crs, CrsTextError> {
    if text(node).is_empty() {
        return Ok(Crs::default());
    }
    crs(text(node), node.attribute("dataAxisToSRSAxisMapping"))
}

/// Whether the file says that pixels are points; GDAL asks it only where it states the system too.
fn is_point(root: Node) -> bool {
    let metadata = child(root, "Metadata");
    let items = metadata.into_iter().flat_map(|node| node.children());
    let mut items = items.filter(|item| item.attribute("key") == Some("AREA_OR_POINT"));
    items.any(|item| text(item).eq_ignore_ascii_case("point"))
}

/// GDAL does not mind the case of a name.
fn is_named(node: Node, name: &str) -> bool {
    node.is_element() && node.tag_name().name().eq_ignore_ascii_case(name)
}

/// The first child of a name.
fn child<'a, 'input>(node: Node<'a, 'input>, name: &str) -> Option<Node<'a, 'input>> {
    node.children().find(|child| is_named(*child, name))
}

fn text<'a>(node: Node<'a, '_>) -> &'a str {
    node.text().unwrap_or_default().trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Pam> {
        Pam::parse(Path::new("a.tif"), text.as_bytes(), 1)
    }

    fn pam(inside: &str) -> Result<Pam> {
        parse(&format!("<PAMDataset>{inside}</PAMDataset>"))
    }

    #[test]
    fn what_gdal_takes_is_read() {
        let found = pam(
            "<SRS>EPSG:2056</SRS><GeoTransform> 1.0e0, 2,0,3,0,-2</GeoTransform>\
             <PAMRasterBand band=\"1\"><NoDataValue le_hex_equiv=\"000000E0FFFFEFC7\">-3.4e38</NoDataValue>\
             <Scale>2</Scale><UnitType>ft</UnitType><Histograms/></PAMRasterBand>\
             <PAMRasterBand band=\"2\"><NoDataValue>7</NoDataValue></PAMRasterBand>",
        );
        let expected = Pam {
            crs: Some(Ok(Crs::projected(2056, None))),
            transform: Some(Affine::from_numbers([1.0, 2.0, 0.0, 3.0, 0.0, -2.0])),
            nodata: Some(f64::from(f32::MIN)),
            scale: Some((2.0, 0.0)),
            unit: Some("ft".into()),
        };
        assert_eq!(found.unwrap(), expected);
    }

    #[test]
    fn what_says_nothing_of_heights_and_place_is_passed_over() {
        for text in [
            "",
            " \n",
            "<PAMDataset/>",
            "<?xml version=\"1.0\"?><PAMDataset><PAMRasterBand band=\"1\"><Metadata/></PAMRasterBand></PAMDataset>",
            "<PAMDataset><GeoTransform>1,2,3</GeoTransform><x><SRS>EPSG:2056</SRS></x></PAMDataset>",
            "<PAMDataset><Metadata><MDI key=\"AREA_OR_POINT\">Point</MDI></Metadata></PAMDataset>",
            "<PAMDataset><PAMRasterBand band=\"1\"><NoDataValue></NoDataValue></PAMRasterBand></PAMDataset>",
        ] {
            assert_eq!(parse(text).unwrap(), Pam::default(), "{text}");
        }
        let point =
            pam("<SRS>EPSG:2056</SRS><Metadata><MDI key=\"AREA_OR_POINT\">Point</MDI></Metadata>");
        let crs = point.unwrap().crs.unwrap().unwrap();
        assert!(crs.pixel_is_point());
        let none = pam("<SRS/>").unwrap();
        assert_eq!(
            none.crs,
            Some(Ok(Crs::default())),
            "a system that is taken away"
        );
    }

    #[test]
    fn what_cannot_be_read_is_refused() {
        // Unless another one is given.
        assert!(matches!(
            pam("<SRS>rubbish</SRS>").unwrap().crs,
            Some(Err(_))
        ));
        for inside in [
            "<GeoTransform>a,2,0,3,0,-2</GeoTransform>",
            "<GCPList><GCP/></GCPList>",
            "<Metadata domain=\"xml:ESRI\"><GeodataXform/></Metadata>",
            "<Metadata><MDI key=\"NODATA_VALUES\">7</MDI></Metadata>",
            "<PAMRasterBand band=\"1\"><Scale>0</Scale></PAMRasterBand>",
            "<PAMRasterBand band=\"1\"><Offset>inf</Offset></PAMRasterBand>",
            "<PAMRasterBand band=\"1\"><NoDataValue>abc</NoDataValue></PAMRasterBand>",
            "<PAMRasterBand band=\"1\"><NoDataValue le_hex_equiv=\"é\">1</NoDataValue></PAMRasterBand>",
        ] {
            assert!(pam(inside).is_err(), "{inside}");
        }
        let system = "<PAMDataset><SRS>EPSG:2056</SRS></PAMDataset>";
        assert!(parse(&format!("<?xml version=\"1.0\"?>{system}")).is_err());
        for length in 1..system.len() {
            assert!(parse(&system[..length]).is_err(), "{length}");
        }
        let deep = "<a>".repeat(100_000);
        assert!(parse(&deep).is_err());
        assert!(Pam::parse(Path::new("a"), &[0xff; 9], 1).is_err());
        let latin = b"<PAMDataset><Metadata>\xe9</Metadata></PAMDataset>";
        assert!(Pam::parse(Path::new("a"), latin, 1).is_ok());
    }
}
