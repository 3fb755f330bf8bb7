//! Kills at every call and at any moment; the same command goes on to the same bytes.

use std::time::{Duration, Instant};

use crate::{Extent, Scene, layer, random, scene};

/// Kills a command before its calls, and runs it again.
fn kill_at_calls(scene: &Scene, extent: Extent) -> usize {
    let mut kills = 0;
    for index in extent.of(scene.calls.len(), 12, scene.name.len()) {
        let call = &scene.calls[index];
        let outcome = scene.run(&format!("{} kill", call.number));
        assert_eq!(outcome.code, None, "{}: {call:?}", scene.name);
        kills += 1;
        let fault = scene
            .fault_of_files(false, true)
            .or_else(|| scene.fault_of_going_on());
        assert_eq!(fault, None, "{}: {call:?}", scene.name);
        scene.reset();
    }
    kills
}

/// Kills a command again and again, at moments within the time that it takes, until it has been killed so often.
fn kill_at_moments(scene: &Scene, count: usize, state: &mut u64) -> usize {
    let started = Instant::now();
    let outcome = layer::run_plainly(scene.path(), &scene.arguments);
    assert_eq!(outcome.code, Some(0));
    let time = started.elapsed();
    scene.reset();
    let mut kills = 0;
    while kills < count {
        // A few kills one after another before it may go on.
        for _ in 0..=random(state) % 3 {
            let mut program = layer::start(scene.path(), &scene.arguments);
            let share = (random(state) % 1000) as f64 / 1000.0;
            std::thread::sleep(time.mul_f64(share).max(Duration::from_micros(100)));
            program.kill().unwrap();
            // One that was done before is no kill.
            kills += usize::from(program.wait().unwrap().code().is_none());
            let fault = scene.fault_of_files(false, true);
            assert_eq!(fault, None, "{}", scene.name);
        }
        let fault = scene.fault_of_going_on();
        assert_eq!(fault, None, "{}", scene.name);
        scene.reset();
    }
    kills
}

fn kill(extent: Extent, moments: usize) {
    if !layer::is_there() {
        return;
    }
    let mut state = 0x9e37_79b9_7f4a_7c15;
    let mut scenes = Vec::from(scene::going_on());
    scenes.push(scene::replaced_site());
    for scene in scenes {
        let calls = kill_at_calls(&scene, extent);
        let times = kill_at_moments(&scene, moments, &mut state);
        println!(
            "{}: killed at {calls} calls and {times} moments",
            scene.name
        );
    }
}

#[test]
fn a_killed_command_goes_on() {
    kill(Extent::Quick, 6);
}

#[test]
#[ignore = "hundreds of kills: just test-faults"]
fn a_command_killed_at_every_call_and_at_hundreds_of_moments_goes_on() {
    kill(Extent::Full, 200);
}
