//! Every call on a file fails in turn, in every way in which it can.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::layer::Outcome;
use crate::scene::is_part;
use crate::{Extent, Scene, layer, scene};

/// What must go unnoticed.
const INVISIBLE: [&str; 3] = ["eintr", "short", "delay"];

/// Faults of a scene: how many were tried by kind, and what went wrong.
fn try_all(scene: &Scene, extent: Extent, tried: &mut BTreeMap<String, usize>) -> Vec<String> {
    let faults: Vec<(usize, &str)> = scene
        .calls
        .iter()
        .flat_map(|call| call.kinds.iter().map(|kind| (call.number, &**kind)))
        .filter(|(_, kind)| *kind != "kill")
        .collect();
    let mut wrong = Vec::new();
    for index in extent.of(faults.len(), 16, scene.name.len()) {
        let (number, kind) = faults[index];
        let outcome = scene.run(&format!("{number} {kind}"));
        // Threads may take turns in another order, and then another call is the one.
        let Some(call) = outcome.touched() else {
            continue;
        };
        *tried.entry(kind.to_owned()).or_default() += 1;
        if let Some(fault) = fault(scene, &outcome, kind) {
            let place = call.path.strip_prefix(scene.path()).unwrap_or(&call.path);
            wrong.push(format!(
                "{}: {kind} at call {number}, {} of {}: {fault}; exit {:?}: {}",
                scene.name,
                call.name,
                place.display(),
                outcome.code,
                outcome.stderr.trim_end(),
            ));
        }
        scene.reset();
    }
    wrong
}

/// Whether the call that failed was to remove a file of such a name.
fn is_kept(outcome: &Outcome, ending: &str) -> bool {
    outcome.touched().is_some_and(|call| {
        call.name == "unlink" && call.path.extension().is_some_and(|end| end == ending)
    })
}

/// Whether the call that failed was on something unfinished, or in it.
fn is_on_part(outcome: &Outcome) -> bool {
    let call = outcome.touched();
    call.is_some_and(|call| is_part(&call.path.to_string_lossy()))
}

/// What is wrong after a fault.
fn fault(scene: &Scene, outcome: &Outcome, kind: &str) -> Option<String> {
    match outcome.code {
        // The file is there; what cannot be removed is named.
        Some(0) if kind == "eio" && is_kept(outcome, "journal") => {
            let is_said = outcome.stderr.contains("cannot be removed");
            (!is_said).then(|| "the journal that stays is not named".to_owned())
        }
        Some(0) => {
            // What cannot be removed stays until the next program removes it.
            let may_stay = matches!(kind, "eio" | "emfile") && is_on_part(outcome);
            scene
                .fault_of_files(true, may_stay)
                .or_else(|| (outcome.stdout != scene.stdout).then(|| "another answer".to_owned()))
        }
        _ if INVISIBLE.contains(&kind) => Some("it should have gone unnoticed".to_owned()),
        Some(2) => Scene::fault_of_words(outcome)
            .or_else(|| scene.fault_of_files(false, false))
            .or_else(|| scene.fault_of_going_on()),
        _ => Some("another end than success or a sentence".to_owned()),
    }
}

fn try_scenes(scenes: &[Scene], extent: Extent) {
    let tried = Mutex::new(BTreeMap::new());
    let wrong = Mutex::new(Vec::new());
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(scene) = scenes.get(next.fetch_add(1, Ordering::Relaxed)) {
            assert!(scene.is_untouched());
            let mut own = BTreeMap::new();
            let faults = try_all(scene, extent, &mut own);
            for fault in &faults {
                println!("unmastered: {fault}");
            }
            let count: usize = own.values().sum();
            let calls = scene.calls.len();
            println!("{}: {calls} calls, {count} faults", scene.name);
            wrong.lock().unwrap().extend(faults);
            let mut tried = tried.lock().unwrap();
            for (kind, count) in own {
                *tried.entry(kind).or_insert(0) += count;
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    let (tried, wrong) = (tried.into_inner().unwrap(), wrong.into_inner().unwrap());
    let all: usize = tried.values().sum();
    println!("{all} faults {tried:?}, {} unmastered", wrong.len());
    assert!(all > 0);
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn some_calls_of_encoding_fail() {
    if layer::is_there() {
        try_scenes(&[scene::resumable(), scene::resumed()], Extent::Quick);
    }
}

#[test]
fn some_calls_of_shards_fail() {
    if layer::is_there() {
        try_scenes(&[scene::shard(), scene::merge()], Extent::Quick);
    }
}

#[test]
fn some_calls_of_other_commands_fail() {
    if layer::is_there() {
        try_scenes(&scene::writing(), Extent::Quick);
        try_scenes(&scene::others(), Extent::Quick);
        try_scenes(&scene::reading(), Extent::Quick);
    }
}

#[test]
#[ignore = "thousands of runs: just test-faults"]
fn every_call_fails() {
    if layer::is_there() {
        let mut scenes = Vec::from(scene::going_on());
        scenes.extend(scene::writing());
        scenes.extend(scene::others());
        scenes.extend(scene::reading());
        try_scenes(&scenes, Extent::Full);
    }
}
