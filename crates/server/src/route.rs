//! One entry of the route table. The table makes the router, the OpenAPI document, and the tests of both.

use axum::Router;
use axum::handler::Handler;
use axum::middleware::from_fn_with_state;
use axum::routing::{MethodFilter, MethodRouter, on};
use hyper::{Method, StatusCode};
use schemars::{JsonSchema, Schema, SchemaGenerator};

use crate::access::{Access, check_access};
use crate::state::ServerState;

/// Makes the schema of a type.
pub(crate) type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

pub(crate) const JSON: &str = "application/json";
pub(crate) const EVENT_STREAM: &str = "text/event-stream";
pub(crate) const PLAIN_TEXT: &str = "text/plain; charset=utf-8";

/// A method and a path with what it does, who may call it, what it takes, and every status it can answer.
pub(crate) struct Route {
    pub(crate) method: Method,
    /// With parameters in braces, as both axum and OpenAPI write them.
    pub(crate) path: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) access: Access,
    pub(crate) query: Option<SchemaOf>,
    /// Request headers that the handler reads, with what they mean.
    pub(crate) headers: Vec<(&'static str, &'static str)>,
    pub(crate) body: Option<Content>,
    /// The data of the events that the route streams.
    pub(crate) event: Option<SchemaOf>,
    pub(crate) responses: Vec<DocumentedResponse>,
    handler: MethodRouter<ServerState>,
}

/// The media type of a body, and its schema if it is JSON.
#[derive(Clone, Copy)]
pub(crate) struct Content {
    pub(crate) media_type: &'static str,
    pub(crate) schema: Option<SchemaOf>,
    /// Whether a request may leave the body out.
    pub(crate) is_optional: bool,
}

/// A status that a route can answer.
pub(crate) struct DocumentedResponse {
    pub(crate) status: StatusCode,
    pub(crate) description: &'static str,
    /// `None` for an empty body; problems have their own schema.
    pub(crate) content: Option<Content>,
    /// Whether this is an error, so its body is a problem.
    pub(crate) is_problem: bool,
}

impl Content {
    pub(crate) fn json<T: JsonSchema>() -> Self {
        Self { media_type: JSON, schema: Some(SchemaGenerator::subschema_for::<T>), is_optional: false }
    }
}

impl Route {
    pub(crate) fn new<H, T>(
        method: Method,
        path: &'static str,
        access: Access,
        summary: &'static str,
        handler: H,
    ) -> Self
    where
        H: Handler<T, ServerState>,
        T: 'static,
    {
        let filter = MethodFilter::try_from(method.clone()).expect("routes use the methods that axum knows");
        let handler = on(filter, handler);
        Self {
            method,
            path,
            summary,
            access,
            query: None,
            headers: vec![],
            body: None,
            event: None,
            responses: vec![],
            handler,
        }
    }

    /// The query parameters are the fields of `Q`.
    pub(crate) fn query<Q: JsonSchema>(mut self) -> Self {
        self.query = Some(SchemaGenerator::subschema_for::<Q>);
        self
    }

    /// The request body is a JSON `B`.
    pub(crate) fn body<B: JsonSchema>(mut self) -> Self {
        self.body = Some(Content::json::<B>());
        self
    }

    /// The request body is a JSON `B`, or left out.
    pub(crate) fn optional_body<B: JsonSchema>(mut self) -> Self {
        self.body = Some(Content { is_optional: true, ..Content::json::<B>() });
        self
    }

    /// The request body has this media type and is not JSON.
    pub(crate) fn raw_body(mut self, media_type: &'static str) -> Self {
        self.body = Some(Content { media_type, schema: None, is_optional: false });
        self
    }

    /// Answers this status with a JSON `R`.
    pub(crate) fn answers<R: JsonSchema>(self, status: StatusCode, description: &'static str) -> Self {
        self.respond(status, description, Some(Content::json::<R>()), false)
    }

    /// Answers this status with an empty body.
    pub(crate) fn answers_empty(self, status: StatusCode, description: &'static str) -> Self {
        self.respond(status, description, None, false)
    }

    /// Answers 200 with server-sent events, each with a JSON `E` as data.
    pub(crate) fn answers_events<E: JsonSchema>(mut self, description: &'static str) -> Self {
        self.event = Some(SchemaGenerator::subschema_for::<E>);
        self.answers_raw(EVENT_STREAM, description)
    }

    /// Answers 200 with a body of this media type.
    pub(crate) fn answers_raw(self, media_type: &'static str, description: &'static str) -> Self {
        self.respond(
            StatusCode::OK,
            description,
            Some(Content { media_type, schema: None, is_optional: false }),
            false,
        )
    }

    /// Reads this request header, if the client sends it.
    pub(crate) fn header(mut self, name: &'static str, description: &'static str) -> Self {
        self.headers.push((name, description));
        self
    }

    /// May fail with this status, beside the failures that every such route has (see `openapi`).
    pub(crate) fn fails(self, status: StatusCode, description: &'static str) -> Self {
        self.respond(status, description, None, true)
    }

    fn respond(
        mut self,
        status: StatusCode,
        description: &'static str,
        content: Option<Content>,
        is_problem: bool,
    ) -> Self {
        self.responses.push(DocumentedResponse { status, description, content, is_problem });
        self
    }

    /// Adds the route to a router, behind the check of its access.
    fn mount(self, router: Router<ServerState>, state: &ServerState) -> Router<ServerState> {
        let check = from_fn_with_state((state.clone(), self.access), check_access);
        router.route(self.path, self.handler.layer(check))
    }
}

/// The router of a table of routes.
pub(crate) fn router(routes: Vec<Route>, state: &ServerState) -> Router {
    let router = routes.into_iter().fold(Router::new(), |router, route| route.mount(router, state));
    router.with_state(state.clone())
}
