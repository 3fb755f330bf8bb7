//! What goes to standard output, and what is said on standard error.

use std::io::{ErrorKind, Write};

use anyhow::{Context, Result};
use serde::Serialize;
pub(crate) use terrane::one_line;
use terrane::plain_lines;
pub(crate) use terrane_codec::shown;

use crate::streams::with_names;

/// Settings that the library's messages name, in backquotes as Python spells them.
const SETTINGS: [&str; 39] = [
    "any_extension",
    "band",
    "base",
    "bbox",
    "bits",
    "bound",
    "bpp",
    "columns",
    "crs",
    "device",
    "downloads",
    "effort",
    "embed_model",
    "fixed_width",
    "interval",
    "layers",
    "level",
    "lossless",
    "max_error",
    "max_zoom",
    "memory_limit",
    "method",
    "min_length",
    "model",
    "nodata",
    "omega",
    "overwrite",
    "per_tile",
    "python",
    "rate",
    "remote_timeout",
    "resolution",
    "resume",
    "rmse",
    "set",
    "step",
    "tile",
    "vertical_unit",
    "width",
];

/// A message of the library as a user of the command reads it: with options instead of settings.
pub(crate) fn with_options(message: &str) -> String {
    SETTINGS.iter().fold(message.to_owned(), |text, setting| {
        let option = format!("--{}", setting.replace('_', "-"));
        text.replace(&format!("`{setting}`"), &option)
    })
}

/// An error and its causes in one sentence.
pub(crate) fn sentence(error: &anyhow::Error) -> String {
    with_names(&with_options(&terrane::sentence(error.as_ref())))
}

/// Says on standard error what went wrong; whatever it quotes, it is one line and tells no password.
pub(crate) fn complain(who: &str, sentence: &str) {
    eprintln!(
        "{who}: {}",
        one_line(&terrane_codec::without_secrets(sentence))
    );
}

/// Prints text; control characters in it are shown instead of obeyed. A reader that has gone away, as `head` does, ends the program without complaint.
pub(crate) fn print(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match out
        .write_all(plain_lines(text).as_bytes())
        .and_then(|()| out.flush())
    {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => std::process::exit(0),
        outcome => outcome.context("standard output cannot be written"),
    }
}

/// Prints a value as JSON.
pub(crate) fn print_json(value: &impl Serialize) -> Result<()> {
    print(&format!(
        "{}\n",
        serde_json::to_string_pretty(value).context("the result cannot be written as JSON")?
    ))
}

/// A table with aligned columns; the first one is text, the others are numbers.
pub(crate) fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let mut widths: Vec<usize> = head.iter().map(|cell| cell.chars().count()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = |cells: &mut dyn Iterator<Item = &str>| -> String {
        let cells: Vec<String> = cells
            .zip(&widths)
            .enumerate()
            .map(|(column, (cell, &width))| {
                if column == 0 {
                    format!("{cell:<width$}")
                } else {
                    format!("{cell:>width$}")
                }
            })
            .collect();
        format!("{}\n", cells.join("  ").trim_end())
    };
    let mut text = line(&mut head.iter().copied());
    for row in rows {
        text.push_str(&line(&mut row.iter().map(String::as_str)));
    }
    text
}

/// A number of bytes as people read it.
pub(crate) fn bytes(count: u64) -> String {
    match count {
        0..10_000 => format!("{count} B"),
        10_000..10_000_000 => format!("{:.1} kB", count as f64 / 1e3),
        _ => format!("{:.1} MB", count as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_the_library_are_options_of_the_command() {
        let text = with_options("`max_error` must be above 0, not -1; see the feature `networks`");
        assert_eq!(
            text,
            "--max-error must be above 0, not -1; see the feature `networks`"
        );
    }

    /// A setting that the command does not have would be an option that nobody can give.
    #[cfg(feature = "lab")]
    #[test]
    fn every_setting_is_an_option_of_some_command() {
        fn options(command: &clap::Command, found: &mut Vec<String>) {
            let own = command.get_arguments().filter_map(clap::Arg::get_long);
            found.extend(own.map(ToOwned::to_owned));
            for command in command.get_subcommands() {
                options(command, found);
            }
        }
        let mut found = Vec::new();
        options(
            &<crate::Arguments as clap::CommandFactory>::command(),
            &mut found,
        );
        for setting in SETTINGS {
            let option = setting.replace('_', "-");
            assert!(found.contains(&option), "{option}");
        }
    }

    #[test]
    fn columns_are_aligned() {
        let rows = vec![
            vec!["a".into(), "1.5".into()],
            vec!["longer".into(), "10".into()],
        ];
        assert_eq!(
            table(&["name", "n"], &rows),
            "name      n\na       1.5\nlonger   10\n"
        );
    }
}
