//! What is answered at which address.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use axum::body::Bytes;
use axum::extract::{MatchedPath, Path, Query, Request, State};
use axum::http::{
    Extensions, HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Version, header,
};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use futures_util::FutureExt;
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::time::timeout;
use tower_http::compression::predicate::{DefaultPredicate, Predicate};
use tower_http::compression::{CompressionLayer, CompressionLevel};
use tower_http::cors::{Any, CorsLayer};

use terrane::tiles::{Deadline, Format, Layer, MAX_ZOOM, MapTile, Nodata, TileRequest};

use crate::Server;
use crate::assets::{Asset, PAGE, asset};
use crate::catalogue::{catalogue, info};
use crate::dataset::Dataset;
use crate::failure::Failure;
use crate::metrics::Gauges;
use crate::point::{parse_count, parse_degrees, parse_line, point, profile};
use crate::tilejson::{attribute, contours_tilejson, tilejson};

/// How long a client may use a tile without asking again.
pub(crate) const CACHE_CONTROL: HeaderValue = HeaderValue::from_static("public, max-age=300");
/// The page and what it loads must be of one version.
const REVALIDATE: HeaderValue = HeaderValue::from_static("no-cache");
/// Changes when tiles are drawn differently.
const DRAWING: &str = concat!(env!("CARGO_PKG_VERSION"), "-3");
/// What vector tiles are.
const VECTOR_TILE: &str = "application/vnd.mapbox-vector-tile";
/// The only tile matrix set; titiler's and OGC's addresses name it.
const MATRIX_SET: &str = "WebMercatorQuad";
/// Nothing from elsewhere: the viewer needs no network.
const CONTENT_POLICY: &str = "default-src 'self'; img-src 'self' blob: data:; style-src 'self' 'unsafe-inline'; worker-src 'self' blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'";

type Shared = State<Arc<Server>>;

/// All routes.
pub(crate) fn router(server: Arc<Server>) -> Router {
    let cors = CorsLayer::new()
        .allow_origin(Any)
        .allow_methods([Method::GET, Method::HEAD])
        .allow_headers(Any)
        .expose_headers([
            header::ACCEPT_RANGES,
            header::CONTENT_LENGTH,
            header::CONTENT_RANGE,
            header::ETAG,
        ]);
    // Ranges are of bytes as they are.
    let has_no_ranges = |_: StatusCode, _: Version, headers: &HeaderMap, _: &Extensions| {
        !headers.contains_key(header::ACCEPT_RANGES)
    };
    let compression = CompressionLayer::new()
        // Not by a worker, so it must be quick: the best would take a tenth of a second for the map's script.
        .quality(CompressionLevel::Fastest)
        .compress_when(DefaultPredicate::new().and(has_no_ranges));
    Router::new()
        .route(
            "/",
            get(|headers: HeaderMap| async move { static_file(&PAGE, &headers) }),
        )
        .route("/assets/{name}", get(static_asset))
        .route("/favicon.ico", get(|| async { StatusCode::NO_CONTENT }))
        .route("/health", get(|| async { Json(json!({ "status": "ok" })) }))
        .route("/metrics", get(metrics))
        .route("/catalog", get(catalogue_of_all))
        .route("/catalog.json", get(catalogue_of_all))
        .route("/{name}", get(named))
        .route("/{name}/tilejson.json", get(height_tilejson))
        .route("/{name}/info", get(dataset_info))
        .route("/{name}/parts.json", get(parts_of))
        .route("/{name}/profile", get(profile_of))
        .route("/{name}/point/{degrees}", get(point_of))
        .route("/{name}/contours", get(contours_of))
        .route("/{name}/contours/tilejson.json", get(contours_of))
        .route("/{name}/contours/{z}/{x}/{y}", get(contour_tile))
        .route("/{name}/{layer}", get(layer_tilejson))
        .route("/{name}/{layer}/tilejson.json", get(layer_tilejson))
        .route("/{name}/{z}/{x}/{y}", get(height_tile))
        .route("/{name}/{layer}/{z}/{x}/{y}", get(layer_tile))
        .route("/{name}/tiles/{set}/{z}/{x}/{y}", get(set_tile))
        .fallback(|| async { Failure::missing("there is nothing at this address") })
        .method_not_allowed_fallback(|| async {
            let sentence = "this server answers GET and HEAD alone";
            let body = Json(json!({ "status": 405, "error": sentence }));
            (StatusCode::METHOD_NOT_ALLOWED, body)
        })
        .layer(compression)
        .layer(cors)
        .layer(from_fn_with_state(server.clone(), counted))
        .with_state(server)
}

