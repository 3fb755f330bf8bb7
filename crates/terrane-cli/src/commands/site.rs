//! `terrane site`: a folder for any static host.

use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail};
use terrane::OpenOptions;
use terrane_codec::shown;
use terrane_serve::{Error, Site};

use crate::Common;
use crate::commands::serve::{name_of, split_name};
use crate::commands::{RemoteArguments, existing};
use crate::output::{bytes, print, print_json};

/// Write a folder to upload: the web map of `terrane serve`, a decoder for the browser, and the files.
///
/// Any host that hands out files will do, if it answers range requests, as nearly all do; there is no server to run, and
/// nothing is loaded from elsewhere. Files are copied into the folder. One that is given by its web address stays there:
/// its host must let pages of others read it (CORS), and the address, with whatever it holds, is written into the folder.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  terrane site dem.trn map/\n  terrane site alps=a.trn jura=b.trn map/ --overwrite\n  terrane site https://example.org/dem.trn map/"
)]
pub(crate) struct Arguments {
    /// Terrane files, and last the folder to write; NAME=FILE gives a file another name than its own.
    #[arg(num_args = 2.., required = true, value_names = ["FILE.trn", "OUT"])]
    files: Vec<String>,
    /// Replace an existing folder, if it is a site.
    #[arg(long)]
    overwrite: bool,
    /// Attribution of the files, such as '© Survey': plain text, shown on the map.
    #[arg(long, value_name = "TEXT")]
    attribution: Option<String>,
    #[command(flatten)]
    remote: RemoteArguments,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, common: &Common) -> Result<()> {
    let Some((out, files)) = arguments.files.split_last() else {
        bail!("files and a folder are needed");
    };
    let out = PathBuf::from(out);
    let mut site = Site::new(arguments.attribution.as_deref());
    let mut names = Vec::new();
    for text in files {
        let (name, path) = split_name(text);
        let name = name.map_or_else(|| name_of(path), str::to_owned);
        add(&mut site, &name, path, arguments, common)?;
        names.push(name);
    }
    let size = site.write(&out, existing(arguments.overwrite))?;
    if common.json {
        let line = serde_json::json!({
            "folder": shown(&out), "names": names, "files": size.files, "bytes": size.bytes,
        });
        return print_json(&line);
    }
    print(&format!(
        "{}: {} files, {}, with {}; upload it, and open index.html there\n",
        out.display(),
        size.files,
        bytes(size.bytes),
        names.join(", ")
    ))
}

fn add(
    site: &mut Site,
    name: &str,
    path: &Path,
    arguments: &Arguments,
    common: &Common,
) -> Result<()> {
    let options = OpenOptions {
        model: None,
        memory: common.memory(),
        remote: arguments.remote.options(),
    };
    let terrain = terrane::open_with(path, &options)?;
    site.add(name, path, terrain).map_err(|error| match error {
        Error::DuplicateName { .. } => anyhow!("{error}: give one another as NAME=FILE"),
        error => error.into(),
    })
}
