//! A picture whose finest level is coded more than once: first as the quantiser chooses its symbols, then as a search does.

use terrane_format::coder::Encoder;

use crate::codec::{Codec, encode_ll};
use crate::coefficients::{Coefficients, Transform, level_sizes};
use crate::distribution::Context;
use crate::level::Scratch;
use crate::matrix::Matrix;
use crate::picture::{Part, Picture};
use crate::planes::Planes;
use crate::quantiser::Quantiser;
use crate::stream::{Recording, Rewriting, Stream, Writing};
use crate::wavelet::BANDS;

/// A picture without its finest level, whose symbols are still open.
#[derive(Debug)]
pub struct Draft<'a> {
    codec: &'a Codec,
    above: Coarser<'a>,
    bands: &'a [Matrix<f64>; BANDS],
    /// What was written before.
    encoder: Encoder,
    /// With the trunk.
    context: Planes,
    sizes: [[usize; 2]; BANDS],
}

/// The picture that the finest level refines.
#[derive(Debug)]
enum Coarser<'a> {
    /// Part of another.
    Part(Part<'a>),
    /// Its own.
    Own(Box<Picture>),
}

impl Coarser<'_> {
    fn part(&self) -> Part<'_> {
        match self {
            Self::Part(part) => *part,
            Self::Own(picture) => picture.whole(),
        }
    }
}

/// Symbols of a finest level, and what comes of them.
#[derive(Debug)]
pub struct Finest {
    /// The symbols of HL, LH and HH.
    pub symbols: [Matrix<i64>; BANDS],
    /// How each was predicted.
    pub contexts: [Matrix<Context>; BANDS],
    /// What a decoder makes of them.
    pub picture: Picture,
}

impl<'a> Draft<'a> {
    /// Of a whole picture, whose other levels are coded; `None` where it has no level or is to be coded without loss.
    pub fn new(
        codec: &'a Codec,
        coefficients: &'a Coefficients,
        quantiser: Quantiser,
    ) -> Option<Self> {
        let (levels, _) = level_sizes(coefficients.width, coefficients.height);
        let (_, coarser) = levels.split_first()?;
        let bands = coefficients.levels.first()?;
        if coefficients.transform == Transform::Lossless {
            return None;
        }
        let (encoder, ll) = encode_ll(coefficients);
        let mut picture = Picture::coarsest(&ll, coefficients.transform);
        let mut writing = Writing {
            encoder,
            levels: &coefficients.levels,
            quantiser,
            level: 0,
            has_symbols: false,
            counts: None,
        };
        for (level, &sizes) in coarser.iter().enumerate().rev() {
            let level = level + 1;
            picture = Scratch::with(|scratch| {
                codec.level(&mut writing, picture.whole(), sizes, level, level, scratch)
            });
        }
        let above = Coarser::Own(Box::new(picture));
        Some(Self::start(codec, above, bands, writing.encoder))
    }

    /// Of a picture whose LL band is part of another.
    pub fn below(codec: &'a Codec, part: Part<'a>, bands: &'a [Matrix<f64>; BANDS]) -> Self {
        Self::start(codec, Coarser::Part(part), bands, Encoder::grouped())
    }

    fn start(
        codec: &'a Codec,
        above: Coarser<'a>,
        bands: &'a [Matrix<f64>; BANDS],
        encoder: Encoder,
    ) -> Self {
        let context = Scratch::with(|scratch| codec.context(above.part(), 0, scratch));
        Self {
            codec,
            above,
            bands,
            encoder,
            context,
            sizes: bands.each_ref().map(|band| [band.width, band.height]),
        }
    }

    fn no_contexts(&self) -> [Matrix<Context>; BANDS] {
        self.sizes.map(|[width, height]| Matrix::new(width, height))
    }

    /// The finest level as a quantiser chooses it.
    pub fn choose(&self, quantiser: Quantiser) -> Finest {
        let mut stream = Recording {
            quantiser,
            bands: self.bands,
            contexts: self.no_contexts(),
        };
        let (symbols, picture) = self.level(&mut stream, true);
        Finest {
            symbols,
            contexts: stream.contexts,
            picture,
        }
    }

    /// The bytes of the picture with these symbols in its finest level, and what comes of them; without bytes where it is
    /// part of another and all symbols are 0.
    pub fn code(&self, symbols: &[Matrix<i64>; BANDS]) -> (Option<Vec<u8>>, Finest) {
        // A level without symbols has no offsets.
        let is_empty = symbols
            .iter()
            .all(|band| band.values.iter().all(|&symbol| symbol == 0));
        let mut stream = Rewriting {
            encoder: self.encoder.clone(),
            symbols,
            contexts: self.no_contexts(),
        };
        let (symbols, picture) = self.level(&mut stream, !is_empty);
        let is_silent = is_empty && matches!(self.above, Coarser::Part(_));
        let bytes = (!is_silent).then(|| stream.encoder.finish());
        let finest = Finest {
            symbols,
            contexts: stream.contexts,
            picture,
        };
        (bytes, finest)
    }

    /// The symbols that a stream gives, and the picture that comes of them.
    fn level<S: Stream>(
        &self,
        stream: &mut S,
        has_offsets: bool,
    ) -> ([Matrix<i64>; BANDS], Picture) {
        let (codec, part) = (self.codec, self.above.part());
        let level = (0, self.sizes);
        Scratch::with(|scratch| {
            let mut context = Some(self.context.copied(scratch.spare()));
            let symbols = codec.bands(stream, part, level, 0, &mut context, scratch);
            let context = context.filter(|_| has_offsets);
            let picture = codec.refined(part, symbols.clone(), context, 0, scratch);
            (symbols, picture)
        })
    }
}
