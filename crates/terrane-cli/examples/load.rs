//! How fast `terrane serve` answers, and whether it withstands nonsense: `just load`.
//!
//! Takes the `terrane` program and, where one is at hand, a terrane file; otherwise it makes a terrain. Rates are
//! tiles per second of the server's own processor time, so that a client on the same machine does not count; delays are
//! what the client saw.

#![expect(clippy::print_stdout, reason = "it prints what it measured")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// Connections that ask at the same time.
const CLIENTS: usize = 8;
/// Bad requests of the flood.
const FLOOD: usize = 100_000;

struct Server {
    child: Child,
    host: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    fn start(terrane: &Path, file: &Path, arguments: &[&str]) -> Result<Self> {
        let mut child = Command::new(terrane)
            .args(["serve", "--port", "0", "--json"])
            .args(arguments)
            .arg(format!("dem={}", file.display()))
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        let out = child.stdout.as_mut().context("no output")?;
        BufReader::new(out).read_line(&mut line)?;
        let started: Value = serde_json::from_str(&line)?;
        let address = started["address"].as_str().context("no address")?;
        let host = address.trim_start_matches("http://").to_owned();
        Ok(Self { child, host })
    }

    fn connect(&self) -> Result<BufReader<TcpStream>> {
        let stream = TcpStream::connect(&self.host)?;
        stream.set_nodelay(true)?;
        Ok(BufReader::new(stream))
    }

    fn processor_s(&self) -> Result<f64> {
        let text = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        let fields: Vec<&str> = text
            .rsplit(')')
            .next()
            .unwrap_or_default()
            .split_whitespace()
            .collect();
        let ticks: f64 = fields[11].parse::<f64>()? + fields[12].parse::<f64>()?;
        Ok(ticks / 100.0)
    }

    fn memory_mb(&self) -> Result<f64> {
        let text = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = line.and_then(|line| line.split_whitespace().next());
        Ok(kilobytes.context("no VmRSS")?.parse::<f64>()? / 1024.0)
    }
}

/// One request over an open connection: status and body.
fn ask(connection: &mut BufReader<TcpStream>, path: &str) -> Result<(u16, Vec<u8>)> {
    write!(
        connection.get_mut(),
        "GET {path} HTTP/1.1\r\nHost: load\r\n\r\n"
    )?;
    let mut line = String::new();
    connection.read_line(&mut line)?;
    let status = line.split(' ').nth(1).context("no status")?.parse()?;
    let mut length = 0;
    loop {
        line.clear();
        connection.read_line(&mut line)?;
        let text = line.trim().to_ascii_lowercase();
        if text.is_empty() {
            break;
        }
        if let Some(value) = text.strip_prefix("content-length:") {
            length = value.trim().parse()?;
        }
    }
    let mut body = vec![0; length];
    connection.read_exact(&mut body)?;
    Ok((status, body))
}

/// Asks for all paths with several connections; the delays in order, and statuses that were not `expected`.
fn flood(
    server: &Server,
    paths: &[String],
    expected: impl Fn(u16) -> bool + Sync,
) -> Result<(Vec<Duration>, usize)> {
    let next = AtomicUsize::new(0);
    let unexpected = AtomicUsize::new(0);
    let delays = Mutex::new(Vec::with_capacity(paths.len()));
    std::thread::scope(|scope| -> Result<()> {
        let work = || -> Result<()> {
            let mut connection = server.connect()?;
            let mut own = Vec::new();
            while let Some(path) = paths.get(next.fetch_add(1, Ordering::Relaxed)) {
                let started = Instant::now();
                let (status, _) = ask(&mut connection, path)?;
                own.push(started.elapsed());
                if !expected(status) {
                    unexpected.fetch_add(1, Ordering::Relaxed);
                }
            }
            delays.lock().expect("no client panics").extend(own);
            Ok(())
        };
        let clients: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(work)).collect();
        for client in clients {
            client.join().expect("no client panics")?;
        }
        Ok(())
    })?;
    let mut delays = delays.into_inner().expect("no client panics");
    delays.sort_unstable();
    Ok((delays, unexpected.into_inner()))
}

/// Tiles of a layer over the file at three zooms.
fn tiles(server: &Server, layer: &str) -> Result<Vec<String>> {
    let (_, body) = ask(&mut server.connect()?, "/dem")?;
    let description: Value = serde_json::from_slice(&body)?;
    let bound = |index: usize| description["bounds"][index].as_f64().context("no bounds");
    let (west, south, east, north) = (bound(0)?, bound(1)?, bound(2)?, bound(3)?);
    let finest = description["maxzoom"].as_u64().context("no maxzoom")?;
    let mut paths = Vec::new();
    for z in finest.saturating_sub(2)..=finest {
        let across = (1_u64 << z) as f64;
        let column = |longitude: f64| ((longitude + 180.0) / 360.0 * across) as u64;
        let row = |latitude: f64| {
            ((0.5 - latitude.to_radians().tan().asinh() / std::f64::consts::TAU) * across) as u64
        };
        for y in row(north)..=row(south) {
            for x in column(west)..=column(east) {
                paths.push(format!("/dem{layer}/{z}/{x}/{y}.png"));
            }
        }
    }
    paths.truncate(600);
    Ok(paths)
}

