//! What is measured after a training is in full, whatever the training's precision. The switches belong to the process: one test.

use burn::tensor::Device;
use terrane_networks::methods::Precision;
use terrane_train::evaluate::evaluate;
use terrane_train::fixture::{config, dataset};
use terrane_train::training::{Start, train};

#[test]
fn a_precision_ends_with_its_scope() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = dataset(folder.path());
    let config = config(&["train.precision=tf32"]);
    let device = Device::flex();
    let mut between_steps = Vec::new();
    let model = train(
        &config,
        &dataset,
        &folder.path().join("run"),
        Start::New,
        std::slice::from_ref(&device),
        None,
        &mut |_| between_steps.push(Precision::may_round()),
    )
    .unwrap();
    assert_eq!(between_steps, [false; 6]);
    assert!(!Precision::may_round());

    let scope = Precision::Tf32.scope();
    assert!(Precision::may_round());
    {
        let _scope = Precision::Full.scope();
        assert!(!Precision::may_round());
    }
    evaluate(&model, &config, &dataset, &[0], &device).unwrap();
    assert!(Precision::may_round());
    drop(scope);
    assert!(!Precision::may_round());
}
