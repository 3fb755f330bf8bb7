//! Numbers about the server, in the text format of Prometheus.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Upper bounds of the histogram of times, in seconds.
const BOUNDS_S: [f64; 11] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0,
];

/// A number that only grows.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    /// Counts on.
    pub(crate) fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    /// The number now.
    pub(crate) fn value(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Requests by route and status, and how long they took.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    /// Routes are patterns, so their number is bounded whatever clients ask for.
    requests: Mutex<BTreeMap<(String, u16), u64>>,
    buckets: [Counter; BOUNDS_S.len()],
    microseconds: Counter,
    count: Counter,
    pub(crate) tiles_reused: Counter,
    pub(crate) tiles_drawn: Counter,
}

/// The name, kind, description and value of a number.
type Number = (&'static str, &'static str, &'static str, u64);

/// Numbers that stand for themselves now.
pub(crate) struct Gauges {
    pub(crate) working: usize,
    pub(crate) waiting: usize,
    pub(crate) connections: usize,
    pub(crate) blocks_decoded: u64,
    pub(crate) blocks_reused: u64,
    pub(crate) block_bytes: usize,
    pub(crate) tiff_blocks_decoded: u64,
    pub(crate) tile_bytes: usize,
}

impl Metrics {
    /// Counts an answer.
    pub(crate) fn answered(&self, route: &str, status: u16, took: Duration) {
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        *requests.entry((route.to_owned(), status)).or_default() += 1;
        drop(requests);
        let seconds = took.as_secs_f64();
        for (bound, bucket) in BOUNDS_S.iter().zip(&self.buckets) {
            if seconds <= *bound {
                bucket.add(1);
            }
        }
        self.microseconds
            .add(u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
        self.count.add(1);
    }

    /// Numbers that stand alone, each with its name, kind and description.
    fn numbers(&self, gauges: &Gauges) -> [Number; 10] {
        [
            (
                "tiles_drawn_total",
                "counter",
                "Tiles that were drawn.",
                self.tiles_drawn.value(),
            ),
            (
                "tiles_reused_total",
                "counter",
                "Tiles that were at hand.",
                self.tiles_reused.value(),
            ),
            (
                "blocks_decoded_total",
                "counter",
                "Blocks of heights that were decoded.",
                gauges.blocks_decoded,
            ),
            (
                "blocks_reused_total",
                "counter",
                "Blocks of heights that were at hand.",
                gauges.blocks_reused,
            ),
            (
                "tiff_blocks_decoded_total",
                "counter",
                "Blocks of GeoTIFFs that were decoded.",
                gauges.tiff_blocks_decoded,
            ),
            (
                "block_bytes",
                "gauge",
                "Bytes of decoded heights in memory.",
                gauges.block_bytes as u64,
            ),
            (
                "tile_bytes",
                "gauge",
                "Bytes of drawn tiles in memory.",
                gauges.tile_bytes as u64,
            ),
            (
                "working",
                "gauge",
                "Requests that are worked on.",
                gauges.working as u64,
            ),
            (
                "waiting",
                "gauge",
                "Requests that wait for a worker.",
                gauges.waiting as u64,
            ),
            (
                "connections",
                "gauge",
                "Open connections.",
                gauges.connections as u64,
            ),
        ]
    }

    /// All numbers as text.
    pub(crate) fn text(&self, gauges: &Gauges) -> String {
        let mut text = String::new();
        let mut family = |name: &str, kind: &str, help: &str, lines: &str| {
            let _ = write!(
                text,
                "# HELP terrane_{name} {help}\n# TYPE terrane_{name} {kind}\n{lines}"
            );
        };
        let requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        let lines: String = requests
            .iter()
            .map(|((route, status), count)| {
                format!("terrane_requests_total{{route=\"{route}\",status=\"{status}\"}} {count}\n")
            })
            .collect();
        drop(requests);
        family("requests_total", "counter", "Answered requests.", &lines);
        let mut lines: String = BOUNDS_S
            .iter()
            .zip(&self.buckets)
            .map(|(bound, bucket)| {
                format!(
                    "terrane_request_seconds_bucket{{le=\"{bound}\"}} {}\n",
                    bucket.value()
                )
            })
            .collect();
        let count = self.count.value();
        let _ = write!(
            lines,
            "terrane_request_seconds_bucket{{le=\"+Inf\"}} {count}\nterrane_request_seconds_sum {}\nterrane_request_seconds_count {count}\n",
            self.microseconds.value() as f64 / 1e6
        );
        family(
            "request_seconds",
            "histogram",
            "Time from a request to its answer.",
            &lines,
        );
        for (name, kind, help, value) in self.numbers(gauges) {
            family(name, kind, help, &format!("terrane_{name} {value}\n"));
        }
        text
    }
}
