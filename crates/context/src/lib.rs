//! What the model sees, as pure functions.
