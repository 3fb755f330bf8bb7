//! What was measured, in tables and figures.

use terrane_report::figure::{Axis, Figure, Series, Style, bar_chart, line_chart};
use terrane_report::table::{Cell, Column, Table};
use terrane_report::{Report, Section};

use super::contours::{INTERVALS, MAX_PX};
use super::derived::Derived;
use super::drainage::MIN_UPSTREAM;
use super::measure::{RateOutcome, Rated, SizeOutcome};
use super::viewshed::{EYES, REACH};
use super::{Options, Outcomes, terrane_file};

/// What JPEG 2000 is called where there is little room.
const PEER: &str = "JPEG 2000";

/// Everything that was measured.
pub(super) fn report(outcomes: &Outcomes, options: &Options) -> Report {
    Report {
        title: "Whole files".to_owned(),
        introduction: introduction(outcomes, options),
        sections: vec![
            rates(outcomes, options),
            sizes(outcomes, options),
            derived(outcomes, options),
        ],
    }
}

fn introduction(outcomes: &Outcomes, options: &Options) -> String {
    let names: Vec<String> = outcomes
        .rasters
        .iter()
        .map(|(name, width, height)| format!("{name} ({width}×{height})"))
        .collect();
    let mut text = format!(
        "{} {}, {}: {}. Every byte of a file counts: head, index and overviews. Bits are per pixel with data. All files \
         were read again, and every pixel was compared.",
        names.len(),
        if names.len() == 1 {
            "raster"
        } else {
            "rasters"
        },
        match options.window {
            Some(side) => format!("of each the first window of {side}×{side} pixels without gaps"),
            None => "whole".to_owned(),
        },
        names.join(", "),
    );
    for (names, why) in [
        (&outcomes.without_window, "without such a window"),
        (&outcomes.flat, "flat or empty"),
    ] {
        if !names.is_empty() {
            text.push_str(&format!(" Left out, {why}: {}.", names.join(", ")));
        }
    }
    text
}

/// Which rates no file is as small as, if any.
fn unreached(outcomes: &Outcomes) -> Option<String> {
    let of = |(raster, profile, bpp): &(String, terrane::Profile, f64)| {
        format!("{raster} ({}, {bpp} bpp)", terrane_file::name(*profile))
    };
    let all: Vec<String> = outcomes.files.unreached.iter().map(of).collect();
    (!all.is_empty()).then(|| format!("Not reached: {}.", all.join(", ")))
}

/// The mean of what is a number; NaN where nothing is.
fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let valid: Vec<f64> = values.filter(|value| !value.is_nan()).collect();
    valid.iter().sum::<f64>() / valid.len() as f64
}

/// Rates and profiles, each with the files made with it.
fn groups<'a>(
    outcomes: &'a Outcomes,
    options: &'a Options,
) -> impl Iterator<Item = (terrane::Profile, f64, Vec<&'a RateOutcome>)> {
    let rates = &outcomes.files.rates;
    options.profiles.iter().flat_map(move |&profile| {
        options.rates.iter().map(move |&bpp| {
            let is_it = move |file: &&RateOutcome| file.profile == profile && file.asked_bpp == bpp;
            (profile, bpp, rates.iter().filter(is_it).collect())
        })
    })
}

/// Whether two files can be compared by their PSNR: where one of them loses nothing it has none.
fn is_compared(file: &RateOutcome) -> bool {
    file.ours.errors.psnr_db.is_finite()
        && file
            .theirs
            .is_none_or(|theirs| theirs.errors.psnr_db.is_finite())
}