/// The route of an answer, where one pattern has several.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Route(pub(crate) &'static str);

/// Counts every answer.
async fn counted(State(server): Shared, request: Request, next: Next) -> Response {
    let started = Instant::now();
    let route = request
        .extensions()
        .get::<MatchedPath>()
        .map_or("other", MatchedPath::as_str)
        .to_owned();
    // A panic ends no connection: its client learns of it, and the next request is answered.
    let answer = AssertUnwindSafe(next.run(request)).catch_unwind().await;
    let mut response = answer.unwrap_or_else(|_| Failure::fault().into_response());
    let own = response.extensions().get::<Route>();
    let route = own.map_or(route, |route| route.0.to_owned());
    let status = response.status().as_u16();
    server.metrics.answered(&route, status, started.elapsed());
    let headers = response.headers_mut();
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    response
}

/// A tag of an answer, as a header holds it.
pub(crate) fn tag(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    format!("\"{}\"", hex::encode(&hash.finalize()[..12]))
}

/// Whether the client has the answer already.
pub(crate) fn is_known(headers: &HeaderMap, tag: &str) -> bool {
    headers
        .get_all(header::IF_NONE_MATCH)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|known| {
            let known = known.trim();
            known == "*" || known.trim_start_matches("W/") == tag
        })
}

/// An answer with its tag; without its body where the client has it.
fn tagged(
    headers: &HeaderMap,
    tag: &str,
    media_type: &'static str,
    cache: HeaderValue,
    body: impl FnOnce() -> Bytes,
) -> Response {
    let mut response = if is_known(headers, tag) {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        let media_type = HeaderValue::from_static(media_type);
        ([(header::CONTENT_TYPE, media_type)], body()).into_response()
    };
    let answer = response.headers_mut();
    answer.insert(header::CACHE_CONTROL, cache);
    if let Ok(tag) = HeaderValue::from_str(tag) {
        answer.insert(header::ETAG, tag);
    }
    response
}

fn static_file(file: &'static Asset, headers: &HeaderMap) -> Response {
    let mut response = tagged(headers, &file.tag(), file.media_type, REVALIDATE, || {
        Bytes::from_static(file.bytes)
    });
    response.headers_mut().insert(
        HeaderName::from_static("content-security-policy"),
        HeaderValue::from_static(CONTENT_POLICY),
    );
    response
}

async fn static_asset(Path(name): Path<String>, headers: HeaderMap) -> Result<Response, Failure> {
    let file =
        asset(&name).ok_or_else(|| Failure::missing("the viewer has no file of this name"))?;
    Ok(static_file(file, &headers))
}

/// JSON with a tag made of itself.
fn json_answer(headers: &HeaderMap, value: &Value) -> Response {
    let text = value.to_string();
    tagged(
        headers,
        &tag(&[&text]),
        "application/json",
        REVALIDATE,
        || text.into(),
    )
}

async fn metrics(State(server): Shared) -> Response {
    let gauges = Gauges {
        working: server.pool.working(),
        waiting: server.pool.waiting(),
        connections: server
            .connections
            .load(std::sync::atomic::Ordering::Relaxed),
        blocks_decoded: server.blocks.decoded(),
        blocks_reused: server.blocks.reused(),
        block_bytes: server.blocks.bytes() + server.tiff_blocks.bytes(),
        tiff_blocks_decoded: server.tiff_blocks.decoded(),
        tile_bytes: server.tiles.weight() as usize,
    };
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    ([(header::CONTENT_TYPE, kind)], server.metrics.text(&gauges)).into_response()
}

async fn catalogue_of_all(State(server): Shared, headers: HeaderMap) -> Response {
    json_answer(&headers, &catalogue(&server))
}

