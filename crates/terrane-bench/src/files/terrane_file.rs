//! Our own files.

use terrane::geo::{Existing, Kind, Output, Window};
use terrane::{Destination, Profile, Resources, Settings, Target};

use super::source::Source;
use super::stored::Stored;
use crate::Result;
use crate::codecs::CodecError;

/// What a profile's files are called in tables.
pub(super) fn name(profile: Profile) -> String {
    format!("terrane {}", profile.name())
}

/// Encodes a source and decodes it again; `None` where the target cannot be reached.
pub(super) fn through(
    source: &Source,
    profile: Profile,
    target: Target,
    resources: Resources,
) -> Result<Option<Stored>> {
    let folder = tempfile::tempdir().map_err(|error| CodecError::failed(&name(profile), error))?;
    let path = folder.path().join("a.trn");
    let settings = Settings {
        profile,
        target,
        ..Settings::default()
    };
    let destination = Destination {
        out: Output::new(&path, Existing::Refuse, Kind::Terrain),
        resumable: None,
        resources,
    };
    let prepared = settings.prepare(resources.memory)?;
    let encoded = terrane::encode(&source.raster, &prepared, destination, &mut |_| Ok(()));
    let bytes = match encoded {
        Ok(encoded) => encoded.bytes,
        Err(terrane::Error::Unreachable { .. }) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let terrain = terrane::open(&path)?;
    let window = Window::whole(source.width(), source.height());
    let heights = terrain.read(0, window).map_err(terrane::Error::from)?;
    Ok(Some(Stored { bytes, heights }))
}