fn rates(outcomes: &Outcomes, options: &Options) -> Section {
    Section {
        heading: "Quality at the same size".to_owned(),
        paragraphs: [format!(
            "Our files are of the rate that was asked for as near as the encoder comes (1 %). {PEER} is OpenJPEG's codestream in \
             independent tiles of 512 pixels, each with six resolutions, the 9/7 wavelet and one quality layer; heights are \
             stretched over 16 bits, and 8 bytes stand for offset and scale. Its rate is searched until its file is as large as \
             ours, once with the same bits and once with the same PSNR for every tile; the better one counts. Its files come in \
             steps of up to 1 %: where none is within 0.1 %, its errors are those between the next smaller and the next larger \
             file, at exactly our bytes, and the bytes are those of the larger one. It has no georeference and no mask, and neither is counted. The peak of the \
             PSNR is the range of the raster.",
        )]
        .into_iter()
        .chain(unreached(outcomes))
        .collect(),
        tables: vec![mean_rates(outcomes, options), all_rates(outcomes)],
        figures: vec![gain(outcomes, options)],
        ..Section::default()
    }
}

/// Bits, PSNR, RMSE and maximum error, with a prefix to their keys and names.
fn quality_columns(key: &str, title: &str) -> [Column; 4] {
    let column = |name: &str, head: &str, digits| {
        Column::new(&format!("{key}{name}"), &format!("{title}{head}"), digits)
    };
    [
        column("bpp", "bpp", 3),
        column("psnr_db", "PSNR dB", 2),
        column("rmse_m", "RMSE m", 4),
        column("max_error_m", "max m", 3),
    ]
}

fn quality(file: &Rated) -> [f64; 4] {
    let errors = file.errors;
    [file.bpp, errors.psnr_db, errors.rmse_m, errors.max_error_m]
}

fn mean_rates(outcomes: &Outcomes, options: &Options) -> Table {
    let mut columns = vec![
        Column::new("codec", "codec", 0),
        Column::new("asked_bpp", "asked bpp", 3),
        Column::new("rasters", "rasters", 0),
        Column::new("gain_db", "gained dB", 2),
        Column::new("min_gain_db", "least", 2),
        Column::new("max_gain_db", "most", 2),
    ];
    columns.extend(quality_columns("", ""));
    columns.extend(quality_columns("jpeg2000_", "JPEG 2000: "));
    let mut table = Table::new(
        "files-rates-mean",
        "Gained over JPEG 2000 at the same bytes, means over rasters",
        "Rasters of which one of the two files loses nothing have no PSNR and are left out, as are rates that a file cannot \
         be as small as.",
        columns,
    );
    for (profile, bpp, files) in groups(outcomes, options) {
        let files: Vec<&RateOutcome> = files.into_iter().filter(|file| is_compared(file)).collect();
        let gains = || files.iter().map(|file| file.gain_db());
        let extreme = |of: fn(f64, f64) -> f64| gains().fold(f64::NAN, of);
        let mut row: Vec<Cell> = vec![
            terrane_file::name(profile).into(),
            bpp.into(),
            files.len().into(),
            mean(gains()).into(),
            extreme(f64::min).into(),
            extreme(f64::max).into(),
        ];
        let ours = |index: usize| mean(files.iter().map(|file| quality(&file.ours)[index]));
        let theirs = |index: usize| {
            let theirs = files.iter().filter_map(|file| file.theirs);
            mean(theirs.map(|file| quality(&file)[index]))
        };
        row.extend((0..4).map(|index| Cell::from(ours(index))));
        row.extend((0..4).map(|index| Cell::from(theirs(index))));
        table.row(row);
    }
    table
}

fn all_rates(outcomes: &Outcomes) -> Table {
    let mut columns = vec![
        Column::new("raster", "raster", 0),
        Column::new("codec", "codec", 0),
        Column::new("asked_bpp", "asked bpp", 3),
        Column::new("gain_db", "gained dB", 2),
        Column::new("bytes", "bytes", 0),
    ];
    columns.extend(quality_columns("", ""));
    columns.push(Column::new("jpeg2000_bytes", "JPEG 2000: bytes", 0));
    columns.extend(quality_columns("jpeg2000_", "JPEG 2000: "));
    let mut table = Table::new("files-rates", "Every raster at every rate", "", columns);
    for file in &outcomes.files.rates {
        let mut row: Vec<Cell> = vec![
            file.raster.clone().into(),
            terrane_file::name(file.profile).into(),
            file.asked_bpp.into(),
            file.gain_db().into(),
            file.ours.bytes.into(),
        ];
        row.extend(quality(&file.ours).map(Cell::from));
        row.push(file.theirs.map_or(Cell::Missing, |file| file.bytes.into()));
        let theirs = file.theirs.map(|file| quality(&file));
        row.extend((0..4).map(|index| Cell::from(theirs.map(|values| values[index]))));
        table.row(row);
    }
    table
}