impl Server {
    fn dataset(&self, name: &str) -> Result<&Arc<Dataset>, Failure> {
        self.find(name).ok_or_else(|| {
            Failure::missing("there is no file of this name here: /catalog lists all")
        })
    }

    /// The address of this server as the client sees it.
    fn base(&self, headers: &HeaderMap) -> String {
        if let Some(url) = &self.public_url {
            return url.trim_end_matches('/').to_owned();
        }
        let host = headers
            .get(header::HOST)
            .and_then(|host| host.to_str().ok())
            .filter(|host| {
                let is_plain =
                    |letter: char| letter.is_ascii_alphanumeric() || ".-:[]".contains(letter);
                !host.is_empty() && host.chars().all(is_plain)
            });
        host.map_or_else(String::new, |host| format!("http://{host}"))
    }

    fn layer(dataset: &Dataset, name: &str) -> Result<Layer, Failure> {
        let names = || {
            let all = Layer::ALL
                .into_iter()
                .filter(|layer| dataset.tiles.has_layer(*layer));
            all.map(Layer::name).collect::<Vec<_>>().join(", ")
        };
        Layer::parse(name)
            .filter(|layer| dataset.tiles.has_layer(*layer))
            .ok_or_else(|| {
                Failure::missing(format!(
                    "there is no such layer; the layers of {} are {}",
                    dataset.name,
                    names()
                ))
            })
    }
}

async fn dataset_info(
    State(server): Shared,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    Ok(json_answer(&headers, &info(server.dataset(&name)?)))
}

/// Where the bytes of a file are. Those who ask while it is read wait for the one that asked first.
async fn parts_of(
    State(server): Shared,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let dataset = server.dataset(&name)?;
    let found = dataset.parts.get_or_try_init(|| {
        let tiles = dataset.tiles.clone();
        server.pool.run(move |deadline| {
            let terrain = tiles.terrain().ok_or_else(|| {
                Failure::missing("the raster that a file was made from has no parts")
            })?;
            let parts = terrane::parts(terrain.reader(), &mut |_, _| deadline.check())?;
            serde_json::to_value(parts).map_err(|error| Failure::broken(&error))
        })
    });
    Ok(json_answer(&headers, found.await?))
}

/// Parts of an address after `?`; others are passed over, as a client may add what it needs.
#[derive(Deserialize, Default)]
struct Options {
    nodata: Option<String>,
    algorithm: Option<String>,
    format: Option<String>,
    line: Option<String>,
    points: Option<String>,
    interval: Option<String>,
}

type Asked = Result<Query<Options>, axum::extract::rejection::QueryRejection>;

fn options(asked: Asked) -> Result<Options, Failure> {
    asked
        .map(|Query(options)| options)
        .map_err(|_| Failure::bad("the part of the address after ? cannot be read"))
}

/// The TileJSON of a file; with an ending its bytes, by ranges.
async fn named(
    State(server): Shared,
    method: Method,
    Path(name): Path<String>,
    asked: Asked,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    match server.download(&name)? {
        Some(download) => server.send(download, &method, &headers).await,
        None => describe(&server, &name, None, &options(asked)?, &headers),
    }
}

async fn height_tilejson(
    State(server): Shared,
    Path(name): Path<String>,
    asked: Asked,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    describe(&server, &name, None, &options(asked)?, &headers)
}

async fn layer_tilejson(
    State(server): Shared,
    Path((name, layer)): Path<(String, String)>,
    asked: Asked,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    describe(&server, &name, Some(&layer), &options(asked)?, &headers)
}

fn describe(
    server: &Server,
    name: &str,
    layer: Option<&str>,
    options: &Options,
    headers: &HeaderMap,
) -> Result<Response, Failure> {
    let dataset = server.dataset(name)?;
    let layer = match layer {
        // titiler's address.
        None | Some(MATRIX_SET) => Layer::Height,
        Some(layer) => Server::layer(dataset, layer)?,
    };
    let format = format(options.format.as_deref().unwrap_or(Format::Png.extension()))?;
    let mut description = tilejson(dataset, layer, format, &server.base(headers));
    attribute(&mut description, server.attribution.as_deref());
    Ok(json_answer(headers, &description))
}

