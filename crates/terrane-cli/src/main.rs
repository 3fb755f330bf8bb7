//! The `terrane` command: neural terrain files from elevation rasters, and back.
//!
//! Exit codes: 0 done, 1 a check did not hold, 2 an error, 130 stopped by Ctrl-C.

mod commands;
mod output;
mod progress;
mod projection;
mod serve;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use commands::{
    CheckFailed, bench, dataset, decode, demo, derive, diagnose, encode, eval, generate, import,
    info, query, serve as serving, shard, tables, train, verify,
};
use progress::ProgressMode;
use terrane_convert::placement;

/// The system's allocator gives the memory of every large tensor back and takes it anew: half the time of a training.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

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
    /// Number of threads; all cores by default.
    #[arg(long, global = true, value_name = "N")]
    jobs: Option<std::num::NonZeroUsize>,
    /// Print results as JSON.
    #[arg(long, global = true)]
    json: bool,
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
    let arguments = Arguments::parse();
    // Ctrl-C must not leave half-written files; destructors do not run then.
    let handler = ctrlc::set_handler(|| {
        // A server finishes what it has begun, unless it is told a second time.
        if serve::ask_to_stop() {
            return;
        }
        terrane_geo::remove_unfinished();
        std::process::exit(130);
    });
    if let Err(error) = handler {
        eprintln!(
            "terrane: Ctrl-C cannot be caught ({error}); an interrupted run may leave a .part file"
        );
    }
    if let Some(jobs) = arguments.common.jobs
        && let Err(error) = rayon::ThreadPoolBuilder::new()
            .num_threads(jobs.get())
            .build_global()
    {
        eprintln!("terrane: {jobs} threads cannot be started: {error}");
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
            eprintln!("terrane: {error:#}");
            ExitCode::from(if error.is::<CheckFailed>() { 1 } else { 2 })
        }
    }
}
