//! An official list of links, as swisstopo exports it: one address per line.

use std::collections::HashMap;

use ureq::http::Uri;

use crate::data::download::TAKEN_ENDINGS;

/// A line of the list is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: expected {expected}, found {found:?}")]
pub struct LinkError {
    /// Number of the line, from one.
    pub line: usize,
    /// What the line should hold.
    pub expected: &'static str,
    /// What it holds.
    pub found: String,
}

/// One file of a link list, as [`parse_links`] accepts it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub(crate) struct Link {
    /// Address, http or https.
    pub url: String,
    /// Last segment of the address's path, safe as a file name.
    pub name: String,
    /// SHA-256 of the second column, in lower-case hexadecimal digits.
    pub sha256: Option<String>,
    /// Source tile, where the name follows the pattern of swissALTI3D.
    pub tile: Option<SourceTile>,
}

/// What the name of a swissALTI3D file states.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SourceTile {
    /// Year of the survey.
    pub year: u16,
    /// Western edge in kilometres.
    pub east_km: u32,
    /// Southern edge in kilometres.
    pub north_km: u32,
    /// Spacing of the heights.
    pub resolution_m: f64,
}

impl SourceTile {
    /// Reads a name such as `swissalti3d_2019_2501-1120_0.5_2056_5728.tif`.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        let name = name.strip_prefix("swissalti3d_")?;
        let (fields, _) = name.split_once("_2056_5728.")?;
        let fields: Vec<&str> = fields.split(['_', '-']).collect();
        let [year, east, north, resolution] = fields[..] else {
            return None;
        };
        let [year, east_km, north_km] = [year, east, north].map(|text| text.parse::<u16>().ok());
        Some(Self {
            year: year?,
            east_km: east_km?.into(),
            north_km: north_km?.into(),
            resolution_m: resolution.parse().ok().filter(|&m| m > 0.0 && m < 1000.0)?,
        })
    }
}

/// Reads a list of one address per line, with an optional SHA-256 in a second column.
///
/// Headers, blank lines, `#` comments, quotes, byte order marks and repetitions are tolerated.
pub(super) fn parse_links(text: &str) -> Result<Vec<Link>, LinkError> {
    let (mut links, mut indices) = (Vec::new(), HashMap::new());
    let is_word = |c: char| c.is_ascii_alphanumeric() || " _-,;\t\"".contains(c);
    for (index, row) in text.trim_start_matches('\u{feff}').lines().enumerate() {
        let row = row.trim();
        let is_header = links.is_empty() && row.chars().all(is_word);
        if is_header || row.is_empty() || row.starts_with('#') {
            continue;
        }
        let refuse = |expected| {
            let (line, found) = (index + 1, row.to_owned());
            LinkError {
                line,
                expected,
                found,
            }
        };
        let link = parse_link(row).map_err(refuse)?;
        // Some file systems do not tell upper from lower case.
        let key = link.name.to_ascii_lowercase();
        let index = *indices.entry(key).or_insert(links.len());
        match links.get(index) {
            None => links.push(link),
            Some(earlier) if *earlier == link => {}
            Some(_) => return Err(refuse("a file name that no other link has")),
        }
    }
    Ok(links)
}

fn parse_link(row: &str) -> Result<Link, &'static str> {
    let mut fields = row.split([',', ';', '\t']);
    let mut field = || {
        fields
            .next()
            .map_or("", |text| text.trim_matches([' ', '"']))
    };
    let url = field();
    let is_web = |uri: &Uri| matches!(uri.scheme_str(), Some("http" | "https"));
    let uri = url.parse().ok().filter(is_web);
    let uri = uri.ok_or("an http or https address")?;
    let name = uri.path().rsplit('/').next().unwrap_or_default();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-+".contains(&byte);
    if name.len() > 200
        || !name.bytes().all(is_plain)
        || !name.starts_with(|first: char| first.is_ascii_alphanumeric())
        || name.ends_with('.')
        || TAKEN_ENDINGS.iter().any(|ending| name.ends_with(ending))
    {
        return Err("an address that ends in a plain file name");
    }
    let sha256 = match field() {
        "" => None,
        text => Some(parse_sha256(text).ok_or("64 hexadecimal digits after the address")?),
    };
    Ok(Link {
        url: url.into(),
        name: name.into(),
        sha256,
        tile: SourceTile::parse(name),
    })
}

/// A SHA-256 in lower-case hexadecimal digits, or `None` where the text is no such thing.
pub(crate) fn parse_sha256(text: &str) -> Option<String> {
    let valid = text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    valid.then(|| text.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_read_and_tricks_refused() {
        let name = "swissalti3d_2019_2501-1120_0.5_2056_5728.tif";
        let sha256 = "0123456789ABCDEF".repeat(4);
        let list = format!(
            "\u{feff}url;sha256\r\n\r\n# why\r\nhttps://h/x/{name}\r\n\
             \"http://h/b.tif?v=1\",\"{sha256}\"\r\nhttps://h/x/{name}\r\n"
        );
        let [first, second] = &parse_links(&list).unwrap()[..] else {
            panic!("{list}");
        };
        let tile = first.tile.unwrap();
        assert_eq!((tile.year, tile.east_km, tile.north_km), (2019, 2501, 1120));
        assert!((tile.resolution_m - 0.5).abs() < f64::EPSILON);
        assert_eq!((first.name.as_str(), &first.sha256), (name, &None));
        assert_eq!((second.name.as_str(), second.tile), ("b.tif", None));
        assert_eq!(second.sha256, Some(sha256.to_lowercase()));

        let refused = "ftp://h/a.tif file:///a.tif /a.tif a.tif <html> https://h http:///a.tif \
            https://h/ https://h/.. https://h/a/. https://h/.a https://h/%2e%2e%2fa \
            https://h/..\\a https://h/a:b https://h/a.tif.part https://h/a.sha256 \
            https://h/a.tif,abc https://h/a.tif\nhttps://h/b/A.tif https://h/a.tif\nword";
        for text in refused.split(' ') {
            let error = parse_links(text).unwrap_err();
            assert!(matches!(error, LinkError { .. }), "{text}");
        }
    }
}
