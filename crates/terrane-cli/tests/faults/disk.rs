//! A disk that is full from some byte on.

use std::path::Path;
use std::process::Command;

use crate::{Extent, Scene, layer, scene};

/// Fills the disk at bytes of what a command writes: it says so, leaves nothing, and works once there is room.
fn fill(scene: &Scene, extent: Extent, points: usize) -> usize {
    let written: usize = scene
        .after
        .iter()
        .filter(|(name, bytes)| scene.before.get(*name) != Some(bytes))
        .map(|(_, bytes)| bytes.len())
        .sum();
    let mut count = 0;
    for index in extent.of(points, 3, scene.name.len()) {
        let room = written * index / points;
        let outcome = scene.run(&format!("1 full {room}"));
        let place = format!("{} with {room} bytes of {written}", scene.name);
        assert!(outcome.touched().is_some(), "{place}");
        assert_eq!(outcome.code, Some(2), "{place}: {}", outcome.stderr);
        assert!(
            outcome.stderr.contains("No space left on device"),
            "{place}: {}",
            outcome.stderr
        );
        let fault = Scene::fault_of_words(&outcome)
            .or_else(|| scene.fault_of_files(false, false))
            .or_else(|| scene.fault_of_going_on());
        assert_eq!(fault, None, "{place}");
        scene.reset();
        count += 1;
    }
    count
}

fn fill_all(extent: Extent, points: usize) {
    if !layer::is_there() {
        return;
    }
    let mut scenes = Vec::from(scene::going_on());
    scenes.extend(scene::writing());
    scenes.extend(scene::others());
    let mut count = 0;
    for scene in &scenes {
        count += fill(scene, extent, points);
    }
    println!("{count} full disks, in {} commands", scenes.len());
}

#[test]
fn a_full_disk_is_said_and_leaves_nothing() {
    fill_all(Extent::Quick, 3);
}

#[test]
#[ignore = "hundreds of runs: just test-faults"]
fn a_disk_that_fills_at_any_byte_is_said_and_leaves_nothing() {
    fill_all(Extent::Full, 40);
}

/// A file system that is really full, where this program may mount one.
#[test]
#[ignore = "needs the right to mount: just test-faults"]
fn a_small_file_system_fills_up() {
    let scene = scene::resumable();
    let length = |name: &str| scene.after[name].len();
    let mut count = 0;
    for share in 1..8 {
        // Room for the raster, the old file and a part of journal and new file.
        let room =
            (length("dem.tif") + length("x.trn") * (8 + 2 * share) / 8).next_multiple_of(4096);
        let folder = tempfile::tempdir().unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={room}"), "tmpfs"])
            .arg(folder.path())
            .output();
        if !mounted.is_ok_and(|output| output.status.success()) {
            println!("skipped: no file system may be mounted here");
            return;
        }
        let outcome = std::panic::catch_unwind(|| fill_mounted(&scene, folder.path()));
        let unmounted = Command::new("umount").arg(folder.path()).status();
        assert!(unmounted.unwrap().success());
        count += usize::from(outcome.unwrap());
    }
    println!("{count} of 7 small file systems filled up");
    assert!(count > 0);
}

/// Whether the disk filled up.
fn fill_mounted(scene: &Scene, folder: &Path) -> bool {
    for name in ["dem.tif", "x.trn"] {
        std::fs::write(folder.join(name), &scene.before[name]).unwrap();
    }
    let outcome = layer::run_plainly(folder, &scene.arguments);
    let mut now = scene::files(folder);
    let journal = now.remove("x.trn.journal");
    if outcome.code == Some(0) {
        assert!(journal.is_none() && now == scene.after);
        return false;
    }
    assert_eq!(outcome.code, Some(2));
    assert_eq!(Scene::fault_of_words(&outcome), None, "{}", outcome.stderr);
    assert!(
        outcome.stderr.contains("No space left on device"),
        "{}",
        outcome.stderr
    );
    assert!(now == scene.before, "{:?}", now.keys());
    true
}
