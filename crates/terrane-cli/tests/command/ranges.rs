//! Files by ranges of their bytes, as GDAL and browsers read them from `terrane serve`.

use std::time::Duration;

use terrane_geo::RasterSource;

use crate::served::{Answer, Served, served};
use crate::{stdout, terrane};

/// What a client of ranges sees of other sites' answers.
const EXPOSED: [&str; 4] = ["accept-ranges", "content-length", "content-range", "etag"];

fn range(served: &Served, path: &str, range: &str) -> Answer {
    served.get_with(path, &[("range", range)])
}

fn head(served: &Served, path: &str) -> ureq::http::Response<ureq::Body> {
    let config = ureq::Agent::config_builder()
        .http_status_as_error(false)
        .timeout_global(Some(Duration::from_mins(1)))
        .build();
    let request = ureq::Agent::new_with_config(config).head(format!("{}{path}", served.address));
    request.header("range", "bytes=5-9").call().unwrap()
}

#[test]
fn a_file_is_a_geotiff_of_the_same_pixels() {
    let served = served();
    let answer = served.get("/dem.tif");
    assert_eq!(answer.status, 200);
    assert!(answer.header("content-type").starts_with("image/tiff"));
    assert_eq!(
        answer.header("content-length"),
        answer.body.len().to_string()
    );
    let folder = tempfile::tempdir().unwrap();
    let (made, decoded) = (
        folder.path().join("made.tif"),
        folder.path().join("decoded.tif"),
    );
    std::fs::write(&made, &answer.body).unwrap();
    let out = decoded.to_str().unwrap();
    stdout(&terrane(served.folder.path(), &["decode", "dem.trn", out]));
    let [made, decoded] = [made, decoded].map(|path| terrane_geo::open(&[path]).unwrap());
    let read = |raster: &dyn RasterSource| {
        let window = terrane_geo::Window::whole(700, 600);
        raster
            .read(0, window)
            .unwrap()
            .heights
            .iter()
            .map(|height| height.to_bits())
            .collect::<Vec<_>>()
    };
    assert!(read(made.as_ref()) == read(decoded.as_ref()));
    assert_eq!(made.info().georeference, decoded.info().georeference);
    assert_eq!(made.info().levels, [(700, 600), (350, 300), (175, 150)]);
}

#[test]
fn ranges_are_parts_of_the_whole() {
    let served = served();
    let file = std::fs::read(served.folder.path().join("dem.trn")).unwrap();
    for path in ["/dem.tif", "/dem.trn"] {
        let whole = served.get(path);
        assert_eq!(whole.header("accept-ranges"), "bytes");
        let (body, length) = (&whole.body, whole.body.len());
        if path == "/dem.trn" {
            assert!(*body == file);
        }
        for (from, end) in [
            (0, 1),
            (3, 17),
            (16_000, 17_000),
            (length / 2, length),
            (length - 1, length),
        ] {
            let answer = range(&served, path, &format!("bytes={from}-{}", end - 1));
            assert_eq!(answer.status, 206, "{path} {from}");
            let expected = format!("bytes {from}-{}/{length}", end - 1);
            assert_eq!(answer.header("content-range"), expected);
            assert_eq!(answer.header("content-length"), (end - from).to_string());
            assert!(answer.body == body[from..end], "{path} {from}");
        }
        let last = range(&served, path, "bytes=-100");
        assert!(last.status == 206 && last.body == body[length - 100..]);
        let open = range(&served, path, &format!("bytes={}-", length - 5));
        assert!(open.status == 206 && open.body == body[length - 5..]);
        let outside = range(&served, path, &format!("bytes={length}-"));
        assert_eq!((outside.status, outside.body.len()), (416, 0));
        assert_eq!(outside.header("content-range"), format!("bytes */{length}"));
        // Several, or none that can be read.
        for several in ["bytes=0-1,5-6", "bytes=9-2", "pages=1-2"] {
            let answer = range(&served, path, several);
            assert!(
                answer.status == 200 && answer.body.len() == length,
                "{several}"
            );
        }
    }
}

#[test]
fn a_head_is_everything_but_the_bytes() {
    let served = served();
    for path in ["/dem.tif", "/dem.trn"] {
        let whole = served.get(path);
        let mut answer = head(&served, path);
        assert_eq!(answer.status().as_u16(), 200);
        for name in ["content-length", "accept-ranges", "etag", "content-type"] {
            assert_eq!(
                answer.headers()[name].to_str().unwrap(),
                whole.header(name),
                "{name}"
            );
        }
        assert!(answer.body_mut().read_to_vec().unwrap().is_empty());
    }
}

#[test]
fn a_range_is_of_the_version_that_the_client_knows() {
    let served = served();
    for path in ["/dem.tif", "/dem.trn"] {
        let tag = range(&served, path, "bytes=0-0").header("etag").to_owned();
        let ask = |name: &str, value: &str| {
            served.get_with(path, &[("range", "bytes=0-9"), (name, value)])
        };
        assert_eq!(ask("if-range", &tag).status, 206);
        assert_eq!(ask("if-range", "\"another\"").status, 200);
        assert_eq!(ask("if-range", "Wed, 21 Oct 2015 07:28:00 GMT").status, 200);
        assert_eq!(ask("if-none-match", &tag).status, 304);
        assert_eq!(ask("if-none-match", "\"another\"").status, 206);
    }
}

#[test]
fn browsers_of_other_sites_see_ranges_and_nothing_is_compressed() {
    let served = served();
    for path in ["/dem.tif", "/dem.trn"] {
        let headers = [
            ("origin", "https://example.org"),
            ("accept-encoding", "gzip, br"),
        ];
        let whole = served.get_with(path, &headers);
        assert_eq!(whole.header("access-control-allow-origin"), "*");
        let exposed = whole.header("access-control-expose-headers");
        assert!(
            EXPOSED.iter().all(|name| exposed.contains(name)),
            "{exposed}"
        );
        assert_eq!(whole.header("content-encoding"), "");
        assert_eq!(whole.header("content-length"), whole.body.len().to_string());
    }
}

#[test]
fn what_is_no_file_has_no_bytes() {
    let served = served();
    for path in [
        "/dem.png",
        "/other.tif",
        "/dem-original.tif",
        "/dem-original.trn",
        "/.tif",
    ] {
        let answer = served.get(path);
        assert_eq!(answer.status, 404, "{path}");
        assert!(
            answer.json()["error"]
                .as_str()
                .is_some_and(|text| !text.is_empty())
        );
    }
    served.get("/dem.tif");
    let metrics = String::from_utf8(served.get("/metrics").body).unwrap();
    assert!(
        metrics.contains("route=\"/{name}.tif\",status=\"200\""),
        "{metrics}"
    );
    assert!(metrics.contains("terrane_tiff_blocks_decoded_total"));
}