fn measure(server: &Server, what: &str, paths: &[String]) -> Result<()> {
    let before = server.processor_s()?;
    let (delays, unexpected) = flood(server, paths, |status| status == 200)?;
    let used = (server.processor_s()? - before).max(0.01);
    ensure!(unexpected == 0, "{what}: {unexpected} answers were not 200");
    let at = |part: f64| delays[((delays.len() - 1) as f64 * part) as usize].as_secs_f64() * 1e3;
    println!(
        "{what:<44} {:>6} tiles {:>8.0} per second of one core  p50 {:>7.1} ms  p99 {:>7.1} ms",
        delays.len(),
        delays.len() as f64 / used,
        at(0.5),
        at(0.99)
    );
    Ok(())
}

/// Requests that make no sense, in every way.
fn nonsense(number: usize) -> String {
    // Small numbers would make sense.
    let number = 1000 + number;
    match number % 9 {
        0 => format!("/nothing{number}"),
        1 => format!("/dem/99/{number}/{number}.png"),
        2 => format!("/dem/3/{number}/1.png"),
        3 => format!("/dem/layer{number}/3/1/1.png"),
        4 => format!("/dem/point/{number},{number}"),
        5 => format!(
            "/dem/profile?line={}&points={number}",
            "1,1;".repeat(number % 400)
        ),
        6 => format!("/dem/3/1/1.png?nodata=x{number}"),
        7 => format!("/assets/{number}"),
        _ => format!("/{}", "a/".repeat(number % 300)),
    }
}

/// A file of a terrain that was made for it.
fn make_file(terrane: &Path, folder: &Path) -> Result<PathBuf> {
    let (raster, file) = (folder.join("dem.tif"), folder.join("dem.trn"));
    let run = |command: &mut Command| -> Result<()> {
        let status = command.stdout(Stdio::null()).status()?;
        ensure!(status.success(), "terrane failed");
        Ok(())
    };
    run(Command::new(terrane)
        .arg("generate")
        .arg(&raster)
        .args(["--size", "2048x2048"]))?;
    run(Command::new(terrane).arg("encode").arg(&raster).arg(&file))?;
    Ok(file)
}

fn main() -> Result<()> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let terrane = arguments
        .next()
        .context("say where the terrane program is")?;
    let folder = std::env::temp_dir().join(format!("terrane-load-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let given = arguments.next();
    let file = given.map_or_else(|| make_file(&terrane, &folder), Ok)?;
    let server = Server::start(&terrane, &file, &["--tile-cache", "0"])?;
    measure(
        &server,
        "heights, every block decoded once",
        &tiles(&server, "")?,
    )?;
    measure(&server, "heights, blocks at hand", &tiles(&server, "")?)?;
    measure(
        &server,
        "hillshade, blocks at hand",
        &tiles(&server, "/hillshade")?,
    )?;
    measure(&server, "slope, blocks at hand", &tiles(&server, "/slope")?)?;
    drop(server);
    let server = Server::start(&terrane, &file, &[])?;
    let paths = tiles(&server, "/slope")?;
    flood(&server, &paths, |_| true)?;
    let again: Vec<String> = paths.iter().cycle().take(20_000).cloned().collect();
    measure(&server, "slope, tiles at hand", &again)?;
    let bad: Vec<String> = (0..FLOOD).map(nonsense).collect();
    flood(&server, &bad[..FLOOD / 10], |_| true)?;
    let (before, started) = (server.memory_mb()?, Instant::now());
    let (_, unexpected) = flood(&server, &bad, |status| status == 400 || status == 404)?;
    let after = server.memory_mb()?;
    println!(
        "{FLOOD} bad requests in {:.1} s, {unexpected} answered otherwise than 400 or 404; memory {before:.1} MB before, {after:.1} MB after",
        started.elapsed().as_secs_f64()
    );
    let (status, _) = ask(&mut server.connect()?, "/health")?;
    ensure!(
        status == 200 && unexpected == 0,
        "the server did not withstand the flood"
    );
    ensure!(
        after < before + 8.0,
        "memory grew from {before:.1} to {after:.1} MB"
    );
    std::fs::remove_dir_all(&folder)?;
    Ok(())
}
