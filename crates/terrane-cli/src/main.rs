//! The `terrane` command: neural terrain files from elevation rasters, and back.
//!
//! Exit codes: 0 done, 1 a check did not hold, 2 an error, 130 stopped by Ctrl-C.

mod commands;
mod output;
mod points;
mod progress;

use std::num::NonZeroUsize;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::{Parser, Subcommand};

use commands::{
    CheckFailed, bench, dataset, decode, demo, derive, diagnose, encode, eval, generate, import,
    info, query, serve as serving, shard, tables, train, verify,
};
use output::{complain, sentence};
use progress::ProgressMode;
use terrane::Resources;
use terrane::format::MemoryLimit;
use terrane_convert::placement;

/// The system's allocator gives the memory of every large tensor back and takes it anew: half the time of a training.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Whether a signal ends the program.
static IS_STOPPED: AtomicBool = AtomicBool::new(false);

/// Threads that are started at most for each core, and on machines with few.
const MOST_JOBS_PER_CORE: usize = 4;
const MOST_JOBS: usize = 64;

/// Neural terrain files: elevation rasters made small, with a guaranteed error.
#[derive(Parser)]
#[command(version, propagate_version = true, arg_required_else_help = true)]
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
    /// Print results as JSON.
    #[arg(long, global = true)]
    json: bool,
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
    Demo(demo::Arguments),
    Encode(encode::Arguments),
    Decode(decode::Arguments),
    Query(query::Arguments),
    Derive(derive::Arguments),
    Info(info::Arguments),
    Serve(serving::Arguments),
    Verify(verify::Arguments),
    #[command(subcommand)]
    Shard(shard::Command),
    Generate(generate::Arguments),
    #[command(subcommand)]
    Dataset(dataset::Command),
    Train(train::Arguments),
    Eval(eval::Arguments),
    Bench(bench::Arguments),
    #[command(subcommand)]
    Diagnose(diagnose::Command),
    Import(import::Arguments),
    Tables(tables::Arguments),
}

fn main() -> ExitCode {
    let mut arguments = Arguments::parse();
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
        Command::Demo(arguments) => demo::run(&arguments, common),
        Command::Encode(arguments) => encode::run(&arguments, common),
        Command::Decode(arguments) => decode::run(&arguments, common),
        Command::Query(arguments) => query::run(&arguments, common),
        Command::Derive(arguments) => derive::run(&arguments, common),
        Command::Info(arguments) => info::run(&arguments, common),
        Command::Serve(arguments) => serving::run(&arguments, common),
        Command::Verify(arguments) => verify::run(&arguments, common),
        Command::Shard(command) => shard::run(&command, common),
        Command::Generate(arguments) => generate::run(&arguments, common),
        Command::Dataset(command) => dataset::run(&command, common),
        Command::Train(arguments) => train::run(&arguments, common),
        Command::Eval(arguments) => eval::run(&arguments, common),
        Command::Bench(arguments) => bench::run(&arguments, common),
        Command::Diagnose(command) => diagnose::run(&command, common),
        Command::Import(arguments) => import::run(&arguments, common),
        Command::Tables(arguments) => tables::run(&arguments, common),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // What is taken away under the hands of a command is no fault of it.
            while IS_STOPPED.load(Ordering::Acquire) {
                std::thread::park();
            }
            complain("terrane", &sentence(&error));
            ExitCode::from(if error.is::<CheckFailed>() { 1 } else { 2 })
        }
    }
}

/// Takes as many threads as a machine can make use of: more only wait for each other, and every one has memory.
fn limit_jobs(common: &mut Common) {
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let most = MOST_JOBS.max(cores.saturating_mul(MOST_JOBS_PER_CORE));
    if let (Some(asked), Some(most)) = (common.jobs, NonZeroUsize::new(most))
        && asked > most
    {
        eprintln!(
            "terrane: --jobs {asked}: {most} threads are started; more would only slow {cores} cores down"
        );
        common.jobs = Some(most);
    }
}
