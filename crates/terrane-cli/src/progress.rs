//! How far a command is, on standard error.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use indicatif::{ProgressBar, ProgressStyle};

/// How progress is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProgressMode {
    /// A bar on a terminal, else nothing.
    Auto,
    /// A line now and then.
    Plain,
    /// A JSON object per line.
    Json,
    /// Nothing.
    None,
}

/// Lines come at most this often.
const PAUSE: Duration = Duration::from_millis(500);

/// The progress of one task.
pub(crate) struct Progress {
    task: &'static str,
    shown: Shown,
    last: Option<Instant>,
}

enum Shown {
    Bar(ProgressBar),
    Plain,
    Json,
    Nothing,
}

impl Progress {
    /// Starts showing a task.
    pub(crate) fn new(task: &'static str, mode: ProgressMode) -> Self {
        let shown = match mode {
            ProgressMode::Auto if std::io::stderr().is_terminal() => {
                let bar = ProgressBar::new(0);
                if let Ok(style) =
                    ProgressStyle::with_template("{prefix} {bar:32} {pos}/{len} {eta} {msg}")
                {
                    bar.set_style(style);
                }
                bar.set_prefix(task);
                Shown::Bar(bar)
            }
            ProgressMode::Plain => Shown::Plain,
            ProgressMode::Json => Shown::Json,
            ProgressMode::Auto | ProgressMode::None => Shown::Nothing,
        };
        Self {
            task,
            shown,
            last: None,
        }
    }

    /// Shows that so many of so many parts are done.
    pub(crate) fn at(&mut self, done: u64, total: u64, what: &str) {
        if let Shown::Bar(bar) = &self.shown {
            bar.set_length(total);
            bar.set_position(done);
            bar.set_message(what.to_owned());
            return;
        }
        let is_due = done == total || self.last.is_none_or(|last| last.elapsed() >= PAUSE);
        if !is_due {
            return;
        }
        self.last = Some(Instant::now());
        let task = self.task;
        match self.shown {
            Shown::Plain => eprintln!("{task}: {done}/{total} {what}"),
            Shown::Json => eprintln!(
                "{}",
                serde_json::json!({ "task": task, "done": done, "total": total, "what": what })
            ),
            Shown::Bar(_) | Shown::Nothing => {}
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Shown::Bar(bar) = &self.shown {
            bar.finish_and_clear();
        }
    }
}