/// The interval between contour lines that is asked for.
fn parse_interval(text: Option<&str>) -> Result<Option<f64>, Failure> {
    let number = |text: &str| {
        let interval = text.parse().ok();
        interval
            .filter(|interval: &f64| *interval > 0.0 && interval.is_finite())
            .ok_or_else(|| Failure::bad("interval is a number of metres above 0"))
    };
    text.map(number).transpose()
}

async fn contours_of(
    State(server): Shared,
    Path(name): Path<String>,
    asked: Asked,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let dataset = server.dataset(&name)?;
    let interval = parse_interval(options(asked)?.interval.as_deref())?;
    let mut description = contours_tilejson(dataset, interval, &server.base(&headers))?;
    attribute(&mut description, server.attribution.as_deref());
    Ok(json_answer(&headers, &description))
}

async fn contour_tile(
    State(server): Shared,
    Path((name, z, x, y)): Path<(String, String, String, String)>,
    asked: Asked,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let dataset = server.dataset(&name)?.clone();
    let interval = parse_interval(options(asked)?.interval.as_deref())?;
    let (row, ending) = y.split_once('.').unwrap_or((&y, "mvt"));
    if !["mvt", "pbf"].contains(&ending) {
        return Err(Failure::bad("a tile of contour lines is .mvt"));
    }
    let tile = parse_tile([&z, &x, row])?;
    let interval = interval.unwrap_or_else(|| dataset.tiles.contour_interval(tile.z));
    let tag = tag(&[
        DRAWING,
        &dataset.identity,
        &format!("contours {tile:?} {interval}"),
    ]);
    let work = move |deadline| {
        let bytes = dataset.tiles.contours(tile, Some(interval), deadline)?;
        Ok(Bytes::from(bytes))
    };
    drawn(&server, &tag, VECTOR_TILE, &headers, work).await
}

async fn point_of(
    State(server): Shared,
    Path((name, degrees)): Path<(String, String)>,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let dataset = server.dataset(&name)?.clone();
    let degrees = parse_degrees(&degrees)?;
    let work = move |deadline| point(&dataset, degrees, deadline);
    Ok(json_answer(&headers, &server.pool.run(work).await?))
}

async fn profile_of(
    State(server): Shared,
    Path(name): Path<String>,
    asked: Asked,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let dataset = server.dataset(&name)?.clone();
    let options = options(asked)?;
    let line = parse_line(options.line.as_deref().unwrap_or_default())?;
    let count = parse_count(options.points.as_deref())?;
    let work = move |deadline| profile(&dataset, &line, count, deadline);
    Ok(json_answer(&headers, &server.pool.run(work).await?))
}

async fn height_tile(
    State(server): Shared,
    Path((name, z, x, y)): Path<(String, String, String, String)>,
    asked: Asked,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let options = options(asked)?;
    tile(&server, &name, None, [&z, &x, &y], &options, &headers).await
}

async fn layer_tile(
    State(server): Shared,
    Path((name, layer, z, x, y)): Path<(String, String, String, String, String)>,
    asked: Asked,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let options = options(asked)?;
    tile(
        &server,
        &name,
        Some(&layer),
        [&z, &x, &y],
        &options,
        &headers,
    )
    .await
}

/// titiler's address, where the layer is an algorithm.
async fn set_tile(
    State(server): Shared,
    Path((name, set, z, x, y)): Path<(String, String, String, String, String)>,
    asked: Asked,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    if set != MATRIX_SET {
        return Err(Failure::missing(format!(
            "the only tile matrix set is {MATRIX_SET}"
        )));
    }
    let options = options(asked)?;
    let layer = options.algorithm.as_deref();
    tile(&server, &name, layer, [&z, &x, &y], &options, &headers).await
}

fn format(extension: &str) -> Result<Format, Failure> {
    Format::parse(extension).ok_or_else(|| Failure::bad("a tile is .png or .webp"))
}

/// Reads `y`, `y.png`, `y@2x.webp`.
fn parse_last(text: &str) -> Result<(&str, usize, Format), Failure> {
    let (rest, extension) = text
        .split_once('.')
        .unwrap_or((text, Format::Png.extension()));
    let (row, scale) = rest.split_once('@').unwrap_or((rest, "1x"));
    let side = match scale {
        "1x" => TileRequest::SIDE,
        "2x" => 2 * TileRequest::SIDE,
        _ => return Err(Failure::bad("a tile is plain or @2x")),
    };
    Ok((row, side, format(extension)?))
}

