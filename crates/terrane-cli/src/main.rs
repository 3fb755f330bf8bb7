//! The `terrane` command: terrane files from elevation rasters, and back.
//!
//! Exit codes: 0 done, 1 a check did not hold, 2 an error, 101 a fault of the program, 130 stopped by Ctrl-C.

mod commands;
mod output;
mod progress;
mod streams;

#[cfg(not(feature = "lab"))]
use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::{Parser, Subcommand};

use commands::{
    CheckFailed, contour, decode, derive, diff, encode, generate, info, query, repair,
    serve as serving, shard, site, tiles, verify,
};
#[cfg(feature = "lab")]
use commands::{bench, dataset, demo, diagnose, eval, import, tables, train};
use output::{complain, one_line, sentence};
use progress::ProgressMode;
use terrane::Fault;
use terrane_codec::Resources;
use terrane_codec::format::MemoryLimit;

/// The system's allocator gives the memory of every large tensor back and takes it anew: half the time of a training.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Gives freed memory back to the system after a millisecond rather than ten: what encodes a country makes and frees the
/// pixels of a tree a few times a second, and would hold half as much again.
fn be_frugal() {
    // `mi_option_purge_delay`, which the crate has no name for.
    const PURGE_DELAY: libmimalloc_sys::mi_option_t = 15;
    #[expect(unsafe_code, reason = "a function of C")]
    // SAFETY: it sets a number that the allocator reads when it frees memory; any value is valid, at any time.
    unsafe {
        libmimalloc_sys::mi_option_set(PURGE_DELAY, 1);
    }
}

/// Whether a signal ends the program.
static IS_STOPPED: AtomicBool = AtomicBool::new(false);

/// Threads that are started at most for each core, and on machines with few.
const MAX_JOBS_PER_CORE: usize = 4;
const MAX_JOBS: usize = 64;

/// Terrane files: elevation rasters made small, with a guaranteed error.
#[derive(Parser)]
#[command(
    name = "terrane",
    version,
    propagate_version = true,
    arg_required_else_help = true
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    common: Common,
}

/// Options that every command takes.
#[derive(clap::Args)]
struct Common {
    /// How progress is shown on standard error: a bar on a terminal, lines, JSON lines, or nothing.
    #[arg(long, global = true, value_enum, default_value_t = ProgressMode::Auto)]
    progress: ProgressMode,
    /// Number of threads; all cores by default, and at most 4 for each core or 64.
    #[arg(long, global = true, value_name = "N")]
    jobs: Option<NonZeroUsize>,
    /// Memory that one file may take, in gigabytes; by default half of what this process can have, and 4.3 at most.
    /// A network that is trained or measured may take three quarters of it. What would take more is refused before it
    /// is taken.
    #[arg(long, global = true, value_name = "GB", value_parser = parse_memory)]
    memory_limit: Option<MemoryLimit>,
    /// Seconds that the command may take; then it ends with an error, and leaves nothing unfinished behind. For files and
    /// rasters of strangers: a few megabytes can say that they are 10¹⁶ pixels. Without it there is no limit.
    #[arg(long, global = true, value_name = "S", value_parser = parse_time)]
    time_limit: Option<Duration>,
    /// Print results as JSON.
    #[arg(long, global = true)]
    json: bool,
}

fn parse_time(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().ok().filter(|&seconds| seconds > 0.0);
    let time = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    time.ok_or_else(|| "a number of seconds above 0 is needed, such as 60".into())
}

fn parse_memory(text: &str) -> Result<MemoryLimit, String> {
    match text.parse::<f64>() {
        Ok(gigabytes) if gigabytes > 0.0 && gigabytes < 1e9 => Ok(MemoryLimit {
            bytes: (gigabytes * 1e9) as u64,
        }),
        _ => Err("a number of gigabytes is needed, such as 8".into()),
    }
}

impl Common {
    /// Memory that one file may take.
    fn memory(&self) -> MemoryLimit {
        self.memory_limit.unwrap_or_default()
    }

    /// Memory that a network which is trained or measured may take.
    fn network_memory(&self) -> MemoryLimit {
        self.memory_limit.unwrap_or_else(MemoryLimit::of_machine)
    }

    /// Threads and memory.
    fn resources(&self) -> Resources {
        Resources {
            jobs: commands::jobs(self),
            memory: self.memory(),
        }
    }
}

#[derive(Subcommand)]
enum Command {
    #[cfg(feature = "lab")]
    Demo(demo::Arguments),
    Encode(encode::Arguments),
    Decode(decode::Arguments),
    Query(query::Arguments),
    Repair(repair::Arguments),
    Derive(derive::Arguments),
    Contour(contour::Arguments),
    Diff(diff::Arguments),
    Info(info::Arguments),
    Serve(serving::Arguments),
    Site(site::Arguments),
    Tiles(tiles::Arguments),
    Verify(verify::Arguments),
    #[command(subcommand)]
    Shard(shard::Command),
    Generate(generate::Arguments),
    #[cfg(feature = "lab")]
    #[command(subcommand)]
    Dataset(dataset::Command),
    #[cfg(feature = "lab")]
    Train(train::Arguments),
    #[cfg(feature = "lab")]
    Eval(eval::Arguments),
    #[cfg(feature = "lab")]
    Bench(Box<bench::Arguments>),
    #[cfg(feature = "lab")]
    #[command(subcommand)]
    Diagnose(diagnose::Command),
    #[cfg(feature = "lab")]
    Import(import::Arguments),
    #[cfg(feature = "lab")]
    Tables(tables::Arguments),
    /// What the light program does not have.
    #[cfg(not(feature = "lab"))]
    #[command(external_subcommand)]
    Other(Vec<OsString>),
}

