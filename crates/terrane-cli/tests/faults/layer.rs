//! The layer under the program's input and output, built by the C compiler of this machine.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;

/// The preloaded library, or why there is none.
static LIBRARY: LazyLock<Result<PathBuf, String>> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    // Others may build it at the same time.
    let library = folder.join(format!("layer-{}.so", std::process::id()));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/faults/layer.c");
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-o"])
        .args([&library, &source])
        .output()
        .map_err(|error| format!("no C compiler: {error}"))?;
    let complaint = String::from_utf8_lossy(&built.stderr);
    if complaint.contains("the layer knows") {
        return Err("the layer does not know this processor".to_owned());
    }
    assert!(built.status.success(), "{complaint}");
    let tried = Command::new(program())
        .arg("--version")
        .env("LD_PRELOAD", &library)
        .env("TERRANE_FAULTS_FOLDER", folder)
        .env("TERRANE_FAULTS_LOG", library.with_extension("log"))
        .output()
        .unwrap();
    let _ = std::fs::remove_file(library.with_extension("log"));
    if tried.status.code() == Some(99) {
        let _ = std::fs::remove_file(&library);
        return Err(String::from_utf8_lossy(&tried.stderr).into_owned());
    }
    Ok(library)
});

/// A call on a file.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) number: usize,
    pub(crate) name: String,
    /// Whether the layer did something to it.
    pub(crate) is_touched: bool,
    /// What can be done to it.
    pub(crate) kinds: Vec<String>,
    pub(crate) path: PathBuf,
}

/// What came of a run.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// `None` after a signal.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) calls: Vec<Call>,
}

impl Outcome {
    pub(crate) fn touched(&self) -> Option<&Call> {
        self.calls.iter().find(|call| call.is_touched)
    }
}

/// Says why there is no layer, and whether there is.
pub(crate) fn is_there() -> bool {
    if let Err(reason) = &*LIBRARY {
        println!("skipped: {reason}");
    }
    LIBRARY.is_ok()
}

/// The program, or another that is to be tried.
fn program() -> PathBuf {
    std::env::var_os("TERRANE").map_or(env!("CARGO_BIN_EXE_terrane").into(), Into::into)
}

fn command(folder: &Path, arguments: &[String]) -> Command {
    let mut command = Command::new(program());
    command
        .current_dir(folder)
        .args(arguments)
        .stdin(Stdio::null());
    command
}

/// Runs the program on top of the layer with a plan.
pub(crate) fn run(folder: &Path, arguments: &[String], plan: Option<&str>) -> Outcome {
    let log = tempfile::NamedTempFile::new().unwrap();
    let mut command = command(folder, arguments);
    command
        .env("LD_PRELOAD", LIBRARY.as_ref().unwrap())
        .env("TERRANE_FAULTS_FOLDER", folder)
        .env("TERRANE_FAULTS_LOG", log.path());
    if let Some(plan) = plan {
        command.env("TERRANE_FAULTS_PLAN", plan);
    }
    let output = command.output().unwrap();
    assert_ne!(
        output.status.code(),
        Some(99),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = std::fs::read_to_string(log.path()).unwrap();
    Outcome {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
        calls: text.lines().map(parsed).collect(),
    }
}

fn parsed(line: &str) -> Call {
    let parts: Vec<&str> = line.splitn(5, ' ').collect();
    let [number, name, mark, kinds, path] = parts[..] else {
        panic!("{line}");
    };
    Call {
        number: number.parse().unwrap(),
        name: name.to_owned(),
        is_touched: mark == "!",
        kinds: kinds.split_terminator(',').map(str::to_owned).collect(),
        path: path.into(),
    }
}

/// Runs the program without the layer.
pub(crate) fn run_plainly(folder: &Path, arguments: &[String]) -> Outcome {
    let output = command(folder, arguments).output().unwrap();
    Outcome {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
        calls: Vec::new(),
    }
}

/// Starts the program without the layer.
pub(crate) fn start(folder: &Path, arguments: &[String]) -> Child {
    command(folder, arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}