fn parse_tile([z, x, y]: [&str; 3]) -> Result<MapTile, Failure> {
    let number = |text: &str| -> Option<u32> {
        let is_plain = text.len() <= 9 && text.bytes().all(|byte| byte.is_ascii_digit());
        is_plain.then(|| text.parse().ok()).flatten()
    };
    let (Some(z), Some(x), Some(y)) = (number(z), number(x), number(y)) else {
        return Err(Failure::bad("a tile is three integers, /zoom/column/row"));
    };
    u8::try_from(z)
        .ok()
        .and_then(|z| MapTile::new(z, x, y))
        .ok_or_else(|| {
            Failure::bad(format!(
                "there is no tile {z}/{x}/{y}: zooms are 0 to {MAX_ZOOM}, columns and rows below 2 to the power of the zoom"
            ))
        })
}

fn parse_nodata(text: Option<&str>) -> Result<Nodata, Failure> {
    match text {
        None | Some("lowest") => Ok(Nodata::Height(None)),
        Some("transparent") => Ok(Nodata::Transparent),
        Some(text) => {
            let height = text.parse().ok().filter(|height: &f64| height.is_finite());
            let height = height.ok_or_else(|| {
                Failure::bad("nodata is transparent, lowest or a height in metres")
            })?;
            Ok(Nodata::Height(Some(height)))
        }
    }
}

async fn tile(
    server: &Arc<Server>,
    name: &str,
    layer: Option<&str>,
    [z, x, y]: [&str; 3],
    options: &Options,
    headers: &HeaderMap,
) -> Result<Response, Failure> {
    let dataset = server.dataset(name)?.clone();
    let layer = layer.map_or(Ok(Layer::Height), |layer| Server::layer(&dataset, layer))?;
    let (y, side, format) = parse_last(y)?;
    let tile = parse_tile([z, x, y])?;
    let request = TileRequest {
        side,
        nodata: parse_nodata(options.nodata.as_deref())?,
        ..TileRequest::new(layer, tile)
    };
    // The tag needs no drawing: it changes with the file, the request and the program.
    let identity = |other: &Option<Arc<Dataset>>| {
        let other = other.as_ref();
        other.map_or(String::new(), |other| other.identity.clone())
    };
    let tag = tag(&[
        DRAWING,
        &dataset.identity,
        &identity(&dataset.original),
        &identity(&dataset.before),
        &format!("{request:?} {format:?}"),
    ]);
    let work = move |deadline| {
        let picture = dataset.tiles.tile(request, deadline)?;
        Ok(Bytes::from(picture.encode(format)?))
    };
    drawn(server, &tag, format.media_type(), headers, work).await
}

/// A tile with its tag: the one that the client has, one that was drawn before, or a new one.
async fn drawn(
    server: &Arc<Server>,
    tag: &str,
    media_type: &'static str,
    headers: &HeaderMap,
    work: impl FnOnce(Deadline) -> Result<Bytes, Failure> + Send + 'static,
) -> Result<Response, Failure> {
    if is_known(headers, tag) {
        return Ok(tagged(headers, tag, media_type, CACHE_CONTROL, Bytes::new));
    }
    // Those who ask for a tile that is being drawn wait for it.
    let found = timeout(
        server.pool.time(),
        server.tiles.get_value_or_guard_async(tag),
    );
    let guard = match found.await {
        Err(_) => return Err(Failure::late()),
        Ok(Ok(bytes)) => {
            server.metrics.tiles_reused.add(1);
            return Ok(tagged(headers, tag, media_type, CACHE_CONTROL, || bytes));
        }
        Ok(Err(guard)) => guard,
    };
    let bytes = server.pool.run(work).await?;
    server.metrics.tiles_drawn.add(1);
    // A tile that is too large to be kept is answered all the same.
    let _ = guard.insert(bytes.clone());
    Ok(tagged(headers, tag, media_type, CACHE_CONTROL, || bytes))
}
