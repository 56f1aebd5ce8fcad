//! The OpenAPI 3.1 document, made from the route table. Its schemas are those of the types that handlers use.

use hyper::StatusCode;
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::access::Access;
use crate::openai::ErrorBody;
use crate::problem::ProblemBody;
use crate::route::{Content, JSON, Route};

/// Where OpenAPI keeps named schemas.
const COMPONENTS: &str = "/components/schemas";

/// The document for these routes.
pub(crate) fn document(routes: &[Route]) -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = COMPONENTS.into();
        settings.meta_schema = None;
    });
    let mut schemas = settings.into_generator();
    let mut paths = Map::new();
    for route in routes {
        let operation = operation(route, &mut schemas);
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.method.as_str().to_lowercase()] = operation;
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Longhaul",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Sessions of an agent runtime: send inputs, follow events, answer questions.",
            "license": {"name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {
            "schemas": schemas.take_definitions(true),
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "cluster": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "What the nodes of a cluster share. It opens nothing else.",
                },
            },
        },
    })
}

fn operation(route: &Route, schemas: &mut SchemaGenerator) -> Value {
    let mut operation = json!({
        "summary": route.summary,
        "operationId": operation_id(route),
        "tags": [route.path.split('/').nth(1).unwrap_or_default()],
        "parameters": parameters(route, schemas),
        "responses": responses(route, schemas),
        "security": match route.access {
            Access::Open => json!([]),
            Access::Token(_) => json!([{"token": []}]),
            Access::Cluster => json!([{"cluster": []}]),
        },
    });
    if let Some(body) = route.body {
        operation["requestBody"] = json!({"required": !body.is_optional, "content": content(body, schemas)});
    }
    operation
}

/// `get_api_sessions_key` for `GET /api/sessions/{key}`.
fn operation_id(route: &Route) -> String {
    let words = route.path.split(|character: char| !character.is_ascii_alphanumeric());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    format!("{}_{}", route.method.as_str().to_lowercase(), words.join("_"))
}

fn parameters(route: &Route, schemas: &mut SchemaGenerator) -> Vec<Value> {
    let names = route.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let mut parameters: Vec<Value> = names
        .map(|name| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string", "minLength": 1}}))
        .collect();
    parameters.extend(route.headers.iter().map(|(name, description)| {
        let schema = json!({"type": "string"});
        json!({"name": name, "in": "header", "required": false, "description": description, "schema": schema})
    }));
    let Some(query) = route.query else { return parameters };
    let schema = resolve(query(schemas).to_value(), schemas);
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let is_required = required.iter().any(|required| required == name);
        parameters.push(json!({"name": name, "in": "query", "required": is_required, "schema": field}));
    }
    parameters
}

/// The schema that a reference names.
fn resolve(schema: Value, schemas: &SchemaGenerator) -> Value {
    let name = schema["$ref"].as_str().and_then(|reference| reference.rsplit('/').next());
    name.and_then(|name| schemas.definitions().get(name)).cloned().unwrap_or(schema)
}

fn responses(route: &Route, schemas: &mut SchemaGenerator) -> Value {
    let mut responses = Map::new();
    for (status, description) in common_failures(route) {
        let content = problem_content(route, schemas);
        responses.insert(status.as_str().to_owned(), json!({"description": description, "content": content}));
    }
    for response in &route.responses {
        let mut documented = json!({"description": response.description});
        let body = match response.content {
            _ if response.is_problem => Some(problem_content(route, schemas)),
            Some(body) => Some(content(body, schemas)),
            None => None,
        };
        let status = response.status.as_str();
        if let Some(body) = body {
            // One status may have bodies of several media types.
            let mut content =
                responses.get(status).map_or_else(|| json!({}), |known: &Value| known["content"].clone());
            for (media_type, schema) in body.as_object().into_iter().flatten() {
                content[media_type] = schema.clone();
            }
            documented["content"] = content;
        }
        if let Some(event) = route.event.filter(|_| response.status == StatusCode::OK) {
            // OpenAPI 3.1 has no word for the events of a stream.
            documented["x-event-data"] = event(schemas).to_value();
        }
        responses.insert(status.to_owned(), documented);
    }
    Value::Object(responses)
}

/// The failures that a route has because of its access, its parameters and its body. A route documents only its own.
fn common_failures(route: &Route) -> Vec<(StatusCode, &'static str)> {
    let has_path_parameter = route.path.contains('{');
    let takes_input = has_path_parameter || route.query.is_some() || route.body.is_some();
    let needs_token = route.access != Access::Open;
    let when = |holds: bool, status, description| holds.then_some((status, description));
    [
        when(takes_input, StatusCode::BAD_REQUEST, "The request can't be understood; the detail says why."),
        when(needs_token, StatusCode::UNAUTHORIZED, "There is no valid token."),
        when(
            needs_token,
            StatusCode::FORBIDDEN,
            "The token does not allow this, or another site sent the request.",
        ),
        when(has_path_parameter, StatusCode::NOT_FOUND, "There is nothing with this name."),
        when(
            route.access == Access::Cluster,
            StatusCode::NOT_FOUND,
            "The server has no cluster token, so the route is not there.",
        ),
        when(route.body.is_some(), StatusCode::PAYLOAD_TOO_LARGE, "The body is too large."),
        when(route.body.is_some(), StatusCode::UNSUPPORTED_MEDIA_TYPE, "The body has another media type."),
        when(
            needs_token,
            StatusCode::TOO_MANY_REQUESTS,
            "Too many requests; Retry-After says when to try again.",
        ),
        when(needs_token, StatusCode::SERVICE_UNAVAILABLE, "The journal can't be used now; try again later."),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn content(content: Content, schemas: &mut SchemaGenerator) -> Value {
    let schema =
        content.schema.map_or_else(|| json!({"type": "string"}), |schema| schema(schemas).to_value());
    json!({ content.media_type: {"schema": schema} })
}

fn problem_content(route: &Route, schemas: &mut SchemaGenerator) -> Value {
    if route.path.starts_with("/v1/") {
        return json!({ JSON: {"schema": schemas.subschema_for::<ErrorBody>()} });
    }
    let schema = schemas.subschema_for::<ProblemBody>();
    json!({ "application/problem+json": {"schema": schema}, })
}

/// The document as a response body.
pub(crate) fn document_json(routes: &[Route]) -> Vec<u8> {
    debug_assert!(
        routes.iter().all(|route| !route.responses.is_empty()),
        "each route documents what it answers"
    );
    document(routes).to_string().into_bytes()
}
