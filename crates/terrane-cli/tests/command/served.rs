//! A server for tests, and what it answers.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use serde_json::Value;

use crate::{stdout, terrane};

/// A terrain with a corner without data, encoded within 5 cm in small tiles, served with its original.
pub(crate) struct Served {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) child: Child,
    pub(crate) address: String,
}

impl Drop for Served {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// One server for all tests that run at the same time; the last one ends it.
pub(crate) fn served() -> Arc<Served> {
    static SHARED: Mutex<Weak<Served>> = Mutex::new(Weak::new());
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(served) = shared.upgrade() {
        return served;
    }
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| stdout(&terrane(folder.path(), arguments));
    run(&["generate", "dem.tif", "--size", "700x600", "--seed", "11"]);
    run(&[
        "encode",
        "dem.tif",
        "dem.trn",
        "--tile",
        "256",
        "--max-error",
        "0.05",
    ]);
    let served = Arc::new(start(folder, &["dem.trn", "--original", "dem.tif"]));
    *shared = Arc::downgrade(&served);
    served
}

pub(crate) fn start(folder: tempfile::TempDir, arguments: &[&str]) -> Served {
    let command = Command::new(env!("CARGO_BIN_EXE_terrane"));
    start_with(command, folder, arguments)
}

/// As [`start`], with so little address space that asking for much more than is needed ends the server.
#[cfg(unix)]
pub(crate) fn start_limited(folder: tempfile::TempDir, arguments: &[&str]) -> Served {
    let mut command = Command::new("sh");
    command.args([
        "-c",
        "ulimit -v 4000000; exec \"$0\" \"$@\"",
        env!("CARGO_BIN_EXE_terrane"),
    ]);
    start_with(command, folder, arguments)
}

fn start_with(mut command: Command, folder: tempfile::TempDir, arguments: &[&str]) -> Served {
    let mut child = command
        .current_dir(folder.path())
        .args(["serve", "--port", "0", "--json"])
        .args(arguments)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap())
        .read_line(&mut line)
        .unwrap();
    let started: Value = serde_json::from_str(&line).unwrap();
    Served {
        folder,
        child,
        address: started["address"].as_str().unwrap().to_owned(),
    }
}

pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: ureq::http::HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().unwrap())
    }
}

impl Served {
    pub(crate) fn get(&self, path: &str) -> Answer {
        self.get_with(path, &[])
    }

    pub(crate) fn get_with(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(Duration::from_mins(1)))
            .build();
        let mut request =
            ureq::Agent::new_with_config(config).get(format!("{}{path}", self.address));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let mut answer = request.call().unwrap();
        Answer {
            status: answer.status().as_u16(),
            headers: answer.headers().clone(),
            body: answer
                .body_mut()
                .with_config()
                .limit(1 << 26)
                .read_to_vec()
                .unwrap(),
        }
    }

    /// The tile at the middle of the data.
    pub(crate) fn middle(&self, z: u32) -> (u32, u32) {
        let center = self.get("/dem").json()["center"].clone();
        tile_of(center[0].as_f64().unwrap(), center[1].as_f64().unwrap(), z)
    }

    /// Pixels of a tile as RGBA.
    pub(crate) fn pixels(&self, path: &str) -> (usize, Vec<[u8; 4]>) {
        let answer = self.get(path);
        assert_eq!(answer.status, 200, "{path}");
        assert_eq!(answer.header("content-type"), "image/png");
        rgba(&answer.body)
    }
}

pub(crate) fn tile_of(longitude: f64, latitude: f64, z: u32) -> (u32, u32) {
    let across = f64::from(1_u32 << z);
    let v = 0.5 - latitude.to_radians().tan().asinh() / (2.0 * std::f64::consts::PI);
    (
        ((longitude + 180.0) / 360.0 * across) as u32,
        (v * across) as u32,
    )
}

fn rgba(bytes: &[u8]) -> (usize, Vec<[u8; 4]>) {
    let mut decoder = png::Decoder::new(std::io::Cursor::new(bytes));
    decoder.set_transformations(
        png::Transformations::normalize_to_color8() | png::Transformations::ALPHA,
    );
    let mut reader = decoder.read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut pixels).unwrap();
    let pixels = match info.color_type {
        png::ColorType::Rgba => pixels
            .chunks_exact(4)
            .map(|pixel| [pixel[0], pixel[1], pixel[2], pixel[3]])
            .collect(),
        _ => pixels
            .chunks_exact(2)
            .map(|pixel| [pixel[0], pixel[0], pixel[0], pixel[1]])
            .collect(),
    };
    (info.width as usize, pixels)
}

pub(crate) fn height([red, green, blue, _]: [u8; 4]) -> f64 {
    f64::from(red) * 256.0 + f64::from(green) + f64::from(blue) / 256.0 - 32768.0
}