fn gain(outcomes: &Outcomes, options: &Options) -> Figure {
    let mut series: Vec<Series> = Vec::new();
    for (profile, bpp, files) in groups(outcomes, options) {
        let compared = files.iter().filter(|file| is_compared(file));
        let gain_db = mean(compared.map(|file| file.gain_db()));
        let name = terrane_file::name(profile);
        match series.iter_mut().find(|series| series.name == name) {
            Some(series) => series.points.push((bpp, gain_db)),
            None => series.push(Series::new(&name, Style::LinePoints, vec![(bpp, gain_db)])),
        }
    }
    for series in &mut series {
        series.points.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    let ends = |of: fn(f64, f64) -> f64| options.rates.iter().copied().fold(f64::NAN, of);
    let zero = vec![(ends(f64::min), 0.0), (ends(f64::max), 0.0)];
    series.push(Series::new(PEER, Style::Dashed, zero));
    line_chart(
        "files-gain",
        "Gained over JPEG 2000 at the same bytes",
        "Means over rasters; every byte of a file counts.",
        Axis::logarithmic("bits per pixel"),
        Axis::linear("dB"),
        &series,
    )
}

fn sizes(outcomes: &Outcomes, options: &Options) -> Section {
    Section {
        heading: "Size within a bound".to_owned(),
        paragraphs: vec![
            "No pixel is farther off than the bound, which was checked at each; a codec that oversteps its own bound by \
             rounding is given a smaller one. Our file states its bound and gets no second try. LERC is a real TIFF with \
             overviews and without georeference, of 32-bit floats (integers where the source has them), in blocks of 256 or \
             512 pixels, whichever is smaller. COGs have overviews, blocks of 256 and level 6 of deflate: floats rounded to \
             twice the bound with predictor 3, or integers with scale and offset and predictor 2; without loss they hold the \
             numbers of the source."
                .to_owned(),
        ],
        tables: vec![mean_sizes(outcomes, options), all_sizes(outcomes, options)],
        figures: vec![size_bars(outcomes)],
        ..Section::default()
    }
}

/// Our bytes for the same raster and bound, by the first of the profiles.
fn our_bytes(outcomes: &Outcomes, options: &Options, file: &SizeOutcome) -> Option<u64> {
    let name = options.profiles.first().copied().map(terrane_file::name)?;
    let is_ours = |other: &&SizeOutcome| {
        other.raster == file.raster && other.bound_m == file.bound_m && other.codec == name
    };
    outcomes
        .files
        .sizes
        .iter()
        .find(is_ours)
        .map(|file| file.bytes)
}

/// Bounds and codecs, each with its files.
fn size_groups(outcomes: &Outcomes) -> Vec<(Option<f64>, &str, Vec<&SizeOutcome>)> {
    let mut groups: Vec<(Option<f64>, &str, Vec<&SizeOutcome>)> = Vec::new();
    for file in &outcomes.files.sizes {
        let is_it = |group: &&mut (Option<f64>, &str, Vec<&SizeOutcome>)| {
            group.0 == file.bound_m && group.1 == file.codec
        };
        match groups.iter_mut().find(is_it) {
            Some(group) => group.2.push(file),
            None => groups.push((file.bound_m, &file.codec, vec![file])),
        }
    }
    // A codec that not every raster has may come late.
    let key = |bound: Option<f64>| bound.unwrap_or(0.0);
    groups.sort_by(|a, b| key(b.0).total_cmp(&key(a.0)));
    groups
}

fn bound_column() -> Column {
    Column::new("bound_m", "bound m (0: lossless)", 3)
}

fn mean_sizes(outcomes: &Outcomes, options: &Options) -> Table {
    let first = options.profiles.first().copied().map(terrane_file::name);
    let note = format!(
        "How many times as large as {}: the geometric mean over rasters.",
        first.unwrap_or_default()
    );
    let mut table = Table::new(
        "files-sizes-mean",
        "Size within a bound, means over rasters",
        &note,
        vec![
            bound_column(),
            Column::new("codec", "codec", 0),
            Column::new("rasters", "rasters", 0),
            Column::new("bytes", "bytes", 0),
            Column::new("bpp", "bpp", 3),
            Column::new("ratio", "times ours", 3),
            Column::new("rmse_m", "RMSE m", 4),
            Column::new("max_error_m", "max m", 4),
        ],
    );
    for (bound_m, codec, files) in size_groups(outcomes) {
        let ratio = mean(files.iter().map(|file| {
            let ours = our_bytes(outcomes, options, file);
            ours.map_or(f64::NAN, |ours| (file.bytes as f64 / ours as f64).ln())
        }));
        let largest = files.iter().map(|file| file.errors.max_error_m);
        table.row(vec![
            bound_m.unwrap_or(0.0).into(),
            codec.into(),
            files.len().into(),
            mean(files.iter().map(|file| file.bytes as f64)).into(),
            mean(files.iter().map(|file| file.bpp)).into(),
            ratio.exp().into(),
            mean(files.iter().map(|file| file.errors.rmse_m)).into(),
            largest.fold(0.0, f64::max).into(),
        ]);
    }
    table
}

fn all_sizes(outcomes: &Outcomes, options: &Options) -> Table {
    let mut table = Table::new(
        "files-sizes",
        "Every raster within every bound",
        "",
        vec![
            Column::new("raster", "raster", 0),
            bound_column(),
            Column::new("codec", "codec", 0),
            Column::new("bytes", "bytes", 0),
            Column::new("bpp", "bpp", 3),
            Column::new("ratio", "times ours", 3),
            Column::new("rmse_m", "RMSE m", 4),
            Column::new("max_error_m", "max m", 4),
        ],
    );
    for file in &outcomes.files.sizes {
        let ours = our_bytes(outcomes, options, file);
        table.row(vec![
            file.raster.clone().into(),
            file.bound_m.unwrap_or(0.0).into(),
            file.codec.clone().into(),
            file.bytes.into(),
            file.bpp.into(),
            ours.map(|ours| file.bytes as f64 / ours as f64).into(),
            file.errors.rmse_m.into(),
            file.errors.max_error_m.into(),
        ]);
    }
    table
}

fn size_bars(outcomes: &Outcomes) -> Figure {
    let mut bars: Vec<(String, Vec<(String, f64)>)> = Vec::new();
    for (bound_m, codec, files) in size_groups(outcomes) {
        // A mean over other rasters would be compared with the rest.
        if files.len() < outcomes.rasters.len() {
            continue;
        }
        let name = bound_m.map_or("lossless".to_owned(), |bound_m| format!("≤ {bound_m} m"));
        let bar = (codec.to_owned(), mean(files.iter().map(|file| file.bpp)));
        match bars.iter_mut().find(|(group, _)| *group == name) {
            Some((_, bars)) => bars.push(bar),
            None => bars.push((name, vec![bar])),
        }
    }
    bar_chart(
        "files-sizes",
        "Size of a file within a bound",
        "Means over rasters; every byte of a file counts. Codecs that not every raster has are in the table alone.",
        Axis::linear("bits per pixel"),
        &bars,
    )
}

fn derived(outcomes: &Outcomes, options: &Options) -> Section {
    Section {
        heading: "What users derive, at the same size".to_owned(),
        paragraphs: vec![format!(
            "From the files of the first section, of JPEG 2000 the next that is not smaller than ours, against the same of the source. Slope and aspect by Horn's gradient of 3×3 \
             pixels, aspect where the source is steeper than 2°. Flow: sinks filled by a priority flood, the steepest of eight \
             neighbours; the part of the pixels that drain the same way. Streams: pixels through which {MIN_UPSTREAM} drain; F1 of \
             the two networks within one pixel. Contour lines: {INTERVALS} intervals in the range of the source; the mean \
             distance of lines of one height, both ways, at most {MAX_PX} pixels. View: {} eyes 2 m above the ground, pixels at \
             most {REACH} columns or rows away; intersection over union.",
            EYES.len(),
        )],
        tables: vec![mean_derived(outcomes, options), all_derived(outcomes)],
        figures: Vec::new(),
        ..Section::default()
    }
}

fn derived_columns() -> [Column; 6] {
    [
        Column::new("slope_rmse_deg", "slope RMSE °", 3),
        Column::new("aspect_rmse_deg", "aspect RMSE °", 2),
        Column::new("flow_agreement", "flow", 4),
        Column::new("drainage_f1", "streams F1", 4),
        Column::new("contour_distance_px", "contours px", 3),
        Column::new("viewshed_iou", "view", 4),
    ]
}

fn derived_values(derived: &Derived) -> [f64; 6] {
    [
        derived.slope_rmse_deg,
        derived.aspect_rmse_deg,
        derived.flow_agreement,
        derived.drainage_f1,
        derived.contour_distance_px,
        derived.viewshed_iou,
    ]
}

fn mean_derived(outcomes: &Outcomes, options: &Options) -> Table {
    let mut columns = vec![
        Column::new("size_of", "size of", 0),
        Column::new("asked_bpp", "asked bpp", 3),
        Column::new("codec", "codec", 0),
        Column::new("rasters", "rasters", 0),
    ];
    columns.extend(derived_columns());
    let mut table = Table::new(
        "files-derived-mean",
        "What users derive, means over rasters",
        "A measure that a raster does not have, such as streams where none is long enough, is left out of the mean.",
        columns,
    );
    for (profile, bpp, files) in groups(outcomes, options) {
        let ours: Vec<Rated> = files.iter().map(|file| file.ours).collect();
        let theirs: Vec<Rated> = files.iter().filter_map(|file| file.theirs).collect();
        let name = terrane_file::name(profile);
        for (codec, files) in [(name.as_str(), ours), (PEER, theirs)] {
            let mut row: Vec<Cell> = vec![
                name.clone().into(),
                bpp.into(),
                codec.into(),
                files.len().into(),
            ];
            row.extend((0..6).map(|index| {
                let values = files
                    .iter()
                    .map(|file| derived_values(&file.derived)[index]);
                Cell::from(mean(values))
            }));
            table.row(row);
        }
    }
    table
}

fn all_derived(outcomes: &Outcomes) -> Table {
    let mut columns = vec![
        Column::new("raster", "raster", 0),
        Column::new("size_of", "size of", 0),
        Column::new("asked_bpp", "asked bpp", 3),
        Column::new("codec", "codec", 0),
        Column::new("bytes", "bytes", 0),
    ];
    columns.extend(derived_columns());
    let mut table = Table::new("files-derived", "Every raster", "", columns);
    for file in &outcomes.files.rates {
        let name = terrane_file::name(file.profile);
        for (codec, rated) in [(name.as_str(), Some(file.ours)), (PEER, file.theirs)] {
            let Some(rated) = rated else { continue };
            let mut row: Vec<Cell> = vec![
                file.raster.clone().into(),
                name.clone().into(),
                file.asked_bpp.into(),
                codec.into(),
                rated.bytes.into(),
            ];
            row.extend(derived_values(&rated.derived).map(Cell::from));
            table.row(row);
        }
    }
    table
}
