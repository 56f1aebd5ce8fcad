//! Talking to language models.
