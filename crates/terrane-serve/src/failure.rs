//! What a request gets that cannot be answered: a status and one sentence as JSON.

use axum::Json;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;

use terrane::tiles::TileError;
use terrane::{one_line, sentence};
use terrane_codec::without_secrets;

/// Seconds after which a client that was turned away may try again.
const RETRY_AFTER: &str = "1";

/// A request that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) status: StatusCode,
    pub(crate) sentence: String,
}

impl Failure {
    fn new(status: StatusCode, sentence: impl Into<String>) -> Self {
        Self {
            status,
            sentence: sentence.into(),
        }
    }

    /// The request makes no sense.
    pub(crate) fn bad(sentence: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, sentence)
    }

    /// There is no such thing.
    pub(crate) fn missing(sentence: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, sentence)
    }

    /// Too many requests are waiting.
    pub(crate) fn busy() -> Self {
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "too many requests are waiting: try again",
        )
    }

    /// The answer took too long.
    pub(crate) fn late() -> Self {
        Self::new(
            StatusCode::GATEWAY_TIMEOUT,
            "the answer took longer than this server allows",
        )
    }

    /// Work panicked, which the log has already said.
    pub(crate) fn fault() -> Self {
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "a fault in terrane, please report it: the server's log says where",
        )
    }

    /// The file cannot be read; what was wrong goes to the log, not to the client.
    pub(crate) fn broken(error: &dyn std::error::Error) -> Self {
        let reason = sentence(error);
        eprintln!("terrane serve: {}", one_line(&without_secrets(&reason)));
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "the file could not be read: the server's log says why",
        )
    }
}

impl From<TileError> for Failure {
    fn from(error: TileError) -> Self {
        match error {
            TileError::Late => Self::late(),
            TileError::TooCoarse => Self::missing(error.to_string()),
            TileError::Levels(_)
            | TileError::FinerThanFile { .. }
            | TileError::TooManyLines { .. } => Self::bad(error.to_string().replace('`', "")),
            error => Self::broken(&error),
        }
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let body = Json(json!({ "status": self.status.as_u16(), "error": self.sentence }));
        let mut response = (self.status, body).into_response();
        let headers = response.headers_mut();
        headers.insert(
            header::CACHE_CONTROL,
            header::HeaderValue::from_static("no-store"),
        );
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert(
                header::RETRY_AFTER,
                header::HeaderValue::from_static(RETRY_AFTER),
            );
        }
        response
    }
}