fn main() -> ExitCode {
    announce_faults();
    let mut arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return refuse(&error),
    };
    // Ctrl-C must not leave half-written files; destructors do not run then.
    let handler = ctrlc::set_handler(|| {
        // A server finishes what it has begun, unless it is told a second time.
        if terrane_serve::ask_to_stop() {
            return;
        }
        IS_STOPPED.store(true, Ordering::Release);
        terrane_geo::remove_unfinished();
        std::process::exit(130);
    });
    if let Err(error) = handler {
        complain(
            "terrane",
            &format!(
                "Ctrl-C cannot be caught ({error}); an interrupted run may leave a .part file"
            ),
        );
    }
    if let Some(limit) = arguments.common.time_limit {
        limit_time(limit);
    }
    limit_jobs(&mut arguments.common);
    if let Some(jobs) = arguments.common.jobs
        && let Err(error) = rayon::ThreadPoolBuilder::new()
            .num_threads(jobs.get())
            .build_global()
    {
        complain(
            "terrane",
            &format!("{jobs} threads cannot be started: {error}"),
        );
        return ExitCode::from(2);
    }
    let common = &arguments.common;
    let outcome = match arguments.command {
        #[cfg(feature = "lab")]
        Command::Demo(arguments) => demo::run(&arguments, common),
        Command::Encode(arguments) => {
            be_frugal();
            encode::run(&arguments, common)
        }
        Command::Decode(arguments) => decode::run(&arguments, common),
        Command::Query(arguments) => query::run(&arguments, common),
        Command::Repair(arguments) => repair::run(&arguments, common),
        Command::Derive(arguments) => derive::run(&arguments, common),
        Command::Contour(arguments) => contour::run(&arguments, common),
        Command::Diff(arguments) => diff::run(&arguments, common),
        Command::Info(arguments) => info::run(&arguments, common),
        Command::Serve(arguments) => serving::run(&arguments, common),
        Command::Site(arguments) => site::run(&arguments, common),
        Command::Tiles(arguments) => tiles::run(&arguments, common),
        Command::Verify(arguments) => verify::run(&arguments, common),
        Command::Shard(command) => {
            be_frugal();
            shard::run(&command, common)
        }
        Command::Generate(arguments) => generate::run(&arguments, common),
        #[cfg(feature = "lab")]
        Command::Dataset(command) => dataset::run(&command, common),
        #[cfg(feature = "lab")]
        Command::Train(arguments) => train::run(&arguments, common),
        #[cfg(feature = "lab")]
        Command::Eval(arguments) => eval::run(&arguments, common),
        #[cfg(feature = "lab")]
        Command::Bench(arguments) => bench::run(&arguments, common),
        #[cfg(feature = "lab")]
        Command::Diagnose(command) => diagnose::run(&command, common),
        #[cfg(feature = "lab")]
        Command::Import(arguments) => import::run(&arguments, common),
        #[cfg(feature = "lab")]
        Command::Tables(arguments) => tables::run(&arguments, common),
        #[cfg(not(feature = "lab"))]
        Command::Other(words) => Err(commands::absent(&words)),
    };
    // What is taken away under the hands of a command is no fault of it, and is taken away whole.
    while IS_STOPPED.load(Ordering::Acquire) {
        std::thread::park();
    }
    // What came or went through a pipe.
    terrane_geo::remove_unfinished();
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            fail(&sentence(&error), common.json);
            ExitCode::from(if error.is::<CheckFailed>() { 1 } else { 2 })
        }
    }
}

/// Says on standard error why the command ends, as a line of JSON where results are JSON.
fn fail(sentence: &str, json: bool) {
    if json {
        let sentence = one_line(&terrane_codec::without_secrets(sentence)).into_owned();
        eprintln!("{}", serde_json::json!({ "error": sentence }));
    } else {
        complain("terrane", sentence);
    }
}

/// Ends a command that was called in a way that there is none of, or shows its help.
fn refuse(error: &clap::Error) -> ExitCode {
    let json = std::env::args_os().any(|word| word == "--json");
    if json && error.use_stderr() {
        let text = error.to_string();
        let sentence = text.lines().next().unwrap_or_default();
        fail(sentence.trim_start_matches("error: "), true);
        return ExitCode::from(2);
    }
    error.exit()
}

/// Lets a panic, on whatever thread, say in one sentence that it is a fault of the program, and where; with
/// `RUST_BACKTRACE` also how it came to it.
fn announce_faults() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let fault = Fault::of(panic.payload());
        let place = panic.location().map(|at| format!(" ({at})"));
        complain("terrane", &format!("{fault}{}", place.unwrap_or_default()));
        if std::env::var_os("RUST_BACKTRACE").is_some_and(|asked| asked != "0") {
            usual(panic);
        }
    }));
}

/// Ends the program when a time has passed, whatever it is doing, as Ctrl-C would.
fn limit_time(limit: Duration) {
    std::thread::spawn(move || {
        std::thread::sleep(limit);
        IS_STOPPED.store(true, Ordering::Release);
        terrane_geo::remove_unfinished();
        let seconds = limit.as_secs_f64();
        complain(
            "terrane",
            &format!(
                "stopped: --time-limit {seconds}: the command takes longer than so many seconds"
            ),
        );
        std::process::exit(2);
    });
}

/// Takes as many threads as a machine can make use of: more only wait for each other, and every one has memory.
fn limit_jobs(common: &mut Common) {
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let most = MAX_JOBS.max(cores.saturating_mul(MAX_JOBS_PER_CORE));
    if let (Some(asked), Some(most)) = (common.jobs, NonZeroUsize::new(most))
        && asked > most
    {
        eprintln!(
            "terrane: --jobs {asked}: {most} threads are started; more would only slow {cores} cores down"
        );
        common.jobs = Some(most);
    }
}
