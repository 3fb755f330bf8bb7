//! How long the paper's network takes on this machine; run by `just speed`.

use std::time::Instant;

use burn::tensor::Device;
use terrane_networks::init::Init;
use terrane_networks::methods::huvr_siren::ModulationKind;
use terrane_networks::methods::{Method, Precision};

use crate::acceptance::{paper, tiles};

#[test]
#[ignore = "takes a minute and measures time; run by `just speed`"]
fn one_tile_through_the_paper_network() {
    let network = paper(ModulationKind::AmplitudeShift).init(&mut Init::new(1, &Device::flex()));
    let tile = tiles(1, 256, 1);
    let mut times: Vec<[f64; 2]> = (0..8)
        .map(|_| {
            let start = Instant::now();
            let tokens = network.encode(tile.clone(), Precision::Full);
            let encoded = start.elapsed().as_secs_f64();
            let _ = network.decode(tokens, Precision::Full).into_data();
            [start.elapsed().as_secs_f64(), encoded]
        })
        .skip(2)
        .collect();
    times.sort_by(|a, b| a[0].total_cmp(&b[0]));
    let [total, encoded] = times[times.len() / 2];
    println!(
        "one tile forward: median {total:.3} s, of which encoding {encoded:.3} s; best {:.3} s",
        times[0][0]
    );
}
