// The definitions of version 1 of the schema, by method.
export const names = {
  results: {
    initialize: "InitializeResponse", authenticate: "AuthenticateResponse", "session/new": "NewSessionResponse",
    "session/load": "LoadSessionResponse", "session/resume": "ResumeSessionResponse", "session/list": "ListSessionsResponse",
    "session/prompt": "PromptResponse", "session/set_mode": "SetSessionModeResponse", "session/close": "CloseSessionResponse",
    "session/set_config_option": "SetSessionConfigOptionResponse",
  },
  requests: { "session/request_permission": "RequestPermissionRequest", "elicitation/create": "CreateElicitationRequest" },
  notifications: { "session/update": "SessionNotification", "$/cancel_request": "CancelRequestNotification" },
};
