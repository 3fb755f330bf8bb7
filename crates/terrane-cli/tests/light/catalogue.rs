//! What the map is told of several files: their order, and their attribution.

use serde_json::Value;

use crate::{address, serve, succeeds};

#[test]
fn files_keep_their_order_and_have_an_attribution() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| succeeds(folder.path(), arguments);
    run(&["generate", "dem.tif", "--size", "96x80"]);
    run(&["encode", "dem.tif", "dem.trn", "--method", "integers"]);
    let files = ["2024=dem.trn", "alps=dem.trn", "2019=dem.trn"];
    let text = "© A & B <img src=x>";
    let html = "© A &amp; B &lt;img src=x&gt;";
    let mut arguments = files.to_vec();
    arguments.extend(["--attribution", text, "--original", "alps=dem.tif"]);
    let mut server = serve(folder.path(), &arguments);
    let address = address(&mut server);
    let get = |path: &str| -> Value {
        let mut answer = ureq::get(format!("{address}{path}")).call().unwrap();
        serde_json::from_slice(&answer.body_mut().read_to_vec().unwrap()).unwrap()
    };
    let catalogue = get("/catalog.json");
    let names = ["2024", "alps", "alps-original", "2019"];
    assert_eq!(catalogue["names"], serde_json::json!(names));
    assert_eq!(catalogue["attribution"], html);
    for path in ["/alps", "/alps/slope", "/alps/contours"] {
        assert_eq!(get(path)["attribution"], html, "{path}");
    }

    let words = ["site", "--attribution", text];
    run(&[&words[..], &files[..], &["map"]].concat());
    let catalogue = std::fs::read(folder.path().join("map/catalog.json")).unwrap();
    let catalogue: Value = serde_json::from_slice(&catalogue).unwrap();
    assert_eq!(
        catalogue["names"],
        serde_json::json!(["2024", "alps", "2019"])
    );
    assert_eq!(catalogue["attribution"], html);
}
